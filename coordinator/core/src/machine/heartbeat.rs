//! Heartbeat monitors: a ping makes one up; a missed deadline or a reported failure makes it down, without
//! confirmation.

use crate::event::{EventKind, MonitorStatus};
use crate::heartbeat::{PingKind, PingReceipt};
use crate::observation::{Failure, Measurements};
use crate::time::Timestamp;

use super::{LastCheck, MachineOutput, MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Handles a ping that arrived now, for the run with that id if it has one. Returns none if the monitor is not a
    /// heartbeat.
    pub fn handle_ping(
        &mut self,
        kind: PingKind,
        run: Option<u128>,
        step: &mut MachineStep<'_>,
    ) -> Option<PingReceipt> {
        let (period, grace) = self.settings.heartbeat?;
        self.changed = true;
        let receipt = self.state.heartbeat.count(kind, run, step.now);
        if self.settings.paused {
            return Some(receipt);
        }
        // A ping after the deadline ends an outage; it does not undo it.
        self.check_deadline(step);
        match kind {
            PingKind::Started | PingKind::Log => {}
            PingKind::Succeeded => {
                self.state.heartbeat.set_deadline(step.now, period, grace);
                self.state.last_check = Some(LastCheck::passed(step.now, &Measurements::default()));
                if self.state.status != MonitorStatus::Up {
                    self.go_up(None, step);
                }
            }
            PingKind::Failed(code) => {
                self.state.heartbeat.set_deadline(step.now, period, grace);
                let (failure, at) = (Failure::JobFailed(code), step.now);
                let error = Some(failure.clone());
                self.state.last_check = Some(LastCheck { at, ok: false, facts: Measurements::default(), error });
                self.heartbeat_failed(failure, at, step);
            }
        }
        Some(receipt)
    }

    /// Records the duration that the job itself reported for the run, in milliseconds: it takes precedence over ours.
    pub fn apply_reported_duration(
        &mut self,
        kind: PingKind,
        stated_ms: Option<u64>,
        receipt: PingReceipt,
    ) -> PingReceipt {
        self.state.heartbeat.apply_reported_duration(kind, stated_ms, receipt)
    }

    /// Goes down at the deadline if no ping arrived by then.
    pub(super) fn check_deadline(&mut self, step: &mut MachineStep<'_>) {
        let Some(deadline) = self.heartbeat_deadline().filter(|_| self.state.heartbeat.is_overdue(step.now)) else {
            return;
        };
        self.changed = true;
        self.heartbeat_failed(Failure::PingMissed, deadline, step);
    }

    /// Expects the next ping of a job that has reported before and has no deadline: it was resumed, now or by a release
    /// that set none.
    pub(super) fn expect_next_ping(&mut self, step: &MachineStep<'_>) {
        if let Some((period, grace)) = self.settings.heartbeat.filter(|_| !self.settings.paused) {
            self.changed |= self.state.heartbeat.set_deadline_after_pause(step.now, period, grace);
        }
    }

    /// Current deadline; none while the monitor is already down.
    pub(super) fn heartbeat_deadline(&self) -> Option<Timestamp> {
        self.settings.heartbeat.and(self.state.heartbeat.deadline).filter(|_| self.state.status != MonitorStatus::Down)
    }

    /// Extends the deadline if a ping may have been lost while the coordinator was away, and records that in the
    /// journal.
    pub(super) fn extend_for_absence(&mut self, away_since: Timestamp, step: &mut MachineStep<'_>) {
        let Some((period, grace)) = self.settings.heartbeat.filter(|_| self.heartbeat_deadline().is_some()) else {
            return;
        };
        if let Some(moved) = self.state.heartbeat.extend_for_absence(away_since, step.now, period, grace) {
            self.changed = true;
            step.out.push(MachineOutput::event(EventKind::DeadlineExtended(moved)));
        }
    }

    fn heartbeat_failed(&mut self, failure: Failure, since: Timestamp, step: &mut MachineStep<'_>) {
        if self.state.status != MonitorStatus::Down {
            self.begin_outage(since, failure, None, step);
        }
    }
}
