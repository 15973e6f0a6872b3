//! A point-in-time reader: walks the store key by key while commits continue, and saves the old values that they
//! overwrite.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sled::{IVec, Tree};

use super::layout::TreeKey;
use super::{SharedStore, cache_eviction, catch_read_panic, engine_error};
use crate::{Result, StoreError};

/// Keys read at once, before a commit may come between.
const SLICE: usize = 256;
/// Bytes of saved old values, at most; beyond that the walk fails.
const MAX_OLD_BYTES: usize = 256 << 20;

/// The current walk, if any. One at a time; others wait.
#[derive(Debug, Default)]
pub(super) struct SnapshotWalk {
    walk_lock: Mutex<()>,
    old_values: Mutex<Option<OldValues>>,
}

/// Values at the walk's point in time that are no longer in the tree.
#[derive(Debug, Default)]
struct OldValues {
    /// Keys before this one were walked.
    next: TreeKey,
    /// Old values of keys from `next` on that were changed since; `None` for keys that did not exist.
    old: BTreeMap<TreeKey, Option<IVec>>,
    bytes: usize,
    has_failed: bool,
}

impl SnapshotWalk {
    /// Saves the old values of the keys that a commit is about to change. Called while the commit lock is held. If that
    /// fails the walk fails, never the commit.
    pub(super) fn keep_old_values<'k>(&self, tree: &Tree, mut keys: impl Iterator<Item = &'k [u8]>) {
        let mut old_values = lock(&self.old_values);
        let Some(old_values) = old_values.as_mut().filter(|old_values| !old_values.has_failed) else { return };
        let result = keys.try_for_each(|key| old_values.keep(tree, key));
        if result.is_err() || old_values.bytes > MAX_OLD_BYTES {
            *old_values = OldValues { has_failed: true, ..OldValues::default() };
        }
    }
}

impl OldValues {
    fn keep(&mut self, tree: &Tree, key: &[u8]) -> sled::Result<()> {
        if *key >= *self.next && !self.old.contains_key(key) {
            let old = tree.get(key)?;
            self.bytes += key.len() + old.as_ref().map_or(0, |value| value.len());
            self.old.insert(key.to_vec(), old);
        }
        Ok(())
    }
}

/// Passes every key and value to `visit`, in key order, as of one point in time. Commits wait for one slice at most.
pub(super) fn walk(shared: &SharedStore, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    let _walk_guard = lock(&shared.snapshot_walk.walk_lock);
    {
        let _guard = shared.reading();
        *lock(&shared.snapshot_walk.old_values) = Some(OldValues::default());
    }
    let result = catch_read_panic(|| {
        let mut has_more = true;
        while has_more {
            let entries;
            (entries, has_more) = slice(shared)?;
            entries.iter().try_for_each(|(key, value)| visit(key, value))?;
            cache_eviction::record_uses(&shared.db, entries.keys().map(Vec::as_slice));
        }
        Ok(())
    });
    *lock(&shared.snapshot_walk.old_values) = None;
    result
}

/// Returns the next entries, and true if there may be more.
fn slice(shared: &SharedStore) -> Result<(BTreeMap<TreeKey, IVec>, bool)> {
    let _guard = shared.reading();
    let mut old_values = lock(&shared.snapshot_walk.old_values);
    let Some(old_values) = old_values.as_mut().filter(|old_values| !old_values.has_failed) else {
        return Err(StoreError::Io("too much changed while the snapshot was written; try again".to_owned()));
    };
    let mut entries = BTreeMap::new();
    for item in shared.db.range(old_values.next.clone()..).take(SLICE) {
        let (key, value) = item.map_err(engine_error)?;
        entries.insert(key.to_vec(), value);
    }
    let has_more = entries.len() == SLICE;
    let changed = if let Some((last, _)) = entries.last_key_value().filter(|_| has_more) {
        // The first possible key after the last one.
        old_values.next = [last.as_slice(), &[0]].concat();
        let later = old_values.old.split_off(&old_values.next);
        std::mem::replace(&mut old_values.old, later)
    } else {
        std::mem::take(&mut old_values.old)
    };
    for (key, old) in changed {
        old_values.bytes = old_values.bytes.saturating_sub(key.len() + old.as_ref().map_or(0, |value| value.len()));
        match old {
            Some(value) => drop(entries.insert(key, value)),
            None => drop(entries.remove(&key)),
        }
    }
    Ok((entries, has_more))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
