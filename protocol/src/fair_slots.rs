//! Fair sharing of a bounded number of check slots among accounts.
//!
//! An agent has a fixed number of slots for the checks of its schedule, and another for probe requests. This
//! queue fills both: on the agent for its schedule, on the coordinator for the probe requests to an agent.
//!
//! # The rule
//!
//! A slot cannot be preempted: a check of a target that never responds holds it for ten seconds. So fairness
//! is decided at admission, and a reserve stays free for accounts that arrive later.
//!
//! - **The account with the fewest slots is next**; among equals, the one served longest ago. So an account
//!   that holds a quarter of the slots or more gets none while one that holds less waits.
//! - **An eighth is reserved for accounts with few slots.** An account with eight slots or more must leave
//!   the whole reserve free, one with fewer slots as many eighths of it, one with none may take the last free
//!   slot. So one account alone gets seven eighths, several that want all get equal parts of them, and a
//!   newcomer gets a slot however many there are: a hundred greedy accounts leave it 32 of 512 slots. A fixed
//!   cap of a quarter would leave three quarters idle with one account, and nothing free with four greedy
//!   ones.
//! - **Recently slow targets** ([`SlotPool::Slow`]) get no more than seven eighths of all slots together, under
//!   the same rule. The rest is for targets that respond, so an account's own black holes don't delay its
//!   other checks either.
//! - An account that waits in both pools alternates between them, so neither starves.
//!
//! Work is conserved up to that reserve: nothing waits while more than it is free. Each call takes time
//! logarithmic in the number of accounts; memory is one entry for each account that holds or waits, and the
//! items.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Divisor of the capacity: one slot in this many is reserved for accounts with few slots.
const RESERVE_DIVISOR: usize = 8;

/// Number of slots from which an account gets nothing of the reserve.
const FULL_RESERVE_AT: usize = 8;

/// Number of probe requests that an agent handles at once.
pub const MAX_PROBE_REQUESTS: u32 = 256;

/// Account of assignments sent without one: they share as one account.
pub const UNKNOWN_ACCOUNT: u32 = 0;

/// Slots that an item competes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotPool {
    /// Any slot.
    Fast,
    /// Slots that slow targets may hold.
    Slow,
}

const POOLS: [SlotPool; 2] = [SlotPool::Fast, SlotPool::Slow];

/// A held slot; returned with [`FairSlots::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is dropped is a slot lost"]
pub struct FairSlotPermit {
    account: u32,
    pool: SlotPool,
}

/// Slots, their holders, and the items that wait for one.
#[derive(Debug)]
pub struct FairSlots<T> {
    capacity: usize,
    reserve: usize,
    slow_capacity: usize,
    held: usize,
    held_slow: usize,
    waiting: usize,
    turns: u64,
    accounts: BTreeMap<u32, Account<T>>,
    /// Waiting accounts, by pool: the first is next.
    order: [BTreeSet<Rank>; 2],
}

/// Slots held, turn, and account.
type Rank = (usize, u64, u32);

#[derive(Debug)]
struct Account<T> {
    held: usize,
    /// Turn of its last start.
    turn: u64,
    last: SlotPool,
    queues: [VecDeque<T>; 2],
}

impl SlotPool {
    const fn index(self) -> usize {
        match self {
            Self::Fast => 0,
            Self::Slow => 1,
        }
    }
}

