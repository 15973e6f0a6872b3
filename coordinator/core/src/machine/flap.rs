//! Single path for changes into the journal; it detects flapping and reports when the monitor is stable again.

use crate::event::{Change, What};
use crate::flapping::{Aspect, Flapping};
use crate::time::Timestamp;

use super::{Machine, Output, Step};

impl Machine {
    /// Emits a change; if it is announced, adds the flapping it is part of.
    pub(super) fn happened(&mut self, mut change: Change, step: &mut Step<'_>) {
        if let Some(alert) = change.alert {
            // Flapping that should have ended in a window, or while the coordinator was away, ends before anything
            // else is announced.
            self.become_steady(step);
            change.flapping = self.state.flaps.get_or_insert_default().note(alert, step.now);
            self.changed = true;
        } else {
            // A change without an alert does not end flapping.
            change.flapping = self.state.flaps.as_ref().and_then(|flaps| flaps.of(Aspect::Availability));
        }
        step.out.push(Output::happened(What::Changed(change)));
    }

    /// Current flapping, if any.
    pub(super) fn flapping(&self) -> Option<Flapping> {
        self.state.flaps.as_ref().and_then(|flaps| flaps.flapping())
    }

    /// Time at which it becomes stable again without further changes; none if there is nothing to announce.
    pub(super) fn steady_at(&self) -> Option<Timestamp> {
        self.state.flaps.as_ref().filter(|_| !self.is_covered()).and_then(|flaps| flaps.steady_at())
    }

    /// Announces that it is stable again, if due.
    pub(super) fn become_steady(&mut self, step: &mut Step<'_>) {
        if self.is_covered() {
            return;
        }
        while let Some(steady) = self.state.flaps.as_mut().and_then(|flaps| flaps.end(step.now)) {
            self.changed = true;
            step.out.push(Output::happened(What::Steady(steady)));
        }
    }
}
