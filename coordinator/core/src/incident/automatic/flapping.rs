//! Flapping monitors in automatic incidents: one update that is refreshed in place, and one at the end.

use super::{Desk, Ended, silently, words};
use crate::flapping::{Flapping, Steady};
use crate::id::{IncidentId, MonitorId};
use crate::incident::Told;
use crate::telling::FlappingNotice;
use crate::time::Timestamp;

impl Desk {
    /// Refreshes the number of changes in the flapping update, if there is one. An incident that a person
    /// took over or closed is left alone.
    pub(super) fn renew(&mut self, monitor: MonitorId, flapping: Flapping) -> Option<Told> {
        let notice = *self.outages.flapping.get(&monitor)?;
        let tongue = self.tongue();
        let incident = self.incidents.get_mut(&notice.incident).filter(|it| it.automatic && it.is_open());
        let (Some(incident), Some(watched)) = (incident, self.monitors.get(&monitor)) else {
            self.outages.flapping.remove(&monitor);
            return None;
        };
        let said = notice.update.and_then(|id| incident.updates.iter_mut().find(|update| update.id == id));
        if let Some(update) = said {
            update.body = words::flapping(watched, flapping, self.zone, tongue);
        }
        Some(silently(notice.incident))
    }

    /// Stores which update reports that a monitor flaps.
    pub(super) fn note_flapping(&mut self, monitor: MonitorId, told: Told) {
        let notice = FlappingNotice { incident: told.incident, update: told.update };
        self.outages.flapping.insert(monitor, notice);
    }

    /// Reports in its incident that a monitor came back but flaps; the incident stays open.
    pub(super) fn begin_flapping(
        &mut self,
        monitor: MonitorId,
        id: IncidentId,
        flapping: Flapping,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> Option<Told> {
        let text = words::flapping(self.monitors.get(&monitor)?, flapping, self.zone, self.tongue());
        let told = self.say(id, text, true, at, random)?;
        self.note_flapping(monitor, told);
        self.retitle(id, true);
        Some(told)
    }

    /// Handles a monitor that is steady again. If its incident ends by that, the second value carries the
    /// text for the final update.
    pub(super) fn become_steady(
        &mut self,
        monitor: MonitorId,
        steady: &Steady,
        at: Timestamp,
        random: &mut impl FnMut() -> [u8; 10],
    ) -> (Option<Told>, Ended) {
        let nothing = (None, Ended::Back);
        let Some(notice) = self.outages.flapping.remove(&monitor) else { return nothing };
        let id = notice.incident;
        let is_ours = self.incidents.get(&id).is_some_and(|it| it.automatic && it.is_open());
        let Some(watched) = self.monitors.get(&monitor).filter(|_| is_ours) else { return nothing };
        let text = words::steady(watched, steady, self.zone, self.tongue());
        if steady.is_bad {
            self.retitle(id, false);
        } else if !self.lasting().contains(&id) {
            return (None, Ended::Steady(text));
        }
        (self.say(id, text, true, at, random), Ended::Back)
    }

    /// Gives an incident of one monitor the generated title for flapping or for down, unless a person wrote
    /// another.
    fn retitle(&mut self, id: IncidentId, flaps: bool) {
        let tongue = self.tongue();
        let Some(incident) = self.incidents.get_mut(&id).filter(|it| it.affected.len() < 2) else { return };
        let first = words::first(incident, &self.monitors);
        if words::is_title(incident, first) {
            let tense = if flaps { words::Tense::Flapping } else { words::Tense::Present };
            incident.title = words::title(first.unwrap_or(tongue.some_monitor), 1, tense, tongue);
        }
    }
}
