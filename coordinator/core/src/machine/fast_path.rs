//! Fast path: a plain pass in steady state, and replay of readings from the journal after a restart.

use crate::event::MonitorStatus;
use crate::observation::{Measurements, Observation, ProbeOutcome, Reading, RoundOutcome};
use crate::slowness::PassedReading;
use crate::time::{MINUTE, Timestamp};
use crate::verdict::RegionStatus;

use super::{FinishedRound, LATE_AFTER, LastCheck, MonitorMachine};

/// Interval in milliseconds from which on every round is stored with the state: the journal is trimmed every 15
/// minutes.
const RARE_INTERVAL: i64 = 15 * MINUTE;

impl MonitorMachine {
    /// Handles a plain pass in steady state, which is almost every observation, without further checks. Returns none
    /// if the observation needs [`MonitorMachine::handle_observation`]. The caller has filtered out quarantined vantages.
    pub fn handle_plain_pass(&mut self, observation: &Observation, now: Timestamp) -> Option<FinishedRound> {
        let ProbeOutcome::Passed(facts) = &observation.outcome else { return None };
        let round = observation.round?;
        let settings = &self.settings;
        let is_own = observation.revision == settings.revision
            && settings.pinned.is_none_or(|pinned| pinned == observation.region);
        if !self.is_steady(now) || !is_own || settings.paused || self.state.status != MonitorStatus::Up {
            return None;
        }
        let threshold = settings.threshold(observation.region);
        let is_slow = facts.latency_ms.zip(threshold).is_some_and(|(latency, threshold)| latency > threshold);
        let tells_more =
            facts.degraded || facts.expires_at.is_some_and(|expires_at| self.state.expires_at != Some(expires_at));
        if is_slow || tells_more || !self.is_of_schedule(observation) {
            return None;
        }
        let index = settings.state_index(observation.region);
        let latency_ms = facts.latency_ms.filter(|_| settings.kind.has_latency());
        let counted = self.counted.contains(self.state_region(observation.region));
        let region_state = self.state.regions.get_mut(index)?;
        let is_news = region_state.status == RegionStatus::Up
            && region_state.first_failure().is_none()
            && region_state.newest_started.is_none_or(|newest| observation.started > newest)
            && (0..=LATE_AFTER).contains(&now.since(observation.started));
        if !is_news || !region_state.record_round(round) {
            return None;
        }
        // If rounds are rarer than trims of the journal, the newest must be stored in the state itself.
        self.changed |= i64::from(self.settings.interval_ms) >= RARE_INTERVAL;
        region_state.newest_started = Some(observation.started);
        region_state.newest_arrived = Some(now);
        region_state.set_failure(None);
        self.clear_outcome(self.state_region(observation.region));
        let region_state = self.state.regions.get_mut(index)?;
        let (region, vantage, started) = (observation.region, observation.vantage, observation.started);
        if let Some(latency_ms) = latency_ms {
            region_state.readings.insert(PassedReading { vantage, started, latency_ms });
        }
        if counted && self.state.last_check.as_ref().is_none_or(|last| last.at <= observation.ended) {
            self.state.last_check = Some(LastCheck::passed(observation.ended, facts));
        }
        Some(FinishedRound { region, vantage, round, started, outcome: RoundOutcome::Passed, latency_ms })
    }

    /// Replays a finished round from the journal, written after the state was: recorded without consequences.
    pub fn replay(&mut self, reading: &Reading) {
        let counted = self.counted.contains(self.state_region(reading.region));
        let fits = self.is_due(reading.round, reading.due);
        let Some(region_state) = self.state.regions.get_mut(self.settings.state_index(reading.region)) else {
            return;
        };
        if !fits
            || !region_state.record_round(reading.round)
            || region_state.newest_started.is_some_and(|newest| newest >= reading.due)
        {
            return;
        }
        region_state.newest_started = Some(reading.due);
        if reading.outcome != RoundOutcome::Inconclusive {
            region_state.newest_arrived = region_state.newest_arrived.max(Some(reading.due));
        }
        if let Some(latency_ms) = reading.latency_ms {
            region_state.readings.insert(PassedReading { vantage: reading.vantage, started: reading.due, latency_ms });
        }
        if reading.outcome == RoundOutcome::Passed {
            self.clear_outcome(self.state_region(reading.region));
        }
        let ended = reading.due + i64::from(reading.latency_ms.unwrap_or(0));
        let is_newest = self.state.last_check.as_ref().is_none_or(|last| last.at < ended);
        if counted && is_newest && reading.outcome == RoundOutcome::Passed {
            let facts = Measurements { latency_ms: reading.latency_ms, ..Measurements::default() };
            self.state.last_check = Some(LastCheck::passed(ended, &facts));
        }
    }

    /// Returns true if nothing is in progress: no round, suspicion or waiting, and no times in the future.
    fn is_steady(&self, now: Timestamp) -> bool {
        let state = &self.state;
        let is_ahead = |moment: Option<Timestamp>| moment.is_some_and(|moment| moment > now);
        state.rounds.is_empty()
            && state.suspicion.is_none()
            && state.scope_deadline.is_none()
            && !state.needs_first_rounds
            && !self.is_unjudged()
            && state.follow_up_not_before.is_none_or(|follow| follow <= now + MINUTE)
            && !is_ahead(state.last_recovered)
            && !is_ahead(state.last_check.as_ref().map(|last| last.at))
    }
}
