//! Later stages of an announced outage: changed regions, the end, and the updates about them.

use super::{AutomaticIncidents, silent_change, texts};
use crate::alert_settings::AnnouncedOutage;
use crate::flapping::Flapping;
use crate::id::{IncidentId, MonitorId};
use crate::incident::IncidentEvent;
use crate::time::Timestamp;
use crate::vantage::RegionSet;

impl AutomaticIncidents {
    /// Updates the text of the last update after the regions that a monitor is down from changed.
    pub(super) fn on_scope_change(
        &mut self,
        monitor: MonitorId,
        down_from: Option<RegionSet>,
    ) -> Option<IncidentEvent> {
        let before = self.outages.change_scope(monitor, down_from)?;
        self.rewrite_scope(monitor, &before, down_from).then_some(before.incident?).map(silent_change)
    }

    /// Handles a monitor that is up again while others of its incident may still be down: posts an update.
    /// While it flaps, only the number of changes is refreshed.
    pub(super) fn on_recovery(
        &mut self,
        monitor: MonitorId,
        flaps: Option<Flapping>,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<IncidentEvent> {
        let ended = self.end_outage(monitor);
        let renewed = flaps.and_then(|flapping| self.refresh_flapping(monitor, flapping));
        if renewed.is_some() {
            return renewed;
        }
        self.outages.flapping.remove(&monitor);
        let (id, is_restated) = ended?;
        let is_open = self.incidents.get(&id).is_some_and(|it| it.automatic && it.is_open());
        if let Some(flapping) = flaps.filter(|_| is_open) {
            return self.report_flapping(monitor, id, flapping, at, random);
        }
        let lasts = self.outages.down.values().any(|outage| outage.incident == Some(id));
        match self.monitors.get(&monitor).filter(|_| is_open && lasts) {
            Some(watched) => self.add_update(id, texts::recovered_text(watched, self.locale()), false, at, random),
            None => is_restated.then(|| silent_change(id)),
        }
    }

    /// Ends a monitor's outage. Regions recover one after another, so the last update names fewer and fewer;
    /// it now names the widest scope instead. Returns the incident, and whether its text changed.
    pub(super) fn end_outage(&mut self, monitor: MonitorId) -> Option<(IncidentId, bool)> {
        let (outage, widest) = self.outages.remove(monitor)?;
        let is_restated = outage.down_from != widest && self.rewrite_scope(monitor, &outage, widest);
        Some((outage.incident?, is_restated))
    }

    /// Rewrites the regions in the last update about an outage. Returns true if there was one.
    fn rewrite_scope(&mut self, monitor: MonitorId, outage: &AnnouncedOutage, down_from: Option<RegionSet>) -> bool {
        let locale = self.locale();
        let incident = outage.incident.and_then(|id| self.incidents.get_mut(&id));
        let incident = incident.filter(|incident| incident.automatic && incident.is_open());
        let (Some(incident), Some(watched)) = (incident, self.monitors.get(&monitor)) else { return false };
        let ways = texts::possible_texts(watched, outage);
        // Earlier updates are about another outage.
        let mut updates = incident.updates.iter_mut().rev().take_while(|update| update.created_at >= outage.since);
        let last = updates.find_map(|update| {
            let (_, again) = ways.iter().find(|(text, _)| *text == update.body)?;
            Some((update, *again))
        });
        let Some((update, again)) = last else { return false };
        update.body = texts::down_text(watched, &AnnouncedOutage { down_from, ..outage.clone() }, again, locale);
        true
    }
}
