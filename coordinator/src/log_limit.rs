//! Rate limit for log lines that third parties can cause: one a second per key, followed by the number omitted. The
//! mesh keys by agent and kind, HTTP by kind.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two lines of one key.
const SPACING: Duration = Duration::from_secs(1);
/// Idle time after which a key is dropped.
const IDLE: Duration = Duration::from_secs(60);

/// Log rate limit per key. The caller keeps the number of keys bounded.
#[derive(Debug)]
pub struct LogLimit<K>(Mutex<BTreeMap<K, KeyState>>);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct KeyState {
    logged: Instant,
    omitted: u64,
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
        self.admit_at(key, Instant::now())
    }

    /// Takes the counts of omitted lines that no later line of their key has reported.
    pub fn omitted(&self) -> Vec<(K, u64)> {
        self.omitted_at(Instant::now())
    }

    fn admit_at(&self, key: K, now: Instant) -> Option<Option<u64>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = lines.get_mut(&key) else {
            lines.insert(key, KeyState { logged: now, omitted: 0 });
            return Some(None);
        };
        if now.saturating_duration_since(line.logged) < SPACING {
            line.omitted = line.omitted.saturating_add(1);
            return None;
        }
        line.logged = now;
        let omitted = std::mem::take(&mut line.omitted);
        Some((omitted > 0).then_some(omitted))
    }

    fn omitted_at(&self, now: Instant) -> Vec<(K, u64)> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut omitted = Vec::new();
        lines.retain(|key, line| {
            let age = now.saturating_duration_since(line.logged);
            if line.omitted > 0 && age >= SPACING {
                omitted.push((*key, std::mem::take(&mut line.omitted)));
                line.logged = now;
            }
            age < IDLE || line.omitted > 0
        });
        omitted
    }
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
        let (limit, start) = (limit(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
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
    fn what_was_left_out_is_reported_and_calm_keys_are_forgotten() {
        let (limit, start) = (limit(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
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
