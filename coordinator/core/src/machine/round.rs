//! Rounds from start to outcome: scheduled or requested, pending, abandoned or retried at the next vantage.

use crate::assign::{OFF_SCHEDULE, is_due_about};
use crate::check::CheckKind;
use crate::confirm::{self, PATIENCE};
use crate::event::{Answer, Ask, Reason};
use crate::observation::{Observation, Outcome, Word};
use crate::place::{NetworkNo, PlaceNo, Region};
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::verdict::Standing;

use super::state::{Round, Second, Unkept};
use super::{Finished, LATE, Machine, Output, Step};

/// Milliseconds that a scheduled round may stay pending before its result counts as lost.
pub(super) const LOST_AFTER: i64 = 30 * SECOND;
/// Maximum number of rounds in progress. Beyond that, new ones are history only; honest agents never come near it.
const ROUNDS: usize = 32;

impl Machine {
    /// Handles an observation of a scheduled round.
    pub(super) fn scheduled(&mut self, observation: Observation, step: &mut Step<'_>) {
        let Some(number) = observation.round else { return };
        let under_way = self.state.rounds.iter().position(|round| {
            round.number == Some(number)
                && self.watch.lane(round.region) == self.watch.lane(observation.region)
                && round.place == observation.place
                && observation.revision == self.watch.revision
        });
        if let Some(index) = under_way {
            self.take_outcome(index, observation, step);
            return;
        }
        let is_old = observation.revision != self.watch.revision;
        let is_full = self.state.rounds.len() >= ROUNDS;
        let Some(lane) = self.state.lanes.get_mut(self.watch.lane(observation.region)) else { return };
        if lane.has_seen(number) {
            return;
        }
        let late = is_old
            || is_full
            || step.now.since(observation.started) > LATE
            || lane.newest.is_some_and(|newest| observation.started < newest);
        if !late {
            let index = self.begin(&observation, number);
            self.take_outcome(index, observation, step);
        } else if observation.outcome != Outcome::Pending {
            lane.note_round(number);
            self.keep_late(&observation, number, step);
        }
    }

    /// Returns true if the round's number belongs to the current schedule.
    pub(super) fn is_of_schedule(&self, observation: &Observation) -> bool {
        observation.round.is_some_and(|number| self.is_due(number, observation.started))
    }

    /// Returns true if a round with that number is due at about that time in the current schedule.
    pub(super) fn is_due(&self, number: u64, at: Timestamp) -> bool {
        is_due_about(number, self.watch.interval_ms, at)
    }

    /// Highest round number possible at that time.
    pub(super) fn highest_round(&self, now: Timestamp) -> u64 {
        let interval = i64::from(self.watch.interval_ms);
        let latest = now.as_millis().saturating_add(4 * interval + OFF_SCHEDULE);
        latest.checked_div(interval).map_or(0, i64::unsigned_abs)
    }

