//! Quarantine: which places see failures that other networks dispute, and are not believed until they agree again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::place::PlaceNo;
use crate::time::{MINUTE, Timestamp};

/// Milliseconds over which a place's failures are looked at.
const WINDOW: i64 = MINUTE;
/// Failures in that time before a place can be put into quarantine.
const FAILURES: usize = 5;
/// Different targets that the disputed ones must be of.
const TARGETS: usize = 3;
/// Agreeing words that let a place out at once.
const AGREED: u32 = 10;
/// Milliseconds without a dispute after which fewer do.
const CALM: i64 = 5 * MINUTE;
/// How many fewer.
const AGREED_IN_CALM: u32 = 3;
/// Failures that are kept of one place: the newest. A judgement of the newest 256 is one of them all.
const KEPT: usize = 256;

/// What others made of something a place saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Its failure was confirmed.
    Failed,
    /// Its failure was disputed; in quarantine: it saw something else than the others.
    Disputed,
    /// In quarantine: it saw the same as the others.
    Agreed,
}

/// The record of every place.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    places: BTreeMap<PlaceNo, Record>,
}

#[derive(Debug, Clone)]
enum Record {
    /// Believed: its failures of the last minute, each with whether it was disputed and what its target was.
    Free(VecDeque<(Timestamp, bool, u64)>),
    /// Not believed since, or since its last dispute: agreeing words since then.
    Held { calm_since: Timestamp, agreed: u32 },
}

impl Quarantine {
    /// Takes in a word on a place. `target` names the host that was checked (any hash of it). Says whether the place is
    /// in quarantine from now on, where that changed.
    pub fn hear(&mut self, place: PlaceNo, word: Word, target: u64, now: Timestamp) -> Option<bool> {
        let record = self.places.entry(place).or_insert_with(|| Record::Free(VecDeque::new()));
        match record {
            Record::Free(failures) => {
                if word == Word::Agreed {
                    return None;
                }
                forget(failures, now);
                if failures.len() >= KEPT {
                    failures.pop_front();
                }
                failures.push_back((now, word == Word::Disputed, target));
                if is_bad(failures) {
                    *record = Record::Held { calm_since: now, agreed: 0 };
                    return Some(true);
                }
                None
            }
            Record::Held { calm_since, agreed } => {
                match word {
                    Word::Disputed => (*calm_since, *agreed) = (now, 0),
                    Word::Failed | Word::Agreed => *agreed += 1,
                }
                let calm = now.since(*calm_since) >= CALM && *agreed >= AGREED_IN_CALM;
                if *agreed >= AGREED || calm {
                    self.places.remove(&place);
                    return Some(false);
                }
                None
            }
        }
    }

    /// Whether the place is in quarantine.
    pub fn is_quarantined(&self, place: PlaceNo) -> bool {
        matches!(self.places.get(&place), Some(Record::Held { .. }))
    }

    /// The places in quarantine, in the order of their numbers.
    pub fn quarantined(&self) -> impl Iterator<Item = PlaceNo> {
        self.places
            .iter()
            .filter(|(_, record)| matches!(record, Record::Held { .. }))
            .map(|(place, _)| *place)
    }

    /// When [`Quarantine::handle_timeout`] would let a place out without another word; none while none can be.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.places.values().filter_map(Record::calm_at).min()
    }

    /// Lets out the places that have agreed often enough and been calm for long enough, and forgets what is too old to
    /// count. Says which were let out.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Vec<PlaceNo> {
        let calm = |record: &Record| record.calm_at().is_some_and(|at| now >= at);
        let free = self.places.iter().filter(|(_, record)| calm(record)).map(|(place, _)| *place).collect();
        self.places.retain(|_, record| match record {
            Record::Free(failures) => {
                forget(failures, now);
                !failures.is_empty()
            }
            Record::Held { .. } => !calm(record),
        });
        free
    }

    /// Forgets a place that was revoked.
    pub fn forget(&mut self, place: PlaceNo) {
        self.places.remove(&place);
    }
}

impl Record {
    fn calm_at(&self) -> Option<Timestamp> {
        match self {
            Self::Held { calm_since, agreed } if *agreed >= AGREED_IN_CALM => Some(*calm_since + CALM),
            Self::Held { .. } | Self::Free(_) => None,
        }
    }
}

fn forget(failures: &mut VecDeque<(Timestamp, bool, u64)>, now: Timestamp) {
    while failures.front().is_some_and(|(at, ..)| now.since(*at) > WINDOW) {
        failures.pop_front();
    }
}

