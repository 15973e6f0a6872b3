//! Newest rounds that did not pass: they show which regions have seen the target up since an outage began, which see
//! unconfirmed failures, and for how long vantages have contradicted each other.

use serde::{Deserialize, Serialize};

use crate::boxed_if_set::{BoxedIfSet, SharedDefault};
use crate::observation::RoundOutcome;
use crate::time::{MINUTE, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet};
use crate::verdict::{RegionStatus, RegionSummary};

use super::MonitorMachine;

/// Regions whose newest round did not pass.
pub(super) type UnpassedRounds = BoxedIfSet<[Option<UnpassedRound>; 6]>;

/// Start of each region's current run of disputed rounds; a passed or failed round ends it.
pub(super) type DisputedRuns = BoxedIfSet<[Option<Timestamp>; 6]>;

/// Milliseconds after which a run of disputed rounds is shown.
const MIN_DISPUTE_DURATION: i64 = 5 * MINUTE;

impl SharedDefault for [Option<Timestamp>; 6] {
    const DEFAULT: &'static Self = &[None; 6];
}

impl SharedDefault for [Option<UnpassedRound>; 6] {
    const DEFAULT: &'static Self = &[None; 6];
}

/// Newest round of a region, if it did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnpassedRound {
    outcome: RoundOutcome,
    /// Start of the newest passed round, unless a later round contradicts it.
    last_passed: Option<Timestamp>,
}

impl MonitorMachine {
    /// Records the outcome of a region's newest round, before the region's state changes. A round that is
    /// inconclusive or disputed leaves an earlier pass valid.
    pub(super) fn record_outcome(&mut self, region: Region, outcome: RoundOutcome, started: Timestamp) {
        match outcome {
            RoundOutcome::Failed => self.end_dispute(region),
            RoundOutcome::Disputed => {
                if let Some(since) = self.state.disputed_since.get_mut(region.index()) {
                    since.get_or_insert(started);
                }
            }
            RoundOutcome::Passed | RoundOutcome::Unconfirmed | RoundOutcome::Inconclusive => {}
        }
        let before = self.state.not_passed.get(region.index()).copied().flatten();
        let passed = match outcome {
            RoundOutcome::Passed => return self.clear_outcome(region),
            RoundOutcome::Inconclusive if before.is_some() => return,
            RoundOutcome::Disputed | RoundOutcome::Inconclusive => self.last_pass(region),
            RoundOutcome::Failed | RoundOutcome::Unconfirmed => None,
        };
        if let Some(record) = self.state.not_passed.get_mut(region.index()) {
            *record = Some(UnpassedRound { outcome, last_passed: passed });
        }
    }

    /// Clears the record of a region because its newest round passed, or its rounds are no longer known.
    pub(super) fn clear_outcome(&mut self, region: Region) {
        let is_kept = |records: &[Option<UnpassedRound>; 6]| records.get(region.index()).is_some_and(Option::is_some);
        if is_kept(&self.state.not_passed) {
            let mut records = self.state.not_passed.take();
            if let Some(record) = records.get_mut(region.index()) {
                *record = None;
            }
            self.state.not_passed = BoxedIfSet::from(records);
            self.end_dispute(region);
        }
    }

    fn end_dispute(&mut self, region: Region) {
        if self.state.disputed_since.get(region.index()).is_some_and(Option::is_some) {
            let mut since = self.state.disputed_since.take();
            if let Some(since) = since.get_mut(region.index()) {
                *since = None;
            }
            self.state.disputed_since = BoxedIfSet::from(since);
        }
    }

    /// Start of the longest unbroken run of disputed rounds in a counted region with current rounds, once it has
    /// lasted for five minutes.
    pub(super) fn disputed_since(&self, mesh: &Mesh, now: Timestamp) -> Option<Timestamp> {
        let counted = self.settings.counted_regions(mesh);
        let looks = |region: Region| {
            let region_state = self.state.regions.get(region.index());
            counted.contains(region) && region_state.is_some_and(|state| now < self.current_until(state))
        };
        let runs = self.state.disputed_since.iter().zip(Region::ALL).filter(|(_, region)| looks(*region));
        runs.filter_map(|(since, _)| *since).min().filter(|since| now.since(*since) >= MIN_DISPUTE_DURATION)
    }

