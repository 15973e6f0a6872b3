//! Cache of rendered documents: bounded in bytes and number, with least recently used eviction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use parallax_core::time::{MINUTE, Timestamp};
use tokio::sync::OwnedMutexGuard;

use super::{Document, Key};
use crate::views::badge::Facts;

/// Maximum number of entries, including those being rendered.
const MOST: usize = 8192;
/// Time after which an unused entry is evicted, in milliseconds.
const UNASKED: i64 = 10 * MINUTE;

/// Multiple of its age up to which a stale entry is served while a new one is rendered.
const PAST: i64 = 6;

/// Freshness of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Within its age.
    Fresh,
    /// Stale: served while a new one is rendered.
    Past,
    /// May not be served any more.
    Unfit,
}

/// The exclusive right to render an entry, until dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

/// A value that can be cached.
pub(super) trait Thing {
    /// Memory used, in bytes.
    fn bytes(&self) -> usize;

    /// Time after which it may not be served, regardless of its age.
    fn until(&self) -> Option<Timestamp> {
        None
    }
}

impl Thing for Document {
    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn until(&self) -> Option<Timestamp> {
        self.until
    }
}

impl Thing for Facts {
    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// A cached value.
#[derive(Debug)]
pub(super) struct Held<T> {
    pub(super) thing: Arc<T>,
    /// Time of rendering.
    pub(super) drawn: Timestamp,
    /// The last event that is certainly included.
    pub(super) upto: u64,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { thing: Arc::clone(&self.thing), drawn: self.drawn, upto: self.upto }
    }
}

impl<T: Thing> Held<T> {
    /// Returns true if all events of its page are included.
    pub(super) const fn is_good(&self, changed: u64) -> bool {
        self.upto >= changed
    }

    /// Freshness for a maximum age in milliseconds. A value from the future was rendered before the clock was
    /// set back: its age is unknown.
    pub(super) fn age(&self, now: Timestamp, most: i64) -> Age {
        match now.since(self.drawn) {
            _ if self.thing.until().is_some_and(|until| now >= until) => Age::Unfit,
            past if (0..=most).contains(&past) => Age::Fresh,
            past if (0..=PAST * most).contains(&past) => Age::Past,
            _ => Age::Unfit,
        }
    }

    /// Returns true if it was rendered after `before` was read.
    pub(super) fn is_newer_than(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| !Arc::ptr_eq(&before.thing, &self.thing))
    }
}

/// The cache entry of one key.
#[derive(Debug)]
pub(super) struct Slot<T> {
    held: Mutex<Option<Held<T>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    asked: AtomicI64,
}

impl<T: Thing> Slot<T> {
    pub(super) fn held(&self) -> Option<Held<T>> {
        locked(&self.held).clone()
    }

    /// Waits for the exclusive right to render the entry.
    pub(super) async fn turn(&self) -> Turn {
        Arc::clone(&self.turn).lock_owned().await
    }

    pub(super) fn try_turn(&self) -> Option<Turn> {
        Arc::clone(&self.turn).try_lock_owned().ok()
    }

    fn bytes(&self) -> usize {
        locked(&self.held).as_ref().map_or(0, |held| held.thing.bytes())
    }
}

/// A cache of rendered values.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    slots: Mutex<Slots<T>>,
    /// Memory limit, in bytes.
    most_bytes: usize,
}

#[derive(Debug)]
struct Slots<T> {
    by_key: BTreeMap<Key, Arc<Slot<T>>>,
    /// Memory used by all values, in bytes.
    bytes: usize,
}

impl<T: Thing> Shelf<T> {
    /// Creates an empty cache with that memory limit.
    pub(super) const fn new(most_bytes: usize) -> Self {
        Self { slots: Mutex::new(Slots { by_key: BTreeMap::new(), bytes: 0 }), most_bytes }
    }

    /// Returns the entry of a key, creating it if necessary, and marks it as used.
    pub(super) fn slot(&self, key: &Key, now: Timestamp) -> Arc<Slot<T>> {
        let mut slots = locked(&self.slots);
        if let Some(slot) = slots.known(key, now) {
            return slot;
        }
        if slots.by_key.len() >= MOST {
            slots.give_up();
        }
        let asked = AtomicI64::new(now.as_millis());
        let slot = Arc::new(Slot { held: Mutex::default(), turn: Arc::default(), asked });
        slots.by_key.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// Returns the entry of a key if it exists, and marks it as used.
    pub(super) fn known(&self, key: &Key, now: Timestamp) -> Option<Arc<Slot<T>>> {
        locked(&self.slots).known(key, now)
    }

    /// Stores a value; evicts others if the memory limit is exceeded.
    pub(super) fn put(&self, key: &Key, held: Held<T>) {
        let mut slots = locked(&self.slots);
        let Some(slot) = slots.by_key.get(key) else { return };
        let added = held.thing.bytes();
        let freed = locked(&slot.held).replace(held).map_or(0, |held| held.thing.bytes());
        slots.bytes = (slots.bytes + added).saturating_sub(freed);
        while slots.bytes > self.most_bytes && slots.by_key.len() > 1 {
            slots.give_up();
        }
    }

    /// Removes an entry whose document does not exist.
    pub(super) fn forget(&self, key: &Key) {
        locked(&self.slots).remove(key);
    }

    /// Evicts entries that have not been used lately, or seem to have been used in the future, since the
    /// clock was set back.
    pub(super) fn tidy(&self, now: Timestamp) {
        let is_asked = |slot: &Slot<T>| {
            let asked = Timestamp::from_millis(slot.asked.load(Ordering::Relaxed));
            now.since(asked).unsigned_abs() < UNASKED.unsigned_abs()
        };
        let mut slots = locked(&self.slots);
        let mut freed = 0;
        slots.by_key.retain(|_, slot| {
            let is_asked = is_asked(slot);
            freed += if is_asked { 0 } else { slot.bytes() };
            is_asked
        });
        slots.bytes = slots.bytes.saturating_sub(freed);
    }

    /// The pages with entries.
    pub(super) fn pages(&self) -> BTreeSet<PageId> {
        locked(&self.slots).by_key.keys().map(|key| key.page).collect()
    }

    /// Memory used by all values, in bytes.
    pub(super) fn bytes(&self) -> usize {
        locked(&self.slots).bytes
    }
}

impl<T: Thing> Slots<T> {
    fn known(&self, key: &Key, now: Timestamp) -> Option<Arc<Slot<T>>> {
        let slot = self.by_key.get(key)?;
        slot.asked.store(now.as_millis(), Ordering::Relaxed);
        Some(Arc::clone(slot))
    }

    /// Evicts the least recently used entry.
    fn give_up(&mut self) {
        let oldest = self.by_key.iter().min_by_key(|(_, slot)| slot.asked.load(Ordering::Relaxed));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        let freed = self.by_key.remove(key).map_or(0, |slot| slot.bytes());
        self.bytes = self.bytes.saturating_sub(freed);
    }
}

/// Ignores poisoning: every change under these locks is a single step, so that a panic leaves consistent
/// values.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
