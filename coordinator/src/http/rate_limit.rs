//! Rate limits per key in fixed windows of one minute, in bounded memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use parallax_core::rate_limit::{FixedWindow, RateLimitStatus};
use parallax_core::time::{SECOND, Timestamp};

use super::error::ApiError;

/// Maximum number of keys tracked.
const MAX_KEYS: usize = 100_000;

/// Limit of requests per minute for each key.
#[derive(Debug)]
pub(super) struct KeyedRateLimit<U> {
    limit: u32,
    windows: Mutex<RateWindows<U>>,
}

#[derive(Debug)]
struct RateWindows<U> {
    by_key: BTreeMap<U, FixedWindow>,
    swept_at: Timestamp,
}

impl<U: Ord + Copy> KeyedRateLimit<U> {
    pub(super) const fn new(limit: u32) -> Self {
        let users = RateWindows { by_key: BTreeMap::new(), swept_at: Timestamp::from_millis(0) };
        Self { limit, windows: Mutex::new(users) }
    }

    /// The number of requests allowed per minute.
    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Counts a request and writes what is left to `allowance`; refuses requests over the limit.
    pub(super) fn admit(
        &self,
        user: U,
        now: Timestamp,
        allowance: &mut Option<RateLimitStatus>,
    ) -> Result<(), ApiError> {
        let admitted = self.admit_many(user, 1, now);
        let (Ok(found) | Err(found)) = admitted;
        *allowance = Some(found);
        admitted.map(drop).map_err(ApiError::RateLimited)
    }

    /// Returns what is left without counting a request.
    pub(super) fn peek(&self, user: U, now: Timestamp) -> RateLimitStatus {
        let users = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        users.by_key.get(&user).copied().unwrap_or_else(|| FixedWindow::new(now)).peek(now, self.limit)
    }

    /// Refunds a request that was counted at `now`.
    pub(super) fn refund(&self, user: U, now: Timestamp) {
        let mut users = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(minute) = users.by_key.get_mut(&user) {
            minute.refund(now);
        }
    }

    /// Counts several requests. Returns what is left, or the allowance at the first request over the limit.
    pub(super) fn admit_many(
        &self,
        user: U,
        requests: u32,
        now: Timestamp,
    ) -> Result<RateLimitStatus, RateLimitStatus> {
        let mut users = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        users.evict_for(user, now);
        let minute = users.by_key.entry(user).or_insert_with(|| FixedWindow::new(now));
        let mut found = minute.peek(now, self.limit);
        for _ in 0..requests {
            found = minute.count_request(now, self.limit);
            if !found.allowed {
                return Err(found);
            }
        }
        Ok(found)
    }
}

impl<U: Ord + Copy> RateWindows<U> {
    /// Makes room for a key: evicts expired windows, at most once a second, or else an arbitrary one.
    fn evict_for(&mut self, user: U, now: Timestamp) {
        if self.by_key.len() < MAX_KEYS || self.by_key.contains_key(&user) {
            return;
        }
        if now.since(self.swept_at).unsigned_abs() >= SECOND.unsigned_abs() {
            self.swept_at = now;
            self.by_key.retain(|_, minute| !minute.is_expired(now));
        }
        if self.by_key.len() >= MAX_KEYS {
            self.by_key.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_after_the_last_allowed_is_refused_until_the_minute_is_up() {
        let limiter = KeyedRateLimit::new(2);
        let start = Timestamp::from_millis(0);
        let mut allowance = None;
        assert!(limiter.admit(1, start, &mut allowance).is_ok());
        assert!(limiter.admit(1, start, &mut allowance).is_ok());
        assert_eq!(allowance.map(|it| it.remaining), Some(0));
        assert!(limiter.admit(1, start + 59_999, &mut allowance).is_err());
        assert!(limiter.admit(2, start, &mut allowance).is_ok());
        assert!(limiter.admit(1, start + 60_000, &mut allowance).is_ok());
    }

    #[test]
    fn users_are_bounded() {
        let limiter = KeyedRateLimit::new(1);
        let mut allowance = None;
        for user in 0..=MAX_KEYS {
            assert!(limiter.admit(user, Timestamp::from_millis(5000), &mut allowance).is_ok());
        }
        assert_eq!(limiter.windows.lock().unwrap().by_key.len(), MAX_KEYS);
    }
}
