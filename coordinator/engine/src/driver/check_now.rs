//! Check now: one probe request to a vantage in each region, independent of the machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::confirmation::RESPONSE_TIMEOUT;
use parallax_core::event::{ProbeReason, ProbeRequest, ProbeResponse};
use parallax_core::id::AccountId;
use parallax_core::observation::ProbeOutcome;
use parallax_core::time::Timestamp;
use tokio::sync::oneshot;

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
}

impl OpenCheckNowRequests {
    fn next_number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1) % FIRST_NUMBER;
        FIRST_NUMBER | self.next
    }

    /// Returns true if the account may open another request.
    fn has_capacity_for(&self, account: AccountId) -> bool {
        let of_account = || self.open.values().filter(|look| look.account == account).count();
        self.open.len() < MAX_OPEN && of_account() < MAX_OPEN_PER_ACCOUNT
    }

    /// Handles a probe response. Returns false if it belongs to no check-now request.
    pub(super) fn handle_response(&mut self, number: u32, answer: &ProbeResponse) -> bool {
        if number < FIRST_NUMBER {
            return false;
        }
        let seen = match answer {
            ProbeResponse::Observed(seen) if seen.outcome == ProbeOutcome::Pending => return true,
            ProbeResponse::Observed(seen) => Some(seen.clone()),
            ProbeResponse::NoResponse => None,
        };
        let Some((look, index)) = self.probes.remove(&number) else { return true };
        let Some(open) = self.open.get_mut(&look) else { return true };
        if let Some(sighting) = open.results.get_mut(index) {
            sighting.observation = seen;
        }
        open.remaining = open.remaining.saturating_sub(1);
        if open.remaining == 0
            && let Some(done) = self.open.remove(&look)
        {
            // The requester may have disconnected.
            let _ = done.reply.send(done.results);
        }
        true
    }

    /// Ends requests whose time is up, with the results so far.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let over: Vec<u32> =
            self.open.iter().filter(|(_, look)| look.deadline <= now).map(|(number, _)| *number).collect();
        for number in over {
            if let Some(look) = self.open.remove(&number) {
                let _ = look.reply.send(look.results);
            }
        }
        let open = &self.open;
        self.probes.retain(|_, (look, _)| open.contains_key(look));
    }
}

impl Driver {
    /// Sends a probe request to one vantage in each of the monitor's regions. Vantages that can run the check type
    /// take turns.
    pub(super) fn start_check_now(&mut self, wanted: CheckNowRequest) {
        let now = self.clock.now();
        self.check_now.expire(now);
        let mesh = self.mesh_view.mesh();
        let target = self.machines.check_now_target(wanted.monitor, mesh);
        let Some(target) = target.filter(|target| self.check_now.has_capacity_for(target.account)) else {
            let _ = wanted.reply.send(Vec::new());
            return;
        };
        let (look, until) = (self.check_now.next_number(), now + RESPONSE_TIMEOUT);
        let mut sightings = Vec::new();
        let mut questions = Vec::new();
        for region in target.regions.iter() {
            let mut fit: Vec<_> = mesh.available().filter(|place| place.region == region).collect();
            let is_staffed = !fit.is_empty();
            fit.retain(|place| self.check_now.capabilities.supports(place.no, target.check.kind()));
            let turn = usize::try_from(look).unwrap_or(0).checked_rem(fit.len()).unwrap_or(0);
            let place = fit.get(turn).map(|place| place.no);
            if let Some(place) = place {
                let number = self.check_now.next_number();
                self.check_now.probes.insert(number, (look, sightings.len()));
                let ask = ProbeRequest { number, vantage: place, reason: ProbeReason::Manual, deadline: until };
                questions.push(ProbeDispatch {
                    slot: target.slot,
                    monitor: wanted.monitor,
                    account: target.account,
                    revision: target.revision,
                    check: Arc::clone(&target.check),
                    request: ask,
                });
            }
            let unable = is_staffed && fit.is_empty();
            sightings.push(CheckNowResult { region, vantage: place, unsupported: unable, observation: None });
        }
        if questions.is_empty() {
            let _ = wanted.reply.send(sightings);
            return;
        }
        let left = questions.len();
        let account = target.account;
        self.check_now.open.insert(
            look,
            OpenRequest { account, results: sightings, remaining: left, deadline: until, reply: wanted.reply },
        );
        self.pending.probes.append(&mut questions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_a_quarter_of_the_looks_at_most() {
        let [greedy, other] = [1, 2].map(AccountId::from_u128);
        let mut looks = OpenCheckNowRequests::default();
        let mut count = 0;
        while looks.has_capacity_for(greedy) {
            let (answer, _) = oneshot::channel();
            let until = Timestamp::from_millis(0);
            looks.open.insert(
                count,
                OpenRequest { account: greedy, results: Vec::new(), remaining: 1, deadline: until, reply: answer },
            );
            count += 1;
        }
        assert_eq!(count, 64);
        assert!(looks.has_capacity_for(other));
    }
}
