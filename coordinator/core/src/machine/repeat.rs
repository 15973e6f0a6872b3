//! Still down: said again while an outage lasts, at whole intervals since it began, so that nothing drifts.
//!
//! Nothing of it is kept: what falls due while the coordinator is away, a window covers the monitor or nothing is known
//! is not made up for, and what comes next is the first moment of its kind that has not been yet.

use crate::event::{AlertKind, Change, Status};
use crate::time::{MINUTE, Timestamp};

use super::state::Unkept;
use super::{Machine, Step};

impl Machine {
    /// When it is said next that it is still down; none while that is not to be said. Not before the outage itself was
    /// told: outside of windows, whatever outage is known was.
    pub(super) fn repeat_at(&self) -> Option<Timestamp> {
        let every = i64::from(self.watch.repeat_minutes.filter(|minutes| *minutes > 0)?) * MINUTE;
        let outage = self.state.outage.as_ref().filter(|_| self.state.status == Status::Down)?;
        if self.watch.paused || self.is_covered() {
            return None;
        }
        let over = self.repeated_until()?.since(outage.since).max(0) / every;
        Some(outage.since + (over + 1) * every)
    }

    /// Says that it is still down, where it is time: once, however many intervals have passed.
    pub(super) fn repeat(&mut self, step: &mut Step<'_>) {
        if self.repeat_at().is_none_or(|at| step.now < at) {
            return;
        }
        self.skip_repeats(step.now);
        let mut change = Change::to(Status::Down, self.state.since.unwrap_or(step.now));
        change.from = Status::Down;
        change.alert = Some(AlertKind::StillDown);
        if let Some(outage) = &self.state.outage {
            change.down_since = Some(outage.since);
            change.reason = Some(outage.reason.clone());
        }
        change.down_from = self.state.down_from;
        self.happened(change, step);
    }

    /// What would have been said up to now is not made up for.
    pub(super) fn skip_repeats(&mut self, now: Timestamp) {
        if let Some(outage) = &mut self.state.outage {
            outage.repeated_until = Unkept(Some(now));
        }
    }

    /// Up to when it was said, or is not made up for; none where there is no outage.
    pub(super) fn repeated_until(&self) -> Option<Timestamp> {
        self.state.outage.as_ref().map(|outage| outage.repeated_until.0.unwrap_or(self.born))
    }
}
