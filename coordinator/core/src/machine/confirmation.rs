//! Confirmation of a round by a second network, and by a third if the second contradicts the first: which vantage to
//! use, which next, and what happens if none is left.

use crate::confirmation::{self, Confirmer, PASS_CONFIRMATION_TIMEOUT, PendingFailure, RESPONSE_TIMEOUT};
use crate::event::ProbeReason;
use crate::observation::{ProbeOutcome, RoundOutcome};
use crate::vantage::{Region, VantageNo};

use super::resume::RETRY_EVERY;
use super::state::NotStored;
use super::status::RECONNECT_GRACE;
use super::{MachineStep, MonitorMachine, PENDING_AFTER};

impl MonitorMachine {
    /// Starts the confirmation of a round before its own outcome, because the first round of the suspicion was long
    /// pending.
    pub(super) fn confirm_early(&mut self, region: Region, step: &mut MachineStep<'_>) {
        let newest = self.state.rounds.iter().rposition(|round| self.state_region(round.region) == region);
        if let Some(index) = newest.filter(|_| !step.mesh.has_one_network()) {
            self.request_confirmation(index, step);
        }
    }

    /// Handles a pass that would end its region's outage. Where three networks can decide, it needs confirmation:
    /// otherwise a vantage that sees every site as up would end every outage. With two networks one outcome contradicts
    /// the other, and the pass counts. After a restart the pass waits while the vantages reconnect.
    pub(super) fn confirm_pass(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        let pass = PendingFailure { tried: &[], ..round.pending_failure() };
        if confirmation::can_be_outvoted(&self.settings, step.mesh.confirmers(), pass) {
            return self.await_confirmation(index, step);
        }
        let enrolled = step.mesh.vantages().iter().filter(|vantage| !vantage.quarantined);
        let is_reconnecting = step.now.since(self.taken_over_at) < RECONNECT_GRACE;
        if is_reconnecting && confirmation::can_be_outvoted(&self.settings, enrolled, pass) {
            round.retry_at = Some(step.now + RETRY_EVERY);
        } else {
            self.conclude(index, RoundOutcome::Passed, step);
        }
    }

    /// Handles a round that failed at its own vantage, or passed if that would end an outage: another network
    /// decides.
    pub(super) fn await_confirmation(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        match (round.decided_outcome(), &round.confirmation.open_request) {
            (Some(round_outcome), _) => self.conclude(index, round_outcome, step),
            (None, Some(_)) => {}
            (None, None) => self.request_confirmation(index, step),
        }
    }

    /// Requests confirmation from the next vantage, or from a third network if the second contradicts the first. If
    /// none is available, a failed round ends unconfirmed or disputed; a pass is accepted.
    pub(super) fn request_confirmation(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        let suspect = round.pending_failure();
        if let Some(second) = round.contradicted_by() {
            match confirmation::arbiter(&self.settings, step.mesh, suspect, second) {
                Some(vantage) => self.send_confirmation_request(index, vantage, step),
                None => self.end_confirmation(index, step),
            }
            return;
        }
        if round.has_passed() && !confirmation::can_be_outvoted(&self.settings, step.mesh.confirmers(), suspect) {
            return self.end_confirmation(index, step);
        }
        let vantage = match confirmation::confirmer(&self.settings, step.mesh, suspect) {
            Confirmer::Nobody => return self.end_confirmation(index, step),
            Confirmer::OtherNetwork(vantage) => vantage,
            Confirmer::SameNetwork(vantage) => {
                let due = round.outcome.as_ref().map(|(ended, _)| *ended + confirmation::REPEAT_DELAY);
                match due {
                    Some(due) if step.now >= due => vantage,
                    due => {
                        if let Some(round) = self.state.rounds.get_mut(index) {
                            round.confirmation.repeat_at = due;
                        }
                        return;
                    }
                }
            }
        };
        self.send_confirmation_request(index, vantage, step);
    }

    fn send_confirmation_request(&mut self, index: usize, vantage: VantageNo, step: &mut MachineStep<'_>) {
        let number = self.send_request(vantage, ProbeReason::Confirm, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.confirmation.repeat_at = None;
            round.confirmation.tried.push(vantage);
            let patience = if round.has_passed() { PASS_CONFIRMATION_TIMEOUT } else { RESPONSE_TIMEOUT };
            round.confirmation.open_request = Some((number, vantage, step.now + patience));
        }
    }

    /// Handles the outcome of a second or third vantage. If the second contradicts the first, a third network is
    /// requested at once, even while the first is still pending.
    pub(super) fn apply_confirmation(
        &mut self,
        index: usize,
        vantage: VantageNo,
        outcome: ProbeOutcome,
        step: &mut MachineStep<'_>,
    ) {
        if confirmation::confirmed_outcome(&outcome).is_none() {
            self.confirm_at_next(index, step);
            return;
        }
        self.changed = true;
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.confirmation.open_request = None;
        if round.confirmation.second_outcome.is_none() {
            round.confirmation.second_outcome = Some((vantage, outcome));
        } else {
            round.confirmation.third_outcome = NotStored(Some((vantage, outcome)));
        }
        if round.outcome.is_some() {
            self.await_confirmation(index, step);
        } else if round.decided_outcome().is_none() {
            self.request_confirmation(index, step);
        }
    }

    /// Extends the deadline of a confirmation that reports its check as pending: it has as long as any check.
    pub(super) fn extend_confirmation(&mut self, index: usize, step: &MachineStep<'_>) {
        if let Some(round) = self.state.rounds.get_mut(index)
            && round.has_passed()
            && let Some((.., until)) = &mut round.confirmation.open_request
        {
            *until = step.now + (RESPONSE_TIMEOUT - PENDING_AFTER);
            self.changed = true;
        }
    }

    /// Requests confirmation from the next vantage because the last one returned no conclusive outcome.
    pub(super) fn confirm_at_next(&mut self, index: usize, step: &mut MachineStep<'_>) {
        self.changed = true;
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.confirmation.open_request = None;
            self.request_confirmation(index, step);
        }
    }

    fn end_confirmation(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get_mut(index) else { return };
        round.confirmation.exhausted = true;
        round.confirmation.repeat_at = None;
        if round.outcome.is_some() {
            let round_outcome = round.decided_outcome().unwrap_or(RoundOutcome::Unconfirmed);
            self.conclude(index, round_outcome, step);
        }
    }
}
