//! Fixed windows per key, in bounded memory.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{FixedWindow, RateExceeded, RateLimitStatus, WindowRule};
use crate::time::{MINUTE, Timestamp};

/// Keys tracked by a limit that refuses new ones then.
const MAX_KEYS: usize = 10_000;
/// Keys tracked by a [`KeyedRateLimit`].
const MAX_REQUEST_KEYS: usize = 100_000;

/// Fixed windows per key. When all keys are inside their windows and their number is reached, new keys are refused:
/// evicting one would let an attacker rotate keys. A limit made by [`FixedWindowLimit::evicting`] drops the oldest.
#[derive(Debug)]
pub struct FixedWindowLimit<K> {
    /// Length of a window in milliseconds.
    length: i64,
    max_keys: usize,
    evicts: bool,
    windows: BTreeMap<K, FixedWindow>,
    /// The same windows ordered by their start, so that expired ones are found without a full scan.
    by_start: BTreeSet<(Timestamp, K)>,
}

impl<K: Ord> FixedWindowLimit<K> {
    /// An empty limit with windows of that many milliseconds, for 10,000 keys.
    pub const fn new(length: i64) -> Self {
        Self { length, max_keys: MAX_KEYS, evicts: false, windows: BTreeMap::new(), by_start: BTreeSet::new() }
    }

    /// An empty limit that evicts the oldest of `max_keys` keys for a new one.
    pub const fn evicting(length: i64, max_keys: usize) -> Self {
        Self { length, max_keys, evicts: true, windows: BTreeMap::new(), by_start: BTreeSet::new() }
    }

    /// Counts an action of that key, and admits it if it is among the first `limit` in the current window.
    ///
    /// # Errors
    /// [`RateExceeded`]; a refused action is counted too.
    pub fn admit<Q>(&mut self, limit: u32, key: &Q, now: Timestamp) -> Result<(), RateExceeded>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let status = self.count(limit, key, 1, now);
        if status.allowed { Ok(()) } else { Err(status.into()) }
    }

    /// Counts several actions of that key up to the first over the limit.
    pub fn count<Q>(&mut self, limit: u32, key: &Q, actions: u32, now: Timestamp) -> RateLimitStatus
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let rule = self.rule(limit);
        self.drop_expired(now);
        if let Some(window) = self.windows.get_mut(key) {
            return window.count_many(rule, actions, now);
        }
        if self.windows.len() >= self.max_keys {
            if !self.evicts {
                // The oldest window is the first to make room.
                let started_at = self.by_start.first().map_or(now, |(started_at, _)| *started_at);
                let until = FixedWindow::new(started_at).peek(rule, now);
                return RateLimitStatus { allowed: false, remaining: 0, ..until };
            }
            self.evict_oldest();
        }
        let mut window = FixedWindow::new(now);
        let status = window.count_many(rule, actions, now);
        self.windows.insert(key.to_owned(), window);
        self.by_start.insert((now, key.to_owned()));
        status
    }

    /// Returns what the key's next action would get by its own count, without counting one.
    pub fn peek<Q>(&self, limit: u32, key: &Q, now: Timestamp) -> RateLimitStatus
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.windows.get(key).copied().unwrap_or_else(|| FixedWindow::new(now)).peek(self.rule(limit), now)
    }

    /// Returns true if the key's own count allows another action; counts nothing.
    pub fn would_admit<Q>(&self, limit: u32, key: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.peek(limit, key, now).allowed
    }

    /// Takes back an action of that key that was counted at `now`.
    pub fn refund<Q>(&mut self, key: &Q, now: Timestamp)
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if let Some(window) = self.windows.get_mut(key) {
            window.refund(self.length, now);
        }
    }

    /// Returns true if the key has a window that has not expired.
    pub fn is_tracked<Q>(&self, key: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.windows.get(key).is_some_and(|window| !window.is_expired(self.length, now))
    }

    /// Returns true if no new key can be tracked before some window expires.
    pub fn is_full(&mut self, now: Timestamp) -> bool {
        self.drop_expired(now);
        self.windows.len() >= self.max_keys
    }

    /// Returns the number of keys tracked.
    pub fn key_count(&self) -> usize {
        self.windows.len()
    }

    const fn rule(&self, limit: u32) -> WindowRule {
        WindowRule { limit, length: self.length }
    }

    fn evict_oldest(&mut self) {
        if let Some((_, oldest)) = self.by_start.pop_first() {
            self.windows.remove(&oldest);
        }
    }

    fn drop_expired(&mut self, now: Timestamp) {
        let length = self.length;
        let is_expired = |started_at: &Timestamp| FixedWindow::new(*started_at).is_expired(length, now);
        while let Some((started_at, _)) = self.by_start.first()
            && is_expired(started_at)
            && let Some((_, key)) = self.by_start.pop_first()
        {
            self.windows.remove(&key);
        }
        while let Some((started_at, _)) = self.by_start.last()
            && is_expired(started_at)
            && let Some((_, key)) = self.by_start.pop_last()
        {
            self.windows.remove(&key);
        }
    }
}

/// Limit of requests per minute for each key, shared by threads. The oldest of 100,000 keys is evicted.
#[derive(Debug)]
pub struct KeyedRateLimit<K> {
    limit: u32,
    windows: Mutex<FixedWindowLimit<K>>,
}

impl<K: Ord + Clone> KeyedRateLimit<K> {
    /// An empty limit of `limit` requests per minute.
    pub const fn new(limit: u32) -> Self {
        Self { limit, windows: Mutex::new(FixedWindowLimit::evicting(MINUTE, MAX_REQUEST_KEYS)) }
    }

    /// The number of requests allowed per minute.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Counts several requests.
    ///
    /// # Errors
    /// The status at the first request over the limit.
    pub fn admit_many(&self, key: K, requests: u32, now: Timestamp) -> Result<RateLimitStatus, RateLimitStatus> {
        let status = self.windows().count(self.limit, &key, requests, now);
        if status.allowed { Ok(status) } else { Err(status) }
    }

    /// Returns what is left without counting a request.
    pub fn peek(&self, key: K, now: Timestamp) -> RateLimitStatus {
        self.windows().peek(self.limit, &key, now)
    }

    /// Refunds a request that was counted at `now`.
    pub fn refund(&self, key: K, now: Timestamp) {
        self.windows().refund(&key, now);
    }

    /// Locks the windows.
    pub(super) fn windows(&self) -> MutexGuard<'_, FixedWindowLimit<K>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
