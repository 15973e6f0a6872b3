//! Quarantine: a place whose failures other networks dispute is not believed until it agrees with them again.

use std::collections::{BTreeMap, VecDeque};

use crate::place::PlaceNo;
use crate::time::{MINUTE, Timestamp};

/// Milliseconds of words that a place is judged by.
const WINDOW: i64 = MINUTE;
/// Failures that it takes at least.
const FAILURES: usize = 5;
/// Targets that the failures concern at least.
const TARGETS: usize = 3;
/// Agreeing words that let a place out at once.
const AGREEING: u32 = 10;
/// Milliseconds after which fewer are enough.
const PATIENCE: i64 = 5 * MINUTE;
/// Agreeing words that are enough then, where nothing was disputed.
const AGREEING_LATER: u32 = 3;
/// Words of one place that are kept: more would not change what they say.
const KEPT: usize = 512;

/// What a word of a place came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It saw what the others saw (asked of places in quarantine alone).
    Agreed,
    /// It saw a failure, and a second network agreed.
    Failed,
    /// It saw a failure, and a second network passed.
    Disputed,
}

/// Every place's words of late, and who is in quarantine.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    words: BTreeMap<PlaceNo, VecDeque<(Timestamp, bool, u64)>>,
    held: BTreeMap<PlaceNo, Held>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    since: Timestamp,
    agreed: u32,
    disputed: bool,
}

impl Quarantine {
    /// Takes in a word of a place on a target. True: the place is in quarantine from now on; false: it is let out;
    /// none: nothing changes.
    pub fn hear(&mut self, place: PlaceNo, word: Word, target: u64, now: Timestamp) -> Option<bool> {
        if let Some(held) = self.held.get_mut(&place) {
            match word {
                Word::Agreed | Word::Failed => held.agreed = held.agreed.saturating_add(1),
                Word::Disputed => (held.agreed, held.disputed) = (0, true),
            }
            let patient =
                now.since(held.since) >= PATIENCE && held.agreed >= AGREEING_LATER && !held.disputed;
            if held.agreed >= AGREEING || patient {
                self.held.remove(&place);
                self.words.remove(&place);
                return Some(false);
            }
            if now.since(held.since) >= PATIENCE {
                *held = Held { since: now, agreed: held.agreed, disputed: false };
            }
            return None;
        }
        let disputed = match word {
            Word::Agreed => return None,
            Word::Failed => false,
            Word::Disputed => true,
        };
        let words = self.words.entry(place).or_default();
        words.push_back((now, disputed, target));
        while words.front().is_some_and(|(at, ..)| now.since(*at) > WINDOW) || words.len() > KEPT {
            words.pop_front();
        }
        let wrong = words.iter().filter(|(_, disputed, _)| *disputed).count();
        let targets: std::collections::BTreeSet<u64> =
            words.iter().filter(|(_, disputed, _)| *disputed).map(|(.., target)| *target).collect();
        let quarantined = words.len() >= FAILURES && wrong * 2 > words.len() && targets.len() >= TARGETS;
        quarantined.then(|| {
            self.held.insert(place, Held { since: now, agreed: 0, disputed: false });
            true
        })
    }

    /// Whether the place is in quarantine.
    pub fn is_quarantined(&self, place: PlaceNo) -> bool {
        self.held.contains_key(&place)
    }

    /// The places in quarantine, in order.
    pub fn quarantined(&self) -> impl Iterator<Item = PlaceNo> {
        self.held.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: PlaceNo = PlaceNo(4);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn held() -> Quarantine {
        let mut quarantine = Quarantine::default();
        for second in 0..4 {
            assert_eq!(quarantine.hear(PLACE, Word::Disputed, second % 3, at(second as i64)), None);
        }
        assert_eq!(quarantine.hear(PLACE, Word::Disputed, 1, at(4)), Some(true));
        quarantine
    }

    #[test]
    fn five_disputes_over_three_targets_within_a_minute_are_enough() {
        assert!(held().is_quarantined(PLACE));
    }

    #[test]
    fn two_targets_half_of_the_failures_or_an_old_minute_are_not() {
        let mut two_targets = Quarantine::default();
        let mut half = Quarantine::default();
        let mut slow = Quarantine::default();
        for step in 0..40 {
            assert_eq!(two_targets.hear(PLACE, Word::Disputed, step % 2, at(step as i64)), None);
            let word = if step % 2 == 0 { Word::Failed } else { Word::Disputed };
            assert_eq!(half.hear(PLACE, word, step, at(step as i64)), None);
            assert_eq!(slow.hear(PLACE, Word::Disputed, step, at(step as i64 * 16)), None);
        }
    }

    #[test]
    fn ten_agreeing_words_or_three_in_five_minutes_let_it_out() {
        let mut quick = held();
        for step in 0..9 {
            assert_eq!(quick.hear(PLACE, Word::Agreed, 0, at(10 + step)), None);
        }
        assert_eq!(quick.hear(PLACE, Word::Agreed, 0, at(20)), Some(false));
        let mut patient = held();
        for second in [100, 200] {
            assert_eq!(patient.hear(PLACE, Word::Agreed, 0, at(second)), None);
        }
        assert_eq!(patient.hear(PLACE, Word::Agreed, 0, at(304)), Some(false));
        let mut disputed = held();
        disputed.hear(PLACE, Word::Disputed, 0, at(50));
        for second in [100, 200, 304] {
            assert_eq!(disputed.hear(PLACE, Word::Agreed, 0, at(second)), None, "it was disputed meanwhile");
        }
    }
}
