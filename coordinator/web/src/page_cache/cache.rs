//! Cache of rendered documents: bounded in bytes and number, with least recently used eviction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parallax_core::id::PageId;
use parallax_core::time::{MINUTE, Timestamp};
use tokio::sync::OwnedMutexGuard;

use super::{CompressedDocument, DocumentKey};
use crate::views::badge::BadgeData;

/// Maximum number of entries, including those being rendered.
const MAX_ENTRIES: usize = 8192;
/// Time after which an unused entry is evicted, in milliseconds.
const UNUSED_AFTER: i64 = 10 * MINUTE;

/// Multiple of its age up to which a stale entry is served while a new one is rendered.
const STALE_FACTOR: i64 = 6;

/// Freshness of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Within its age.
    Fresh,
    /// Stale: served while a new one is rendered.
    Stale,
    /// May not be served any more.
    Expired,
}

/// The exclusive right to render an entry, until dropped.
pub(super) type RenderGuard = OwnedMutexGuard<()>;

/// A value that can be cached.
pub(super) trait Cacheable {
    /// Memory used, in bytes.
    fn bytes(&self) -> usize;

    /// Time after which it may not be served, regardless of its age.
    fn expires_at(&self) -> Option<Timestamp> {
        None
    }
}

impl Cacheable for CompressedDocument {
    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}

impl Cacheable for BadgeData {
    fn bytes(&self) -> usize {
        Self::memory_use(self)
    }
}

/// A cached value.
#[derive(Debug)]
pub(super) struct CachedValue<T> {
    pub(super) value: Arc<T>,
    /// Time of rendering.
    pub(super) rendered_at: Timestamp,
    /// The last event that is certainly included.
    pub(super) up_to_event: u64,
}

impl<T> Clone for CachedValue<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), rendered_at: self.rendered_at, up_to_event: self.up_to_event }
    }
}

impl<T: Cacheable> CachedValue<T> {
    /// Returns true if all events of its page are included.
    pub(super) const fn is_current(&self, last_change: u64) -> bool {
        self.up_to_event >= last_change
    }

    /// Freshness for a maximum age in milliseconds. A value from the future was rendered before the clock was
    /// set back: its age is unknown.
    pub(super) fn freshness(&self, now: Timestamp, max_age: i64) -> Freshness {
        match now.since(self.rendered_at) {
            _ if self.value.expires_at().is_some_and(|expiry| now >= expiry) => Freshness::Expired,
            age if (0..=max_age).contains(&age) => Freshness::Fresh,
            age if (0..=STALE_FACTOR * max_age).contains(&age) => Freshness::Stale,
            _ => Freshness::Expired,
        }
    }

    /// Returns true if it was rendered after `previous` was read.
    pub(super) fn is_newer_than(&self, previous: Option<&Self>) -> bool {
        previous.is_none_or(|previous| !Arc::ptr_eq(&previous.value, &self.value))
    }
}

/// The cache entry of one key.
#[derive(Debug)]
pub(super) struct CacheEntry<T> {
    value: Mutex<Option<CachedValue<T>>>,
    render_lock: Arc<tokio::sync::Mutex<()>>,
    last_used: AtomicI64,
}

impl<T: Cacheable> CacheEntry<T> {
    pub(super) fn value(&self) -> Option<CachedValue<T>> {
        locked(&self.value).clone()
    }

    /// Waits for the exclusive right to render the entry.
    pub(super) async fn lock_for_render(&self) -> RenderGuard {
        Arc::clone(&self.render_lock).lock_owned().await
    }

    pub(super) fn try_lock_for_render(&self) -> Option<RenderGuard> {
        Arc::clone(&self.render_lock).try_lock_owned().ok()
    }

    fn bytes(&self) -> usize {
        locked(&self.value).as_ref().map_or(0, |cached| cached.value.bytes())
    }
}

/// A cache of rendered values.
#[derive(Debug)]
pub(super) struct BoundedCache<T> {
    entries: Mutex<CacheEntries<T>>,
    /// Memory limit, in bytes.
    max_bytes: usize,
}