    /// Handles the response to a probe request: of a requested round, or of a confirmation.
    pub(super) fn answered(&mut self, number: u32, answer: Answer, step: &mut Step<'_>) {
        let answer = match answer {
            Answer::Seen(seen) if step.mesh.place(seen.place).is_some_and(|place| place.quarantined) => {
                Answer::Nothing
            }
            answer => answer,
        };
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
            Answer::Seen(Observation { outcome: Outcome::Pending, .. }) => self.second_waits(index, step),
            Answer::Seen(observation) => {
                self.take_second(index, observation.place, observation.outcome, step)
            }
            Answer::Nothing => self.second_failed_to_say(index, step),
        }
    }

    /// Requests a round from a vantage of the region. Returns false if the region has none that is available.
    pub(super) fn ask_round(&mut self, region: Region, reason: Reason, step: &mut Step<'_>) -> bool {
        self.state.rounds.push(Round {
            region,
            place: PlaceNo(0),
            network: NetworkNo(0),
            reason,
            number: None,
            ask: None,
            tried: Vec::new(),
            started: step.now,
            give_up: step.now + PATIENCE,
            pending: false,
            swept: false,
            provisional: None,
            held: None,
            parked: None,
            outcome: None,
            second: Second::default(),
            seconded: Unkept(None),
        });
        let asked = self.ask_next(self.state.rounds.len() - 1, step);
        if !asked {
            self.state.rounds.pop();
        }
        asked
    }

    /// Requests the round from the next vantage of its region. Returns false, without effect, if there is none.
    pub(super) fn ask_next(&mut self, index: usize, step: &mut Step<'_>) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return false };
        let (reason, wanted) = (round.reason, round.region);
        let waited = round.pending && reason != Reason::Second;
        let seen_by = if reason == Reason::Second { self.seen_failing_by(wanted, step) } else { Vec::new() };
        let Some((place, network, region)) = self.runner(wanted, &round.tried, &seen_by, step) else {
            return false;
        };
        let number = self.ask(place, reason, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.region = region;
            round.place = place;
            round.network = network;
            round.ask = Some(number);
            round.tried.push(place);
            round.started = step.now;
            round.give_up = step.now + PATIENCE;
            round.pending = false;
            round.seconded = Unkept(None);
            // A confirmation of a check at another vantage says nothing about this one's network.
            round.second = Second::default();
        }
        if waited {
            // The pending check has no outcome, and its early second round must not outlive it.
            self.judge_early_second(self.lane_region(wanted), Word::Inconclusive, step);
        }
        true
    }

    /// Abandons everything that has waited too long.
    pub(super) fn expire_rounds(&mut self, step: &mut Step<'_>) {
        let now = step.now;
        let is_due =
            |round: &Round| round.parked.is_none() && Self::round_deadline(round).is_some_and(|at| now >= at);
        while let Some(index) = self.state.rounds.iter().position(is_due) {
            let Some(round) = self.state.rounds.get(index) else { break };
            if round.outcome.is_none() && step.now >= round.give_up {
                self.ask_again(index, step);
            } else if round.second.open.is_some_and(|(.., until)| step.now >= until) {
                self.second_failed_to_say(index, step);
            } else {
                self.ask_second(index, step);
            }
        }
        self.retry_parked(step);
    }

    /// Next deadline of the round.
    pub(super) fn round_deadline(round: &Round) -> Option<Timestamp> {
        if round.parked.is_some() {
            return round.parked;
        }
        let own = round.outcome.is_none().then_some(round.give_up);
        let second = round.second.open.map(|(.., until)| until);
        own.into_iter().chain(second).chain(round.second.repeat_at).min()
    }

    /// Drops a round without an outcome.
    pub(super) fn drop_round(&mut self, index: usize, step: &mut Step<'_>) {
        if index < self.state.rounds.len() {
            self.changed = true;
            let round = self.state.rounds.remove(index);
            if round.pending && round.reason != Reason::Second {
                self.judge_early_second(self.lane_region(round.region), Word::Inconclusive, step);
            }
            self.resolve_sweep(&round, false, step);
        }
    }

    /// Drops every round in progress, because the check has changed or is paused. History keeps those that had the
    /// outcome of their own vantage and waited for confirmation.
    pub(super) fn end_waiting(&mut self, step: &mut Step<'_>) {
        for round in std::mem::take(&mut self.state.rounds) {
            if let (Some(number), Some(_)) = (round.number, &round.outcome) {
                step.out.push(Output::Reading(Finished {
                    region: round.region,
                    place: round.place,
                    round: number,
                    started: round.started,
                    word: if round.has_passed() { Word::Passed } else { Word::Unconfirmed },
                    latency_ms: None,
                }));
            }
        }
    }

    fn begin(&mut self, observation: &Observation, number: u64) -> usize {
        self.changed = true;
        self.state.rounds.push(Round {
            region: observation.region,
            place: observation.place,
            network: observation.network,
            reason: Reason::Scheduled,
            number: Some(number),
            ask: None,
            tried: Vec::new(),
            started: observation.started,
            give_up: observation.started + LOST_AFTER,
            pending: false,
            swept: false,
            provisional: None,
            held: None,
            parked: None,
            outcome: None,
            second: Second::default(),
            seconded: Unkept(None),
        });
        self.state.rounds.len() - 1
    }

    /// Handles an observation of the round's own vantage: pending, or final.
    fn take_outcome(&mut self, index: usize, observation: Observation, step: &mut Step<'_>) {
        self.changed = true;
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        if round.outcome.is_some() {
            return;
        }
        round.place = observation.place;
        round.network = observation.network;
        round.started = observation.started.min(step.now);
        if observation.outcome == Outcome::Pending {
            self.pending(index, step);
            return;
        }
        let lane = self.watch.lane(round.region);
        if let Some(number) = round.number
            && let Some(lane) = self.state.lanes.get_mut(lane)
            && !lane.note_round(number)
        {
            // Another vantage has already finished the same round: the first one counts.
            self.drop_round(index, step);
            return;
        }
        let is_failure = matches!(observation.outcome, Outcome::Failed(..));
        let word = match &observation.outcome {
            Outcome::Passed(_) => Word::Passed,
            Outcome::Inconclusive(_) | Outcome::Pending => Word::Inconclusive,
            Outcome::Failed(..) => Word::Failed,
        };
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.outcome = Some((observation.ended, observation.outcome));
        let swept = round.swept.then(|| round.clone());
        let standing = self.state.lanes.get(lane).map(|lane| lane.standing);
        if word == Word::Passed && self.would_end_outage(index, step) {
            self.await_second(index, step);
        } else if !is_failure || standing == Some(Standing::Down) {
            self.conclude(index, word, step);
        } else if step.now.since(observation.ended) > confirm::TOO_OLD {
            self.conclude(index, Word::Unconfirmed, step);
        } else {
            self.await_second(index, step);
        }
        if let Some(round) = swept {
            self.resolve_sweep(&round, is_failure, step);
        }
    }

    /// Returns true if a pass would end its region's outage while three networks can decide whether it is over:
    /// otherwise a vantage that sees every site as up would end every outage. With two networks one outcome
    /// contradicts the other, and the pass counts.
    fn would_end_outage(&self, index: usize, step: &Step<'_>) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return false };
        let standing = self.state.lanes.get(self.watch.lane(round.region)).map(|lane| lane.standing);
        let is_out = match standing {
            Some(Standing::Down) => true,
            Some(Standing::Unknown) => self.state.outage.is_some(),
            Some(Standing::Up) | None => false,
        };
        is_out && confirm::can_be_outvoted(&self.watch, step.mesh, round.region, round.network)
    }

    /// Handles a check that has been pending for three seconds: starts its confirmation and the sweep, provisionally.
    fn pending(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        if std::mem::replace(&mut round.pending, true) {
            return;
        }
        let (region, reason, untouched) = (round.region, round.reason, round.second == Second::default());
        let is_down =
            self.state.lanes.get(self.watch.lane(region)).is_some_and(|lane| lane.standing == Standing::Down);
        if is_down {
            return;
        }
        if untouched && !step.mesh.has_one_network() {
            self.ask_second(index, step);
        }
        // An open suspicion has swept already. Regions that the sweep for another pending round left out are
        // requested now.
        let sweeps = matches!(reason, Reason::Scheduled | Reason::First | Reason::Manual)
            && self.state.suspicion.is_none();
        if sweeps && self.watch.counted(step.mesh).contains(self.lane_region(region)) {
            if let Some(round) = self.state.rounds.get_mut(index) {
                round.swept = true;
            }
            self.sweep(self.lane_region(region), true, step);
        }
        self.ask_early_seconds(step);
    }

    /// Requests a round from another vantage of its region because the first returned no outcome; otherwise drops it.
    fn ask_again(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        let may_ask = round.ask.is_some() && round.tried.len() < confirm::TRIES;
        if !may_ask || !self.ask_next(index, step) {
            self.drop_round(index, step);
        }
    }

    /// Sends a numbered probe request to a vantage.
    pub(super) fn ask(&mut self, place: PlaceNo, reason: Reason, step: &mut Step<'_>) -> u32 {
        self.changed = true;
        self.state.next_number = self.state.next_number.wrapping_add(1);
        let number = self.state.next_number;
        step.out.push(Output::Ask(Ask { number, place, reason, deadline: step.now + PATIENCE }));
        number
    }

    /// Chooses the vantage that runs a round of that region now, and returns its region. Vantages take turns, and one
    /// that was tried is not used again. Those in `seen_by` come first.
    fn runner(
        &self,
        region: Region,
        tried: &[PlaceNo],
        seen_by: &[PlaceNo],
        step: &Step<'_>,
    ) -> Option<(PlaceNo, NetworkNo, Region)> {
        let anywhere = !self.watch.kind.is_regional() && self.watch.pinned.is_none();
        let wanted = if self.watch.kind.is_regional() { region } else { self.watch.pinned.unwrap_or(region) };
        let mut fit: Vec<_> = step
            .mesh
            .fit()
            .filter(|place| (anywhere || place.region == wanted) && !tried.contains(&place.no))
            .collect();
        if fit.iter().any(|place| seen_by.contains(&place.no)) {
            fit.retain(|place| seen_by.contains(&place.no));
        }
        // Monitors of one domain, which are due together, use the same vantage, so that one registry lookup serves
        // them all.
        let turn = if self.watch.kind == CheckKind::Domain {
            step.now.as_millis().unsigned_abs() / MINUTE.unsigned_abs()
        } else {
            crate::assign::spread(self.watch.monitor).wrapping_add(u64::from(self.state.next_number))
        };
        let index = usize::try_from(turn % fit.len().max(1) as u64).unwrap_or(0);
        fit.get(index).map(|place| (place.no, place.network, place.region))
    }

    /// Region whose state a round of that region affects.
    pub(super) fn lane_region(&self, region: Region) -> Region {
        if self.watch.kind.is_regional() { region } else { Region::Europe }
    }
}
