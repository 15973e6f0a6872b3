//! Delivery queue (pure): keeps order within each ordering key, and pools that keep a failing receiver from
//! using up all slots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::delivery::{Lane, Recipient};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;

use crate::storage::Waiting;

/// Maximum number of concurrent requests.
const ALL: usize = 256;
/// Maximum number of these to receivers whose last attempt failed.
const FAILING: usize = 64;
/// Maximum number of requests to one host and port.
const HOST: usize = 8;
/// Maximum number of these to receivers whose last attempt failed.
const FAILING_AT: usize = 4;
/// Maximum number of requests to one receiver: a hanging receiver uses one slot, and a crash repeats at most
/// one delivery per receiver.
const RECEIVER: usize = 1;
/// Maximum number of concurrent mails, in addition to the requests.
const MAILS: usize = 8;

/// Receiver class, which decides whose slots it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    /// Host and port of its requests; `None` for mail.
    pub(super) host: Option<Arc<str>>,
    /// True if its last attempt succeeded; `None` before the first.
    pub(super) last: Option<bool>,
}

/// Next step of a delivery that was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// No longer waiting.
    Done,
    /// Waiting until this time.
    Until(Timestamp),
}

/// First delivery of an ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    due: Timestamp,
    seq: u64,
    id: DeliveryId,
    lane: Lane,
}

/// Pool of slots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    All,
    Failing,
    Host(Arc<str>),
    FailingAt(Arc<str>),
    Receiver(Recipient),
    Mails,
}

/// All waiting deliveries and those in flight.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Waiting deliveries by ordering key, in order, with their due times.
    lanes: BTreeMap<Lane, BTreeMap<(u64, DeliveryId), Timestamp>>,
    /// First delivery of each ordering key that is neither in flight nor parked.
    ready: BTreeSet<Head>,
    /// Due deliveries that found a pool full, by that pool.
    parked: BTreeMap<Pool, BTreeSet<Head>>,
    /// Pools that have free slots again.
    freed: BTreeSet<Pool>,
    held: BTreeMap<Pool, usize>,
    /// Ordering keys with a delivery in flight, with that delivery and the pools that it uses.
    busy: BTreeMap<Lane, (u64, DeliveryId, Vec<Pool>)>,
    classes: BTreeMap<Recipient, Class>,
}

impl Queue {
    /// Replaces the waiting deliveries with a new listing. Results that were recorded while the listing was
    /// read are corrected when the delivery is prepared.
    pub(super) fn fill(&mut self, waiting: &[Waiting]) {
        self.lanes.clear();
        self.ready.clear();
        self.parked.clear();
        self.freed.clear();
        let mut receivers = BTreeSet::new();
        for it in waiting {
            self.lanes.entry(it.lane).or_default().insert((it.seq, it.id), it.due);
            receivers.insert(it.lane.to);
        }
        let busy = &self.busy;
        self.classes.retain(|to, _| receivers.contains(to) || busy.keys().any(|lane| lane.to == *to));
        let lanes: Vec<Lane> = self.lanes.keys().copied().collect();
        lanes.into_iter().for_each(|lane| self.ready_head(lane));
    }

    /// Returns the next delivery that may be sent at `now` and marks it as in flight. `classify` is called
    /// for receivers without a known class. Checks at most `looks` entries and subtracts them.
    pub(super) fn next(
        &mut self,
        now: Timestamp,
        looks: &mut usize,
        mut classify: impl FnMut(Recipient) -> Class,
    ) -> Option<(Lane, DeliveryId)> {
        while let Some(left) = looks.checked_sub(1) {
            *looks = left;
            let head = self.unparked().or_else(|| self.due(now))?;
            let to = head.lane.to;
            let class = self.classes.entry(to).or_insert_with(|| classify(to));
            let pools = pools(to, class);
            let full = pools.iter().find(|(pool, room)| self.held.get(pool).is_some_and(|held| held >= room));
            if let Some((pool, _)) = full {
                self.parked.entry(pool.clone()).or_default().insert(head);
                continue;
            }
            let pools: Vec<Pool> = pools.into_iter().map(|(pool, _)| pool).collect();
            for pool in &pools {
                *self.held.entry(pool.clone()).or_default() += 1;
            }
            self.busy.insert(head.lane, (head.seq, head.id, pools));
            return Some((head.lane, head.id));
        }
        None
    }