#[derive(Debug)]
struct CacheEntries<T> {
    by_key: BTreeMap<DocumentKey, Arc<CacheEntry<T>>>,
    /// Memory used by all values, in bytes.
    bytes: usize,
}

impl<T: Cacheable> BoundedCache<T> {
    /// Creates an empty cache with that memory limit.
    pub(super) const fn new(max_bytes: usize) -> Self {
        Self { entries: Mutex::new(CacheEntries { by_key: BTreeMap::new(), bytes: 0 }), max_bytes }
    }

    /// Returns the entry of a key, creating it if necessary, and marks it as used.
    pub(super) fn entry(&self, key: &DocumentKey, now: Timestamp) -> Arc<CacheEntry<T>> {
        let mut entries = locked(&self.entries);
        if let Some(entry) = entries.get(key, now) {
            return entry;
        }
        if entries.by_key.len() >= MAX_ENTRIES {
            entries.evict_oldest();
        }
        let last_used = AtomicI64::new(now.as_millis());
        let entry = Arc::new(CacheEntry { value: Mutex::default(), render_lock: Arc::default(), last_used });
        entries.by_key.insert(key.clone(), Arc::clone(&entry));
        entry
    }

    /// Returns the entry of a key if it exists, and marks it as used.
    pub(super) fn get(&self, key: &DocumentKey, now: Timestamp) -> Option<Arc<CacheEntry<T>>> {
        locked(&self.entries).get(key, now)
    }

    /// Stores a value; evicts others if the memory limit is exceeded.
    pub(super) fn insert(&self, key: &DocumentKey, cached: CachedValue<T>) {
        let mut entries = locked(&self.entries);
        let Some(entry) = entries.by_key.get(key) else { return };
        let added = cached.value.bytes();
        let freed = locked(&entry.value).replace(cached).map_or(0, |cached| cached.value.bytes());
        entries.bytes = (entries.bytes + added).saturating_sub(freed);
        while entries.bytes > self.max_bytes && entries.by_key.len() > 1 {
            entries.evict_oldest();
        }
    }

    /// Removes an entry whose document does not exist.
    pub(super) fn remove(&self, key: &DocumentKey) {
        locked(&self.entries).remove(key);
    }

    /// Evicts entries that have not been used lately, or seem to have been used in the future, since the
    /// clock was set back.
    pub(super) fn evict_unused(&self, now: Timestamp) {
        let is_in_use = |entry: &CacheEntry<T>| {
            let last_used = Timestamp::from_millis(entry.last_used.load(Ordering::Relaxed));
            now.since(last_used).unsigned_abs() < UNUSED_AFTER.unsigned_abs()
        };
        let mut entries = locked(&self.entries);
        let mut freed = 0;
        entries.by_key.retain(|_, entry| {
            let is_in_use = is_in_use(entry);
            freed += if is_in_use { 0 } else { entry.bytes() };
            is_in_use
        });
        entries.bytes = entries.bytes.saturating_sub(freed);
    }

    /// The pages with entries.
    pub(super) fn pages(&self) -> BTreeSet<PageId> {
        locked(&self.entries).by_key.keys().map(|key| key.page).collect()
    }

    /// Memory used by all values, in bytes.
    pub(super) fn bytes(&self) -> usize {
        locked(&self.entries).bytes
    }
}

impl<T: Cacheable> CacheEntries<T> {
    fn get(&self, key: &DocumentKey, now: Timestamp) -> Option<Arc<CacheEntry<T>>> {
        let entry = self.by_key.get(key)?;
        entry.last_used.store(now.as_millis(), Ordering::Relaxed);
        Some(Arc::clone(entry))
    }

    /// Evicts the least recently used entry.
    fn evict_oldest(&mut self) {
        let oldest = self.by_key.iter().min_by_key(|(_, entry)| entry.last_used.load(Ordering::Relaxed));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &DocumentKey) {
        let freed = self.by_key.remove(key).map_or(0, |entry| entry.bytes());
        self.bytes = self.bytes.saturating_sub(freed);
    }
}

/// Ignores poisoning: every change under these locks is a single step, so that a panic leaves consistent
/// values.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
