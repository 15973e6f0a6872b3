//! Replay window: the newest 512 scheduled rounds that have finished, stored in a few bytes while there are no gaps.

use serde::{Deserialize, Serialize};

/// Bits in a machine word.
const WORD_BITS: u64 = 64;
/// Words in the window behind the newest one.
const OLDER_WORDS: usize = 7;
/// Rounds in the window behind the newest word.
const OLDER: u64 = WORD_BITS * OLDER_WORDS as u64;

/// Highest scheduled round that has finished, and which of the 512 rounds up to it have. At a round every thirty
/// seconds that covers more than four hours, so agents that were disconnected that long can deliver their results in
/// any order.
///
/// Rounds older than the newest 64 have almost always finished without a gap: then only their count is stored, not
/// their bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplayWindow {
    highest: u64,
    /// The newest 64 rounds, the highest in the lowest bit. Zero before the first.
    recent: u64,
    /// Number of rounds behind those that finished without a gap; no older one has finished. Zero if `bitmap` is set.
    contiguous: u16,
    /// Bits of the rounds behind the newest 64, if there are gaps.
    bitmap: Option<Box<[u64; OLDER_WORDS]>>,
}

impl ReplayWindow {
    /// Returns true if the round has already finished, or is older than the window.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let Some(back) = self.highest.checked_sub(number).filter(|_| self.recent != 0) else { return false };
        match back.checked_sub(WORD_BITS) {
            None => self.recent & (1 << back) != 0,
            Some(older) if older >= OLDER => true,
            Some(older) => match &self.bitmap {
                Some(words) => {
                    let word = words.get(usize::try_from(older / WORD_BITS).unwrap_or(OLDER_WORDS));
                    word.is_none_or(|word| word & (1 << (older % WORD_BITS)) != 0)
                }
                None => older < u64::from(self.contiguous),
            },
        }
    }

    /// Highest round that has finished.
    pub(crate) const fn highest(&self) -> u64 {
        self.highest
    }

    /// Records a round as finished.
    pub(crate) fn insert(&mut self, number: u64) {
        if number > self.highest {
            self.shift(number - self.highest);
            self.highest = number;
        }
        let back = self.highest - number;
        match back.checked_sub(WORD_BITS) {
            None => self.recent |= 1 << back,
            Some(older) if older >= OLDER => {}
            Some(older) => {
                let mut words = self.older();
                if let Some(word) = words.get_mut(usize::try_from(older / WORD_BITS).unwrap_or(OLDER_WORDS)) {
                    *word |= 1 << (older % WORD_BITS);
                }
                self.set_older(words);
            }
        }
    }

    fn shift(&mut self, by: u64) {
        let leaves = self.recent >> (WORD_BITS - 1);
        if by == 1 && self.bitmap.is_none() && (leaves == 1 || self.contiguous == 0) {
            self.recent <<= 1;
            self.contiguous = (self.contiguous + u16::from(leaves == 1)).min(OLDER as u16);
            return;
        }
        let mut old = [0; OLDER_WORDS + 1];
        for (into, word) in old.iter_mut().zip(std::iter::once(self.recent).chain(self.older())) {
            *into = word;
        }
        let (words, bits) = (usize::try_from(by / WORD_BITS).unwrap_or(usize::MAX), by % WORD_BITS);
        let shifted = |at: usize| {
            let word = |less: usize| at.checked_sub(words)?.checked_sub(less).and_then(|from| old.get(from));
            let low = if bits > 0 { word(1).copied().unwrap_or(0) >> (WORD_BITS - bits) } else { 0 };
            word(0).copied().unwrap_or(0) << bits | low
        };
        self.recent = shifted(0);
        self.set_older(std::array::from_fn(|at| shifted(at + 1)));
    }

    /// Bits of the rounds behind the newest 64.
    fn older(&self) -> [u64; OLDER_WORDS] {
        if let Some(words) = &self.bitmap {
            return **words;
        }
        let run = u64::from(self.contiguous);
        std::array::from_fn(|at| match run.saturating_sub(at as u64 * WORD_BITS) {
            ones if ones >= WORD_BITS => u64::MAX,
            ones => (1 << ones) - 1,
        })
    }

    fn set_older(&mut self, words: [u64; OLDER_WORDS]) {
        let full = words.iter().take_while(|word| **word == u64::MAX).count();
        let next = words.get(full).copied().unwrap_or(0);
        let rest = words.get(full + 1..).unwrap_or_default();
        // Ones from the lowest bit on, and nothing above them.
        let is_row = next & next.wrapping_add(1) == 0 && rest.iter().all(|word| *word == 0);
        if is_row {
            self.bitmap = None;
            self.contiguous = u16::try_from(full as u64 * WORD_BITS + u64::from(next.count_ones())).unwrap_or(0);
            return;
        }
        self.contiguous = 0;
        match &mut self.bitmap {
            Some(held) => **held = words,
            None => self.bitmap = Some(Box::new(words)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn consecutive_rounds_need_no_heap_and_a_filled_gap_frees_its_own() {
        let mut seen = ReplayWindow::default();
        (10_000..10_100).for_each(|number| seen.insert(number));
        assert_eq!((seen.contiguous, &seen.bitmap), (36, &None));
        (10_103..10_400).for_each(|number| seen.insert(number));
        assert!(seen.bitmap.is_some());
        (10_100..10_103).for_each(|number| seen.insert(number));
        assert_eq!((seen.contiguous, &seen.bitmap), (336, &None));
        (10_400..20_000).for_each(|number| seen.insert(number));
        assert_eq!((seen.contiguous, &seen.bitmap), (448, &None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_replay_window_agrees_with_a_set_of_all_rounds(
            steps in prop::collection::vec(prop_oneof![
                6 => Just(1_i64), 2 => -600_i64..600, 1 => 1_i64..5_000
            ], 1..800),
        ) {
            let (mut seen, mut all, mut at) = (ReplayWindow::default(), BTreeSet::new(), 1_000_000_i64);
            for step in steps {
                at += step;
                let (number, top) = (at.unsigned_abs(), all.last().copied());
                let known = top.is_some_and(|top: u64| top >= number + 512) || all.contains(&number);
                prop_assert_eq!(seen.contains(number), known, "{}", number);
                if !known {
                    seen.insert(number);
                    all.insert(number);
                }
                at = i64::try_from(all.last().copied().unwrap_or(number)).unwrap();
            }
        }
    }
}
