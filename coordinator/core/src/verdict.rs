//! Up and down: how a region's rounds add up, and what the counted regions say together.

use serde::{Deserialize, Serialize};

use crate::event::Reason;
use crate::observation::{Failure, Word};
use crate::place::RegionSet;
use crate::seen::Seen;
use crate::slowness::Newest;
use crate::time::{SECOND, Timestamp};

/// Milliseconds between the starts of two failed rounds that count as two.
pub const APART: i64 = 5 * SECOND;
/// The same, where the later one is the second round of a suspicion.
pub const APART_SECOND: i64 = 4 * SECOND;

/// What a region says of a monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Nothing (yet, or any more).
    #[default]
    Unknown,
    /// Its newest counted round passed.
    Up,
    /// Two rounds in a row failed.
    Down,
}

/// The first failed round of a run of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstFailed {
    /// When it began.
    pub started: Timestamp,
    /// It waited three seconds and more for its answer: a second round is confirmed from its start.
    pub waited: bool,
}

/// One region's memory of a monitor's rounds. There are six of these for every monitor: what few of them have is boxed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// What it says.
    pub standing: Standing,
    /// Start of the newest finished round.
    pub newest: Option<Timestamp>,
    /// When the newest round that was more than inconclusive was heard.
    pub fresh: Option<Timestamp>,
    /// Newest passed readings, for slowness.
    pub readings: Newest,
    /// Which scheduled rounds have finished.
    seen: Seen,
    /// What is remembered of failures, where there is any.
    trouble: Option<Box<Trouble>>,
}

/// What a region remembers of failures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Trouble {
    /// The first of a run of two.
    first_failed: Option<FirstFailed>,
    /// While down: the start of the first failed round of the two.
    down_since: Option<Timestamp>,
    /// What the newest failed round failed of.
    failure: Option<Failure>,
}

/// What a word did to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing that others need to know.
    Nothing,
    /// It is the first failed round of a possible two.
    Suspects,
    /// It was the second: the region is down.
    WentDown,
    /// The region was down and is back.
    CameBack,
}

impl Lane {
    /// The first failed round of a run of two.
    pub fn first_failed(&self) -> Option<FirstFailed> {
        self.trouble.as_ref()?.first_failed
    }

    /// While down: the start of the first failed round of the two.
    pub fn down_since(&self) -> Option<Timestamp> {
        self.trouble.as_ref()?.down_since
    }

    /// What its newest failed round failed of; none once it has passed.
    pub fn failure(&self) -> Option<&Failure> {
        self.trouble.as_ref()?.failure.as_ref()
    }

    /// Notes what a round failed of, or that nothing failed.
    pub fn set_failure(&mut self, failure: Option<Failure>) {
        if failure.is_some() || self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.failure = failure);
        }
    }

    /// The run of two begins anew.
    pub fn forget_first_failed(&mut self) {
        if self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.first_failed = None);
        }
    }

    /// Notes that a scheduled round finished; false if it had before, or is too old to tell.
    pub fn note_round(&mut self, number: u64) -> bool {
        let is_news = !self.has_seen(number);
        if is_news {
            self.seen.insert(number);
        }
        is_news
    }

    /// Whether a scheduled round has finished before, or is too old to tell.
    pub fn has_seen(&self, number: u64) -> bool {
        self.seen.contains(number)
    }

    /// Forgets what it counted, because the target is another now. Its standing stays.
    pub fn drop_counters(&mut self) {
        self.forget_first_failed();
        self.readings.clear();
        self.newest = None;
    }

    /// Rounds are numbered anew, because the interval is another now.
    pub fn renumber(&mut self) {
        self.seen = Seen::default();
    }

    /// Rounds are numbered anew where the highest that finished is above `highest`, which none can be yet: else every
    /// round to come would be too old to tell. False where it is not.
    pub fn renumber_above(&mut self, highest: u64) -> bool {
        let is_above = self.seen.top() > highest;
        if is_above {
            self.renumber();
        }
        is_above
    }

    /// The wall clock stepped by so many milliseconds, and time did not: what the lane noted moves along, so that rounds of
    /// before and after the step lie as far apart as they were. Numbers come again where the clock went back.
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

    /// The clock went back: what the lane noted of moments that are still to come is forgotten.
    pub fn wind_back(&mut self, now: Timestamp) {
        self.newest = None;
        self.fresh = Some(now);
        self.readings.clear();
        self.renumber();
    }

    /// The clock went back: failures that would begin after `now` began by then. False where there are none.
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

    /// The region is not looked from any more: it says nothing. Rounds that finished are not taken in again. False if
    /// it had nothing to say before.
    pub fn leave(&mut self) -> bool {
        let blank = Self { seen: self.seen.clone(), ..Self::default() };
        std::mem::replace(self, blank.clone()) != blank
    }

    /// Takes in the word of a finished round.
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

    /// A failed round that began before the outage it belongs to was over: it is no step towards another.
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

/// What a lane needs to know of a round.
#[derive(Debug, Clone, Copy)]
pub struct RoundFacts {
    /// When it began.
    pub started: Timestamp,
    /// Why it was run.
    pub reason: Reason,
    /// It waited three seconds and more.
    pub waited: bool,
    /// Milliseconds between two scheduled rounds.
    pub interval: i64,
}

/// Sets of regions by what each of them says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Says {
    /// Regions with a say in up and down.
    pub counted: RegionSet,
    /// Regions that are down.
    pub down: RegionSet,
    /// Regions that are up.
    pub up: RegionSet,
    /// Regions whose newest round failed in this suspicion.
    pub suspecting: RegionSet,
    /// Regions whose newest word is a pass of a round that began after the outage did: a region that is cut off, unfit or
    /// has only looked before the outage is none. Empty where regions do not judge for themselves.
    pub witnesses: RegionSet,
}

impl Says {
    /// The counted regions that it fails from: those that are down, and those that count as failing with them.
    pub const fn failing(&self) -> RegionSet {
        self.down.union(self.suspecting).intersection(self.counted)
    }
}

/// What the counted regions say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No counted region says anything.
    Unknown,
    /// None is down, and at least one is up.
    Up,
    /// At least one is down.
    Down {
        /// The regions it is down from, while some counted region has seen it up since the outage began.
        from: Option<RegionSet>,
        /// Every counted region is down or its newest round failed: there is nothing to wait for.
        whole: bool,
    },
}

/// Judges a monitor by its regions.
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
