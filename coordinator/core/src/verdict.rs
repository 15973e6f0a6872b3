//! Up and down: how consecutive rounds change a region's state, and how the counted regions combine to a verdict.

use serde::{Deserialize, Serialize};

use crate::event::Reason;
use crate::observation::{Failure, Word};
use crate::place::RegionSet;
use crate::seen::Seen;
use crate::slowness::Newest;
use crate::time::{SECOND, Timestamp};

/// Minimum distance in milliseconds between the starts of two failed rounds that count as two.
pub const APART: i64 = 5 * SECOND;
/// The same, if the later one is the second round of a suspicion.
pub const APART_SECOND: i64 = 4 * SECOND;

/// Status of a monitor in one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
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
pub struct FirstFailed {
    /// Start of the round.
    pub started: Timestamp,
    /// Set if it was pending for three seconds or longer: a second round is then confirmed from its start.
    pub waited: bool,
}

/// State of a monitor in one region. Each monitor has six of these, so rarely used parts are boxed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Current status.
    pub standing: Standing,
    /// Start of the newest finished round.
    pub newest: Option<Timestamp>,
    /// Arrival time of the newest round that was not inconclusive.
    pub fresh: Option<Timestamp>,
    /// Newest passed readings, for slowness.
    pub readings: Newest,
    /// Scheduled rounds that have finished.
    seen: Seen,
    /// Failure data; none in the common case.
    trouble: Option<Box<Trouble>>,
}

/// Failure data of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Trouble {
    /// First round of a possible run of two.
    first_failed: Option<FirstFailed>,
    /// While down: start of the first failed round of the run.
    down_since: Option<Timestamp>,
    /// Reason of the newest failure.
    failure: Option<Failure>,
}

/// Effect of a finished round on a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// No effect on other regions.
    Nothing,
    /// First failed round of a possible run of two.
    Suspects,
    /// Second failed round: the region is down.
    WentDown,
    /// The region was down and has recovered.
    CameBack,
}

impl Lane {
    /// First failed round of a possible run of two.
    pub fn first_failed(&self) -> Option<FirstFailed> {
        self.trouble.as_ref()?.first_failed
    }

    /// While down: start of the first failed round of the run.
    pub fn down_since(&self) -> Option<Timestamp> {
        self.trouble.as_ref()?.down_since
    }

    /// Reason of the newest failure; none once a round has passed.
    pub fn failure(&self) -> Option<&Failure> {
        self.trouble.as_ref()?.failure.as_ref()
    }

