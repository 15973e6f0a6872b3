//! Fast path: a plain pass in steady state, and replay of readings from the journal after a restart.

use crate::event::Status;
use crate::observation::{Facts, Observation, Outcome, Reading, Word};
use crate::slowness::Passed;
use crate::time::{MINUTE, Timestamp};
use crate::verdict::Standing;

use super::{Finished, LATE, LastCheck, Machine};

/// Interval in milliseconds from which on every round is stored with the state: the journal is trimmed every 15
/// minutes.
const SELDOM: i64 = 15 * MINUTE;

impl Machine {
    /// Handles a plain pass in steady state, which is almost every observation, without further checks. Returns none
    /// if the observation needs [`Machine::handle_observation`]. The caller has filtered out quarantined vantages.
    pub fn note_steady(&mut self, observation: &Observation, now: Timestamp) -> Option<Finished> {
        let Outcome::Passed(facts) = &observation.outcome else { return None };
        let round = observation.round?;
        let watch = &self.watch;
        let is_own = observation.revision == watch.revision
            && watch.pinned.is_none_or(|pinned| pinned == observation.region);
        if !self.is_steady(now) || !is_own || watch.paused || self.state.status != Status::Up {
            return None;
        }
        let threshold = watch.threshold(observation.region);
        let is_slow = facts.latency_ms.zip(threshold).is_some_and(|(latency, threshold)| latency > threshold);
        let tells_more = facts.degraded
            || facts.expires_at.is_some_and(|expires_at| self.state.expires_at != Some(expires_at));
        if is_slow || tells_more || !self.is_of_schedule(observation) {
            return None;
        }
        let index = watch.lane(observation.region);
        let latency_ms = facts.latency_ms.filter(|_| watch.kind.has_latency());
        let counted = self.counted.contains(self.lane_region(observation.region));
        let lane = self.state.lanes.get_mut(index)?;
        let is_news = lane.standing == Standing::Up
            && lane.first_failed().is_none()
            && lane.newest.is_none_or(|newest| observation.started > newest)
            && (0..=LATE).contains(&now.since(observation.started));
        if !is_news || !lane.note_round(round) {
            return None;
        }
        // If rounds are rarer than trims of the journal, the newest must be stored in the state itself.
        self.changed |= i64::from(self.watch.interval_ms) >= SELDOM;
        lane.newest = Some(observation.started);
        lane.fresh = Some(now);
        lane.set_failure(None);
        self.forget_word(self.lane_region(observation.region));
        let lane = self.state.lanes.get_mut(index)?;
        let (region, place, started) = (observation.region, observation.place, observation.started);
        if let Some(latency_ms) = latency_ms {
            lane.readings.insert(Passed { place, started, latency_ms });
        }
        if counted && self.state.last_check.as_ref().is_none_or(|last| last.at <= observation.ended) {
            self.state.last_check = Some(LastCheck::passed(observation.ended, facts));
        }
        Some(Finished { region, place, round, started, word: Word::Passed, latency_ms })
    }

    /// Replays a finished round from the journal, written after the state was: recorded without consequences.
    pub fn replay(&mut self, reading: &Reading) {
        let counted = self.counted.contains(self.lane_region(reading.region));
        let fits = self.is_due(reading.round, reading.due);
        let Some(lane) = self.state.lanes.get_mut(self.watch.lane(reading.region)) else { return };
        if !fits || !lane.note_round(reading.round) || lane.newest.is_some_and(|newest| newest >= reading.due)
        {
            return;
        }
        lane.newest = Some(reading.due);
        if reading.word != Word::Inconclusive {
            lane.fresh = lane.fresh.max(Some(reading.due));
        }
        if let Some(latency_ms) = reading.latency_ms {
            lane.readings.insert(Passed { place: reading.place, started: reading.due, latency_ms });
        }
        if reading.word == Word::Passed {
            self.forget_word(self.lane_region(reading.region));
        }
        let ended = reading.due + i64::from(reading.latency_ms.unwrap_or(0));
        let is_newest = self.state.last_check.as_ref().is_none_or(|last| last.at < ended);
        if counted && is_newest && reading.word == Word::Passed {
            let facts = Facts { latency_ms: reading.latency_ms, ..Facts::default() };
            self.state.last_check = Some(LastCheck::passed(ended, &facts));
        }
    }

    /// Returns true if nothing is in progress: no round, suspicion or waiting, and no times in the future.
    fn is_steady(&self, now: Timestamp) -> bool {
        let state = &self.state;
        let is_ahead = |moment: Option<Timestamp>| moment.is_some_and(|moment| moment > now);
        state.rounds.is_empty()
            && state.suspicion.is_none()
            && state.settle_by.is_none()
            && !state.untried
            && !self.is_unjudged()
            && state.follow_not_before.is_none_or(|follow| follow <= now + MINUTE)
            && !is_ahead(state.last_recovered)
            && !is_ahead(state.last_check.as_ref().map(|last| last.at))
    }
}
