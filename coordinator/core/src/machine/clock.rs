//! Clock faults: steps of the wall clock in either direction, and times in which the coordinator was not running.

use crate::confirmation::RESPONSE_TIMEOUT;
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Region, RegionSet};

use super::resume::RETRY_EVERY;
use super::round::LOST_AFTER;
use super::status::SCOPE_DELAY;
use super::{LATE_AFTER, MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Handles an absence of the coordinator from `since` until now: its process or host stood still. That makes no
    /// region stale and no job late.
    pub fn handle_absence(&mut self, since: Timestamp, step: &mut MachineStep<'_>) {
        self.taken_over_at = step.now;
        if !self.settings.paused {
            self.extend_for_absence(since, step);
        }
        self.handle_timeout(step);
    }

    /// Handles a step of the wall clock by `jump` milliseconds relative to real time. The times of everything in
    /// progress move along, so that rounds are judged as they would have been without the step. Times already
    /// announced stay. If the coordinator was also absent, since `away_since` by the current clock, that is excused
    /// before anything is judged.
    pub fn handle_clock_step(&mut self, jump: i64, away_since: Option<Timestamp>, step: &mut MachineStep<'_>) {
        self.changed = true;
        self.taken_over_at = self.taken_over_at + jump;
        if self.settings.heartbeat.is_some() && !self.settings.paused {
            // A deadline set by a wrong clock looks like a correct one. So no deadline moves earlier, and no job is late
            // because of a step back.
            self.state.heartbeat.extend_for_clock_jump(jump.max(0));
        }
        let later = crate::assign::rounds_in(jump, self.settings.interval_ms);
        let state = &mut self.state;
        state.regions.iter_mut().for_each(|state| state.shift(jump));
        let shift = |moment: Option<&mut Timestamp>| {
            if let Some(moment) = moment {
                *moment = *moment + jump;
            }
        };
        for round in &mut state.rounds {
            round.number = round.number.map(|number| number.saturating_add_signed(later));
            shift(Some(&mut round.started));
            shift(Some(&mut round.expires));
            shift(round.retry_at.as_mut());
            shift(round.outcome.as_mut().map(|(ended, _)| ended));
            shift(round.confirmation.repeat_at.as_mut());
            shift(round.confirmation.open_request.as_mut().map(|(.., until)| until));
        }
        if let Some(suspicion) = &mut state.suspicion {
            shift(Some(&mut suspicion.began));
            shift(suspicion.second_not_before.as_mut());
        }
        if let Some(unjudged) = &mut state.unjudged {
            shift(Some(&mut unjudged.since));
            shift(unjudged.reported.as_mut());
        }
        shift(state.scope_deadline.as_mut());
        shift(state.last_recovered.as_mut());
        shift(state.last_check.as_mut().map(|last| &mut last.at).filter(|_| self.settings.heartbeat.is_none()));
        shift(state.degraded_since.as_mut());
        shift(state.follow_up_not_before.as_mut());
        if let Some(outage) = &mut state.outage {
            outage.shift(jump);
        }
        if let Some(flaps) = &mut state.flap_history {
            flaps.shift(jump);
        }
        self.shift_outcomes(jump);
        match away_since {
            Some(since) => self.handle_absence(since, step),
            None => self.handle_timeout(step),
        }
    }

    /// Repairs times in the future, left by a clock that went forward and back. They must not make all present rounds
    /// count as late or as part of a past outage, keep a region from going stale, or extend any waiting time beyond
    /// its normal maximum.
    pub(super) fn repair_future_times(&mut self, now: Timestamp) {
        let highest = self.highest_round(now);
        let mut wound_back = RegionSet::NONE;
        for (region_state, region) in self.state.regions.iter_mut().zip(Region::ALL) {
            self.changed |= region_state.reset_numbers_above(highest);
            if region_state
                .newest_started
                .max(region_state.newest_arrived)
                .is_some_and(|newest| newest.since(now) > LATE_AFTER)
            {
                region_state.reset_future(now);
                wound_back.insert(region);
                self.changed = true;
            }
            self.changed |= region_state.clamp_failures(now);
        }
        wound_back.iter().for_each(|region| self.clear_outcome(region));
        if self.still_down_handled_until().is_some_and(|until| until > now) {
            self.skip_still_down(now);
        }
        if let Some(flaps) = &mut self.state.flap_history {
            self.changed |= flaps.clamp_to(now);
        }
        let mut bring_back = |moment: Option<&mut Timestamp>, latest: Timestamp| {
            if let Some(moment) = moment.filter(|moment| **moment > latest) {
                *moment = latest;
                self.changed = true;
            }
        };
        let state = &mut self.state;
        if state.disputed_since.iter().flatten().any(|since| *since > now) {
            state.disputed_since.iter_mut().for_each(|since| bring_back(since.as_mut(), now));
        }
        bring_back(state.last_recovered.as_mut(), now);
        bring_back(state.last_check.as_mut().map(|last| &mut last.at), now);
        bring_back(state.scope_deadline.as_mut(), now + SCOPE_DELAY);
        bring_back(state.follow_up_not_before.as_mut(), now + MINUTE);
        if let Some(unjudged) = &mut state.unjudged {
            bring_back(Some(&mut unjudged.since), now);
            bring_back(unjudged.reported.as_mut(), now);
        }
        if let Some(suspicion) = &mut state.suspicion {
            bring_back(Some(&mut suspicion.began), now);
            bring_back(suspicion.second_not_before.as_mut(), now + RETRY_EVERY);
        }
        if let Some(outage) = &mut state.outage {
            bring_back(Some(&mut outage.since), now);
            bring_back(outage.adjusted_start.0.as_mut(), now);
            bring_back(outage.recovery_started.as_mut(), now);
        }
        for round in &mut state.rounds {
            bring_back(Some(&mut round.started), now);
            bring_back(Some(&mut round.expires), now + LOST_AFTER);
            bring_back(round.retry_at.as_mut(), now + RETRY_EVERY);
            bring_back(round.confirmation.repeat_at.as_mut(), now + LOST_AFTER);
            bring_back(round.confirmation.open_request.as_mut().map(|(.., until)| until), now + RESPONSE_TIMEOUT);
        }
        if let Some((period, grace)) = self.settings.heartbeat {
            bring_back(state.heartbeat.last_ping.as_mut(), now);
            bring_back(state.heartbeat.deadline.as_mut(), now + period + grace);
        }
    }
}
