//! Still-down alerts: repeated while an outage lasts, at whole intervals since it began, so that they do not drift.
//!
//! They have no stored state: an alert due while the coordinator is away, a window covers the monitor, the outage is
//! acknowledged or the status is unknown is skipped, and the next one is the first interval still to come.

use crate::event::{AlertKind, MonitorStatus, StatusChange};
use crate::time::{MINUTE, Timestamp};

use super::state::NotStored;
use super::{MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Time of the next still-down alert; none if there is none to send. Never before the outage itself was
    /// announced: outside of windows, every known outage was.
    pub(super) fn next_still_down_at(&self) -> Option<Timestamp> {
        let every = i64::from(self.settings.repeat_minutes.filter(|minutes| *minutes > 0)?) * MINUTE;
        let outage = self.state.outage.as_ref().filter(|_| self.state.status == MonitorStatus::Down)?;
        let is_acknowledged = self.settings.acknowledged_outage == Some(outage.since);
        if self.settings.paused || self.is_covered() || is_acknowledged {
            return None;
        }
        let over = self.still_down_handled_until()?.since(outage.since).max(0) / every;
        Some(outage.since + (over + 1) * every)
    }

    /// Sends a still-down alert if due: one, however many intervals have passed.
    pub(super) fn emit_still_down(&mut self, step: &mut MachineStep<'_>) {
        if self.next_still_down_at().is_none_or(|at| step.now < at) {
            return;
        }
        self.skip_still_down(step.now);
        let mut change = StatusChange::new(MonitorStatus::Down, self.state.since.unwrap_or(step.now));
        change.from = MonitorStatus::Down;
        change.alert = Some(AlertKind::StillDown);
        if let Some(outage) = &self.state.outage {
            change.down_since = Some(outage.since);
            change.reason = Some(outage.reason.clone());
        }
        change.down_from = self.state.down_from;
        self.emit_change(change, step);
    }

    /// Skips the alerts due up to now.
    pub(super) fn skip_still_down(&mut self, now: Timestamp) {
        if let Some(outage) = &mut self.state.outage {
            outage.still_down_handled_until = NotStored(Some(now));
        }
    }

    /// Time up to which alerts were sent or skipped; none without an outage.
    pub(super) fn still_down_handled_until(&self) -> Option<Timestamp> {
        self.state.outage.as_ref().map(|outage| outage.still_down_handled_until.0.unwrap_or(self.taken_over_at))
    }
}
