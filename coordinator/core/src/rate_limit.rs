//! Rate limits: counts in fixed windows, and token buckets, alone or per key in bounded memory.
//!
//! Every limit of the coordinator uses this module; the caller sets the limit and the message of a refusal. A
//! [`FixedWindow`] counts from its first action on and is easy to explain (`120 a minute`). A [`TokenBucket`] spreads
//! actions and allows a burst after some quiet. All of it is pure: time is an argument.

mod fixed_window;
mod keyed;
#[cfg(test)]
mod tests;
mod token_bucket;

pub use self::fixed_window::{FixedWindow, WindowRule};
pub use self::keyed::{FixedWindowLimit, KeyedRateLimit};
pub use self::token_bucket::{KeyedTokenBuckets, TokenBucket, TokenRate};

/// The result of a rate limit check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitStatus {
    /// True if the action is within the limit.
    pub allowed: bool,
    /// Actions allowed per window.
    pub limit: u32,
    /// Actions left in this window.
    pub remaining: u32,
    /// Whole seconds until the window ends, at least 1.
    pub reset_seconds: u32,
}

/// The rate limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateExceeded {
    /// Seconds until a retry, rounded up, at least 1.
    pub seconds: u32,
}

impl From<RateLimitStatus> for RateExceeded {
    fn from(status: RateLimitStatus) -> Self {
        Self { seconds: status.reset_seconds }
    }
}