    /// Sets or clears the reason of the newest failure.
    pub fn set_failure(&mut self, failure: Option<Failure>) {
        if failure.is_some() || self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.failure = failure);
        }
    }

    /// Resets the run of two.
    pub fn forget_first_failed(&mut self) {
        if self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.first_failed = None);
        }
    }

    /// Records a scheduled round as finished; returns false if it was already recorded, or is too old to tell.
    pub fn note_round(&mut self, number: u64) -> bool {
        let is_news = !self.has_seen(number);
        if is_news {
            self.seen.insert(number);
        }
        is_news
    }

    /// Returns true if the scheduled round has already finished, or is too old to tell.
    pub fn has_seen(&self, number: u64) -> bool {
        self.seen.contains(number)
    }

    /// Resets all counters because the target has changed. The status stays.
    pub fn drop_counters(&mut self) {
        self.forget_first_failed();
        self.readings.clear();
        self.newest = None;
    }

    /// Resets the round numbers because the interval has changed.
    pub fn renumber(&mut self) {
        self.seen = Seen::default();
    }

    /// Resets the round numbers if the highest one recorded is above `highest`, which no round can have reached:
    /// otherwise every later round would count as too old. Returns false if nothing was reset.
    pub fn renumber_above(&mut self, highest: u64) -> bool {
        let is_above = self.seen.top() > highest;
        if is_above {
            self.renumber();
        }
        is_above
    }

    /// Adjusts for a step of the wall clock by `by` milliseconds: stored times move with it, so that rounds before
    /// and after the step keep their distance. If the clock went back, round numbers repeat and are reset.
    pub fn shift(&mut self, by: i64) {
        let shifted = |moment: Option<Timestamp>| moment.map(|moment| moment + by);
        (self.newest, self.fresh) = (shifted(self.newest), shifted(self.fresh));
        self.readings.shift(by);
        if let Some(trouble) = &mut self.trouble {
            trouble.down_since = shifted(trouble.down_since);
            if let Some(first) = &mut trouble.first_failed {
                first.started = first.started + by;
            }
        }
        if by < 0 {
            self.renumber();
        }
    }

    /// Adjusts for a clock that went back: resets everything recorded for times in the future.
    pub fn wind_back(&mut self, now: Timestamp) {
        self.newest = None;
        self.fresh = Some(now);
        self.readings.clear();
        self.renumber();
    }

    /// Adjusts for a clock that went back: limits the start of failures to `now`. Returns false if nothing changed.
    pub fn end_failures_by(&mut self, now: Timestamp) -> bool {
        let (first, since) = (self.first_failed().map(|first| first.started), self.down_since());
        let ahead = first.max(since).is_some_and(|newest| newest > now);
        if ahead {
            self.change_trouble(|trouble| {
                trouble.down_since = since.map(|since| since.min(now));
                if let Some(first) = &mut trouble.first_failed {
                    first.started = first.started.min(now);
                }
            });
        }
        ahead
    }

    /// Clears the state of a region that is no longer checked. Rounds that finished stay recorded. Returns false if
    /// there was nothing to clear.
    pub fn leave(&mut self) -> bool {
        let blank = Self { seen: self.seen.clone(), ..Self::default() };
        std::mem::replace(self, blank.clone()) != blank
    }

    /// Applies the outcome of a finished round.
    pub fn hear(&mut self, word: Word, round: RoundFacts, now: Timestamp) -> Turn {
        self.newest = Some(round.started);
        if word != Word::Inconclusive {
            self.fresh = Some(now);
        }
        match word {
            Word::Passed => {
                self.trouble = None;
                match std::mem::replace(&mut self.standing, Standing::Up) {
                    Standing::Down => Turn::CameBack,
                    Standing::Unknown | Standing::Up => Turn::Nothing,
                }
            }
            Word::Disputed => {
                self.forget_first_failed();
                Turn::Nothing
            }
            Word::Unconfirmed | Word::Inconclusive => Turn::Nothing,
            Word::Failed => self.fail(round, now),
        }
    }

    /// Applies a failed round that began before the end of its outage: it does not count towards a new one.
    pub fn hear_of_the_past(&mut self, started: Timestamp, now: Timestamp) {
        self.newest = Some(started);
        self.fresh = Some(now);
        self.forget_first_failed();
    }

    fn fail(&mut self, round: RoundFacts, now: Timestamp) -> Turn {
        if self.standing == Standing::Down {
            return Turn::Nothing;
        }
        let too_old = 3 * round.interval;
        let apart = if round.reason == Reason::Second { APART_SECOND } else { APART };
        match self.first_failed().filter(|first| round.started.since(first.started) <= too_old) {
            Some(first) if round.started.since(first.started) >= apart => {
                self.standing = Standing::Down;
                self.change_trouble(|trouble| {
                    trouble.down_since = Some(first.started);
                    trouble.first_failed = None;
                });
                Turn::WentDown
            }
            Some(_) => Turn::Suspects,
            None if now.since(round.started) > too_old => Turn::Nothing,
            None => {
                let first = FirstFailed { started: round.started, waited: round.waited };
                self.change_trouble(|trouble| trouble.first_failed = Some(first));
                Turn::Suspects
            }
        }
    }

    fn change_trouble(&mut self, change: impl FnOnce(&mut Trouble)) {
        let mut trouble = self.trouble.take().unwrap_or_default();
        change(&mut trouble);
        self.trouble = Some(trouble).filter(|trouble| **trouble != Trouble::default());
    }
}

/// Facts about a round that a region's state depends on.
#[derive(Debug, Clone, Copy)]
pub struct RoundFacts {
    /// Start of the round.
    pub started: Timestamp,
    /// Reason it was run.
    pub reason: Reason,
    /// Set if it was pending for three seconds or longer.
    pub waited: bool,
    /// Milliseconds between two scheduled rounds.
    pub interval: i64,
}

/// Regions grouped by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Says {
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Regions that are down.
    pub down: RegionSet,
    /// Regions that are up.
    pub up: RegionSet,
    /// Regions whose newest round failed in the current suspicion.
    pub suspecting: RegionSet,
    /// Regions with a pass since the outage began and no contradiction after it. Regions that are disconnected,
    /// unfit or were last checked before the outage are not included. Empty for check types that are not judged by
    /// region.
    pub witnesses: RegionSet,
}

impl Says {
    /// Counted regions in which it fails: those that are down, and those that are suspected.
    pub const fn failing(&self) -> RegionSet {
        self.down.union(self.suspecting).intersection(self.counted)
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
pub fn judge(says: &Says) -> Verdict {
    let (down, up) = (says.down.intersection(says.counted), says.up.intersection(says.counted));
    if down.is_empty() {
        return if up.is_empty() { Verdict::Unknown } else { Verdict::Up };
    }
    let failing = says.failing().union(down);
    let witnesses = says.witnesses.intersection(up).without(failing);
    Verdict::Down {
        from: (!witnesses.is_empty()).then_some(failing),
        whole: says.counted.without(failing).is_empty(),
    }
}

#[cfg(test)]
mod tests;
