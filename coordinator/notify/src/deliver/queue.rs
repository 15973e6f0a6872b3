//! Delivery queue (pure): keeps order within each ordering key, and pools that keep a failing receiver from
//! using up all slots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parallax_core::delivery::{OrderingKey, Recipient};
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_store::WaitingDelivery;

/// Maximum number of concurrent requests.
const MAX_REQUESTS: usize = 256;
/// Maximum number of these to receivers whose last attempt failed.
const MAX_FAILING: usize = 64;
/// Maximum number of requests to one host and port.
const MAX_PER_HOST: usize = 8;
/// Maximum number of these to receivers whose last attempt failed.
const MAX_FAILING_PER_HOST: usize = 4;
/// Maximum number of requests to one receiver: a hanging receiver uses one slot, and a crash repeats at most
/// one delivery per receiver.
const MAX_PER_RECEIVER: usize = 1;
/// Maximum number of concurrent mails, in addition to the requests.
const MAX_MAILS: usize = 8;

/// Receiver class, which decides which pools it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceiverClass {
    /// Host and port of its requests; `None` for mail.
    pub(super) host: Option<Arc<str>>,
    /// True if its last attempt succeeded; `None` before the first.
    pub(super) last_succeeded: Option<bool>,
}

/// Next step of a delivery that was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// No longer waiting.
    Finished,
    /// Waiting until this time.
    WaitUntil(Timestamp),
}

/// First delivery of an ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueueHead {
    due: Timestamp,
    seq: u64,
    id: DeliveryId,
    ordering_key: OrderingKey,
}

/// Pool of slots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    All,
    Failing,
    Host(Arc<str>),
    FailingPerHost(Arc<str>),
    Receiver(Recipient),
    Mails,
}

/// All waiting deliveries and those in flight.
#[derive(Debug, Default)]
pub(super) struct DeliveryQueue {
    /// Waiting deliveries by ordering key, in order, with their due times.
    by_key: BTreeMap<OrderingKey, BTreeMap<(u64, DeliveryId), Timestamp>>,
    /// First delivery of each ordering key that is neither in flight nor parked.
    ready: BTreeSet<QueueHead>,
    /// Due deliveries that found a pool full, by that pool.
    parked: BTreeMap<Pool, BTreeSet<QueueHead>>,
    /// Pools that have free slots again.
    with_free_slots: BTreeSet<Pool>,
    used_slots: BTreeMap<Pool, usize>,
    /// Ordering keys with a delivery in flight, with that delivery and the pools that it uses.
    in_flight: BTreeMap<OrderingKey, (u64, DeliveryId, Vec<Pool>)>,
    classes: BTreeMap<Recipient, ReceiverClass>,
}

impl DeliveryQueue {
    /// Replaces the waiting deliveries with a new listing. Results that were recorded while the listing was
    /// read are corrected when the delivery is prepared.
    pub(super) fn replace_waiting(&mut self, waiting: &[WaitingDelivery]) {
        self.by_key.clear();
        self.ready.clear();
        self.parked.clear();
        self.with_free_slots.clear();
        let mut receivers = BTreeSet::new();
        for it in waiting {
            self.by_key.entry(it.ordering_key).or_default().insert((it.seq, it.id), it.due);
            receivers.insert(it.ordering_key.to);
        }
        let in_flight = &self.in_flight;
        self.classes
            .retain(|to, _| receivers.contains(to) || in_flight.keys().any(|ordering_key| ordering_key.to == *to));
        let ordering_keys: Vec<OrderingKey> = self.by_key.keys().copied().collect();
        ordering_keys.into_iter().for_each(|ordering_key| self.enqueue_head(ordering_key));
    }

    /// Returns the next delivery that may be sent at `now` and marks it as in flight. `classify` is called
    /// for receivers without a known class. Checks at most `checks_left` entries and subtracts them.
    pub(super) fn take_next(
        &mut self,
        now: Timestamp,
        checks_left: &mut usize,
        mut classify: impl FnMut(Recipient) -> ReceiverClass,
    ) -> Option<(OrderingKey, DeliveryId)> {
        while let Some(remaining) = checks_left.checked_sub(1) {
            *checks_left = remaining;
            let head = self.take_unparked().or_else(|| self.take_due(now))?;
            let to = head.ordering_key.to;
            let class = self.classes.entry(to).or_insert_with(|| classify(to));
            let pools = pools_of(to, class);
            let full_pool =
                pools.iter().find(|(pool, size)| self.used_slots.get(pool).is_some_and(|used| used >= size));
            if let Some((pool, _)) = full_pool {
                self.parked.entry(pool.clone()).or_default().insert(head);
                continue;
            }
            let pools: Vec<Pool> = pools.into_iter().map(|(pool, _)| pool).collect();
            for pool in &pools {
                *self.used_slots.entry(pool.clone()).or_default() += 1;
            }
            self.in_flight.insert(head.ordering_key, (head.seq, head.id, pools));
            return Some((head.ordering_key, head.id));
        }
        None
    }

