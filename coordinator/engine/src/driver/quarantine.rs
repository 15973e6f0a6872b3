//! Quarantine decisions by the driver: judges vantages by the rounds they took part in.

use parallax_core::event::EventKind;
use parallax_core::observation::Observation;
use parallax_core::quarantine::QuarantineChange;
use parallax_core::vantage::VantageNo;

use super::{Driver, DriverChannels};
use crate::machines::Machines;
use crate::mesh_view::quarantine_event;

impl Driver {
    /// Judges the vantages that took part in rounds since the last call. One may go into quarantine.
    pub(super) fn judge_vantages(&mut self, channels: &DriverChannels) {
        let now = self.clock.now();
        let mut changes = Vec::new();
        for event in self.pending.events.iter().skip(self.pending.judged_events) {
            if let (EventKind::Round(report), Some(monitor)) = (&event.kind, event.monitor) {
                let Some(target) = self.machines.quarantine_target(monitor) else { continue };
                changes.append(&mut self.mesh_view.handle_round(report, target, now));
            }
        }
        self.pending.judged_events = self.pending.events.len();
        self.mesh_view.log_problems(now);
        let mut released = self.mesh_view.release_due(now);
        if let Some(released) = &mut released {
            changes.append(released);
        }
        if !changes.is_empty() || released.is_some() {
            self.apply_quarantine_changes(changes, channels);
        }
    }

    /// Compares a shadow round of a quarantined vantage with the results of the others.
    pub(super) fn handle_shadow_round(&mut self, slot: u32, observation: &Observation, channels: &DriverChannels) {
        let now = self.clock.now();
        let Some(agrees) = self.machines.agrees(slot, observation, (self.mesh_view.mesh(), now)) else { return };
        let Some(target) = self.machines.quarantine_target_of_slot(slot) else { return };
        if let Some(change) = self.mesh_view.handle_shadow_round(observation, agrees, target, now) {
            self.apply_quarantine_changes(vec![(observation.vantage, change)], channels);
        }
    }

    fn apply_quarantine_changes(&mut self, changes: Vec<(VantageNo, QuarantineChange)>, channels: &DriverChannels) {
        let now = self.clock.now();
        self.pending
            .events
            .extend(changes.into_iter().filter_map(|(vantage, change)| quarantine_event(vantage, change, now)));
        self.pending.judged_events = self.pending.events.len();
        channels.suspects.send_replace(self.mesh_view.suspects());
        if self.mesh_view.apply_quarantine() {
            self.with_machines(Machines::handle_mesh_change);
        }
    }
}
