//! Maintenance: no alerts while a window covers the monitor; when the last window ends, only the net difference is
//! announced.

use crate::event::{AlertKind, MonitorStatus, StatusChange};

use super::announced_state::AnnouncedState;
use super::state::{MachineState, OpenOutage};
use super::status::duration_between;
use super::{MachineStep, MonitorMachine};

impl MachineState {
    /// Marks the monitor as covered by a window. Used on a state that is not restored yet, so that changes during the
    /// restore are not announced.
    pub fn begin_window(&mut self) {
        if self.announced_before_window.is_none() {
            let outage = self.outage.as_ref().map(|outage| (outage.since, outage.reason.clone()));
            self.announced_before_window = Some(Box::new(AnnouncedState { outage, slow: self.slow_since }));
        }
    }
}

impl MonitorMachine {
    /// Returns true if a window covers the monitor, as far as this machine has been notified.
    pub fn is_covered(&self) -> bool {
        self.state.announced_before_window.is_some()
    }

    /// Handles the start of a window that covers the monitor, or the end of the last one. Its status is still judged
    /// in between; at the end the announced state is compared with the current one, and only the difference is
    /// announced.
    pub fn handle_window(&mut self, covered: bool, step: &mut MachineStep<'_>) {
        match (covered, &self.state.announced_before_window) {
            (true, None) => {
                self.state.begin_window();
                self.changed = true;
            }
            (false, Some(_)) => {
                let announced = self.state.announced_before_window.take().unwrap_or_default();
                self.changed = true;
                self.skip_still_down(step.now);
                self.announce_difference(*announced, step);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn announce_difference(&mut self, announced: AnnouncedState, step: &mut MachineStep<'_>) {
        let since = self.state.since.unwrap_or(step.now);
        if self.state.status == MonitorStatus::Unknown {
            self.restore_announced(announced);
            return;
        }
        if let Some(outage) = &self.state.outage {
            if announced.outage.is_none() {
                let mut change = StatusChange::new(MonitorStatus::Down, outage.since);
                change.from = if announced.slow.is_some() { MonitorStatus::Slow } else { MonitorStatus::Up };
                change.alert = Some(AlertKind::WentDown);
                change.down_since = Some(outage.since);
                change.reason = Some(outage.reason.clone());
                change.down_from = self.state.down_from;
                change.evidence = self.evidence(step);
                self.emit_change(change, step);
            }
            return;
        }
        if let Some((down_since, reason)) = announced.outage.clone() {
            let mut change = StatusChange::new(MonitorStatus::Up, since);
            change.from = MonitorStatus::Down;
            change.alert = Some(AlertKind::Recovered);
            change.down_since = Some(down_since);
            change.reason = Some(reason);
            change.duration_ms = Some(duration_between(down_since, since));
            self.emit_change(change, step);
        }
        let was_slow = announced.slow.filter(|_| announced.outage.is_none());
        match (self.state.status, was_slow) {
            (MonitorStatus::Slow, None) => {
                let mut change = StatusChange::new(MonitorStatus::Slow, since);
                change.from = MonitorStatus::Up;
                change.alert = Some(AlertKind::WentSlow);
                (change.latency_ms, change.threshold_ms) = self.slow_figures(step);
                self.emit_change(change, step);
            }
            (MonitorStatus::Up, Some(slow)) => {
                let mut change = StatusChange::new(MonitorStatus::Up, since);
                change.from = MonitorStatus::Slow;
                change.alert = Some(AlertKind::BackToNormal);
                (change.latency_ms, change.threshold_ms) = self.newest_figures(step);
                change.duration_ms = Some(duration_between(slow, since));
                self.emit_change(change, step);
            }
            (MonitorStatus::Unknown | MonitorStatus::Up | MonitorStatus::Slow | MonitorStatus::Down, _) => {}
        }
    }

    /// Handles a window that ends while the status is unknown: nothing is announced. The outage announced before
    /// remains open and ends with the next pass; one that was never announced is dropped.
    fn restore_announced(&mut self, announced: AnnouncedState) {
        self.state.slow_since = announced.slow;
        self.state.outage = announced.outage.map(|(since, reason)| {
            let present = self.state.outage.take();
            present.unwrap_or_else(|| Box::new(OpenOutage::new(since, reason)))
        });
    }
}
