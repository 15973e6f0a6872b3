//! Token buckets: a steady rate with a burst after some quiet. Time is monotonic, since any fixed moment.

use std::collections::BTreeMap;
use std::time::Duration;

/// The rate of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRate {
    /// Time to refill one token.
    pub spacing: Duration,
    /// Tokens of a full bucket.
    pub burst: u32,
}

/// A token bucket, kept as the moment at which it is full again, which needs no rounding (the generic cell rate
/// algorithm).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenBucket {
    full_at: Duration,
}

impl TokenRate {
    /// Returns a rate of `tokens` per second.
    pub const fn per_second(tokens: u32, burst: u32) -> Self {
        Self { spacing: Duration::from_nanos(1_000_000_000 / tokens as u64), burst }
    }
}

impl TokenBucket {
    /// Returns true if the bucket has all its tokens, so that dropping it loses nothing.
    pub fn is_full(self, now: Duration) -> bool {
        self.full_at <= now
    }

    /// Returns true if a token is there.
    pub fn has_token(self, rate: TokenRate, now: Duration) -> bool {
        self.ready_at(rate, now) <= now
    }

    /// Returns when the next token is there; `now` if one is.
    pub fn ready_at(self, rate: TokenRate, now: Duration) -> Duration {
        let taken = rate.spacing * rate.burst.saturating_sub(1);
        self.full_at.saturating_sub(taken).max(now)
    }

    /// Takes a token if one is there.
    pub fn take(&mut self, rate: TokenRate, now: Duration) -> bool {
        let has_token = self.has_token(rate, now);
        if has_token {
            self.reserve(rate, now);
        }
        has_token
    }

    /// Takes a token, or one that is still to come.
    pub fn reserve(&mut self, rate: TokenRate, now: Duration) {
        self.full_at = self.full_at.max(now).saturating_add(rate.spacing);
    }
}

/// Token buckets per key. Buckets that are full again are dropped when their number is reached.
#[derive(Debug)]
pub struct KeyedTokenBuckets<K> {
    rate: TokenRate,
    max_keys: usize,
    buckets: BTreeMap<K, TokenBucket>,
}

impl<K: Ord> KeyedTokenBuckets<K> {
    /// Full buckets for all keys.
    pub const fn new(rate: TokenRate, max_keys: usize) -> Self {
        Self { rate, max_keys, buckets: BTreeMap::new() }
    }

    /// Returns true if the key is tracked or can be.
    pub fn has_room(&mut self, key: &K, now: Duration) -> bool {
        if self.buckets.len() >= self.max_keys && !self.buckets.contains_key(key) {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            return self.buckets.len() < self.max_keys;
        }
        true
    }

    /// Takes a token of that key's bucket. Tracks the key even if there is no room for it: a caller that must keep the
    /// bound asks [`KeyedTokenBuckets::has_room`] before.
    pub fn take(&mut self, key: K, now: Duration) -> bool {
        self.buckets.entry(key).or_default().take(self.rate, now)
    }

    /// Returns the number of keys tracked.
    pub fn key_count(&self) -> usize {
        self.buckets.len()
    }
}
