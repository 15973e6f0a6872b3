//! Delays after failed sign-ins: growing with each failure, never a lock.

use std::collections::BTreeMap;

use crate::time::{HOUR, MINUTE, SECOND, Timestamp};

/// First delay, in milliseconds; it doubles with each further failure.
const FIRST_DELAY: i64 = 30 * SECOND;
/// Longest delay, in milliseconds.
const MAX_DELAY: i64 = 15 * MINUTE;
/// Time after the last failure at which all are forgotten, in milliseconds.
const FORGOTTEN_AFTER: i64 = HOUR;
/// Keys tracked, at most. A further one replaces the key with the fewest failures, the oldest of those: an attacker who
/// rotates keys drops their own first.
const MAX_KEYS: usize = 10_000;

/// Failed sign-ins by key, such as an address block or an email address.
#[derive(Debug)]
pub struct LoginDelays<K> {
    /// Failures without a delay.
    free: u32,
    failures: BTreeMap<K, FailureCount>,
}

#[derive(Debug, Clone, Copy)]
struct FailureCount {
    count: u32,
    last: Timestamp,
}

impl FailureCount {
    fn is_forgotten(self, now: Timestamp) -> bool {
        let age = now.since(self.last);
        !(-SECOND..FORGOTTEN_AFTER).contains(&age)
    }
}

impl<K: Ord + Clone> LoginDelays<K> {
    /// Delays that begin after that many failures.
    pub const fn new(free: u32) -> Self {
        Self { free, failures: BTreeMap::new() }
    }

    /// Returns the seconds until the key's next try; 0 if it may try now.
    pub fn wait_seconds(&self, key: &K, now: Timestamp) -> u32 {
        let Some(failed) = self.failures.get(key).filter(|failed| !failed.is_forgotten(now)) else { return 0 };
        let left = self.delay(failed.count) - now.since(failed.last).max(0);
        u32::try_from((left.max(0) + SECOND - 1) / SECOND).unwrap_or(u32::MAX)
    }

    /// Counts a try before its result is known, so that concurrent ones count too.
    pub fn count(&mut self, key: &K, now: Timestamp) {
        let count = self.failures.get(key).filter(|failed| !failed.is_forgotten(now)).map_or(0, |failed| failed.count);
        if !self.failures.contains_key(key) {
            self.make_room(now);
        }
        self.failures.insert(key.clone(), FailureCount { count: count.saturating_add(1), last: now });
    }

    /// Takes one try back: it was right, or was not verified.
    pub fn refund(&mut self, key: &K) {
        if let Some(failed) = self.failures.get_mut(key) {
            failed.count = failed.count.saturating_sub(1);
        }
    }

    /// Forgets a key's failures.
    pub fn clear(&mut self, key: &K) {
        self.failures.remove(key);
    }

    fn delay(&self, failures: u32) -> i64 {
        let Some(over) = failures.checked_sub(self.free) else { return 0 };
        FIRST_DELAY.checked_shl(over).filter(|_| over < 6).unwrap_or(MAX_DELAY).min(MAX_DELAY)
    }

    fn make_room(&mut self, now: Timestamp) {
        if self.failures.len() < MAX_KEYS {
            return;
        }
        self.failures.retain(|_, failed| !failed.is_forgotten(now));
        if self.failures.len() >= MAX_KEYS {
            let least = self.failures.iter().min_by_key(|(_, failed)| (failed.count, failed.last));
            if let Some(key) = least.map(|(key, _)| key.clone()) {
                self.failures.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_quarter_of_an_hour_and_are_forgotten() {
        let mut delays = LoginDelays::new(3);
        let mut now = Timestamp::from_millis(0);
        let mut waits = Vec::new();
        for _ in 0..10 {
            let wait = delays.wait_seconds(&"ann", now);
            waits.push(wait);
            now = now + i64::from(wait) * SECOND;
            assert_eq!(delays.wait_seconds(&"ann", now), 0);
            delays.count(&"ann", now);
        }
        assert_eq!(waits, [0, 0, 0, 30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(delays.wait_seconds(&"bob", now), 0);
        assert_eq!(delays.wait_seconds(&"ann", now + 1), 900);
        assert_eq!(delays.wait_seconds(&"ann", now + FORGOTTEN_AFTER), 0);
        delays.clear(&"ann");
        assert_eq!(delays.wait_seconds(&"ann", now), 0);
    }

    #[test]
    fn a_right_try_does_not_count() {
        let mut delays = LoginDelays::new(1);
        let now = Timestamp::from_millis(0);
        for _ in 0..5 {
            delays.count(&1, now);
            delays.refund(&1);
        }
        assert_eq!(delays.wait_seconds(&1, now), 0);
        delays.count(&1, now);
        assert_eq!(delays.wait_seconds(&1, now), 30);
    }

    #[test]
    fn the_key_with_the_fewest_failures_makes_room() {
        let mut delays = LoginDelays::new(1);
        let now = Timestamp::from_millis(0);
        delays.count(&0, now);
        delays.count(&0, now);
        for key in 1..=MAX_KEYS {
            delays.count(&key, now + 1);
        }
        assert_eq!(delays.failures.len(), MAX_KEYS);
        assert_eq!((delays.wait_seconds(&0, now), delays.wait_seconds(&1, now + 1)), (60, 0));
    }
}