    /// Applies the result of a delivery in flight; `succeeded` is the result of its attempt, if there was one.
    pub(super) fn on_finished(&mut self, ordering_key: OrderingKey, next_step: NextStep, succeeded: Option<bool>) {
        let Some((seq, id, pools)) = self.in_flight.remove(&ordering_key) else { return };
        for pool in pools {
            if let Some(used) = self.used_slots.get_mut(&pool) {
                *used -= 1;
                if *used == 0 {
                    self.used_slots.remove(&pool);
                }
            }
            self.with_free_slots.insert(pool);
        }
        if let Some(class) = self.classes.get_mut(&ordering_key.to) {
            class.last_succeeded = succeeded.or(class.last_succeeded);
        }
        let waiting = self.by_key.entry(ordering_key).or_default();
        match next_step {
            NextStep::Finished => drop(waiting.remove(&(seq, id))),
            NextStep::WaitUntil(due) => drop(waiting.insert((seq, id), due)),
        }
        if waiting.is_empty() {
            self.by_key.remove(&ordering_key);
        } else {
            self.enqueue_head(ordering_key);
        }
    }

    /// Removes the cached class of a receiver: its address may have changed.
    pub(super) fn remove_class(&mut self, to: Recipient) {
        self.classes.remove(&to);
    }

    /// Due time of the next delivery that waits for its time.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.ready.first().map(|head| head.due)
    }

    /// Number of deliveries in flight.
    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns true if this delivery is in flight.
    pub(super) fn is_in_flight(&self, ordering_key: OrderingKey, id: DeliveryId) -> bool {
        self.in_flight.get(&ordering_key).is_some_and(|(_, in_flight, _)| *in_flight == id)
    }

    fn enqueue_head(&mut self, ordering_key: OrderingKey) {
        if self.in_flight.contains_key(&ordering_key) {
            return;
        }
        let first = self.by_key.get(&ordering_key).and_then(|waiting| waiting.first_key_value());
        if let Some((&(seq, id), &due)) = first {
            self.ready.insert(QueueHead { due, seq, id, ordering_key });
        }
    }

    /// Takes a parked delivery from a pool that has a free slot again.
    fn take_unparked(&mut self) -> Option<QueueHead> {
        while let Some(pool) = self.with_free_slots.first().cloned() {
            let has_free_slot = self.used_slots.get(&pool).is_none_or(|used| *used < capacity(&pool));
            let next = self.parked.get_mut(&pool).filter(|_| has_free_slot).and_then(BTreeSet::pop_first);
            match next {
                Some(head) => return Some(head),
                None => {
                    self.with_free_slots.remove(&pool);
                    if self.parked.get(&pool).is_some_and(BTreeSet::is_empty) {
                        self.parked.remove(&pool);
                    }
                }
            }
        }
        None
    }

    fn take_due(&mut self, now: Timestamp) -> Option<QueueHead> {
        let first = self.ready.first().copied().filter(|head| head.due <= now)?;
        self.ready.remove(&first);
        Some(first)
    }
}

/// Returns the deliveries that wait behind another one of their ordering key.
pub(super) fn queued_behind(waiting: &[WaitingDelivery]) -> Vec<WaitingDelivery> {
    let mut first: BTreeMap<OrderingKey, (u64, DeliveryId)> = BTreeMap::new();
    for it in waiting {
        let position = (it.seq, it.id);
        let lowest = first.entry(it.ordering_key).or_insert(position);
        *lowest = (*lowest).min(position);
    }
    let is_behind = |it: &&WaitingDelivery| first.get(&it.ordering_key) != Some(&(it.seq, it.id));
    waiting.iter().filter(is_behind).copied().collect()
}

/// Pools that a request to this receiver uses, with their sizes.
fn pools_of(to: Recipient, class: &ReceiverClass) -> Vec<(Pool, usize)> {
    let Some(host) = &class.host else { return vec![(Pool::Mails, MAX_MAILS)] };
    // The narrowest pool first, so that a blocked delivery is parked only with those of the same receiver or host.
    let mut pools = vec![(Pool::Receiver(to), MAX_PER_RECEIVER)];
    if class.last_succeeded == Some(false) {
        pools.push((Pool::FailingPerHost(Arc::clone(host)), MAX_FAILING_PER_HOST));
        pools.push((Pool::Failing, MAX_FAILING));
    }
    pools.push((Pool::Host(Arc::clone(host)), MAX_PER_HOST));
    pools.push((Pool::All, MAX_REQUESTS));
    pools
}

fn capacity(pool: &Pool) -> usize {
    match pool {
        Pool::All => MAX_REQUESTS,
        Pool::Failing => MAX_FAILING,
        Pool::Host(_) => MAX_PER_HOST,
        Pool::FailingPerHost(_) => MAX_FAILING_PER_HOST,
        Pool::Receiver(_) => MAX_PER_RECEIVER,
        Pool::Mails => MAX_MAILS,
    }
}

#[cfg(test)]
mod tests;
