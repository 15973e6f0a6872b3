//! Maintenance: no alerts while a window covers the monitor; when the last window ends, only the net difference is
//! announced.

use serde::{Deserialize, Serialize};

use crate::event::{AlertKind, Change, Status};
use crate::observation::Failure;
use crate::time::Timestamp;

use super::state::{Outage, State};
use super::status::between;
use super::{Machine, Step};

/// Announced state before a window began to cover the monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastTold {
    /// Outage: start and reason.
    outage: Option<(Timestamp, Failure)>,
    /// Time since which it is slow.
    slow: Option<Timestamp>,
}

impl State {
    /// Marks the monitor as covered by a window. Used on a state that is not restored yet, so that changes during the
    /// restore are not announced.
    pub fn begin_window(&mut self) {
        if self.window.is_none() {
            let outage = self.outage.as_ref().map(|outage| (outage.since, outage.reason.clone()));
            self.window = Some(Box::new(LastTold { outage, slow: self.slow }));
        }
    }
}

impl Machine {
    /// Returns true if a window covers the monitor, as far as this machine has been notified.
    pub fn is_covered(&self) -> bool {
        self.state.window.is_some()
    }

    /// Handles the start of a window that covers the monitor, or the end of the last one. Its status is still judged
    /// in between; at the end the announced state is compared with the current one, and only the difference is
    /// announced.
    pub fn handle_window(&mut self, covered: bool, step: &mut Step<'_>) {
        match (covered, &self.state.window) {
            (true, None) => {
                self.state.begin_window();
                self.changed = true;
            }
            (false, Some(_)) => {
                let told = self.state.window.take().unwrap_or_default();
                self.changed = true;
                self.skip_repeats(step.now);
                self.tell_difference(*told, step);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn tell_difference(&mut self, told: LastTold, step: &mut Step<'_>) {
        let since = self.state.since.unwrap_or(step.now);
        if self.state.status == Status::Unknown {
            self.hold_to(told);
            return;
        }
        if let Some(outage) = &self.state.outage {
            if told.outage.is_none() {
                let mut change = Change::to(Status::Down, outage.since);
                change.from = if told.slow.is_some() { Status::Slow } else { Status::Up };
                change.alert = Some(AlertKind::WentDown);
                change.down_since = Some(outage.since);
                change.reason = Some(outage.reason.clone());
                change.down_from = self.state.down_from;
                change.evidence = self.evidence(step);
                self.happened(change, step);
            }
            return;
        }
        if let Some((down_since, reason)) = told.outage.clone() {
            let mut change = Change::to(Status::Up, since);
            change.from = Status::Down;
            change.alert = Some(AlertKind::Recovered);
            change.down_since = Some(down_since);
            change.reason = Some(reason);
            change.duration_ms = Some(between(down_since, since));
            self.happened(change, step);
        }
        let was_slow = told.slow.filter(|_| told.outage.is_none());
        match (self.state.status, was_slow) {
            (Status::Slow, None) => {
                let mut change = Change::to(Status::Slow, since);
                change.from = Status::Up;
                change.alert = Some(AlertKind::WentSlow);
                (change.latency_ms, change.threshold_ms) = self.slow_figures(step);
                self.happened(change, step);
            }
            (Status::Up, Some(slow)) => {
                let mut change = Change::to(Status::Up, since);
                change.from = Status::Slow;
                change.alert = Some(AlertKind::BackToNormal);
                (change.latency_ms, change.threshold_ms) = self.newest_figures(step);
                change.duration_ms = Some(between(slow, since));
                self.happened(change, step);
            }
            (Status::Unknown | Status::Up | Status::Slow | Status::Down, _) => {}
        }
    }

    /// Handles a window that ends while the status is unknown: nothing is announced. The outage announced before
    /// remains open and ends with the next pass; one that was never announced is dropped.
    fn hold_to(&mut self, told: LastTold) {
        self.state.slow = told.slow;
        self.state.outage = told.outage.map(|(since, reason)| {
            let present = self.state.outage.take();
            present.unwrap_or_else(|| Box::new(Outage::new(since, reason)))
        });
    }
}
