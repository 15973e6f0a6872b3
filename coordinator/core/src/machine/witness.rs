//! Newest rounds that did not pass: they show which regions have seen the target up since an outage began, which see
//! unconfirmed failures, and for how long vantages have contradicted each other.

use serde::{Deserialize, Serialize};

use crate::observation::Word;
use crate::place::{Mesh, Region, RegionSet};
use crate::rare::{Blank, Rare};
use crate::time::{MINUTE, Timestamp};
use crate::verdict::{Says, Standing};

use super::Machine;

/// Regions whose newest round did not pass.
pub(super) type Unpassed = Rare<[Option<Spoken>; 6]>;

/// Start of each region's current run of disputed rounds; a passed or failed round ends it.
pub(super) type DisputedSince = Rare<[Option<Timestamp>; 6]>;

/// Milliseconds after which a run of disputed rounds is shown.
const SHOWN_AFTER: i64 = 5 * MINUTE;

impl Blank for [Option<Timestamp>; 6] {
    const BLANK: &'static Self = &[None; 6];
}

impl Blank for [Option<Spoken>; 6] {
    const BLANK: &'static Self = &[None; 6];
}

/// Newest round of a region, if it did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spoken {
    word: Word,
    /// Start of the newest passed round, unless a later round contradicts it.
    passed: Option<Timestamp>,
}

impl Machine {
    /// Records the outcome of a region's newest round, before the region's state changes. A round that is
    /// inconclusive or disputed leaves an earlier pass valid.
    pub(super) fn note_word(&mut self, region: Region, word: Word, started: Timestamp) {
        match word {
            Word::Failed => self.end_dispute(region),
            Word::Disputed => {
                if let Some(since) = self.state.disputed.get_mut(region.index()) {
                    since.get_or_insert(started);
                }
            }
            Word::Passed | Word::Unconfirmed | Word::Inconclusive => {}
        }
        let before = self.state.unpassed.get(region.index()).copied().flatten();
        let passed = match word {
            Word::Passed => return self.forget_word(region),
            Word::Inconclusive if before.is_some() => return,
            Word::Disputed | Word::Inconclusive => self.passed_at(region),
            Word::Failed | Word::Unconfirmed => None,
        };
        if let Some(spoken) = self.state.unpassed.get_mut(region.index()) {
            *spoken = Some(Spoken { word, passed });
        }
    }

    /// Clears the record of a region because its newest round passed, or its rounds are no longer known.
    pub(super) fn forget_word(&mut self, region: Region) {
        let is_kept = |words: &[Option<Spoken>; 6]| words.get(region.index()).is_some_and(Option::is_some);
        if is_kept(&self.state.unpassed) {
            let mut words = self.state.unpassed.take();
            if let Some(spoken) = words.get_mut(region.index()) {
                *spoken = None;
            }
            self.state.unpassed = Rare::from(words);
            self.end_dispute(region);
        }
    }

    fn end_dispute(&mut self, region: Region) {
        if self.state.disputed.get(region.index()).is_some_and(Option::is_some) {
            let mut since = self.state.disputed.take();
            if let Some(since) = since.get_mut(region.index()) {
                *since = None;
            }
            self.state.disputed = Rare::from(since);
        }
    }

    /// Start of the longest unbroken run of disputed rounds in a counted region with current rounds, once it has
    /// lasted for five minutes.
    pub(super) fn disputed_since(&self, mesh: &Mesh, now: Timestamp) -> Option<Timestamp> {
        let counted = self.watch.counted(mesh);
        let looks = |region: Region| {
            let lane = self.state.lanes.get(region.index());
            counted.contains(region) && lane.is_some_and(|lane| now < self.speaks_until(lane))
        };
        let runs = self.state.disputed.iter().zip(Region::ALL).filter(|(_, region)| looks(*region));
        runs.filter_map(|(since, _)| *since).min().filter(|since| now.since(*since) >= SHOWN_AFTER)
    }

    /// Moves the recorded times after a step of the wall clock, together with the rounds after them.
    pub(super) fn shift_words(&mut self, by: i64) {
        let mut words = self.state.unpassed.take();
        for passed in words.iter_mut().flatten().filter_map(|spoken| spoken.passed.as_mut()) {
            *passed = *passed + by;
        }
        self.state.unpassed = Rare::from(words);
        let mut disputed = self.state.disputed.take();
        disputed.iter_mut().flatten().for_each(|since| *since = *since + by);
        self.state.disputed = Rare::from(disputed);
    }

    /// Start of the round that shows a region as up: its newest, or the newest passed one if those after it were
    /// inconclusive.
    fn passed_at(&self, region: Region) -> Option<Timestamp> {
        let lane = self.state.lanes.get(region.index()).filter(|lane| lane.standing == Standing::Up)?;
        let newest = lane.newest?;
        match self.state.unpassed.get(region.index()).copied().flatten() {
            None => Some(newest),
            Some(spoken) => spoken.passed,
        }
    }

    /// Groups the regions by status, for an outage that began at the time that `since` returns.
    pub(super) fn says(&self, mesh: &Mesh, since: impl FnOnce(&Says) -> Option<Timestamp>) -> Says {
        let with = |wanted| {
            let lanes = self.state.lanes.iter().zip(Region::ALL);
            lanes.filter(|(lane, _)| lane.standing == wanted).map(|(_, region)| region).collect()
        };
        let mut says = Says {
            counted: self.watch.counted(mesh),
            down: with(Standing::Down),
            up: with(Standing::Up),
            suspecting: self.state.suspicion.as_ref().map_or(RegionSet::NONE, |now| now.failing),
            witnesses: RegionSet::NONE,
        };
        if self.watch.kind.is_regional()
            && !says.down.is_empty()
            && let Some(since) = since(&says)
        {
            let has_seen = |region: &Region| self.passed_at(*region).is_some_and(|passed| passed >= since);
            says.witnesses = Region::ALL.into_iter().filter(has_seen).collect();
        }
        says
    }

    /// Counted regions whose newest round, ignoring inconclusive ones, is unconfirmed. A heartbeat needs no
    /// confirmation.
    pub(super) fn unconfirmed_from(&self, mesh: &Mesh, now: Timestamp) -> RegionSet {
        let counted = self.watch.counted(mesh);
        let is_unconfirmed = |region: &Region| {
            let spoken = self.state.unpassed.get(region.index()).copied().flatten();
            let lane = self.state.lanes.get(region.index());
            counted.contains(*region)
                && spoken.is_some_and(|spoken| spoken.word == Word::Unconfirmed)
                && lane.is_some_and(|lane| now < self.speaks_until(lane))
        };
        Region::ALL.into_iter().filter(is_unconfirmed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;

    #[test]
    fn a_memory_from_before_reads_without_it() {
        let written = postcard::to_allocvec(&State::default()).unwrap();
        let older = written.strip_suffix(&[0; 12]).unwrap();
        assert_eq!(postcard::from_bytes::<State>(older).unwrap(), State::default());
    }
}
