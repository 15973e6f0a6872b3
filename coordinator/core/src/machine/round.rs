//! A round from its beginning to its word: pending, outcome, the second network's opinion, and what becomes of it.

use crate::confirm::{self, PATIENCE};
use crate::event::{Answer, Ask, Reason, What};
use crate::observation::{Facts, Observation, Outcome, Word};
use crate::place::{NetworkNo, PlaceNo, Region};
use crate::slowness::Passed;
use crate::time::{SECOND, Timestamp};
use crate::verdict::{RoundFacts, Standing, Turn};

use super::state::{Round, Second};
use super::{Finished, LATE, LastCheck, Machine, Output, Step};

/// Milliseconds that a scheduled round may stay pending before its result is given up.
const LOST_AFTER: i64 = 30 * SECOND;
/// Rounds kept as an outage's evidence.
const EVIDENCE: usize = 12;

impl Machine {
    /// An observation of a scheduled round.
    pub(super) fn scheduled(&mut self, observation: Observation, step: &mut Step<'_>) {
        let Some(number) = observation.round else { return };
        let under_way = self.state.rounds.iter().position(|round| {
            round.number == Some(number)
                && self.watch.lane(round.region) == self.watch.lane(observation.region)
                && round.place == observation.place
        });
        if let Some(index) = under_way {
            self.take_outcome(index, observation, step);
            return;
        }
        let Some(lane) = self.state.lanes.get_mut(self.watch.lane(observation.region)) else { return };
        let late = step.now.since(observation.started) > LATE
            || lane.newest.is_some_and(|newest| observation.started < newest);
        if observation.outcome == Outcome::Pending {
            if !late {
                let index = self.begin(&observation, Reason::Scheduled, Some(number));
                self.pending(index, step);
            }
            return;
        }
        if !lane.note_round(number) {
            return;
        }
        if late {
            self.keep_late(&observation, number, step);
            return;
        }
        let index = self.begin(&observation, Reason::Scheduled, Some(number));
        self.take_outcome(index, observation, step);
    }

    /// What came back for a question: a round that was asked for, or a second word.
    pub(super) fn answered(&mut self, number: u32, answer: Answer, step: &mut Step<'_>) {
        if let Some(index) = self.state.rounds.iter().position(|round| round.ask == Some(number)) {
            match answer {
                Answer::Seen(observation) => self.take_outcome(index, observation, step),
                Answer::Nothing => self.ask_again(index, step),
            }
            return;
        }
        let open = |round: &Round| round.second.open.is_some_and(|(open, ..)| open == number);
        let Some(index) = self.state.rounds.iter().position(open) else { return };
        match answer {
            Answer::Seen(Observation { outcome: Outcome::Pending, .. }) => {}
            Answer::Seen(observation) => {
                self.take_second(index, observation.place, observation.outcome, step)
            }
            Answer::Nothing => self.second_failed_to_say(index, step),
        }
    }

    /// Asks a place of the region to run a round now. False where the region has none that is fit.
    pub(super) fn ask_round(&mut self, region: Region, reason: Reason, step: &mut Step<'_>) -> bool {
        let Some((place, network)) = self.runner(region, &[], step) else { return false };
        let number = self.ask(place, reason, step);
        self.state.rounds.push(Round {
            region,
            place,
            network,
            reason,
            number: None,
            ask: Some(number),
            tried: vec![place],
            started: step.now,
            give_up: step.now + PATIENCE,
            pending: false,
            swept: false,
            outcome: None,
            second: Second::default(),
        });
        true
    }

    /// Gives up what has waited too long.
    pub(super) fn expire_rounds(&mut self, step: &mut Step<'_>) {
        let mut index = 0;
        while let Some(round) = self.state.rounds.get(index) {
            let before = self.state.rounds.len();
            if round.outcome.is_none() && step.now >= round.give_up {
                self.ask_again(index, step);
            } else if round.second.open.is_some_and(|(.., until)| step.now >= until) {
                self.second_failed_to_say(index, step);
            } else if round.second.repeat_at.is_some_and(|at| step.now >= at) {
                self.ask_second(index, step);
            }
            if self.state.rounds.len() >= before {
                index += 1;
            }
        }
    }

    /// When something of the round is due.
    pub(super) fn round_deadline(&self, round: &Round) -> Option<Timestamp> {
        let own = round.outcome.is_none().then_some(round.give_up);
        let second = round.second.open.map(|(.., until)| until);
        own.into_iter().chain(second).chain(round.second.repeat_at).min()
    }