impl<T> FairSlots<T> {
    /// Creates this many free slots, at least one.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        let reserve = (capacity / RESERVE_DIVISOR).max(1);
        Self {
            capacity,
            reserve,
            slow_capacity: (capacity - reserve).max(1),
            held: 0,
            held_slow: 0,
            waiting: 0,
            turns: 0,
            accounts: BTreeMap::new(),
            order: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    /// Number of waiting items.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Number of slots held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Number of slots that an account holds.
    pub fn held_by(&self, account: u32) -> usize {
        self.accounts.get(&account).map_or(0, |account| account.held)
    }

    /// Queues an item behind the others of its account.
    pub fn push(&mut self, account: u32, pool: SlotPool, item: T) {
        self.turns += 1;
        let turn = self.turns;
        let entry = self.accounts.entry(account).or_insert_with(|| Account {
            held: 0,
            turn,
            last: SlotPool::Slow,
            queues: [VecDeque::new(), VecDeque::new()],
        });
        let queue = &mut entry.queues[pool.index()];
        if queue.is_empty() {
            self.order[pool.index()].insert((entry.held, entry.turn, account));
        }
        queue.push_back(item);
        self.waiting += 1;
    }

    /// Queues an item as [`Self::push`] does, with at most `most` items waiting. Beyond that, returns the
    /// newest item of the account with the most items waiting: an account that floods the queue loses its
    /// own.
    pub fn push_bounded(&mut self, most: usize, account: u32, pool: SlotPool, item: T) -> Option<T> {
        self.push(account, pool, item);
        if self.waiting <= most {
            return None;
        }
        let count = |entry: &Account<T>| entry.queues.iter().map(VecDeque::len).sum::<usize>();
        // Among equals, the last account.
        let (_, _, longest) = self.accounts.iter().map(|(&one, entry)| (count(entry), one == account, one)).max()?;
        let entry = self.accounts.get_mut(&longest)?;
        let pool = if entry.queues[pool.index()].is_empty() { POOLS[1 - pool.index()] } else { pool };
        let evicted = entry.queues[pool.index()].pop_back();
        self.waiting -= usize::from(evicted.is_some());
        self.unqueue_if_empty(longest, pool);
        evicted
    }

    /// Returns the next item with its slot; `None` if nothing waits or nothing may start yet.
    pub fn start_next(&mut self) -> Option<(T, FairSlotPermit)> {
        let (account, pool) = self.next()?;
        let entry = self.accounts.get_mut(&account)?;
        let item = entry.queues[pool.index()].pop_front()?;
        self.waiting -= 1;
        let before = (entry.held, entry.turn, account);
        self.turns += 1;
        entry.held += 1;
        (entry.turn, entry.last) = (self.turns, pool);
        self.held += 1;
        self.held_slow += usize::from(pool == SlotPool::Slow);
        self.update_rank(before);
        Some((item, FairSlotPermit { account, pool }))
    }

    /// Returns a slot.
    pub fn release(&mut self, permit: FairSlotPermit) {
        let Some(entry) = self.accounts.get_mut(&permit.account) else { return };
        let before = (entry.held, entry.turn, permit.account);
        entry.held = entry.held.saturating_sub(1);
        self.held = self.held.saturating_sub(1);
        self.held_slow = self.held_slow.saturating_sub(usize::from(permit.pool == SlotPool::Slow));
        self.update_rank(before);
    }

    /// Drops the items that no longer have to wait.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let accounts: Vec<u32> = self.accounts.keys().copied().collect();
        for account in accounts {
            for pool in POOLS {
                let Some(entry) = self.accounts.get_mut(&account) else { continue };
                let queue = &mut entry.queues[pool.index()];
                let before = queue.len();
                queue.retain(&mut keep);
                self.waiting -= before - queue.len();
                self.unqueue_if_empty(account, pool);
            }
        }
    }

    /// Removes and returns all waiting items.
    pub fn drain(&mut self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.waiting);
        for entry in self.accounts.values_mut() {
            entry.queues.iter_mut().for_each(|queue| items.extend(queue.drain(..)));
        }
        self.waiting = 0;
        self.order.iter_mut().for_each(BTreeSet::clear);
        self.accounts.retain(|_, entry| entry.held > 0);
        items
    }

    /// Number of free slots in a pool.
    fn free_slots(&self, pool: SlotPool) -> usize {
        let free = self.capacity.saturating_sub(self.held);
        match pool {
            SlotPool::Fast => free,
            SlotPool::Slow => free.min(self.slow_capacity.saturating_sub(self.held_slow)),
        }
    }

    fn admits(&self, pool: SlotPool, held: usize) -> bool {
        self.free_slots(pool) > (self.reserve * held.min(FULL_RESERVE_AT)).div_ceil(FULL_RESERVE_AT)
    }

    fn next(&self) -> Option<(u32, SlotPool)> {
        let first = |pool: SlotPool| {
            // If the account with the fewest slots is not admitted, no account is.
            let rank = self.order[pool.index()].first().copied();
            rank.filter(|&(held, ..)| self.admits(pool, held))
        };
        match (first(SlotPool::Fast), first(SlotPool::Slow)) {
            (Some(fast), Some(slow)) if fast == slow => {
                let last = self.accounts.get(&fast.2).map_or(SlotPool::Slow, |entry| entry.last);
                Some((fast.2, POOLS[1 - last.index()]))
            }
            (Some(fast), Some(slow)) if slow < fast => Some((slow.2, SlotPool::Slow)),
            (Some(fast), _) => Some((fast.2, SlotPool::Fast)),
            (None, Some(slow)) => Some((slow.2, SlotPool::Slow)),
            (None, None) => None,
        }
    }

    /// Moves an account from its rank `before` to its present one.
    fn update_rank(&mut self, before: Rank) {
        let account = before.2;
        for order in &mut self.order {
            order.remove(&before);
        }
        let Some(entry) = self.accounts.get(&account) else { return };
        for (order, queue) in self.order.iter_mut().zip(&entry.queues) {
            if !queue.is_empty() {
                order.insert((entry.held, entry.turn, account));
            }
        }
        self.remove_if_idle(account);
    }

    /// Removes an account from a pool's order once none of its items waits there.
    fn unqueue_if_empty(&mut self, account: u32, pool: SlotPool) {
        let Some(entry) = self.accounts.get(&account) else { return };
        if entry.queues[pool.index()].is_empty() {
            self.order[pool.index()].remove(&(entry.held, entry.turn, account));
            self.remove_if_idle(account);
        }
    }

    fn remove_if_idle(&mut self, account: u32) {
        let is_idle = |entry: &Account<T>| entry.held == 0 && entry.queues.iter().all(VecDeque::is_empty);
        if self.accounts.get(&account).is_some_and(is_idle) {
            self.accounts.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests;
