//! A heartbeat monitor: pings make it up, their absence or a reported failure makes it down, no second network needed.

use crate::event::{Status, What};
use crate::heartbeat::{Beat, Heard};
use crate::observation::{Facts, Failure};
use crate::time::Timestamp;

use super::{LastCheck, Machine, Output, Step};

impl Machine {
    /// A ping came, now, of the named run where it has a name. None where this is no heartbeat.
    pub fn handle_beat(&mut self, beat: Beat, run: Option<u128>, step: &mut Step<'_>) -> Option<Heard> {
        let (period, grace) = self.watch.beat?;
        self.changed = true;
        let heard = self.state.pulse.count(beat, run, step.now);
        if self.watch.paused {
            return Some(heard);
        }
        // A ping that comes after the deadline ends an outage; it does not undo it.
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

    /// The job's own figure for the length of the run that this ping ended, in milliseconds: it counts before ours.
    pub fn note_stated_run(&mut self, beat: Beat, stated_ms: Option<u64>, heard: Heard) -> Heard {
        self.state.pulse.state_run(beat, stated_ms, heard)
    }

    /// Down at the deadline, when no ping came by it.
    pub(super) fn check_pulse(&mut self, step: &mut Step<'_>) {
        let Some(deadline) = self.pulse_deadline().filter(|_| self.state.pulse.is_late(step.now)) else {
            return;
        };
        self.changed = true;
        self.beat_failed(Failure::PingMissed, deadline, step);
    }

    /// The deadline that is waited for; none while it is down already.
    pub(super) fn pulse_deadline(&self) -> Option<Timestamp> {
        self.watch.beat.and(self.state.pulse.deadline).filter(|_| self.state.status != Status::Down)
    }

    /// Gives the job more time where its ping may have come while we were away, and notes that in the journal.
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
