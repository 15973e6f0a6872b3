//! Heartbeat monitors: a ping makes one up; a missed deadline or a reported failure makes it down, without
//! confirmation.

use crate::event::{Status, What};
use crate::heartbeat::{Beat, Heard};
use crate::observation::{Facts, Failure};
use crate::time::Timestamp;

use super::{LastCheck, Machine, Output, Step};

impl Machine {
    /// Handles a ping that arrived now, for the run with that id if it has one. Returns none if the monitor is not a
    /// heartbeat.
    pub fn handle_beat(&mut self, beat: Beat, run: Option<u128>, step: &mut Step<'_>) -> Option<Heard> {
        let (period, grace) = self.watch.beat?;
        self.changed = true;
        let heard = self.state.pulse.count(beat, run, step.now);
        if self.watch.paused {
            return Some(heard);
        }
        // A ping after the deadline ends an outage; it does not undo it.
        self.check_pulse(step);
        match beat {
            Beat::Started | Beat::Noted => {}
            Beat::Ran => {
                self.state.pulse.ping(step.now, period, grace);
                self.state.last_check = Some(LastCheck::passed(step.now, &Facts::default()));
                if self.state.status != Status::Up {
                    self.come_up(None, step);
                }
            }
            Beat::Failed(code) => {
                self.state.pulse.ping(step.now, period, grace);
                let (failure, at) = (Failure::JobFailed(code), step.now);
                let error = Some(failure.clone());
                self.state.last_check = Some(LastCheck { at, ok: false, facts: Facts::default(), error });
                self.beat_failed(failure, at, step);
            }
        }
        Some(heard)
    }

    /// Records the duration that the job itself reported for the run, in milliseconds: it takes precedence over ours.
    pub fn note_stated_run(&mut self, beat: Beat, stated_ms: Option<u64>, heard: Heard) -> Heard {
        self.state.pulse.state_run(beat, stated_ms, heard)
    }

    /// Goes down at the deadline if no ping arrived by then.
    pub(super) fn check_pulse(&mut self, step: &mut Step<'_>) {
        let Some(deadline) = self.pulse_deadline().filter(|_| self.state.pulse.is_late(step.now)) else {
            return;
        };
        self.changed = true;
        self.beat_failed(Failure::PingMissed, deadline, step);
    }

    /// Current deadline; none while the monitor is already down.
    pub(super) fn pulse_deadline(&self) -> Option<Timestamp> {
        self.watch.beat.and(self.state.pulse.deadline).filter(|_| self.state.status != Status::Down)
    }

    /// Extends the deadline if a ping may have been lost while the coordinator was away, and records that in the
    /// journal.
    pub(super) fn resume_beat(&mut self, away_since: Timestamp, step: &mut Step<'_>) {
        let Some((period, grace)) = self.watch.beat.filter(|_| self.pulse_deadline().is_some()) else {
            return;
        };
        if let Some(moved) = self.state.pulse.excuse(away_since, step.now, period, grace) {
            self.changed = true;
            step.out.push(Output::happened(What::DeadlineExtended(moved)));
        }
    }

    fn beat_failed(&mut self, failure: Failure, since: Timestamp, step: &mut Step<'_>) {
        if self.state.status != Status::Down {
            self.fall(since, failure, None, step);
        }
    }
}