    /// Asks again what was open when the coordinator stopped.
    pub(super) fn resume_rounds(&mut self, step: &mut Step<'_>) {
        let mut index = 0;
        while let Some(round) = self.state.rounds.get_mut(index) {
            round.second.open = None;
            let has_failed = round.outcome.as_ref().map(|(ended, _)| *ended);
            if has_failed.is_none() && round.ask.is_some() {
                round.tried.clear();
            }
            self.changed = true;
            let before = self.state.rounds.len();
            match has_failed {
                Some(ended) if step.now.since(ended) > confirm::TOO_OLD => {
                    self.conclude(index, Word::Unconfirmed, step);
                }
                Some(_) => self.ask_second(index, step),
                None => self.ask_again(index, step),
            }
            if self.state.rounds.len() >= before {
                index += 1;
            }
        }
    }

    fn begin(&mut self, observation: &Observation, reason: Reason, number: Option<u64>) -> usize {
        self.changed = true;
        self.state.rounds.push(Round {
            region: observation.region,
            place: observation.place,
            network: observation.network,
            reason,
            number,
            ask: None,
            tried: Vec::new(),
            started: observation.started,
            give_up: observation.started + LOST_AFTER,
            pending: false,
            swept: false,
            outcome: None,
            second: Second::default(),
        });
        self.state.rounds.len() - 1
    }

