//! Check now: one probe request to a vantage in each region, independent of the machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::confirmation::RESPONSE_TIMEOUT;
use parallax_core::event::{ProbeReason, ProbeRequest, ProbeResponse};
use parallax_core::id::AccountId;
use parallax_core::observation::ProbeOutcome;
use parallax_core::time::Timestamp;
use tokio::sync::{oneshot, watch};

use super::Driver;
use crate::{Capabilities, CheckNowRequest, CheckNowResult, ProbeDispatch};

/// First number of these probe requests; machines count their own from 0.
const FIRST_NUMBER: u32 = 1 << 31;
/// Open requests, at most.
const MAX_OPEN: usize = 256;
/// Open requests per account, at most.
const MAX_OPEN_PER_ACCOUNT: usize = MAX_OPEN / 4;

/// Open check-now requests.
#[derive(Debug, Default)]
pub(super) struct OpenCheckNowRequests {
    /// Check types that each vantage can run.
    pub(super) capabilities: Arc<Capabilities>,
    next: u32,
    open: BTreeMap<u32, OpenRequest>,
    /// For each probe request, by its number: the check-now request it belongs to, and the index of the result to fill
    /// in.
    probes: BTreeMap<u32, (u32, usize)>,
}

#[derive(Debug)]
struct OpenRequest {
    account: AccountId,
    results: Vec<CheckNowResult>,
    remaining: usize,
    deadline: Timestamp,
    reply: oneshot::Sender<Vec<CheckNowResult>>,
    progress: watch::Sender<Vec<CheckNowResult>>,
}

impl OpenCheckNowRequests {
    fn next_number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1) % FIRST_NUMBER;
        FIRST_NUMBER | self.next
    }

    /// Returns true if the account may open another request.
    fn has_capacity_for(&self, account: AccountId) -> bool {
        let open_of_account = || self.open.values().filter(|request| request.account == account).count();
        self.open.len() < MAX_OPEN && open_of_account() < MAX_OPEN_PER_ACCOUNT
    }

    /// Handles a probe response. Returns false if it belongs to no check-now request.
    pub(super) fn handle_response(&mut self, number: u32, response: &ProbeResponse) -> bool {
        if number < FIRST_NUMBER {
            return false;
        }
        let observation = match response {
            ProbeResponse::Observed(observation) if observation.outcome == ProbeOutcome::Pending => return true,
            ProbeResponse::Observed(observation) => Some(observation.clone()),
            ProbeResponse::NoResponse => None,
        };
        let Some((request_number, index)) = self.probes.remove(&number) else { return true };
        let Some(request) = self.open.get_mut(&request_number) else { return true };
        if let Some(result) = request.results.get_mut(index) {
            result.unanswered = observation.is_none();
            result.observation = observation;
        }
        request.remaining = request.remaining.saturating_sub(1);
        if request.progress.receiver_count() > 0 {
            request.progress.send_replace(request.results.clone());
        }
        if request.remaining == 0
            && let Some(request) = self.open.remove(&request_number)
        {
            // The requester may have disconnected.
            let _ = request.reply.send(request.results);
        }
        true
    }

    /// Ends requests whose time is up, with the results so far.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let expired: Vec<u32> =
            self.open.iter().filter(|(_, request)| request.deadline <= now).map(|(number, _)| *number).collect();
        for number in expired {
            if let Some(request) = self.open.remove(&number) {
                let _ = request.reply.send(request.results);
            }
        }
        let open = &self.open;
        self.probes.retain(|_, (request_number, _)| open.contains_key(request_number));
    }
}

impl Driver {
    /// Sends a probe request to one vantage in each region of the monitor or of the unsaved check. Vantages that can run
    /// the check type take turns.
    pub(super) fn start_check_now(&mut self, request: CheckNowRequest) {
        let now = self.clock.now();
        self.check_now.expire(now);
        let CheckNowRequest { subject, reply, progress } = request;
        let mesh = self.mesh_view.mesh();
        let target = self.machines.check_now_target(subject, mesh);
        let Some(target) = target.filter(|target| self.check_now.has_capacity_for(target.account)) else {
            let _ = reply.send(Vec::new());
            return;
        };
        let (request_number, deadline) = (self.check_now.next_number(), now + RESPONSE_TIMEOUT);
        let mut results = Vec::new();
        let mut probes = Vec::new();
        for region in target.regions.iter() {
            let mut candidates: Vec<_> = mesh.available().filter(|vantage| vantage.region == region).collect();
            let has_vantages = !candidates.is_empty();
            candidates.retain(|vantage| self.check_now.capabilities.supports(vantage.no, target.check.kind()));
            let index = usize::try_from(request_number).unwrap_or(0).checked_rem(candidates.len()).unwrap_or(0);
            let vantage = candidates.get(index).map(|vantage| vantage.no);
            if let Some(vantage) = vantage {
                let number = self.check_now.next_number();
                self.check_now.probes.insert(number, (request_number, results.len()));
                let probe_request = ProbeRequest { number, vantage, reason: ProbeReason::Manual, deadline };
                probes.push(ProbeDispatch {
                    slot: target.slot,
                    monitor: target.monitor,
                    account: target.account,
                    revision: target.revision,
                    check: Arc::clone(&target.check),
                    request: probe_request,
                });
            }
            let unsupported = has_vantages && candidates.is_empty();
            results.push(CheckNowResult { region, vantage, unsupported, unanswered: false, observation: None });
        }
        if probes.is_empty() {
            let _ = reply.send(results);
            return;
        }
        let remaining = probes.len();
        let account = target.account;
        progress.send_replace(results.clone());
        let open = OpenRequest { account, results, remaining, deadline, reply, progress };
        self.check_now.open.insert(request_number, open);
        self.pending.probes.append(&mut probes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_may_open_a_quarter_of_the_requests() {
        let [greedy, other] = [1, 2].map(AccountId::from_u128);
        let mut requests = OpenCheckNowRequests::default();
        let mut count = 0;
        while requests.has_capacity_for(greedy) {
            let (reply, _) = oneshot::channel();
            let deadline = Timestamp::from_millis(0);
            let progress = watch::Sender::default();
            let open = OpenRequest { account: greedy, results: Vec::new(), remaining: 1, deadline, reply, progress };
            requests.open.insert(count, open);
            count += 1;
        }
        assert_eq!(count, 64);
        assert!(requests.has_capacity_for(other));
    }
}
