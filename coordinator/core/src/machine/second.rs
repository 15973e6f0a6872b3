//! Confirmation of a round by a second network, and by a third if the second contradicts the first: which vantage to
//! use, which next, and what happens if none is left.

use crate::confirm::{self, Confirmer, PATIENCE, PATIENCE_FOR_A_PASS};
use crate::event::Reason;
use crate::observation::{Outcome, Word};
use crate::place::{PlaceNo, Region};

use super::state::Unkept;
use super::{Machine, PENDING_AFTER, Step};

impl Machine {
    /// Starts the confirmation of a round before its own outcome, because the first round of the suspicion was long
    /// pending.
    pub(super) fn confirm_early(&mut self, region: Region, step: &mut Step<'_>) {
        let newest = self.state.rounds.iter().rposition(|round| self.lane_region(round.region) == region);
        if let Some(index) = newest.filter(|_| !step.mesh.has_one_network()) {
            self.ask_second(index, step);
        }
    }

    /// Handles a round that failed at its own vantage, or passed if that would end an outage: another network
    /// decides.
    pub(super) fn await_second(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        match (round.decided(), &round.second.open) {
            (Some(word), _) => self.conclude(index, word, step),
            (None, Some(_)) => {}
            (None, None) => self.ask_second(index, step),
        }
    }

    /// Requests confirmation from the next vantage, or from a third network if the second contradicts the first. If
    /// none is available, a failed round ends unconfirmed or disputed; a pass is accepted.
    pub(super) fn ask_second(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        let suspect = round.suspect();
        if let Some(second) = round.contradicted_by() {
            match confirm::arbiter(&self.watch, step.mesh, suspect, second) {
                Some(place) => self.ask_word(index, place, step),
                None => self.second_is_spent(index, step),
            }
            return;
        }
        let place = match confirm::confirmer(&self.watch, step.mesh, suspect) {
            Confirmer::Nobody => {
                self.second_is_spent(index, step);
                return;
            }
            Confirmer::Other(place) => place,
            Confirmer::Same(_) if round.has_passed() => {
                self.second_is_spent(index, step);
                return;
            }
            Confirmer::Same(place) => {
                let due = round.outcome.as_ref().map(|(ended, _)| *ended + confirm::REPEAT_AFTER);
                match due {
                    Some(due) if step.now >= due => place,
                    due => {
                        if let Some(round) = self.state.rounds.get_mut(index) {
                            round.second.repeat_at = due;
                        }
                        return;
                    }
                }
            }
        };
        self.ask_word(index, place, step);
    }

    fn ask_word(&mut self, index: usize, place: PlaceNo, step: &mut Step<'_>) {
        let number = self.ask(place, Reason::Confirm, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.second.repeat_at = None;
            round.second.asked.push(place);
            let patience = if round.has_passed() { PATIENCE_FOR_A_PASS } else { PATIENCE };
            round.second.open = Some((number, place, step.now + patience));
        }
    }

    /// Handles the outcome of a second or third vantage. If the second contradicts the first, a third network is
    /// requested at once, even while the first is still pending.
    pub(super) fn take_second(
        &mut self,
        index: usize,
        place: PlaceNo,
        outcome: Outcome,
        step: &mut Step<'_>,
    ) {
        if confirm::word(&outcome).is_none() {
            self.second_failed_to_say(index, step);
            return;
        }
        self.changed = true;
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.second.open = None;
        if round.second.heard.is_none() {
            round.second.heard = Some((place, outcome));
        } else {
            round.second.third = Unkept(Some((place, outcome)));
        }
        if round.outcome.is_some() {
            self.await_second(index, step);
        } else if round.decided().is_none() {
            self.ask_second(index, step);
        }
    }

    /// Extends the deadline of a confirmation that reports its check as pending: it has as long as any check.
    pub(super) fn second_waits(&mut self, index: usize, step: &Step<'_>) {
        if let Some(round) = self.state.rounds.get_mut(index)
            && round.has_passed()
            && let Some((.., until)) = &mut round.second.open
        {
            *until = step.now + (PATIENCE - PENDING_AFTER);
            self.changed = true;
        }
    }

    /// Requests confirmation from the next vantage because the last one returned no conclusive outcome.
    pub(super) fn second_failed_to_say(&mut self, index: usize, step: &mut Step<'_>) {
        self.changed = true;
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.second.open = None;
            self.ask_second(index, step);
        }
    }

    fn second_is_spent(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.second.spent = true;
        round.second.repeat_at = None;
        if round.outcome.is_some() {
            let word = round.decided().unwrap_or(Word::Unconfirmed);
            self.conclude(index, word, step);
        }
    }
}
