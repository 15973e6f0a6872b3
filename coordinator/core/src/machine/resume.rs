//! Restart while rounds are open: they are requested again as soon as a vantage is available.

use crate::confirm::{self, Confirmer, PATIENCE};
use crate::observation::Word;
use crate::time::SECOND;

use super::state::{Round, Second};
use super::{Machine, Step};

/// Milliseconds between attempts to find a vantage while none is available.
pub(super) const RETRY_EVERY: i64 = SECOND;

impl Machine {
    /// Resumes the rounds that were open when the coordinator stopped. Agents reconnect one by one in the seconds
    /// after a start, so a round waits for a vantage as long as its response would be useful, or a failure can be
    /// confirmed.
    pub(super) fn resume_rounds(&mut self, step: &mut Step<'_>) {
        self.changed |= !self.state.rounds.is_empty();
        for round in self.state.rounds.iter_mut().filter(|round| round.held.is_none()) {
            if let Some((_, place, _)) = round.second.open.take() {
                round.second.asked.retain(|asked| *asked != place);
            }
            if round.outcome.is_some() {
                round.parked = Some(step.now);
                continue;
            }
            // A confirmation belongs to one check at one time; that time is over.
            round.second = Second::default();
            if round.ask.is_some() {
                round.tried.clear();
                round.give_up = step.now + PATIENCE;
                round.parked = Some(step.now);
            }
        }
        self.retry_parked(step);
    }

    /// Looks again for a vantage for the rounds that wait for one.
    pub(super) fn retry_parked(&mut self, step: &mut Step<'_>) {
        let now = step.now;
        let due = |round: &Round| round.parked.is_some_and(|at| now >= at);
        while let Some(index) = self.state.rounds.iter().position(due) {
            self.changed = true;
            if let Some(round) = self.state.rounds.get_mut(index) {
                round.parked = None;
            }
            if !self.retry(index, step)
                && let Some(round) = self.state.rounds.get_mut(index)
            {
                round.parked = Some(step.now + RETRY_EVERY);
            }
        }
    }

    /// Returns false if no vantage is available yet.
    fn retry(&mut self, index: usize, step: &mut Step<'_>) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return true };
        let Some((ended, _)) = round.outcome else {
            if step.now >= round.give_up {
                self.drop_round(index, step);
                return true;
            }
            return self.ask_next(index, step);
        };
        let (suspect, contradicted_by) = (round.suspect(), round.contradicted_by());
        if step.now.since(ended) > confirm::TOO_OLD {
            let word = match contradicted_by {
                _ if round.has_passed() => Word::Passed,
                Some(_) => Word::Disputed,
                None => Word::Unconfirmed,
            };
            self.conclude(index, word, step);
            return true;
        }
        let is_anybody = match contradicted_by {
            Some(second) => confirm::arbiter(&self.watch, step.mesh, suspect, second).is_some(),
            None => confirm::confirmer(&self.watch, step.mesh, suspect) != Confirmer::Nobody,
        };
        if !is_anybody {
            return false;
        }
        self.ask_second(index, step);
        true
    }
}
