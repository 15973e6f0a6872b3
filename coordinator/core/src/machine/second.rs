//! The second word on a round: whom to ask, whom next, and when nobody is left.

use crate::confirm::{self, Confirmer, PATIENCE};
use crate::event::Reason;
use crate::observation::{Outcome, Word};
use crate::place::{PlaceNo, Region};

use super::state::Second;
use super::{Machine, Step};

impl Machine {
    /// Starts a round's second word before its own has come, because the first round of the suspicion waited long.
    pub(super) fn confirm_early(&mut self, region: Region, step: &mut Step<'_>) {
        let newest = self.state.rounds.iter().rposition(|round| self.lane_region(round.region) == region);
        if let Some(index) = newest.filter(|_| !step.mesh.has_one_network()) {
            self.ask_second(index, step);
        }
    }

    /// The round has failed at its first place: the second place's word decides.
    pub(super) fn await_second(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        match &round.second {
            Second { heard: Some((_, outcome)), .. } => {
                let word = confirm::word(outcome).unwrap_or(Word::Unconfirmed);
                self.conclude(index, word, step);
            }
            Second { spent: true, .. } => self.conclude(index, Word::Unconfirmed, step),
            Second { open: Some(_), .. } => {}
            Second { .. } => self.ask_second(index, step),
        }
    }

    /// Asks the next place for a second word. Without one to ask, the round ends unconfirmed once it has failed.
    pub(super) fn ask_second(&mut self, index: usize, step: &mut Step<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        let suspect = round.suspect();
        let place = match confirm::confirmer(&self.watch, step.mesh, suspect) {
            Confirmer::Nobody => {
                self.second_is_spent(index, step);
                return;
            }
            Confirmer::Other(place) => place,
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
        let number = self.ask(place, Reason::Confirm, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.second.repeat_at = None;
            round.second.asked.push(place);
            round.second.open = Some((number, place, step.now + PATIENCE));
        }
    }

    /// A place answered for a second word.
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
        round.second.heard = Some((place, outcome));
        if round.outcome.is_some() {
            self.await_second(index, step);
        }
    }

    /// The place that was asked for a second word has none: the next is asked.
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
            self.conclude(index, Word::Unconfirmed, step);
        }
    }
}
