//! End of a round: applies its outcome to history, the region's state, the suspicion and the last check.

use crate::check::CheckKind;
use crate::event::{Reason, What};
use crate::observation::{Facts, Failure, Observation, Outcome, Word};
use crate::slowness::Passed;
use crate::time::Timestamp;
use crate::verdict::{RoundFacts, Standing, Turn};

use super::state::Round;
use super::{Finished, LastCheck, Machine, Output, Step};

impl Machine {
    /// Ends a round with its outcome. A provisional round holds its outcome until the round that triggered it has
    /// failed.
    pub(super) fn conclude(&mut self, index: usize, word: Word, step: &mut Step<'_>) {
        self.changed = true;
        match self.state.rounds.get_mut(index) {
            Some(round) if round.provisional.is_some() => {
                round.held = Some(word);
                // A confirmation that arrives later would be taken for that of a failure.
                round.second.open = None;
                round.second.repeat_at = None;
            }
            Some(_) => {
                let round = self.state.rounds.remove(index);
                let first =
                    (round.pending && round.reason != Reason::Second).then(|| self.lane_region(round.region));
                if let Some(region) = first {
                    self.judge_early_second(region, word, step);
                }
                self.end(round, word, step);
                if let Some(region) = first {
                    self.release_early_second(region, step);
                }
            }
            None => {}
        }
    }

    /// Records a late round: history only. A failure in a region that has been down since before it counts as failed,
    /// as it would have in time; any other can no longer be confirmed.
    pub(super) fn keep_late(&mut self, observation: &Observation, round: u64, step: &mut Step<'_>) {
        self.changed = true;
        let lane = self.state.lanes.get(self.watch.lane(observation.region));
        let was_down = lane.is_some_and(|lane| {
            lane.standing == Standing::Down
                && lane.down_since().is_some_and(|since| observation.started >= since)
        });
        let (word, latency_ms) = match &observation.outcome {
            Outcome::Passed(facts) => (Word::Passed, facts.latency_ms),
            Outcome::Failed(..) if was_down => (Word::Failed, None),
            Outcome::Failed(..) => (Word::Unconfirmed, None),
            Outcome::Inconclusive(_) | Outcome::Pending => (Word::Inconclusive, None),
        };
        let latency_ms = latency_ms.filter(|_| self.watch.kind.has_latency());
        let (region, place, started) = (observation.region, observation.place, observation.started);
        step.out.push(Output::Reading(Finished { region, place, round, started, word, latency_ms }));
    }

    /// Reports a round that does not count.
    pub(super) fn tell_only(&mut self, mut round: Round, word: Word, step: &mut Step<'_>) {
        if let Some((_, outcome)) = round.outcome.take() {
            step.out.push(Output::happened(What::Round(round.report(word, outcome))));
        }
    }

