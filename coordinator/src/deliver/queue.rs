//! Whose turn it is: lanes in their order, and pools that keep a sick receiver from taking everybody's slots. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::delivery::{Lane, Recipient};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;

use crate::storage::Waiting;

/// Requests on their way at once.
const ALL: usize = 256;
/// Of these, to receivers whose last try failed.
const FAILING: usize = 64;
/// To one host and port.
const HOST: usize = 8;
/// Of these, to receivers whose last try failed.
const FAILING_AT: usize = 4;
/// To one receiver: what hangs costs one slot, and a kill repeats one delivery to each receiver at most.
const RECEIVER: usize = 1;
/// Mails on their way at once, beside the requests.
const MAILS: usize = 8;

/// What decides whose slots a receiver takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    /// Host and port of its requests; none for mail.
    pub(super) host: Option<Arc<str>>,
    /// How its last try went; none before the first.
    pub(super) last: Option<bool>,
}

/// What came of a delivery that was on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It waits no more.
    Done,
    /// It waits until then.
    Until(Timestamp),
}

/// The first of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    due: Timestamp,
    seq: u64,
    id: DeliveryId,
    lane: Lane,
}

/// Something of which there is only so much.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    All,
    Failing,
    Host(Arc<str>),
    FailingAt(Arc<str>),
    Receiver(Recipient),
    Mails,
}

/// Everything that waits, and what is on its way.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// What waits of each lane, in its order, with when it is due.
    lanes: BTreeMap<Lane, BTreeMap<(u64, DeliveryId), Timestamp>>,
    /// The first of each lane that is neither on its way nor parked.
    ready: BTreeSet<Head>,
    /// Those that are due and found a pool full, by that pool.
    parked: BTreeMap<Pool, BTreeSet<Head>>,
    /// Pools in which there is room again.
    freed: BTreeSet<Pool>,
    held: BTreeMap<Pool, usize>,
    /// The lanes that have one on its way, with it and the pools that it takes from.
    busy: BTreeMap<Lane, (u64, DeliveryId, Vec<Pool>)>,
    classes: BTreeMap<Recipient, Class>,
}

impl Queue {
    /// Takes in what waits, as it was listed, in place of what was known. What was noted while the list was read is put
    /// right once it is looked at to be sent.
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

    /// The next one that may go out at `now`, which is on its way from then on. `classify` tells of a receiver that is not
    /// known yet. At most `looks` are looked at, and those are taken off.
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

    /// Notes what became of one that was on its way, and how its try went, if there was one.
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

    /// Forgets what was known of a receiver: it may have another address now.
    pub(super) fn forget(&mut self, to: Recipient) {
        self.classes.remove(&to);
    }

    /// When the next of those that wait for their time is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.ready.first().map(|head| head.due)
    }

    /// How many are on their way.
    pub(super) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// Whether that one is on its way.
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

    /// One that waited for room where there is some now.
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

/// Those of a list that wait behind another of their lane.
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

/// The pools that a request to that receiver takes from, and how many each has room for.
fn pools(to: Recipient, class: &Class) -> Vec<(Pool, usize)> {
    let Some(host) = &class.host else { return vec![(Pool::Mails, MAILS)] };
    // The narrowest first, so that whoever is held up waits where only its like do.
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
