//! Up and down: how consecutive rounds change a region's state, and how the counted regions combine to a verdict.

use serde::{Deserialize, Serialize};

use crate::event::ProbeReason;
use crate::observation::{Failure, RoundOutcome};
use crate::replay_window::ReplayWindow;
use crate::slowness::NewestReadings;
use crate::time::{SECOND, Timestamp};
use crate::vantage::RegionSet;

/// Minimum distance in milliseconds between the starts of two failed rounds that count as two.
pub const MIN_DISTANCE: i64 = 5 * SECOND;
/// The same, if the later one is the second round of a suspicion.
pub const MIN_DISTANCE_SECOND_ROUND: i64 = 4 * SECOND;

/// Status of a monitor in one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegionStatus {
    /// No data yet, or no longer.
    #[default]
    Unknown,
    /// The newest counted round passed.
    Up,
    /// Two consecutive rounds failed.
    Down,
}

/// First failed round of a possible run of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstFailure {
    /// Start of the round.
    pub started: Timestamp,
    /// Set if it was pending for three seconds or longer: a second round is then confirmed from its start.
    pub was_pending: bool,
}

/// State of a monitor in one region. Each monitor has six of these, so rarely used parts are boxed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionState {
    /// Current status.
    pub status: RegionStatus,
    /// Start of the newest finished round.
    pub newest_started: Option<Timestamp>,
    /// Arrival time of the newest round that was not inconclusive.
    pub newest_arrived: Option<Timestamp>,
    /// Newest passed readings, for slowness.
    pub readings: NewestReadings,
    /// Scheduled rounds that have finished.
    finished_rounds: ReplayWindow,
    /// Failure data; none in the common case.
    failure_run: Option<Box<FailureRun>>,
}

/// Failure data of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FailureRun {
    /// First round of a possible run of two.
    first_failure: Option<FirstFailure>,
    /// While down: start of the first failed round of the run.
    down_since: Option<Timestamp>,
    /// Reason of the newest failure.
    failure: Option<Failure>,
}

/// Effect of a finished round on a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionTransition {
    /// No effect on other regions.
    Unchanged,
    /// First failed round of a possible run of two.
    FirstFailure,
    /// Second failed round: the region is down.
    WentDown,
    /// The region was down and has recovered.
    Recovered,
}

impl RegionState {
    /// First failed round of a possible run of two.
    pub fn first_failure(&self) -> Option<FirstFailure> {
        self.failure_run.as_ref()?.first_failure
    }

    /// While down: start of the first failed round of the run.
    pub fn down_since(&self) -> Option<Timestamp> {
        self.failure_run.as_ref()?.down_since
    }