    fn end(&mut self, mut round: Round, word: Word, step: &mut Step<'_>) {
        if word == Word::Failed && round.has_passed() {
            round.side_with_failed(|place| step.mesh.place(place).map(|place| place.network));
        }
        let waited = round.waited();
        let Some((ended, outcome)) = round.outcome.take() else { return };
        let (facts, failure) = match &outcome {
            Outcome::Passed(facts) => (Some(facts), None),
            Outcome::Failed(facts, failure) => (Some(facts), Some(failure.clone())),
            Outcome::Inconclusive(_) | Outcome::Pending => (None, None),
        };
        let latency_ms = facts
            .and_then(|facts| facts.latency_ms)
            .filter(|_| word == Word::Passed && self.watch.kind.has_latency());
        let degraded = self.watch.kind == CheckKind::Component && facts.is_some_and(|facts| facts.degraded);
        if let Some(expires_at) = facts.and_then(|facts| facts.expires_at) {
            self.state.expires_at = Some(expires_at);
        }
        if let Some(number) = round.number {
            let (region, place, started) = (round.region, round.place, round.started);
            step.out.push(Output::Reading(Finished {
                region,
                place,
                round: number,
                started,
                word,
                latency_ms,
            }));
        }
        self.show_last_check(&round, word, ended, &outcome, step);
        self.note_judged(round.started, &outcome, step);
        let mut evidence = None;
        if word != Word::Passed || round.reason != Reason::Scheduled || round.second.heard.is_some() {
            let report = round.report(word, outcome);
            evidence = (word == Word::Failed).then(|| report.clone());
            step.out.push(Output::happened(What::Round(report)));
        }
        if word != Word::Inconclusive {
            self.state.untried = false;
        }
        let region = self.lane_region(round.region);
        if !self.watch.regions(step.mesh).contains(region) {
            return;
        }
        let facts = RoundFacts {
            started: round.started,
            reason: round.reason,
            waited,
            interval: i64::from(self.watch.interval_ms),
        };
        let Some(lane) = self.state.lanes.get_mut(region.index()) else { return };
        if lane.newest.is_some_and(|newest| round.started < newest) {
            return;
        }
        let of_the_last_outage = self.state.last_recovered.is_some_and(|at| round.started < at);
        if word == Word::Failed && of_the_last_outage && lane.standing != Standing::Down {
            self.note_word(region, word, round.started);
            self.forget_evidence(region);
            let Some(lane) = self.state.lanes.get_mut(region.index()) else { return };
            lane.hear_of_the_past(round.started, step.now);
            self.clear_suspicion(region, Word::Passed, Turn::Nothing);
            if !self.is_looking(region) {
                self.ask_round(region, Reason::Sweep, step);
            }
            return self.decide(None, step);
        }
        self.note_word(region, word, round.started);
        let Some(lane) = self.state.lanes.get_mut(region.index()) else { return };
        let turn = lane.hear(word, facts, step.now);
        let begins_run = lane.first_failed().is_some_and(|first| first.started == round.started);
        let goes_on_down = turn == Turn::Nothing && lane.standing == Standing::Down;
        if word == Word::Failed {
            lane.set_failure(failure);
        }
        if let Some(latency_ms) = latency_ms {
            lane.readings.insert(Passed { place: round.place, started: round.started, latency_ms });
        }
        match (turn, evidence) {
            (Turn::Suspects | Turn::WentDown, Some(report)) => self.keep_evidence(report, begins_run),
            // A disputed round explains nothing; an inconclusive one changes nothing.
            _ if matches!(word, Word::Passed | Word::Disputed) && !goes_on_down => {
                self.forget_evidence(region)
            }
            _ => {}
        }
        if word == Word::Passed {
            self.state.degraded = degraded.then_some(round.started);
        }
        let was_failing = self.state.suspicion.as_ref().is_some_and(|now| now.failing.contains(region));
        match turn {
            Turn::Suspects => self.suspect(&round, region, step),
            Turn::Nothing | Turn::WentDown | Turn::CameBack => self.clear_suspicion(region, word, turn),
        }
        if turn == Turn::CameBack || (word == Word::Passed && was_failing) {
            self.sweep_for_recovery(region, turn == Turn::CameBack, round.started, step);
        } else if word == Word::Failed {
            self.look_again(region, round.started, step);
        }
        self.decide((word == Word::Passed).then_some((region, round.started, latency_ms)), step);
    }

    /// Updates the last check shown to users: the newest finished scheduled round of a counted region. A round that
    /// could not be judged for an external reason is shown with that reason, since the owner can act on it.
    fn show_last_check(
        &mut self,
        round: &Round,
        word: Word,
        at: Timestamp,
        outcome: &Outcome,
        step: &Step<'_>,
    ) {
        let shown = matches!(round.reason, Reason::Scheduled | Reason::First);
        let counted = self.watch.counted(step.mesh).contains(self.lane_region(round.region));
        if !shown || !counted || self.state.last_check.as_ref().is_some_and(|last| last.at > at) {
            return;
        }
        let last = match (word, outcome) {
            (Word::Disputed, _) => LastCheck { at, ok: true, facts: Facts::default(), error: None },
            (_, Outcome::Passed(facts)) => LastCheck::passed(at, facts),
            (_, Outcome::Failed(facts, failure)) => {
                LastCheck { at, ok: false, facts: facts.clone(), error: Some(failure.clone()) }
            }
            (_, Outcome::Inconclusive(fault)) if fault.is_other_sides() => {
                let error = Some(Failure::Other(fault.to_string()));
                LastCheck { at, ok: false, facts: Facts::default(), error }
            }
            (_, Outcome::Inconclusive(_) | Outcome::Pending) => return,
        };
        self.state.last_check = Some(last);
    }
}
