//! Fixed-window rate limit per key, in memory and bounded. A key's window begins with its first action.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use parallax_core::time::{SECOND, Timestamp};

/// Maximum keys tracked. When 10,000 keys are inside their windows, new keys are refused: evicting one would let an
/// attacker rotate keys.
const MAX_KEYS: usize = 10_000;

/// Rate limit state: start and count of each key's current window.
#[derive(Debug)]
pub(super) struct FixedWindowLimit<K> {
    /// Length of a window in milliseconds.
    window: i64,
    windows: BTreeMap<K, (Timestamp, u32)>,
    /// The same windows ordered by their start, so that expired ones are found without a full scan.
    by_start: BTreeSet<(Timestamp, K)>,
}

/// The rate limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateExceeded {
    /// Seconds until a retry, rounded up, at least 1.
    pub(super) seconds: u32,
}

impl<K: Ord> FixedWindowLimit<K> {
    /// An empty limit with windows of that many milliseconds.
    pub(super) const fn new(span: i64) -> Self {
        Self { window: span, windows: BTreeMap::new(), by_start: BTreeSet::new() }
    }

    /// Counts an action of that key, and admits it if it is among the first `times` in the current window.
    ///
    /// # Errors
    /// [`RateExceeded`]; a refused action is counted too.
    pub(super) fn admit<Q>(&mut self, times: u32, thing: &Q, now: Timestamp) -> Result<(), RateExceeded>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        self.drop_expired(now);
        if let Some((began, count)) = self.windows.get_mut(thing) {
            *count = count.saturating_add(1);
            let (began, count) = (*began, *count);
            return if count <= times { Ok(()) } else { Err(self.retry_after(began, now)) };
        }
        if self.windows.len() >= MAX_KEYS {
            let (oldest, _) = self.by_start.first().ok_or(RateExceeded { seconds: 1 })?;
            return Err(self.retry_after(*oldest, now));
        }
        self.windows.insert(thing.to_owned(), (now, 1));
        self.by_start.insert((now, thing.to_owned()));
        Ok(())
    }

    /// Returns true if the key has a window that has not expired.
    pub(super) fn is_tracked<Q>(&self, thing: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.windows.get(thing).is_some_and(|(began, _)| !self.is_expired(*began, now))
    }

    /// Returns true if no new key can be tracked before some window expires.
    pub(super) fn is_full(&mut self, now: Timestamp) -> bool {
        self.drop_expired(now);
        self.windows.len() >= MAX_KEYS
    }

    /// Returns true if the key's own count allows another action; counts nothing.
    pub(super) fn would_admit<Q>(&self, times: u32, thing: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let found = self.windows.get(thing).filter(|(began, _)| !self.is_expired(*began, now));
        found.is_none_or(|(_, count)| *count < times)
    }

    /// A window that starts in the future comes from a wrong clock, and has expired too.
    const fn is_expired(&self, began: Timestamp, now: Timestamp) -> bool {
        let age = now.since(began);
        age >= self.window || age < 0
    }

    fn drop_expired(&mut self, now: Timestamp) {
        while let Some((began, _)) = self.by_start.first()
            && self.is_expired(*began, now)
            && let Some((_, thing)) = self.by_start.pop_first()
        {
            self.windows.remove(&thing);
        }
        while let Some((began, _)) = self.by_start.last()
            && self.is_expired(*began, now)
            && let Some((_, thing)) = self.by_start.pop_last()
        {
            self.windows.remove(&thing);
        }
    }

    fn retry_after(&self, began: Timestamp, now: Timestamp) -> RateExceeded {
        let left = self.window - now.since(began);
        RateExceeded { seconds: u32::try_from(left.saturating_add(SECOND - 1) / SECOND).unwrap_or(1).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::HOUR;

    use super::*;

    const SPAN: i64 = 10 * SECOND;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(HOUR + millis)
    }

    fn refused(seconds: u32) -> Result<(), RateExceeded> {
        Err(RateExceeded { seconds })
    }

    #[test]
    fn a_thing_is_done_so_often_in_a_while_that_begins_with_the_first_time() {
        let mut pace = FixedWindowLimit::<String>::new(SPAN);
        for (thing, moment, expected) in [
            ("a", 0, Ok(())),
            ("a", 5000, Ok(())),
            ("a", 5000, refused(5)),
            ("b", 5001, Ok(())),
            ("a", 9001, refused(1)),
            ("a", 9999, refused(1)),
            ("a", 10_000, Ok(())),
            ("b", 10_000, Ok(())),
            ("b", 10_000, refused(6)),
        ] {
            let room = pace.would_admit(2, thing, at(moment));
            assert_eq!(pace.admit(2, thing, at(moment)), expected, "{thing} at {moment}");
            assert_eq!(room, expected.is_ok(), "{thing} at {moment}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_locks_nobody_out() {
        let mut pace = FixedWindowLimit::<u32>::new(SPAN);
        assert_eq!(pace.admit(1, &1, at(60_000)), Ok(()));
        assert!(pace.would_admit(1, &1, at(0)));
        assert_eq!((pace.admit(1, &1, at(0)), pace.admit(1, &1, at(1))), (Ok(()), refused(10)));
    }

    #[test]
    fn the_oldest_makes_room_for_a_new_one_once_its_while_is_over_and_no_other_does() {
        let mut pace = FixedWindowLimit::<usize>::new(SPAN);
        // The highest is the oldest, and the lowest the newest.
        for (moment, thing) in (1..=MAX_KEYS).rev().enumerate() {
            assert_eq!(pace.admit(1, &thing, at(moment as i64 / 2)), Ok(()));
        }
        assert_eq!(pace.admit(1, &0, at(6000)), refused(4));
        for known in [1, MAX_KEYS] {
            assert!(pace.admit(1, &known, at(6000)).is_err(), "no key is evicted for it");
        }
        assert_eq!(pace.admit(1, &0, at(SPAN)), Ok(()));
        assert!(pace.would_admit(1, &MAX_KEYS, at(SPAN)) && !pace.would_admit(1, &1, at(SPAN)));
        assert!(pace.windows.len() <= MAX_KEYS && pace.by_start.len() == pace.windows.len());
        assert_eq!(pace.admit(1, &0, at(3 * SPAN)), Ok(()));
        assert_eq!((pace.windows.len(), pace.by_start.len()), (1, 1), "expired windows are dropped");
    }
}