    /// The round's own place spoke: it still waits, or it is done.
    fn take_outcome(&mut self, index: usize, observation: Observation, step: &mut Step<'_>) {
        self.changed = true;
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        if round.outcome.is_some() {
            return;
        }
        round.place = observation.place;
        round.network = observation.network;
        round.started = observation.started;
        if observation.outcome == Outcome::Pending {
            self.pending(index, step);
            return;
        }
        let lane = self.watch.lane(round.region);
        if let Some(number) = round.number
            && let Some(lane) = self.state.lanes.get_mut(lane)
        {
            lane.note_round(number);
        }
        let is_failure = matches!(observation.outcome, Outcome::Failed(..));
        let word = match &observation.outcome {
            Outcome::Passed(_) => Word::Passed,
            Outcome::Inconclusive(_) | Outcome::Pending => Word::Inconclusive,
            Outcome::Failed(..) => Word::Failed,
        };
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.outcome = Some((observation.ended, observation.outcome));
        }
        let is_down = self.state.lanes.get(lane).is_some_and(|lane| lane.standing == Standing::Down);
        if !is_failure || is_down {
            self.conclude(index, word, step);
        } else if step.now.since(observation.ended) > confirm::TOO_OLD {
            self.conclude(index, Word::Unconfirmed, step);
        } else {
            self.await_second(index, step);
        }
    }

    fn pending(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.pending = true;
        let (region, reason, untouched) = (round.region, round.reason, round.second == Second::default());
        let is_down =
            self.state.lanes.get(self.watch.lane(region)).is_some_and(|lane| lane.standing == Standing::Down);
        if is_down || !untouched {
            return;
        }
        if !step.mesh.has_one_network() {
            self.ask_second(index, step);
        }
        let sweeps = matches!(reason, Reason::Scheduled | Reason::First | Reason::Manual);
        if sweeps && self.watch.counted(step.mesh).contains(self.lane_region(region)) {
            if let Some(round) = self.state.rounds.get_mut(index) {
                round.swept = true;
            }
            self.sweep(region, step);
        }
    }

    /// The place that was to run a round has no word: another of its region is asked, or the round is dropped.
    fn ask_again(&mut self, index: usize, step: &mut Step<'_>) {
        self.changed = true;
        let Some(round) = self.state.rounds.get(index) else { return };
        let next = match round.ask {
            Some(_) if round.tried.len() < confirm::TRIES => self.runner(round.region, &round.tried, step),
            Some(_) | None => None,
        };
        let reason = round.reason;
        let may_come_back = round.ask.is_some() && step.now < self.rejoin_until;
        let Some((place, network)) = next else {
            match self.state.rounds.get_mut(index).filter(|_| may_come_back) {
                Some(round) => round.give_up = step.now + super::REJOIN_LOOK,
                None => drop(self.state.rounds.remove(index)),
            }
            return;
        };
        let number = self.ask(place, reason, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.ask = Some(number);
            round.tried.push(place);
            round.place = place;
            round.network = network;
            round.started = step.now;
            round.give_up = step.now + PATIENCE;
        }
    }

    /// The round has its word: history, the region's standing, the suspicion and the last check follow it.
    pub(super) fn conclude(&mut self, index: usize, word: Word, step: &mut Step<'_>) {
        if index >= self.state.rounds.len() {
            return;
        }
        self.changed = true;
        let mut round = self.state.rounds.remove(index);
        let waited = round.waited();
        let Some((ended, outcome)) = round.outcome.take() else { return };
        let facts = match &outcome {
            Outcome::Passed(facts) | Outcome::Failed(facts, _) => Some(facts),
            Outcome::Inconclusive(_) | Outcome::Pending => None,
        };
        let latency_ms = facts
            .and_then(|facts| facts.latency_ms)
            .filter(|_| word == Word::Passed && self.watch.kind.has_latency());
        if let Some(expires_at) = facts.and_then(|facts| facts.expires_at) {
            self.state.expires_at = Some(expires_at);
        }
        if let Some(number) = round.number {
            let (region, place) = (round.region, round.place);
            step.out.push(Output::Reading(Finished { region, place, round: number, word, latency_ms }));
        }
        self.show_last_check(&round, word, ended, &outcome, step);
        if word != Word::Passed || round.reason != Reason::Scheduled {
            let report = round.report(word, outcome);
            if word == Word::Failed {
                self.keep_evidence(report.clone());
            }
            step.out.push(Output::happened(What::Round(report)));
        }
        if word != Word::Inconclusive {
            self.state.untried = false;
        }
        let region = self.lane_region(round.region);
        let Some(lane) = self.state.lanes.get_mut(region.index()) else { return };
        if lane.newest.is_some_and(|newest| round.started < newest) {
            return;
        }
        let turn = lane.hear(
            word,
            RoundFacts {
                started: round.started,
                reason: round.reason,
                waited,
                interval: i64::from(self.watch.interval_ms),
            },
            step.now,
        );
        if let Some(latency_ms) = latency_ms {
            lane.readings.insert(Passed { place: round.place, started: round.started, latency_ms });
        }
        match turn {
            Turn::Suspects => self.suspect(&round, region, step),
            Turn::Nothing | Turn::WentDown | Turn::CameBack => self.clear_suspicion(region, word, turn),
        }
        if turn == Turn::CameBack {
            self.sweep_for_recovery(region, step);
        }
        self.decide(Some((region, round.started, latency_ms)), step);
    }

    fn keep_late(&mut self, observation: &Observation, round: u64, step: &mut Step<'_>) {
        let (word, latency_ms) = match &observation.outcome {
            Outcome::Passed(facts) => (Word::Passed, facts.latency_ms),
            Outcome::Failed(..) => (Word::Unconfirmed, None),
            Outcome::Inconclusive(_) | Outcome::Pending => (Word::Inconclusive, None),
        };
        let latency_ms = latency_ms.filter(|_| self.watch.kind.has_latency());
        let (region, place) = (observation.region, observation.place);
        step.out.push(Output::Reading(Finished { region, place, round, word, latency_ms }));
    }

    fn show_last_check(
        &mut self,
        round: &Round,
        word: Word,
        ended: Timestamp,
        outcome: &Outcome,
        step: &Step<'_>,
    ) {
        let shown = matches!(round.reason, Reason::Scheduled | Reason::First);
        let counted = self.watch.counted(step.mesh).contains(self.lane_region(round.region));
        if !shown || !counted || self.state.last_check.as_ref().is_some_and(|last| last.at > ended) {
            return;
        }
        let last = match (word, outcome) {
            (Word::Inconclusive, _) => return,
            (Word::Disputed, _) => LastCheck { at: ended, ok: true, facts: Facts::default(), error: None },
            (_, Outcome::Passed(facts)) => LastCheck::passed(ended, facts),
            (_, Outcome::Failed(facts, failure)) => {
                LastCheck { at: ended, ok: false, facts: facts.clone(), error: Some(failure.clone()) }
            }
            (_, Outcome::Inconclusive(_) | Outcome::Pending) => return,
        };
        self.state.last_check = Some(last);
    }

    fn keep_evidence(&mut self, report: crate::event::RoundReport) {
        if self.state.outage.is_none() && self.state.evidence.len() < EVIDENCE {
            self.state.evidence.push(report);
        }
    }

    /// A question to a place, numbered.
    pub(super) fn ask(&mut self, place: PlaceNo, reason: Reason, step: &mut Step<'_>) -> u32 {
        self.changed = true;
        self.state.next_number = self.state.next_number.wrapping_add(1);
        let number = self.state.next_number;
        step.out.push(Output::Ask(Ask { number, place, reason, deadline: step.now + PATIENCE }));
        number
    }

    /// Who runs a round of that region now. Places take turns, and one that was tried is not asked again.
    fn runner(&self, region: Region, tried: &[PlaceNo], step: &Step<'_>) -> Option<(PlaceNo, NetworkNo)> {
        let anywhere = !self.watch.kind.is_regional() && self.watch.pinned.is_none();
        let wanted = if self.watch.kind.is_regional() { region } else { self.watch.pinned.unwrap_or(region) };
        let fit: Vec<_> = step
            .mesh
            .fit()
            .filter(|place| (anywhere || place.region == wanted) && !tried.contains(&place.no))
            .collect();
        let turn = crate::assign::spread(self.watch.monitor).wrapping_add(u64::from(self.state.next_number));
        let index = usize::try_from(turn % fit.len().max(1) as u64).unwrap_or(0);
        fit.get(index).map(|place| (place.no, place.network))
    }

    /// The region whose lane judges a round of that region.
    pub(super) fn lane_region(&self, region: Region) -> Region {
        if self.watch.kind.is_regional() { region } else { Region::Europe }
    }
}