    /// Outcome of a region's newest round, if it did not pass; an inconclusive round leaves the one before.
    pub(super) fn unpassed_outcome(&self, region: Region) -> Option<RoundOutcome> {
        self.state.not_passed.get(region.index()).copied().flatten().map(|round| round.outcome)
    }

    /// Moves the recorded times after a step of the wall clock, together with the rounds after them.
    pub(super) fn shift_outcomes(&mut self, by: i64) {
        let mut records = self.state.not_passed.take();
        for passed in records.iter_mut().flatten().filter_map(|record| record.last_passed.as_mut()) {
            *passed = *passed + by;
        }
        self.state.not_passed = BoxedIfSet::from(records);
        let mut disputed = self.state.disputed_since.take();
        disputed.iter_mut().flatten().for_each(|since| *since = *since + by);
        self.state.disputed_since = BoxedIfSet::from(disputed);
    }

    /// Start of the round that shows a region as up: its newest, or the newest passed one if those after it were
    /// inconclusive.
    fn last_pass(&self, region: Region) -> Option<Timestamp> {
        let region_state = self.state.regions.get(region.index()).filter(|state| state.status == RegionStatus::Up)?;
        let newest = region_state.newest_started?;
        match self.state.not_passed.get(region.index()).copied().flatten() {
            None => Some(newest),
            Some(record) => record.last_passed,
        }
    }

    /// Groups the regions by status, for an outage that began at the time that `since` returns.
    pub(super) fn summarize_regions(
        &self,
        mesh: &Mesh,
        since: impl FnOnce(&RegionSummary) -> Option<Timestamp>,
    ) -> RegionSummary {
        let with = |wanted| {
            let region_states = self.state.regions.iter().zip(Region::ALL);
            region_states.filter(|(region_state, _)| region_state.status == wanted).map(|(_, region)| region).collect()
        };
        let mut says = RegionSummary {
            counted: self.settings.counted_regions(mesh),
            down: with(RegionStatus::Down),
            up: with(RegionStatus::Up),
            suspected: self.state.suspicion.as_ref().map_or(RegionSet::NONE, |now| now.failing),
            witnesses: RegionSet::NONE,
        };
        if self.settings.kind.is_regional()
            && !says.down.is_empty()
            && let Some(since) = since(&says)
        {
            let has_seen = |region: &Region| self.last_pass(*region).is_some_and(|passed| passed >= since);
            says.witnesses = Region::ALL.into_iter().filter(has_seen).collect();
        }
        says
    }

    /// Counted regions whose newest round, ignoring inconclusive ones, is unconfirmed. A heartbeat needs no
    /// confirmation.
    pub(super) fn unconfirmed_from(&self, mesh: &Mesh, now: Timestamp) -> RegionSet {
        let counted = self.settings.counted_regions(mesh);
        let is_unconfirmed = |region: &Region| {
            let record = self.state.not_passed.get(region.index()).copied().flatten();
            let region_state = self.state.regions.get(region.index());
            counted.contains(*region)
                && record.is_some_and(|record| record.outcome == RoundOutcome::Unconfirmed)
                && region_state.is_some_and(|state| now < self.current_until(state))
        };
        Region::ALL.into_iter().filter(is_unconfirmed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MachineState;

    #[test]
    fn an_older_state_without_the_newest_fields_is_read() {
        let written = postcard::to_allocvec(&MachineState::default()).unwrap();
        let older = written.strip_suffix(&[0; 12]).unwrap();
        assert_eq!(postcard::from_bytes::<MachineState>(older).unwrap(), MachineState::default());
    }
}
