//! Check now: one probe request to a vantage in each region, independent of the machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use parallax_core::confirm::PATIENCE;
use parallax_core::event::{Answer, Ask, Reason};
use parallax_core::id::AccountId;
use parallax_core::observation::Outcome;
use parallax_core::time::Timestamp;
use tokio::sync::oneshot;

use super::Driver;
use crate::flow::{Able, CheckNow, Question, Sighting};

/// First number of these probe requests; machines count their own from 0.
const FIRST_NUMBER: u32 = 1 << 31;
/// Open requests, at most.
const AT_ONCE: usize = 256;
/// Open requests per account, at most.
const AT_ONCE_OF_ONE: usize = AT_ONCE / 4;

/// Open check-now requests.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Check types that each vantage can run.
    pub(super) able: Arc<Able>,
    next: u32,
    open: BTreeMap<u32, Look>,
    /// For each probe request, by its number: the check-now request it belongs to, and the index of the result to fill
    /// in.
    asked: BTreeMap<u32, (u32, usize)>,
}

#[derive(Debug)]
struct Look {
    account: AccountId,
    sightings: Vec<Sighting>,
    left: usize,
    until: Timestamp,
    answer: oneshot::Sender<Vec<Sighting>>,
}

impl Looks {
    fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1) % FIRST_NUMBER;
        FIRST_NUMBER | self.next
    }

    /// Returns true if the account may open another request.
    fn admits(&self, account: AccountId) -> bool {
        let of_account = || self.open.values().filter(|look| look.account == account).count();
        self.open.len() < AT_ONCE && of_account() < AT_ONCE_OF_ONE
    }

    /// Handles a probe response. Returns false if it belongs to no check-now request.
    pub(super) fn hear(&mut self, number: u32, answer: &Answer) -> bool {
        if number < FIRST_NUMBER {
            return false;
        }
        let seen = match answer {
            Answer::Seen(seen) if seen.outcome == Outcome::Pending => return true,
            Answer::Seen(seen) => Some(seen.clone()),
            Answer::Nothing => None,
        };
        let Some((look, index)) = self.asked.remove(&number) else { return true };
        let Some(open) = self.open.get_mut(&look) else { return true };
        if let Some(sighting) = open.sightings.get_mut(index) {
            sighting.seen = seen;
        }
        open.left = open.left.saturating_sub(1);
        if open.left == 0
            && let Some(done) = self.open.remove(&look)
        {
            // The requester may have disconnected.
            let _ = done.answer.send(done.sightings);
        }
        true
    }

    /// Ends requests whose time is up, with the results so far.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let over: Vec<u32> =
            self.open.iter().filter(|(_, look)| look.until <= now).map(|(number, _)| *number).collect();
        for number in over {
            if let Some(look) = self.open.remove(&number) {
                let _ = look.answer.send(look.sightings);
            }
        }
        let open = &self.open;
        self.asked.retain(|_, (look, _)| open.contains_key(look));
    }
}

impl Driver {
    /// Sends a probe request to one vantage in each of the monitor's regions. Vantages that can run the check type
    /// take turns.
    pub(super) fn look(&mut self, wanted: CheckNow) {
        let now = self.clock.now();
        self.looks.expire(now);
        let mesh = self.places.mesh();
        let target = self.machines.target(wanted.monitor, mesh);
        let Some(target) = target.filter(|target| self.looks.admits(target.account)) else {
            let _ = wanted.answer.send(Vec::new());
            return;
        };
        let (look, until) = (self.looks.number(), now + PATIENCE);
        let mut sightings = Vec::new();
        let mut questions = Vec::new();
        for region in target.regions.iter() {
            let mut fit: Vec<_> = mesh.fit().filter(|place| place.region == region).collect();
            let is_staffed = !fit.is_empty();
            fit.retain(|place| self.looks.able.can(place.no, target.check.kind()));
            let turn = usize::try_from(look).unwrap_or(0).checked_rem(fit.len()).unwrap_or(0);
            let place = fit.get(turn).map(|place| place.no);
            if let Some(place) = place {
                let number = self.looks.number();
                self.looks.asked.insert(number, (look, sightings.len()));
                let ask = Ask { number, place, reason: Reason::Manual, deadline: until };
                questions.push(Question {
                    slot: target.slot,
                    monitor: wanted.monitor,
                    account: target.account,
                    revision: target.revision,
                    check: Arc::clone(&target.check),
                    ask,
                });
            }
            let unable = is_staffed && fit.is_empty();
            sightings.push(Sighting { region, place, unable, seen: None });
        }
        if questions.is_empty() {
            let _ = wanted.answer.send(sightings);
            return;
        }
        let left = questions.len();
        let account = target.account;
        self.looks.open.insert(look, Look { account, sightings, left, until, answer: wanted.answer });
        self.harvest.questions.append(&mut questions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_a_quarter_of_the_looks_at_most() {
        let [greedy, other] = [1, 2].map(AccountId::from_u128);
        let mut looks = Looks::default();
        let mut count = 0;
        while looks.admits(greedy) {
            let (answer, _) = oneshot::channel();
            let until = Timestamp::from_millis(0);
            looks.open.insert(count, Look { account: greedy, sightings: Vec::new(), left: 1, until, answer });
            count += 1;
        }
        assert_eq!(count, 64);
        assert!(looks.admits(other));
    }
}