    /// Reason of the newest failure; none once a round has passed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure_run.as_ref()?.failure.as_ref()
    }

    /// Sets or clears the reason of the newest failure.
    pub fn set_failure(&mut self, failure: Option<Failure>) {
        if failure.is_some() || self.failure_run.is_some() {
            self.change_failure_run(|trouble| trouble.failure = failure);
        }
    }

    /// Resets the run of two.
    pub fn reset_failure_run(&mut self) {
        if self.failure_run.is_some() {
            self.change_failure_run(|trouble| trouble.first_failure = None);
        }
    }

    /// Records a scheduled round as finished; returns false if it was already recorded, or is older than the replay window.
    pub fn record_round(&mut self, number: u64) -> bool {
        let is_news = !self.has_finished(number);
        if is_news {
            self.finished_rounds.insert(number);
        }
        is_news
    }

    /// Returns true if the scheduled round has already finished, or is older than the replay window.
    pub fn has_finished(&self, number: u64) -> bool {
        self.finished_rounds.contains(number)
    }

    /// Resets all counters because the target has changed. The status stays.
    pub fn reset_counters(&mut self) {
        self.reset_failure_run();
        self.readings.clear();
        self.newest_started = None;
    }

    /// Resets the round numbers because the interval has changed.
    pub fn reset_numbers(&mut self) {
        self.finished_rounds = ReplayWindow::default();
    }

    /// Resets the round numbers if the highest one recorded is above `highest`, which no round can have reached:
    /// otherwise every later round would count as too old. Returns false if nothing was reset.
    pub fn reset_numbers_above(&mut self, highest: u64) -> bool {
        let is_above = self.finished_rounds.highest() > highest;
        if is_above {
            self.reset_numbers();
        }
        is_above
    }

    /// Adjusts for a step of the wall clock by `by` milliseconds: stored times move with it, so that rounds before
    /// and after the step keep their distance. If the clock went back, round numbers repeat and are reset.
    pub fn shift(&mut self, by: i64) {
        let shifted = |moment: Option<Timestamp>| moment.map(|moment| moment + by);
        (self.newest_started, self.newest_arrived) = (shifted(self.newest_started), shifted(self.newest_arrived));
        self.readings.shift(by);
        if let Some(trouble) = &mut self.failure_run {
            trouble.down_since = shifted(trouble.down_since);
            if let Some(first) = &mut trouble.first_failure {
                first.started = first.started + by;
            }
        }
        if by < 0 {
            self.reset_numbers();
        }
    }

    /// Adjusts for a clock that went back: resets everything recorded for times in the future.
    pub fn reset_future(&mut self, now: Timestamp) {
        self.newest_started = None;
        self.newest_arrived = Some(now);
        self.readings.clear();
        self.reset_numbers();
    }

    /// Adjusts for a clock that went back: limits the start of failures to `now`. Returns false if nothing changed.
    pub fn clamp_failures(&mut self, now: Timestamp) -> bool {
        let (first, since) = (self.first_failure().map(|first| first.started), self.down_since());
        let ahead = first.max(since).is_some_and(|newest| newest > now);
        if ahead {
            self.change_failure_run(|trouble| {
                trouble.down_since = since.map(|since| since.min(now));
                if let Some(first) = &mut trouble.first_failure {
                    first.started = first.started.min(now);
                }
            });
        }
        ahead
    }

    /// Clears the state of a region that is no longer checked. Rounds that finished stay recorded. Returns false if
    /// there was nothing to clear.
    pub fn clear(&mut self) -> bool {
        let blank = Self { finished_rounds: self.finished_rounds.clone(), ..Self::default() };
        std::mem::replace(self, blank.clone()) != blank
    }

    /// Applies the outcome of a finished round.
    pub fn apply_outcome(&mut self, outcome: RoundOutcome, round: RoundFacts, now: Timestamp) -> RegionTransition {
        self.newest_started = Some(round.started);
        if outcome != RoundOutcome::Inconclusive {
            self.newest_arrived = Some(now);
        }
        match outcome {
            RoundOutcome::Passed => {
                self.failure_run = None;
                match std::mem::replace(&mut self.status, RegionStatus::Up) {
                    RegionStatus::Down => RegionTransition::Recovered,
                    RegionStatus::Unknown | RegionStatus::Up => RegionTransition::Unchanged,
                }
            }
            RoundOutcome::Disputed => {
                self.reset_failure_run();
                RegionTransition::Unchanged
            }
            RoundOutcome::Unconfirmed | RoundOutcome::Inconclusive => RegionTransition::Unchanged,
            RoundOutcome::Failed => self.apply_failure(round, now),
        }
    }

    /// Applies a failed round that began before the end of its outage: it does not count towards a new one.
    pub fn apply_past_failure(&mut self, started: Timestamp, now: Timestamp) {
        self.newest_started = Some(started);
        self.newest_arrived = Some(now);
        self.reset_failure_run();
    }

    fn apply_failure(&mut self, round: RoundFacts, now: Timestamp) -> RegionTransition {
        if self.status == RegionStatus::Down {
            return RegionTransition::Unchanged;
        }
        let too_old = 3 * round.interval;
        let apart = if round.reason == ProbeReason::Second { MIN_DISTANCE_SECOND_ROUND } else { MIN_DISTANCE };
        match self.first_failure().filter(|first| round.started.since(first.started) <= too_old) {
            Some(first) if round.started.since(first.started) >= apart => {
                self.status = RegionStatus::Down;
                self.change_failure_run(|trouble| {
                    trouble.down_since = Some(first.started);
                    trouble.first_failure = None;
                });
                RegionTransition::WentDown
            }
            Some(_) => RegionTransition::FirstFailure,
            None if now.since(round.started) > too_old => RegionTransition::Unchanged,
            None => {
                let first = FirstFailure { started: round.started, was_pending: round.was_pending };
                self.change_failure_run(|trouble| trouble.first_failure = Some(first));
                RegionTransition::FirstFailure
            }
        }
    }

    fn change_failure_run(&mut self, change: impl FnOnce(&mut FailureRun)) {
        let mut trouble = self.failure_run.take().unwrap_or_default();
        change(&mut trouble);
        self.failure_run = Some(trouble).filter(|trouble| **trouble != FailureRun::default());
    }
}

/// Facts about a round that a region's state depends on.
#[derive(Debug, Clone, Copy)]
pub struct RoundFacts {
    /// Start of the round.
    pub started: Timestamp,
    /// Reason it was run.
    pub reason: ProbeReason,
    /// Set if it was pending for three seconds or longer.
    pub was_pending: bool,
    /// Milliseconds between two scheduled rounds.
    pub interval: i64,
}

/// Regions grouped by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionSummary {
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Regions that are down.
    pub down: RegionSet,
    /// Regions that are up.
    pub up: RegionSet,
    /// Regions whose newest round failed in the current suspicion.
    pub suspected: RegionSet,
    /// Regions with a pass since the outage began and no contradiction after it. Regions that are disconnected,
    /// unfit or were last checked before the outage are not included. Empty for check types that are not judged by
    /// region.
    pub witnesses: RegionSet,
}

impl RegionSummary {
    /// Counted regions in which it fails: those that are down, and those that are suspected.
    pub const fn failing(&self) -> RegionSet {
        self.down.union(self.suspected).intersection(self.counted)
    }
}

/// Combined verdict of the counted regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No counted region has data.
    Unknown,
    /// No region is down, and at least one is up.
    Up,
    /// At least one region is down.
    Down {
        /// Regions in which it is down; none unless some counted region has seen it up since the outage began.
        from: Option<RegionSet>,
        /// Set if every counted region is down or suspected, so there is nothing to wait for.
        whole: bool,
    },
}

/// Computes a monitor's verdict from its regions.
pub fn judge(says: &RegionSummary) -> Verdict {
    let (down, up) = (says.down.intersection(says.counted), says.up.intersection(says.counted));
    if down.is_empty() {
        return if up.is_empty() { Verdict::Unknown } else { Verdict::Up };
    }
    let failing = says.failing().union(down);
    let witnesses = says.witnesses.intersection(up).without(failing);
    Verdict::Down { from: (!witnesses.is_empty()).then_some(failing), whole: says.counted.without(failing).is_empty() }
}

#[cfg(test)]
mod tests;
