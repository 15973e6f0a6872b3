//! Rate limit of requests per minute: a fixed window that begins with its first request. Pure arithmetic.

use crate::time::{MINUTE, SECOND, Timestamp};

/// A fixed window of one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedWindow {
    started_at: Timestamp,
    used: u32,
}

/// The result of a rate limit check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// True if the request is within the limit.
    pub allowed: bool,
    /// Requests allowed per minute.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// Whole seconds until the window ends, at least 1.
    pub reset_seconds: u32,
}

impl FixedWindow {
    /// An empty window that begins at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { started_at: now, used: 0 }
    }

    /// Counts one request; in a new window if the old one is over or the clock went back.
    pub fn count_request(&mut self, now: Timestamp, limit: u32) -> RateLimitStatus {
        if self.is_expired(now) {
            *self = Self::new(now);
        }
        let allowed = self.used < limit;
        self.used = self.used.saturating_add(1);
        RateLimitStatus { allowed, ..self.peek(now, limit) }
    }

    /// Takes back a request that was counted in this window.
    pub const fn refund(&mut self, now: Timestamp) {
        if !self.is_expired(now) {
            self.used = self.used.saturating_sub(1);
        }
    }

    /// Returns what the next request would get, without counting one.
    pub fn peek(&self, now: Timestamp, limit: u32) -> RateLimitStatus {
        let (used, left) =
            if self.is_expired(now) { (0, MINUTE) } else { (self.used, MINUTE - now.since(self.started_at)) };
        let seconds = left.saturating_add(SECOND - 1) / SECOND;
        RateLimitStatus {
            allowed: used < limit,
            limit,
            remaining: limit.saturating_sub(used),
            reset_seconds: u32::try_from(seconds).unwrap_or(1).max(1),
        }
    }

    /// Returns true if the window is over, so that dropping it loses nothing.
    pub const fn is_expired(&self, now: Timestamp) -> bool {
        let age = now.since(self.started_at);
        age >= MINUTE || age < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_allowed_request_leaves_none_and_the_next_is_refused() {
        let start = Timestamp::from_millis(1_000_000);
        let mut minute = FixedWindow::new(start);
        for left in (0..3).rev() {
            let allowance = minute.count_request(start + 10, 3);
            assert!(allowance.allowed && allowance.remaining == left, "{allowance:?}");
        }
        let refused = minute.count_request(start + 59_001, 3);
        assert_eq!(refused, RateLimitStatus { allowed: false, limit: 3, remaining: 0, reset_seconds: 1 });
    }

    #[test]
    fn a_new_window_begins_when_the_previous_one_ends() {
        let start = Timestamp::from_millis(0);
        let mut minute = FixedWindow::new(start);
        assert!(minute.count_request(start, 1).allowed);
        assert!(!minute.count_request(start + MINUTE - 1, 1).allowed);
        let fresh = minute.count_request(start + MINUTE, 1);
        assert!(fresh.allowed && fresh.reset_seconds == 60);
    }

    #[test]
    fn a_returned_request_can_be_used_again_within_its_window() {
        let start = Timestamp::from_millis(0);
        let mut minute = FixedWindow::new(start);
        minute.refund(start);
        assert!(minute.count_request(start, 1).allowed);
        minute.refund(start + 1);
        assert!(minute.count_request(start + 1, 1).allowed);
        minute.refund(start + MINUTE);
        assert!(!minute.peek(start + 2, 1).allowed, "looking does not begin a new window");
    }

    #[test]
    fn a_clock_that_goes_back_blocks_no_requests() {
        let mut minute = FixedWindow::new(Timestamp::from_millis(10 * MINUTE));
        assert!(minute.count_request(Timestamp::from_millis(10 * MINUTE), 1).allowed);
        assert!(minute.count_request(Timestamp::from_millis(MINUTE), 1).allowed);
    }
}
