//! Seeded random numbers: the same seed gives the same day.

/// Pseudo-random numbers from a seed (splitmix64).
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Random number from `from` up to, not including, `to`.
    pub(crate) fn within(&mut self, from: i64, to: i64) -> i64 {
        let span = to.saturating_sub(from).max(1).unsigned_abs();
        from + i64::try_from(self.next() % span).unwrap_or(0)
    }

    /// Random duration between the two, with short ones as likely as long ones.
    pub(crate) fn span(&mut self, shortest: i64, longest: i64) -> i64 {
        let mut longest = longest;
        while longest > shortest * 2 && self.one_in(2) {
            longest /= 2;
        }
        self.within(shortest, longest)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.next() % (len.max(1) as u64)).unwrap_or(0)
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}
