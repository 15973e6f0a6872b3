//! Restart while rounds are open: they are requested again as soon as a vantage is available.

use crate::confirmation::{self, Confirmer, RESPONSE_TIMEOUT};
use crate::observation::RoundOutcome;
use crate::time::SECOND;

use super::state::{Confirmation, OpenRound};
use super::{MachineStep, MonitorMachine};

/// Milliseconds between attempts to find a vantage while none is available.
pub(super) const RETRY_EVERY: i64 = SECOND;

impl MonitorMachine {
    /// Resumes the rounds that were open when the coordinator stopped. Agents reconnect one by one in the seconds
    /// after a start, so a round waits for a vantage as long as its response would be useful, or a failure can be
    /// confirmed.
    pub(super) fn resume_rounds(&mut self, step: &mut MachineStep<'_>) {
        self.changed |= !self.state.rounds.is_empty();
        for round in self.state.rounds.iter_mut().filter(|round| round.held_outcome.is_none()) {
            if let Some((_, vantage, _)) = round.confirmation.open_request.take() {
                round.confirmation.tried.retain(|tried| *tried != vantage);
            }
            if round.outcome.is_some() {
                round.retry_at = Some(step.now);
                continue;
            }
            // A confirmation belongs to one check at one time; that time is over.
            round.confirmation = Confirmation::default();
            if round.request.is_some() {
                round.tried.clear();
                round.expires = step.now + RESPONSE_TIMEOUT;
                round.retry_at = Some(step.now);
            }
        }
        self.retry_waiting(step);
    }

    /// Looks again for a vantage for the rounds that wait for one.
    pub(super) fn retry_waiting(&mut self, step: &mut MachineStep<'_>) {
        let now = step.now;
        let due = |round: &OpenRound| round.retry_at.is_some_and(|at| now >= at);
        while let Some(index) = self.state.rounds.iter().position(due) {
            self.changed = true;
            if let Some(round) = self.state.rounds.get_mut(index) {
                round.retry_at = None;
            }
            if !self.retry(index, step)
                && let Some(round) = self.state.rounds.get_mut(index)
            {
                round.retry_at = Some(step.now + RETRY_EVERY);
            }
        }
    }

    /// Returns false if no vantage is available yet.
    fn retry(&mut self, index: usize, step: &mut MachineStep<'_>) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return true };
        let Some((ended, _)) = round.outcome else {
            if step.now >= round.expires {
                self.drop_round(index, step);
                return true;
            }
            return self.request_from_next(index, step);
        };
        let (suspect, contradicted_by) = (round.pending_failure(), round.contradicted_by());
        // A pass is confirmed by checks of now, however old it is: it waits for those who reconnect.
        let waits_since = if round.has_passed() { ended.max(self.taken_over_at) } else { ended };
        if step.now.since(waits_since) > confirmation::MAX_FAILURE_AGE {
            let round_outcome = match contradicted_by {
                _ if round.has_passed() => RoundOutcome::Passed,
                Some(_) => RoundOutcome::Disputed,
                None => RoundOutcome::Unconfirmed,
            };
            self.conclude(index, round_outcome, step);
            return true;
        }
        let is_anybody = match contradicted_by {
            Some(second) => confirmation::arbiter(&self.settings, step.mesh, suspect, second).is_some(),
            None if round.has_passed() => {
                confirmation::can_be_outvoted(&self.settings, step.mesh.confirmers(), suspect)
            }
            None => confirmation::confirmer(&self.settings, step.mesh, suspect) != Confirmer::Nobody,
        };
        if !is_anybody {
            return false;
        }
        self.request_confirmation(index, step);
        true
    }
}
