//! A count of actions within a fixed window that begins with the first of them.

use super::RateLimitStatus;
use crate::time::{SECOND, Timestamp};

/// Tolerance for a time before the window's start, in milliseconds: threads read their time before they take a lock, and
/// clocks are corrected by less. A greater step back begins a new window.
const MAX_BACKWARD_MS: i64 = SECOND;

/// A limit of actions per window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRule {
    /// Actions allowed per window.
    pub limit: u32,
    /// Length of a window in milliseconds.
    pub length: i64,
}

/// The current window of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedWindow {
    started_at: Timestamp,
    used: u32,
}

impl FixedWindow {
    /// An empty window that begins at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { started_at: now, used: 0 }
    }

    /// Returns the start of the window.
    pub const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Counts one action; in a new window if the old one is over or the clock went back. A refused action counts too.
    pub fn count(&mut self, rule: WindowRule, now: Timestamp) -> RateLimitStatus {
        self.count_many(rule, 1, now)
    }

    /// Counts several actions up to the first over the limit. Allowed only if all are within it.
    pub fn count_many(&mut self, rule: WindowRule, actions: u32, now: Timestamp) -> RateLimitStatus {
        if self.is_expired(rule.length, now) {
            *self = Self::new(now);
        }
        let left = rule.limit.saturating_sub(self.used);
        self.used = self.used.saturating_add(actions.min(left.saturating_add(1)));
        RateLimitStatus { allowed: actions <= left, ..self.peek(rule, now) }
    }

    /// Takes back an action that was counted in this window.
    pub const fn refund(&mut self, length: i64, now: Timestamp) {
        if !self.is_expired(length, now) {
            self.used = self.used.saturating_sub(1);
        }
    }

    /// Returns what the next action would get, without counting one.
    pub fn peek(&self, rule: WindowRule, now: Timestamp) -> RateLimitStatus {
        let (used, left) = if self.is_expired(rule.length, now) {
            (0, rule.length)
        } else {
            (self.used, rule.length - now.since(self.started_at).max(0))
        };
        let seconds = left.saturating_add(SECOND - 1) / SECOND;
        RateLimitStatus {
            allowed: used < rule.limit,
            limit: rule.limit,
            remaining: rule.limit.saturating_sub(used),
            reset_seconds: u32::try_from(seconds).unwrap_or(1).max(1),
        }
    }

    /// Returns the number of actions over the limit that were counted in the window, also after its end.
    pub const fn refused(&self, rule: WindowRule) -> u32 {
        self.used.saturating_sub(rule.limit)
    }

    /// Returns true if the window is over, so that dropping it loses nothing. One that starts more than a second in the
    /// future comes from a wrong clock, and is over too.
    pub const fn is_expired(&self, length: i64, now: Timestamp) -> bool {
        let age = now.since(self.started_at);
        age >= length || age < -MAX_BACKWARD_MS
    }
}
