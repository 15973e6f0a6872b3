//! Last uses of keys and sessions: recorded in the background, at most once a minute, by at most one commit at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::time::{MINUTE, Timestamp};

/// Keys tracked in memory, at most. Uses of further ones are not recorded until others are a minute old.
const MAX_TRACKED: usize = 10_000;

/// Times of the last recorded uses, by key.
#[derive(Debug)]
pub(crate) struct LastUses<K>(Mutex<BTreeMap<K, Timestamp>>);

impl<K> Default for LastUses<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Copy> LastUses<K> {
    /// Returns true if a use now is to be recorded, which then counts as done.
    pub(crate) fn begin(&self, id: K, now: Timestamp) -> bool {
        let is_fresh = |at: Timestamp| now.since(at) < MINUTE;
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.get(&id).copied().is_some_and(is_fresh) {
            return false;
        }
        if used.len() >= MAX_TRACKED {
            used.retain(|_, at| is_fresh(*at));
        }
        let has_room = used.len() < MAX_TRACKED;
        if has_room {
            used.insert(id, now);
        }
        has_room
    }

    /// Forgets a key that was deleted.
    pub(crate) fn remove(&self, id: &K) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    #[cfg(test)]
    pub(crate) fn tracked(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
