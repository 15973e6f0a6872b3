//! A wall clock that went forth and came back, and times in which the coordinator was not there.

use crate::confirm::PATIENCE;
use crate::time::{MINUTE, Timestamp};

use super::resume::RETRY_EVERY;
use super::round::LOST_AFTER;
use super::status::SETTLE;
use super::{LATE, Machine, Step};

impl Machine {
    /// The coordinator was not there from `since` until now: its process or its host stood still, or the clock went
    /// forth, so many milliseconds further than time itself. Nobody is stale for that, and no job late.
    pub fn handle_absence(&mut self, since: Timestamp, jump: i64, step: &mut Step<'_>) {
        self.born = step.now;
        if !self.watch.paused {
            if self.watch.beat.is_some() {
                self.changed |= self.state.pulse.grant(jump.max(0));
            }
            self.resume_beat(since, step);
        }
        self.handle_timeout(step);
    }

    /// A clock that went forth and came back left moments that are still to come. They must not make all rounds of the
    /// present late ones or ones of a past outage, keep a region from going stale, nor let anything be waited for
    /// longer than it ever is.
    pub(super) fn mend_clock(&mut self, now: Timestamp) {
        let highest = self.highest_round(now);
        for lane in &mut self.state.lanes {
            self.changed |= lane.renumber_above(highest);
            if lane.newest.max(lane.fresh).is_some_and(|newest| newest.since(now) > LATE) {
                lane.wind_back(now);
                self.changed = true;
            }
            self.changed |= lane.end_failures_by(now);
        }
        if self.repeated_until().is_some_and(|until| until > now) {
            self.skip_repeats(now);
        }
        let mut bring_back = |moment: Option<&mut Timestamp>, latest: Timestamp| {
            if let Some(moment) = moment.filter(|moment| **moment > latest) {
                *moment = latest;
                self.changed = true;
            }
        };
        let state = &mut self.state;
        bring_back(state.last_recovered.as_mut(), now);
        bring_back(state.last_check.as_mut().map(|last| &mut last.at), now);
        bring_back(state.settle_by.as_mut(), now + SETTLE);
        bring_back(state.follow_not_before.as_mut(), now + MINUTE);
        if let Some(suspicion) = &mut state.suspicion {
            bring_back(Some(&mut suspicion.began), now);
            bring_back(suspicion.second_not_before.as_mut(), now + RETRY_EVERY);
        }
        if let Some(outage) = &mut state.outage {
            bring_back(Some(&mut outage.since), now);
            bring_back(outage.passed.as_mut(), now);
        }
        for round in &mut state.rounds {
            bring_back(Some(&mut round.started), now);
            bring_back(Some(&mut round.give_up), now + LOST_AFTER);
            bring_back(round.parked.as_mut(), now + RETRY_EVERY);
            bring_back(round.second.repeat_at.as_mut(), now + LOST_AFTER);
            bring_back(round.second.open.as_mut().map(|(.., until)| until), now + PATIENCE);
        }
        if let Some((period, grace)) = self.watch.beat {
            bring_back(state.pulse.last.as_mut(), now);
            bring_back(state.pulse.deadline.as_mut(), now + period + grace);
        }
    }
}
