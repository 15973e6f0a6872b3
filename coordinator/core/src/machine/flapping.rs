//! Single path for changes into the journal; it detects flapping and reports when the monitor is stable again.

use crate::event::{EventKind, StatusChange};
use crate::flapping::{Aspect, Flapping};
use crate::time::Timestamp;

use super::{MachineOutput, MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Emits a change; if it is announced, adds the flapping it is part of.
    pub(super) fn emit_change(&mut self, mut change: StatusChange, step: &mut MachineStep<'_>) {
        if let Some(alert) = change.alert {
            // Flapping that should have ended in a window, or while the coordinator was away, ends before anything
            // else is announced.
            self.end_flapping(step);
            change.flapping = self.state.flap_history.get_or_insert_default().record_change(alert, step.now);
            self.changed = true;
        } else {
            // A change without an alert does not end flapping.
            change.flapping = self.state.flap_history.as_ref().and_then(|flaps| flaps.of(Aspect::Availability));
        }
        step.out.push(MachineOutput::event(EventKind::StatusChanged(change)));
    }

    /// Current flapping, if any.
    pub(super) fn flapping(&self) -> Option<Flapping> {
        self.state.flap_history.as_ref().and_then(|flaps| flaps.flapping())
    }

    /// Time at which it becomes stable again without further changes; none if there is nothing to announce.
    pub(super) fn stable_at(&self) -> Option<Timestamp> {
        self.state.flap_history.as_ref().filter(|_| !self.is_covered()).and_then(|flaps| flaps.stable_at())
    }

    /// Announces that it is stable again, if due.
    pub(super) fn end_flapping(&mut self, step: &mut MachineStep<'_>) {
        if self.is_covered() {
            return;
        }
        while let Some(steady) = self.state.flap_history.as_mut().and_then(|flaps| flaps.end(step.now)) {
            self.changed = true;
            step.out.push(MachineOutput::event(EventKind::FlappingEnded(steady)));
        }
    }
}
