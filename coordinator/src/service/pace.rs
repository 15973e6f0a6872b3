//! How often something is done with each of many things, in memory and bounded: so many times within a while that begins
//! with the first time.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use parallax_core::time::{SECOND, Timestamp};

/// Things that are remembered. Where so many are within their while, none that is new is admitted: to forget one of them
/// would let whoever brings ever new ones do it as often as he likes.
const MOST: usize = 10_000;

/// When each thing's present while began, and how often it was done in it since.
#[derive(Debug)]
pub(super) struct Pace<K> {
    /// Milliseconds of a while.
    span: i64,
    whiles: BTreeMap<K, (Timestamp, u32)>,
    /// The same by their beginning: which are over is found without a look at all.
    begun: BTreeSet<(Timestamp, K)>,
}

/// It was done as often as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooOften {
    /// Whole seconds until it may be again, at least 1.
    pub(super) seconds: u32,
}

impl<K: Ord> Pace<K> {
    /// Nothing was done yet; a while has so many milliseconds.
    pub(super) const fn new(span: i64) -> Self {
        Self { span, whiles: BTreeMap::new(), begun: BTreeSet::new() }
    }

    /// Counts one more time, where it is one of the `times` of the thing's present while.
    ///
    /// # Errors
    /// [`TooOften`], and that is counted too.
    pub(super) fn admit<Q>(&mut self, times: u32, thing: &Q, now: Timestamp) -> Result<(), TooOften>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        self.forget_what_is_over(now);
        if let Some((began, count)) = self.whiles.get_mut(thing) {
            *count = count.saturating_add(1);
            let (began, count) = (*began, *count);
            return if count <= times { Ok(()) } else { Err(self.again(began, now)) };
        }
        if self.whiles.len() >= MOST {
            let (oldest, _) = self.begun.first().ok_or(TooOften { seconds: 1 })?;
            return Err(self.again(*oldest, now));
        }
        self.whiles.insert(thing.to_owned(), (now, 1));
        self.begun.insert((now, thing.to_owned()));
        Ok(())
    }

    /// True where a thing has a while that is not over.
    pub(super) fn knows<Q>(&self, thing: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.whiles.get(thing).is_some_and(|(began, _)| !self.is_over(*began, now))
    }

    /// True where there is no room for a new thing before some while is over.
    pub(super) fn is_full(&mut self, now: Timestamp) -> bool {
        self.forget_what_is_over(now);
        self.whiles.len() >= MOST
    }

    /// True where it would be admitted once more by its own count; counts nothing.
    pub(super) fn has_room<Q>(&self, times: u32, thing: &Q, now: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let found = self.whiles.get(thing).filter(|(began, _)| !self.is_over(*began, now));
        found.is_none_or(|(_, count)| *count < times)
    }

    /// A while that began later than now is of a clock that was wrong, and over too.
    const fn is_over(&self, began: Timestamp, now: Timestamp) -> bool {
        let age = now.since(began);
        age >= self.span || age < 0
    }

    fn forget_what_is_over(&mut self, now: Timestamp) {
        while let Some((began, _)) = self.begun.first()
            && self.is_over(*began, now)
            && let Some((_, thing)) = self.begun.pop_first()
        {
            self.whiles.remove(&thing);
        }
        while let Some((began, _)) = self.begun.last()
            && self.is_over(*began, now)
            && let Some((_, thing)) = self.begun.pop_last()
        {
            self.whiles.remove(&thing);
        }
    }

    fn again(&self, began: Timestamp, now: Timestamp) -> TooOften {
        let left = self.span - now.since(began);
        TooOften { seconds: u32::try_from(left.saturating_add(SECOND - 1) / SECOND).unwrap_or(1).max(1) }
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

    fn refused(seconds: u32) -> Result<(), TooOften> {
        Err(TooOften { seconds })
    }

    #[test]
    fn a_thing_is_done_so_often_in_a_while_that_begins_with_the_first_time() {
        let mut pace = Pace::<String>::new(SPAN);
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
            let room = pace.has_room(2, thing, at(moment));
            assert_eq!(pace.admit(2, thing, at(moment)), expected, "{thing} at {moment}");
            assert_eq!(room, expected.is_ok(), "{thing} at {moment}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_locks_nobody_out() {
        let mut pace = Pace::<u32>::new(SPAN);
        assert_eq!(pace.admit(1, &1, at(60_000)), Ok(()));
        assert!(pace.has_room(1, &1, at(0)));
        assert_eq!((pace.admit(1, &1, at(0)), pace.admit(1, &1, at(1))), (Ok(()), refused(10)));
    }

    #[test]
    fn the_oldest_makes_room_for_a_new_one_once_its_while_is_over_and_no_other_does() {
        let mut pace = Pace::<usize>::new(SPAN);
        // The highest is the oldest, and the lowest the newest.
        for (moment, thing) in (1..=MOST).rev().enumerate() {
            assert_eq!(pace.admit(1, &thing, at(moment as i64 / 2)), Ok(()));
        }
        assert_eq!(pace.admit(1, &0, at(6000)), refused(4));
        for known in [1, MOST] {
            assert!(pace.admit(1, &known, at(6000)).is_err(), "nobody was forgotten for it");
        }
        assert_eq!(pace.admit(1, &0, at(SPAN)), Ok(()));
        assert!(pace.has_room(1, &MOST, at(SPAN)) && !pace.has_room(1, &1, at(SPAN)));
        assert!(pace.whiles.len() <= MOST && pace.begun.len() == pace.whiles.len());
        assert_eq!(pace.admit(1, &0, at(3 * SPAN)), Ok(()));
        assert_eq!((pace.whiles.len(), pace.begun.len()), (1, 1), "what is over is forgotten");
    }
}
