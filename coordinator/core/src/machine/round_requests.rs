//! Requests to vantages: a round on request, the next vantage where one did not respond, and the choice of the vantage.

use crate::assign;
use crate::check::CheckKind;
use crate::confirmation::{self, RESPONSE_TIMEOUT};
use crate::event::{ProbeReason, ProbeRequest};
use crate::observation::RoundOutcome;
use crate::time::MINUTE;
use crate::vantage::{NetworkNo, Region, VantageNo};

use super::state::{Confirmation, NotStored, OpenRound};
use super::{MachineOutput, MachineStep, MonitorMachine};

impl MonitorMachine {
    /// Requests a round from a vantage of the region. Returns false if the region has none that is available.
    pub(super) fn request_round(&mut self, region: Region, reason: ProbeReason, step: &mut MachineStep<'_>) -> bool {
        self.state.rounds.push(OpenRound {
            region,
            vantage: VantageNo(0),
            network: NetworkNo(0),
            reason,
            number: None,
            request: None,
            tried: Vec::new(),
            started: step.now,
            expires: step.now + RESPONSE_TIMEOUT,
            pending: false,
            has_swept: false,
            provisional_for: None,
            held_outcome: None,
            retry_at: None,
            outcome: None,
            confirmation: Confirmation::default(),
            second_round_requested: NotStored(None),
        });
        let is_requested = self.request_from_next(self.state.rounds.len() - 1, step);
        if !is_requested {
            self.state.rounds.pop();
        }
        is_requested
    }

    /// Requests the round from the next vantage of its region. Returns false, without effect, if there is none.
    pub(super) fn request_from_next(&mut self, index: usize, step: &mut MachineStep<'_>) -> bool {
        let Some(round) = self.state.rounds.get(index) else { return false };
        let (reason, wanted) = (round.reason, round.region);
        let waited = round.pending && reason != ProbeReason::Second;
        let seen_by = if reason == ProbeReason::Second { self.seen_failing_by(wanted, step) } else { Vec::new() };
        let Some((vantage, network, region)) = self.choose_vantage(wanted, &round.tried, &seen_by, step) else {
            return false;
        };
        let number = self.send_request(vantage, reason, step);
        if let Some(round) = self.state.rounds.get_mut(index) {
            round.region = region;
            round.vantage = vantage;
            round.network = network;
            round.request = Some(number);
            round.tried.push(vantage);
            round.started = step.now;
            round.expires = step.now + RESPONSE_TIMEOUT;
            round.pending = false;
            round.second_round_requested = NotStored(None);
            // A confirmation of a check at another vantage says nothing about this one's network.
            round.confirmation = Confirmation::default();
        }
        if waited {
            // The pending check has no outcome, and its early second round must not outlive it.
            self.validate_early_second_round(self.state_region(wanted), RoundOutcome::Inconclusive, step);
        }
        true
    }

    /// Requests a round from another vantage of its region because the first returned no outcome; otherwise drops it.
    pub(super) fn retry_elsewhere(&mut self, index: usize, step: &mut MachineStep<'_>) {
        let Some(round) = self.state.rounds.get(index) else { return };
        let may_ask = round.request.is_some() && round.tried.len() < confirmation::MAX_ATTEMPTS;
        if !may_ask || !self.request_from_next(index, step) {
            self.drop_round(index, step);
        }
    }

    /// Sends a numbered probe request to a vantage.
    pub(super) fn send_request(&mut self, vantage: VantageNo, reason: ProbeReason, step: &mut MachineStep<'_>) -> u32 {
        self.changed = true;
        self.state.next_request = self.state.next_request.wrapping_add(1);
        let number = self.state.next_request;
        step.out.push(MachineOutput::Probe(ProbeRequest {
            number,
            vantage,
            reason,
            deadline: step.now + RESPONSE_TIMEOUT,
        }));
        number
    }

    /// Chooses the vantage that runs a round of that region now, and returns its region. Vantages take turns, and one
    /// that was tried is not used again. Those in `seen_by` come first.
    fn choose_vantage(
        &self,
        region: Region,
        tried: &[VantageNo],
        seen_by: &[VantageNo],
        step: &MachineStep<'_>,
    ) -> Option<(VantageNo, NetworkNo, Region)> {
        let anywhere = !self.settings.kind.is_regional() && self.settings.pinned.is_none();
        let wanted = if self.settings.kind.is_regional() { region } else { self.settings.pinned.unwrap_or(region) };
        let mut fit: Vec<_> = step
            .mesh
            .available()
            .filter(|vantage| (anywhere || vantage.region == wanted) && !tried.contains(&vantage.no))
            .collect();
        if fit.iter().any(|vantage| seen_by.contains(&vantage.no)) {
            fit.retain(|vantage| seen_by.contains(&vantage.no));
        }
        // Monitors of one domain, which are due together, use the same vantage, so that one registry lookup serves
        // them all.
        let turn = if self.settings.kind == CheckKind::Domain {
            step.now.as_millis().unsigned_abs() / MINUTE.unsigned_abs()
        } else {
            assign::monitor_hash(self.settings.monitor).wrapping_add(u64::from(self.state.next_request))
        };
        let index = usize::try_from(turn % fit.len().max(1) as u64).unwrap_or(0);
        fit.get(index).map(|vantage| (vantage.no, vantage.network, vantage.region))
    }

    /// Region whose state a round of that region affects.
    pub(super) fn state_region(&self, region: Region) -> Region {
        if self.settings.kind.is_regional() { region } else { Region::Europe }
    }
}
