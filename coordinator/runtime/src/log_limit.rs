//! Rate limit for log lines that third parties can cause: one a second per key, followed by the number omitted. The
//! mesh keys by agent and kind, HTTP by kind.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use parallax_core::rate_limit::{FixedWindow, WindowRule};
use parallax_core::time::{MINUTE, SECOND, Timestamp};

/// Lines of one key.
const LINES: WindowRule = WindowRule { limit: 1, length: SECOND };
/// Idle time after which a key is dropped, in milliseconds.
const IDLE: i64 = MINUTE;
/// Start of the time that windows are in: a step of the wall clock must not let lines through.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Log rate limit per key. The caller keeps the number of keys bounded.
#[derive(Debug)]
pub struct LogLimit<K>(Mutex<BTreeMap<K, FixedWindow>>);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> LogLimit<K> {
    /// An empty limit.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Copy> LogLimit<K> {
    /// Admits a line of that key and returns the number omitted before it; `None` if the line must not be logged now.
    pub fn admit(&self, key: K) -> Option<Option<u64>> {
        self.admit_at(key, now())
    }

    /// Takes the counts of omitted lines that no later line of their key has reported.
    pub fn omitted(&self) -> Vec<(K, u64)> {
        self.omitted_at(now())
    }

    fn admit_at(&self, key: K, now: Timestamp) -> Option<Option<u64>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = lines.entry(key).or_insert_with(|| FixedWindow::new(now));
        let omitted = u64::from(window.refused(LINES));
        window.count(LINES, now).allowed.then(|| (omitted > 0).then_some(omitted))
    }

    fn omitted_at(&self, now: Timestamp) -> Vec<(K, u64)> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut omitted = Vec::new();
        lines.retain(|key, window| {
            let age = now.since(window.started_at());
            if window.refused(LINES) > 0 && window.is_expired(LINES.length, now) {
                omitted.push((*key, u64::from(window.refused(LINES))));
                // The report is a line too.
                window.count(LINES, now);
            }
            age < IDLE || window.refused(LINES) > 0
        });
        omitted
    }
}

fn now() -> Timestamp {
    Timestamp::from_millis(i64::try_from(STARTED.elapsed().as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit keyed by an agent number and the line's message.
    fn limit() -> LogLimit<(u8, &'static str)> {
        LogLimit::new()
    }

    #[test]
    fn one_line_a_second_of_each_key_then_a_count() {
        let (limit, at) = (limit(), Timestamp::from_millis);
        assert_eq!(limit.admit_at((1, "gap"), at(0)), Some(None));
        for ms in 1..500 {
            assert_eq!(limit.admit_at((1, "gap"), at(ms)), None);
        }
        assert_eq!(limit.admit_at((1, "skew"), at(500)), Some(None), "another kind");
        assert_eq!(limit.admit_at((2, "gap"), at(500)), Some(None), "another peer");
        assert_eq!(limit.admit_at((1, "gap"), at(1_000)), Some(Some(499)));
        assert_eq!(limit.admit_at((1, "gap"), at(2_000)), Some(None));
    }

    #[test]
    fn a_time_read_before_another_threads_line_is_omitted_and_counted() {
        let (limit, at) = (limit(), Timestamp::from_millis);
        assert_eq!(limit.admit_at((1, "gap"), at(10)), Some(None));
        assert_eq!(limit.admit_at((1, "gap"), at(11)), None);
        assert_eq!(limit.admit_at((1, "gap"), at(9)), None);
        assert_eq!(limit.admit_at((1, "gap"), at(1_010)), Some(Some(2)));
    }

    #[test]
    fn omitted_lines_are_reported_and_idle_keys_dropped() {
        let (limit, at) = (limit(), Timestamp::from_millis);
        for ms in 0..10 {
            limit.admit_at((1, "gap"), at(ms));
        }
        assert_eq!(limit.omitted_at(at(900)), []);
        assert_eq!(limit.omitted_at(at(1_100)), [((1, "gap"), 9)]);
        assert_eq!(limit.omitted_at(at(9_000)), []);
        assert_eq!(limit.omitted_at(at(90_000)), []);
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
