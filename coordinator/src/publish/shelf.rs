//! What is kept of pages: bounded in bytes and number, what was asked for longest ago given up first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use parallax_core::time::{MINUTE, Timestamp};
use tokio::sync::OwnedMutexGuard;

use super::{Document, Key};
use crate::views::badge::Facts;

/// Things on one shelf, drawn or being drawn.
const MOST: usize = 8192;
/// How long a thing is kept that nobody asks for, in milliseconds.
const UNASKED: i64 = 10 * MINUTE;

/// By what factor a thing may be past its age and still be handed out while a new one is drawn.
const PAST: i64 = 6;

/// How old a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Within its age.
    Fresh,
    /// A little past it: it is handed out while a new one is drawn.
    Past,
    /// Nobody is to see it any more.
    Unfit,
}

/// The right to draw a thing, until dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

/// What can be kept.
pub(super) trait Thing {
    /// Bytes that it takes.
    fn bytes(&self) -> usize;

    /// From when on nobody is to see it any more, however young it is, where that is known.
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

/// A thing that was drawn.
#[derive(Debug)]
pub(super) struct Held<T> {
    pub(super) thing: Arc<T>,
    /// When.
    pub(super) drawn: Timestamp,
    /// The last event that is certainly in it.
    pub(super) upto: u64,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { thing: Arc::clone(&self.thing), drawn: self.drawn, upto: self.upto }
    }
}

impl<T: Thing> Held<T> {
    /// Whether all that happened to its page is in it.
    pub(super) const fn is_good(&self, changed: u64) -> bool {
        self.upto >= changed
    }

    /// How it stands to the age that it may have, in milliseconds. One that seems to come of the future was drawn before
    /// the clock was put back: nobody knows how old it is.
    pub(super) fn age(&self, now: Timestamp, most: i64) -> Age {
        match now.since(self.drawn) {
            _ if self.thing.until().is_some_and(|until| now >= until) => Age::Unfit,
            past if (0..=most).contains(&past) => Age::Fresh,
            past if (0..=PAST * most).contains(&past) => Age::Past,
            _ => Age::Unfit,
        }
    }

    /// Whether it was drawn after that one was looked at.
    pub(super) fn is_newer_than(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| !Arc::ptr_eq(&before.thing, &self.thing))
    }
}

/// The place of one thing.
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

    /// One draws it at a time.
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

/// All of them.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    slots: Mutex<Slots<T>>,
    /// Bytes that all things together may take.
    most_bytes: usize,
}

#[derive(Debug)]
struct Slots<T> {
    by_key: BTreeMap<Key, Arc<Slot<T>>>,
    /// Bytes of all things in them.
    bytes: usize,
}

impl<T: Thing> Shelf<T> {
    /// An empty one, for so many bytes.
    pub(super) const fn new(most_bytes: usize) -> Self {
        Self { slots: Mutex::new(Slots { by_key: BTreeMap::new(), bytes: 0 }), most_bytes }
    }

    /// The place of a thing, which is asked for at this moment.
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

    /// The place of a thing that has one, which is asked for at this moment.
    pub(super) fn known(&self, key: &Key, now: Timestamp) -> Option<Arc<Slot<T>>> {
        locked(&self.slots).known(key, now)
    }

    /// Keeps a thing; where there is no room, others go.
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

    /// Gives a place up: there is no such thing.
    pub(super) fn forget(&self, key: &Key) {
        locked(&self.slots).remove(key);
    }

    /// Gives up what nobody asked for lately, or seems to have asked for much later: the clock was put back.
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

    /// The pages of which something is kept.
    pub(super) fn pages(&self) -> BTreeSet<PageId> {
        locked(&self.slots).by_key.keys().map(|key| key.page).collect()
    }

    /// Bytes of all of them.
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

    /// Gives up the one that was asked for longest ago.
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

/// Whatever panicked elsewhere left whole values behind: every change under these locks is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
