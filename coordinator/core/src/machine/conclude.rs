//! End of a round: applies its outcome to history, the region's state, the suspicion and the last check.

use crate::check::CheckKind;
use crate::event::{EventKind, ProbeReason};
use crate::observation::{Failure, Measurements, Observation, ProbeOutcome, RoundOutcome};
use crate::slowness::PassedReading;
use crate::time::Timestamp;
use crate::verdict::{RegionStatus, RegionTransition, RoundFacts};

use super::state::OpenRound;
use super::{FinishedRound, LastCheck, MachineOutput, MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Ends a round with its outcome. A provisional round holds its outcome until the round that triggered it has
    /// failed.
    pub(super) fn conclude(&mut self, index: usize, round_outcome: RoundOutcome, step: &mut MachineStep<'_>) {
        self.changed = true;
        if let Some(round) = self.state.rounds.get_mut(index)
            && round_outcome == RoundOutcome::Failed
            && round.has_passed()
        {
            round.adopt_failure();
        }
        match self.state.rounds.get_mut(index) {
            Some(round) if round.provisional_for.is_some() => {
                round.held_outcome = Some(round_outcome);
                // A confirmation that arrives later would be taken for that of a failure.
                round.confirmation.open_request = None;
                round.confirmation.repeat_at = None;
            }
            Some(_) => {
                let round = self.state.rounds.remove(index);
                let first =
                    (round.pending && round.reason != ProbeReason::Second).then(|| self.state_region(round.region));
                if let Some(region) = first {
                    self.validate_early_second_round(region, round_outcome, step);
                }
                self.finish(round, round_outcome, step);
                if let Some(region) = first {
                    self.release_early_second_round(region, step);
                }
            }
            None => {}
        }
    }

    /// Records a late round: history only. A failure in a region that has been down since before it counts as failed,
    /// as it would have in time; any other can no longer be confirmed.
    pub(super) fn record_late(&mut self, observation: &Observation, round: u64, step: &mut MachineStep<'_>) {
        self.changed = true;
        let region_state = self.state.regions.get(self.settings.state_index(observation.region));
        let was_down = region_state.is_some_and(|region_state| {
            region_state.status == RegionStatus::Down
                && region_state.down_since().is_some_and(|since| observation.started >= since)
        });
        let (round_outcome, latency_ms) = match &observation.outcome {
            ProbeOutcome::Passed(facts) => (RoundOutcome::Passed, facts.latency_ms),
            ProbeOutcome::Failed(..) if was_down => (RoundOutcome::Failed, None),
            ProbeOutcome::Failed(..) => (RoundOutcome::Unconfirmed, None),
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => (RoundOutcome::Inconclusive, None),
        };
        let latency_ms = latency_ms.filter(|_| self.settings.kind.has_latency());
        let (region, vantage, started) = (observation.region, observation.vantage, observation.started);
        step.out.push(MachineOutput::Reading(FinishedRound {
            region,
            vantage,
            round,
            started,
            outcome: round_outcome,
            latency_ms,
        }));
    }

    /// Reports a round that does not count.
    pub(super) fn report_only(
        &mut self,
        mut round: OpenRound,
        round_outcome: RoundOutcome,
        step: &mut MachineStep<'_>,
    ) {
        if let Some((_, outcome)) = round.outcome.take() {
            step.out.push(MachineOutput::event(EventKind::Round(round.report(round_outcome, outcome))));
        }
    }

    fn finish(&mut self, mut round: OpenRound, round_outcome: RoundOutcome, step: &mut MachineStep<'_>) {
        let waited = round.was_pending();
        let Some((ended, outcome)) = round.outcome.take() else { return };
        let (facts, failure) = match &outcome {
            ProbeOutcome::Passed(facts) => (Some(facts), None),
            ProbeOutcome::Failed(facts, failure) => (Some(facts), Some(failure.clone())),
            ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending => (None, None),
        };
        let latency_ms = facts
            .and_then(|facts| facts.latency_ms)
            .filter(|_| round_outcome == RoundOutcome::Passed && self.settings.kind.has_latency());
        let degraded = self.settings.kind == CheckKind::Component && facts.is_some_and(|facts| facts.degraded);
        if let Some(expires_at) = facts.and_then(|facts| facts.expires_at) {
            self.state.expires_at = Some(expires_at);
        }
        if let Some(number) = round.number {
            let (region, vantage, started) = (round.region, round.vantage, round.started);
            step.out.push(MachineOutput::Reading(FinishedRound {
                region,
                vantage,
                round: number,
                started,
                outcome: round_outcome,
                latency_ms,
            }));
        }
        self.update_last_check(&round, round_outcome, ended, &outcome, step);
        self.count_unjudged(round.started, &outcome, step);
        let mut evidence = None;
        let region = self.state_region(round.region);
        let is_up = self.state.regions.get(region.index()).is_some_and(|state| state.status == RegionStatus::Up);
        let is_confirmed_recovery = !is_up && round.confirmation.second_outcome.is_some();
        if round_outcome != RoundOutcome::Passed || round.reason != ProbeReason::Scheduled || is_confirmed_recovery {
            let report = round.report(round_outcome, outcome);
            evidence = (round_outcome == RoundOutcome::Failed).then(|| report.clone());
            step.out.push(MachineOutput::event(EventKind::Round(report)));
        }
        if round_outcome != RoundOutcome::Inconclusive {
            self.state.needs_first_rounds = false;
        }
        if !self.settings.checked_regions(step.mesh).contains(region) {
            return;
        }
        let facts = RoundFacts {
            started: round.started,
            reason: round.reason,
            was_pending: waited,
            interval: i64::from(self.settings.interval_ms),
        };
        let Some(region_state) = self.state.regions.get_mut(region.index()) else { return };
        if region_state.newest_started.is_some_and(|newest| round.started < newest) {
            return;
        }
        let of_the_last_outage = self.state.last_recovered.is_some_and(|at| round.started < at);
        if round_outcome == RoundOutcome::Failed && of_the_last_outage && region_state.status != RegionStatus::Down {
            self.record_outcome(region, round_outcome, round.started);
            self.remove_evidence(region);
            let Some(region_state) = self.state.regions.get_mut(region.index()) else { return };
            region_state.apply_past_failure(round.started, step.now);
            self.clear_suspicion(region, RoundOutcome::Passed, RegionTransition::Unchanged);
            if !self.is_checking(region) {
                self.request_round(region, ProbeReason::Sweep, step);
            }
            return self.decide(None, step);
        }
        self.record_outcome(region, round_outcome, round.started);
        let Some(region_state) = self.state.regions.get_mut(region.index()) else { return };
        let turn = region_state.apply_outcome(round_outcome, facts, step.now);
        let begins_run = region_state.first_failure().is_some_and(|first| first.started == round.started);
        let goes_on_down = turn == RegionTransition::Unchanged && region_state.status == RegionStatus::Down;
        if round_outcome == RoundOutcome::Failed {
            region_state.set_failure(failure);
        }
        if let Some(latency_ms) = latency_ms {
            region_state.readings.insert(PassedReading { vantage: round.vantage, started: round.started, latency_ms });
        }
        match (turn, evidence) {
            (RegionTransition::FirstFailure | RegionTransition::WentDown, Some(report)) => {
                self.store_evidence(report, begins_run)
            }
            // A disputed round explains nothing; an inconclusive one changes nothing.
            _ if matches!(round_outcome, RoundOutcome::Passed | RoundOutcome::Disputed) && !goes_on_down => {
                self.remove_evidence(region)
            }
            _ => {}
        }
        if round_outcome == RoundOutcome::Passed {
            self.state.degraded_since = degraded.then_some(round.started);
        }
        let was_failing = self.state.suspicion.as_ref().is_some_and(|now| now.failing.contains(region));
        match turn {
            RegionTransition::FirstFailure => self.add_suspicion(&round, region, step),
            RegionTransition::Unchanged | RegionTransition::WentDown | RegionTransition::Recovered => {
                self.clear_suspicion(region, round_outcome, turn)
            }
        }
        if turn == RegionTransition::Recovered || (round_outcome == RoundOutcome::Passed && was_failing) {
            self.sweep_for_recovery(region, turn == RegionTransition::Recovered, round.started, step);
        } else if round_outcome == RoundOutcome::Failed {
            self.recheck(region, round.started, step);
        }
        self.decide((round_outcome == RoundOutcome::Passed).then_some((region, round.started, latency_ms)), step);
    }

    /// Updates the last check shown to users: the newest finished scheduled round of a counted region. A round that
    /// could not be judged for an external reason is shown with that reason, since the owner can act on it.
    fn update_last_check(
        &mut self,
        round: &OpenRound,
        round_outcome: RoundOutcome,
        at: Timestamp,
        outcome: &ProbeOutcome,
        step: &MachineStep<'_>,
    ) {
        let is_regular = matches!(round.reason, ProbeReason::Scheduled | ProbeReason::First);
        let counted = self.settings.counted_regions(step.mesh).contains(self.state_region(round.region));
        if !is_regular || !counted || self.state.last_check.as_ref().is_some_and(|last| last.at > at) {
            return;
        }
        let last = match (round_outcome, outcome) {
            (RoundOutcome::Disputed, _) => LastCheck { at, ok: true, facts: Measurements::default(), error: None },
            (_, ProbeOutcome::Passed(facts)) => LastCheck::passed(at, facts),
            (_, ProbeOutcome::Failed(facts, failure)) => {
                LastCheck { at, ok: false, facts: facts.clone(), error: Some(failure.clone()) }
            }
            (_, ProbeOutcome::Inconclusive(fault)) if fault.is_external() => {
                let error = Some(Failure::Other(fault.to_string()));
                LastCheck { at, ok: false, facts: Measurements::default(), error }
            }
            (_, ProbeOutcome::Inconclusive(_) | ProbeOutcome::Pending) => return,
        };
        self.state.last_check = Some(last);
    }
}
