//! The documents that are kept: bounded in bytes and number, those that were asked for longest ago given up first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use parallax_core::time::{MINUTE, Timestamp};
use tokio::sync::OwnedMutexGuard;

use super::{Document, Key};

/// Bytes of all documents.
const MOST_BYTES: usize = 48 << 20;
/// Documents, drawn or being drawn.
const MOST: usize = 8192;
/// How long a document is kept that nobody asks for, in milliseconds.
const UNASKED: i64 = 10 * MINUTE;

/// A document that was drawn.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) document: Arc<Document>,
    /// When.
    pub(super) drawn: Timestamp,
    /// The last event that is certainly in it.
    pub(super) upto: u64,
}

impl Held {
    /// Whether all that happened to its page is in it.
    pub(super) const fn is_good(&self, changed: u64) -> bool {
        self.upto >= changed
    }
}

/// The place of one document.
#[derive(Debug)]
pub(super) struct Slot {
    held: Mutex<Option<Held>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    asked: AtomicI64,
}

impl Slot {
    pub(super) fn held(&self) -> Option<Held> {
        locked(&self.held).clone()
    }

    /// One draws it at a time.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    pub(super) fn try_turn(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.turn).try_lock_owned().ok()
    }

    fn bytes(&self) -> usize {
        locked(&self.held).as_ref().map_or(0, |held| held.document.bytes())
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<BTreeMap<Key, Arc<Slot>>>);

impl Shelf {
    /// The place of a document, which is asked for at this moment.
    pub(super) fn slot(&self, key: &Key, now: Timestamp) -> Arc<Slot> {
        let mut slots = locked(&self.0);
        if let Some(slot) = slots.get(key) {
            slot.asked.store(now.as_millis(), Ordering::Relaxed);
            return Arc::clone(slot);
        }
        if slots.len() >= MOST {
            give_up(&mut slots);
        }
        let asked = AtomicI64::new(now.as_millis());
        let slot = Arc::new(Slot { held: Mutex::default(), turn: Arc::default(), asked });
        slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// A document that is there, and is asked for at this moment.
    pub(super) fn asked(&self, key: &Key, now: Timestamp) -> Option<Held> {
        let slots = locked(&self.0);
        let slot = slots.get(key)?;
        slot.asked.store(now.as_millis(), Ordering::Relaxed);
        slot.held()
    }

    /// Keeps a document; where there is no room, others go.
    pub(super) fn put(&self, key: &Key, held: Held) {
        let mut slots = locked(&self.0);
        let Some(slot) = slots.get(key) else { return };
        *locked(&slot.held) = Some(held);
        let mut total: usize = slots.values().map(|slot| slot.bytes()).sum();
        while total > MOST_BYTES && slots.len() > 1 {
            let freed = give_up(&mut slots);
            total = total.saturating_sub(freed);
        }
    }

    /// Gives a place up: there is no such document.
    pub(super) fn forget(&self, key: &Key) {
        locked(&self.0).remove(key);
    }

    /// Gives up what nobody asked for lately.
    pub(super) fn tidy(&self, now: Timestamp) {
        let is_asked = |slot: &Arc<Slot>| {
            now.since(Timestamp::from_millis(slot.asked.load(Ordering::Relaxed))) < UNASKED
        };
        locked(&self.0).retain(|_, slot| is_asked(slot));
    }

    /// Whether a document of that page is kept.
    pub(super) fn has(&self, page: PageId) -> bool {
        locked(&self.0).keys().any(|key| key.page == page)
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        locked(&self.0).values().map(|slot| slot.bytes()).sum()
    }
}

/// Gives up the one that was asked for longest ago, and says how many bytes that freed.
fn give_up(slots: &mut BTreeMap<Key, Arc<Slot>>) -> usize {
    let oldest = slots.iter().min_by_key(|(_, slot)| slot.asked.load(Ordering::Relaxed));
    let Some(key) = oldest.map(|(key, _)| key.clone()) else { return 0 };
    slots.remove(&key).map_or(0, |slot| slot.bytes())
}

/// Whatever panicked elsewhere left whole values behind: every change under these locks is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