    /// Applies the result of a delivery in flight; `went` is the result of its attempt, if there was one.
    pub(super) fn back(&mut self, lane: Lane, left: Left, went: Option<bool>) {
        let Some((seq, id, pools)) = self.busy.remove(&lane) else { return };
        for pool in pools {
            if let Some(held) = self.held.get_mut(&pool) {
                *held -= 1;
                if *held == 0 {
                    self.held.remove(&pool);
                }
            }
            self.freed.insert(pool);
        }
        if let Some(class) = self.classes.get_mut(&lane.to) {
            class.last = went.or(class.last);
        }
        let waiting = self.lanes.entry(lane).or_default();
        match left {
            Left::Done => drop(waiting.remove(&(seq, id))),
            Left::Until(due) => drop(waiting.insert((seq, id), due)),
        }
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.ready_head(lane);
        }
    }

    /// Removes the cached class of a receiver: its address may have changed.
    pub(super) fn forget(&mut self, to: Recipient) {
        self.classes.remove(&to);
    }

    /// Due time of the next delivery that waits for its time.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.ready.first().map(|head| head.due)
    }

    /// Number of deliveries in flight.
    pub(super) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// Returns true if this delivery is in flight.
    pub(super) fn is_busy(&self, lane: Lane, id: DeliveryId) -> bool {
        self.busy.get(&lane).is_some_and(|(_, busy, _)| *busy == id)
    }

    fn ready_head(&mut self, lane: Lane) {
        if self.busy.contains_key(&lane) {
            return;
        }
        let first = self.lanes.get(&lane).and_then(|waiting| waiting.first_key_value());
        if let Some((&(seq, id), &due)) = first {
            self.ready.insert(Head { due, seq, id, lane });
        }
    }

    /// Takes a parked delivery from a pool that has a free slot again.
    fn unparked(&mut self) -> Option<Head> {
        while let Some(pool) = self.freed.first().cloned() {
            let has_room = self.held.get(&pool).is_none_or(|held| *held < room(&pool));
            let next = self.parked.get_mut(&pool).filter(|_| has_room).and_then(BTreeSet::pop_first);
            match next {
                Some(head) => return Some(head),
                None => {
                    self.freed.remove(&pool);
                    if self.parked.get(&pool).is_some_and(BTreeSet::is_empty) {
                        self.parked.remove(&pool);
                    }
                }
            }
        }
        None
    }

    fn due(&mut self, now: Timestamp) -> Option<Head> {
        let first = self.ready.first().copied().filter(|head| head.due <= now)?;
        self.ready.remove(&first);
        Some(first)
    }
}

/// Returns the deliveries that wait behind another one of their ordering key.
pub(super) fn behind(waiting: &[Waiting]) -> Vec<Waiting> {
    let mut first: BTreeMap<Lane, (u64, DeliveryId)> = BTreeMap::new();
    for it in waiting {
        let place = (it.seq, it.id);
        let least = first.entry(it.lane).or_insert(place);
        *least = (*least).min(place);
    }
    let is_behind = |it: &&Waiting| first.get(&it.lane) != Some(&(it.seq, it.id));
    waiting.iter().filter(is_behind).copied().collect()
}

/// Pools that a request to this receiver uses, with their sizes.
fn pools(to: Recipient, class: &Class) -> Vec<(Pool, usize)> {
    let Some(host) = &class.host else { return vec![(Pool::Mails, MAILS)] };
    // The narrowest pool first, so that a blocked delivery is parked only with its like.
    let mut pools = vec![(Pool::Receiver(to), RECEIVER)];
    if class.last == Some(false) {
        pools.push((Pool::FailingAt(Arc::clone(host)), FAILING_AT));
        pools.push((Pool::Failing, FAILING));
    }
    pools.push((Pool::Host(Arc::clone(host)), HOST));
    pools.push((Pool::All, ALL));
    pools
}

fn room(pool: &Pool) -> usize {
    match pool {
        Pool::All => ALL,
        Pool::Failing => FAILING,
        Pool::Host(_) => HOST,
        Pool::FailingAt(_) => FAILING_AT,
        Pool::Receiver(_) => RECEIVER,
        Pool::Mails => MAILS,
    }
}

#[cfg(test)]
mod tests;
