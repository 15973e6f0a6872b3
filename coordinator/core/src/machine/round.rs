//! Rounds from start to outcome: scheduled or requested, pending, abandoned or retried at the next vantage.

use crate::assign::{SCHEDULE_TOLERANCE, is_due_about};
use crate::confirmation;
use crate::event::{ProbeReason, ProbeResponse};
use crate::observation::{Observation, ProbeOutcome, RoundOutcome};
use crate::time::{SECOND, Timestamp};
use crate::verdict::RegionStatus;

use super::state::{Confirmation, NotStored, OpenRound};
use super::{FinishedRound, LATE_AFTER, MachineOutput, MachineStep, MonitorMachine};

/// Milliseconds that a scheduled round may stay pending before its result counts as lost.
pub(super) const LOST_AFTER: i64 = 30 * SECOND;
/// Maximum number of rounds in progress. Beyond that, new ones are history only; honest agents never come near it.
const MAX_OPEN_ROUNDS: usize = 32;

impl MonitorMachine {
    /// Handles an observation of a scheduled round.
    pub(super) fn handle_scheduled(&mut self, observation: Observation, step: &mut MachineStep<'_>) {
        let Some(number) = observation.round else { return };
        let under_way = self.state.rounds.iter().position(|round| {
            round.number == Some(number)
                && self.settings.state_index(round.region) == self.settings.state_index(observation.region)
                && round.vantage == observation.vantage
                && observation.revision == self.settings.revision
        });
        if let Some(index) = under_way {
            self.apply_outcome(index, observation, step);
            return;
        }
        let is_old = observation.revision != self.settings.revision;
        let is_full = self.state.rounds.len() >= MAX_OPEN_ROUNDS;
        let Some(region_state) = self.state.regions.get_mut(self.settings.state_index(observation.region)) else {
            return;
        };
        if region_state.has_finished(number) {
            return;
        }
        let late = is_old
            || is_full
            || step.now.since(observation.started) > LATE_AFTER
            || region_state.newest_started.is_some_and(|newest| observation.started < newest);
        if !late {
            let index = self.open_round(&observation, number);
            self.apply_outcome(index, observation, step);
        } else if observation.outcome != ProbeOutcome::Pending {
            region_state.record_round(number);
            self.record_late(&observation, number, step);
        }
    }

    /// Returns true if the round's number belongs to the current schedule.
    pub(super) fn is_of_schedule(&self, observation: &Observation) -> bool {
        observation.round.is_some_and(|number| self.is_due(number, observation.started))
    }

    /// Returns true if a round with that number is due at about that time in the current schedule.
    pub(super) fn is_due(&self, number: u64, at: Timestamp) -> bool {
        is_due_about(number, self.settings.interval_ms, at)
    }

    /// Highest round number possible at that time.
    pub(super) fn highest_round(&self, now: Timestamp) -> u64 {
        let interval = i64::from(self.settings.interval_ms);
        let latest = now.as_millis().saturating_add(4 * interval + SCHEDULE_TOLERANCE);
        latest.checked_div(interval).map_or(0, i64::unsigned_abs)
    }

    /// Handles the response to a probe request: of a requested round, or of a confirmation.
    pub(super) fn apply_response(&mut self, number: u32, answer: ProbeResponse, step: &mut MachineStep<'_>) {
        let answer = match answer {
            ProbeResponse::Observed(observation)
                if step.mesh.vantage(observation.vantage).is_some_and(|vantage| vantage.quarantined) =>
            {
                ProbeResponse::NoResponse
            }
            answer => answer,
        };
        if let Some(index) = self.state.rounds.iter().position(|round| round.request == Some(number)) {
            match answer {
                ProbeResponse::Observed(observation) => self.apply_outcome(index, observation, step),
                ProbeResponse::NoResponse => self.retry_elsewhere(index, step),
            }
            return;
        }
        let open = |round: &OpenRound| round.confirmation.open_request.is_some_and(|(open, ..)| open == number);
        let Some(index) = self.state.rounds.iter().position(open) else { return };
        match answer {
            ProbeResponse::Observed(Observation { outcome: ProbeOutcome::Pending, .. }) => {
                self.extend_confirmation(index, step)
            }
            ProbeResponse::Observed(observation) => {
                self.apply_confirmation(index, observation.vantage, observation.outcome, step)
            }
            ProbeResponse::NoResponse => self.confirm_at_next(index, step),
        }
    }

    /// Abandons everything that has waited too long.
    pub(super) fn expire_rounds(&mut self, step: &mut MachineStep<'_>) {
        let now = step.now;
        let is_due =
            |round: &OpenRound| round.retry_at.is_none() && Self::round_deadline(round).is_some_and(|at| now >= at);
        while let Some(index) = self.state.rounds.iter().position(is_due) {
            let Some(round) = self.state.rounds.get(index) else { break };
            if round.outcome.is_none() && step.now >= round.expires {
                self.retry_elsewhere(index, step);
            } else if round.confirmation.open_request.is_some_and(|(.., until)| step.now >= until) {
                self.confirm_at_next(index, step);
            } else {
                self.request_confirmation(index, step);
            }
        }
        self.retry_waiting(step);
    }

    /// Next deadline of the round.
    pub(super) fn round_deadline(round: &OpenRound) -> Option<Timestamp> {
        if round.retry_at.is_some() {
            return round.retry_at;
        }
        let own = round.outcome.is_none().then_some(round.expires);
        let second = round.confirmation.open_request.map(|(.., until)| until);
        own.into_iter().chain(second).chain(round.confirmation.repeat_at).min()
    }