/// More than half of its failures, of which there are at least five, are disputed, over at least three targets: that one
/// site has trouble with one network is no place's fault, however many others failed for everybody meanwhile.
fn is_bad(failures: &VecDeque<(Timestamp, bool, u64)>) -> bool {
    let disputed = || failures.iter().filter(|(_, disputed, _)| *disputed);
    let targets: BTreeSet<u64> = disputed().map(|(.., target)| *target).collect();
    failures.len() >= FAILURES && targets.len() >= TARGETS && disputed().count() * 2 > failures.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    const PLACE: PlaceNo = PlaceNo(4);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * SECOND)
    }

    /// Says words of targets one second apart, and when the place was put in or let out.
    fn story(quarantine: &mut Quarantine, from: i64, words: &[(Word, u64)]) -> Vec<(i64, bool)> {
        (from..)
            .zip(words)
            .filter_map(|(second, (word, target))| {
                quarantine.hear(PLACE, *word, *target, at(second)).map(|held| (second, held))
            })
            .collect()
    }

    fn held() -> Quarantine {
        let mut quarantine = Quarantine::default();
        let words = [1, 2, 3, 1, 2].map(|target| (Word::Disputed, target));
        assert_eq!(story(&mut quarantine, 0, &words), [(4, true)]);
        quarantine
    }

    #[test]
    fn five_failures_more_than_half_disputed_over_three_targets_put_a_place_in() {
        let quarantine = held();
        assert!(quarantine.is_quarantined(PLACE));
        assert_eq!(quarantine.quarantined().collect::<Vec<_>>(), [PLACE]);
    }

    #[test]
    fn fewer_failures_or_targets_or_disputes_do_not() {
        use Word::{Disputed, Failed};
        let cases: [&[(Word, u64)]; 4] = [
            &[(Disputed, 1), (Disputed, 2), (Disputed, 3), (Disputed, 4)],
            &[(Disputed, 1), (Disputed, 2), (Disputed, 1), (Disputed, 2), (Disputed, 1), (Disputed, 2)],
            &[(Failed, 1), (Disputed, 2), (Failed, 3), (Disputed, 1), (Failed, 2), (Disputed, 3)],
            // Two sites are disputed; that two more are down for everybody makes them no more.
            &[(Failed, 3), (Failed, 4), (Disputed, 1), (Disputed, 2), (Disputed, 1), (Disputed, 2)],
        ];
        for words in cases {
            assert_eq!(story(&mut Quarantine::default(), 0, words), [], "{words:?}");
        }
    }

    #[test]
    fn failures_over_a_minute_old_do_not_count() {
        let mut quarantine = Quarantine::default();
        story(&mut quarantine, 0, &[1, 2, 3, 4].map(|target| (Word::Disputed, target)));
        assert_eq!(quarantine.hear(PLACE, Word::Disputed, 5, at(62)), None);
    }

    #[test]
    fn ten_agreeing_words_let_it_out() {
        let mut quarantine = held();
        assert_eq!(story(&mut quarantine, 10, &[(Word::Agreed, 1); 10]), [(19, false)]);
        assert!(!quarantine.is_quarantined(PLACE));
    }

    #[test]
    fn five_calm_minutes_and_three_agreeing_words_let_it_out() {
        let mut quarantine = held();
        story(&mut quarantine, 10, &[(Word::Agreed, 1), (Word::Agreed, 2)]);
        assert_eq!(quarantine.poll_timeout(), None, "two words are too few, whatever the time");
        quarantine.hear(PLACE, Word::Agreed, 1, at(20));
        assert_eq!(quarantine.poll_timeout(), Some(at(304)));
        assert_eq!(quarantine.handle_timeout(at(303)), []);
        assert_eq!(quarantine.handle_timeout(at(304)), [PLACE]);
        assert!(!quarantine.is_quarantined(PLACE));
    }

    #[test]
    fn a_dispute_in_quarantine_begins_the_waiting_anew() {
        let mut quarantine = held();
        story(&mut quarantine, 10, &[(Word::Agreed, 1); 9]);
        quarantine.hear(PLACE, Word::Disputed, 1, at(30));
        assert_eq!(story(&mut quarantine, 40, &[(Word::Agreed, 1); 9]), []);
        assert_eq!(quarantine.poll_timeout(), Some(at(330)));
    }
}
