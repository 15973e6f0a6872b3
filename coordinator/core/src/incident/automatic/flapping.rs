//! Flapping monitors in automatic incidents: one update that is refreshed in place, and one at the end.

use super::{AutomaticIncidents, OutageEnd, silent_change, texts};
use crate::alert_settings::FlappingUpdate;
use crate::flapping::{Flapping, FlappingEnd};
use crate::id::{IncidentId, MonitorId};
use crate::incident::IncidentEvent;
use crate::time::Timestamp;

impl AutomaticIncidents {
    /// Refreshes the number of changes in the flapping update, if there is one. An incident that a person
    /// took over or closed is left alone.
    pub(super) fn refresh_flapping(&mut self, monitor: MonitorId, flapping: Flapping) -> Option<IncidentEvent> {
        let notice = *self.outages.flapping.get(&monitor)?;
        let locale = self.locale();
        let incident = self.incidents.get_mut(&notice.incident).filter(|it| it.automatic && it.is_open());
        let (Some(incident), Some(watched)) = (incident, self.monitors.get(&monitor)) else {
            self.outages.flapping.remove(&monitor);
            return None;
        };
        let update = notice.update.and_then(|id| incident.updates.iter_mut().find(|update| update.id == id));
        if let Some(update) = update {
            update.body = texts::flapping_text(watched, flapping, self.zone, locale);
        }
        Some(silent_change(notice.incident))
    }

    /// Stores which update reports that a monitor flaps.
    pub(super) fn track_flapping(&mut self, monitor: MonitorId, event: IncidentEvent) {
        let notice = FlappingUpdate { incident: event.incident, update: event.update };
        self.outages.flapping.insert(monitor, notice);
    }

    /// Reports in its incident that a monitor came back but flaps; the incident stays open.
    pub(super) fn report_flapping(
        &mut self,
        monitor: MonitorId,
        id: IncidentId,
        flapping: Flapping,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<IncidentEvent> {
        let text = texts::flapping_text(self.monitors.get(&monitor)?, flapping, self.zone, self.locale());
        let event = self.add_update(id, text, true, at, random)?;
        self.track_flapping(monitor, event);
        self.retitle(id, true);
        Some(event)
    }

    /// Handles a monitor that is steady again. If that ends its incident, the second value carries the
    /// text for the final update.
    pub(super) fn on_steady(
        &mut self,
        monitor: MonitorId,
        steady: &FlappingEnd,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> (Option<IncidentEvent>, OutageEnd) {
        let nothing = (None, OutageEnd::Recovered);
        let Some(notice) = self.outages.flapping.remove(&monitor) else { return nothing };
        let id = notice.incident;
        let is_ours = self.incidents.get(&id).is_some_and(|it| it.automatic && it.is_open());
        let Some(watched) = self.monitors.get(&monitor).filter(|_| is_ours) else { return nothing };
        let text = texts::steady_text(watched, steady, self.zone, self.locale());
        if steady.is_bad {
            self.retitle(id, false);
        } else if !self.ongoing_incidents().contains(&id) {
            return (None, OutageEnd::Steady(text));
        }
        (self.add_update(id, text, true, at, random), OutageEnd::Recovered)
    }

    /// Gives an incident of one monitor the generated title for flapping or for down, unless a person wrote
    /// another.
    fn retitle(&mut self, id: IncidentId, flaps: bool) {
        let locale = self.locale();
        let Some(incident) = self.incidents.get_mut(&id).filter(|it| it.affected.len() < 2) else { return };
        let first = texts::first_monitor(incident, &self.monitors);
        if texts::is_generated_title(incident, first) {
            let tense = if flaps { texts::Tense::Flapping } else { texts::Tense::Present };
            incident.title = texts::title(first.unwrap_or(locale.some_monitor), 1, tense, locale);
        }
    }
}