    /// Drops a round without an outcome.
    pub(super) fn drop_round(&mut self, index: usize, step: &mut MachineStep<'_>) {
        if index < self.state.rounds.len() {
            self.changed = true;
            let round = self.state.rounds.remove(index);
            if round.pending && round.reason != ProbeReason::Second {
                self.validate_early_second_round(self.state_region(round.region), RoundOutcome::Inconclusive, step);
            }
            self.resolve_sweep(&round, false, step);
        }
    }

    /// Drops every round in progress, because the check has changed or is paused. History keeps those that had the
    /// outcome of their own vantage and waited for confirmation.
    pub(super) fn drop_open_rounds(&mut self, step: &mut MachineStep<'_>) {
        for round in std::mem::take(&mut self.state.rounds) {
            if let (Some(number), Some(_)) = (round.number, &round.outcome) {
                step.out.push(MachineOutput::Reading(FinishedRound {
                    region: round.region,
                    vantage: round.vantage,
                    round: number,
                    started: round.started,
                    outcome: if round.has_passed() { RoundOutcome::Passed } else { RoundOutcome::Unconfirmed },
                    latency_ms: None,
                }));
            }
        }
    }

    fn open_round(&mut self, observation: &Observation, number: u64) -> usize {
        self.changed = true;
        self.state.rounds.push(OpenRound {
            region: observation.region,
            vantage: observation.vantage,
            network: observation.network,
            reason: ProbeReason::Scheduled,
            number: Some(number),
            request: None,
            tried: Vec::new(),
            started: observation.started,
            expires: observation.started + LOST_AFTER,
            pending: false,
            has_swept: false,
            provisional_for: None,
            held_outcome: None,
            retry_at: None,
            outcome: None,
            confirmation: Confirmation::default(),
            second_round_requested: NotStored(None),
        });
        self.state.rounds.len() - 1
    }

    /// Handles an observation of the round's own vantage: pending, or final.
    fn apply_outcome(&mut self, index: usize, observation: Observation, step: &mut MachineStep<'_>) {
        self.changed = true;
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        if round.outcome.is_some() {
            return;
        }
        round.vantage = observation.vantage;
        round.network = observation.network;
        round.started = observation.started.min(step.now);
        if observation.outcome == ProbeOutcome::Pending {
            self.handle_pending(index, step);
            return;
        }
        let region_state = self.settings.state_index(round.region);
        if let Some(number) = round.number
            && let Some(region_state) = self.state.regions.get_mut(region_state)
            && !region_state.record_round(number)
        {
            // Another vantage has already finished the same round: the first one counts.
            self.drop_round(index, step);
            return;
        }
        let is_failure = matches!(observation.outcome, ProbeOutcome::Failed(..));
        let round_outcome = match &observation.outcome {
            ProbeOutcome::Passed(_) => RoundOutcome::Passed,
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => RoundOutcome::Inconclusive,
            ProbeOutcome::Failed(..) => RoundOutcome::Failed,
        };
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.outcome = Some((observation.ended, observation.outcome));
        let swept = round.has_swept.then(|| round.clone());
        let status = self.state.regions.get(region_state).map(|state| state.status);
        if round_outcome == RoundOutcome::Passed && self.would_end_outage(index) {
            self.confirm_pass(index, step);
        } else if !is_failure || status == Some(RegionStatus::Down) {
            self.conclude(index, round_outcome, step);
        } else if step.now.since(observation.ended) > confirmation::MAX_FAILURE_AGE {
            self.conclude(index, RoundOutcome::Unconfirmed, step);
        } else {
            self.await_confirmation(index, step);
        }
        if let Some(round) = swept {
            self.resolve_sweep(&round, is_failure, step);
        }
    }

    /// Returns true if a pass would end its region's outage.
    fn would_end_outage(&self, index: usize) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return false };
        let status = self.state.regions.get(self.settings.state_index(round.region)).map(|state| state.status);
        match status {
            Some(RegionStatus::Down) => true,
            Some(RegionStatus::Unknown) => self.state.outage.is_some(),
            Some(RegionStatus::Up) | None => false,
        }
    }

    /// Handles a check that has been pending for three seconds: starts its confirmation and the sweep, provisionally.
    fn handle_pending(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        if std::mem::replace(&mut round.pending, true) {
            return;
        }
        let (region, reason, untouched) = (round.region, round.reason, round.confirmation == Confirmation::default());
        let is_down = self
            .state
            .regions
            .get(self.settings.state_index(region))
            .is_some_and(|state| state.status == RegionStatus::Down);
        if is_down {
            return;
        }
        if untouched && !step.mesh.has_one_network() {
            self.request_confirmation(index, step);
        }
        // An open suspicion has swept already. Regions that the sweep for another pending round left out are
        // requested now.
        let sweeps = matches!(reason, ProbeReason::Scheduled | ProbeReason::First | ProbeReason::Manual)
            && self.state.suspicion.is_none();
        if sweeps && self.settings.counted_regions(step.mesh).contains(self.state_region(region)) {
            if let Some(round) = self.state.rounds.get_mut(index) {
                round.has_swept = true;
            }
            self.sweep(self.state_region(region), true, step);
        }
        self.request_early_second_rounds(step);
    }
}
