//! Changes go into the journal by one way, which notes whether the monitor flaps, and says when it is steady again.

use crate::event::{Change, What};
use crate::flapping::{Aspect, Flapping};
use crate::time::Timestamp;

use super::{Machine, Output, Step};

impl Machine {
    /// Hands a change to the journal, with the flapping that it is part of where it is told.
    pub(super) fn happened(&mut self, mut change: Change, step: &mut Step<'_>) {
        if let Some(alert) = change.alert {
            // Flapping that should have ended in a window, or while nobody was there, ends before anything else is told.
            self.become_steady(step);
            change.flapping = self.state.flaps.get_or_insert_default().note(alert, step.now);
            self.changed = true;
        } else {
            // A change of which nothing is told ends no flapping.
            change.flapping = self.state.flaps.as_ref().and_then(|flaps| flaps.of(Aspect::Availability));
        }
        step.out.push(Output::happened(What::Changed(change)));
    }

    /// The flapping that is going on.
    pub(super) fn flapping(&self) -> Option<Flapping> {
        self.state.flaps.as_ref().and_then(|flaps| flaps.flapping())
    }

    /// The moment it is steady again, if nothing changes before that; none while nothing is to be told.
    pub(super) fn steady_at(&self) -> Option<Timestamp> {
        self.state.flaps.as_ref().filter(|_| !self.is_covered()).and_then(|flaps| flaps.steady_at())
    }

    /// Says that it is steady again, where it is time.
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
