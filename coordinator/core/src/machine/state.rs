//! A machine's memory: what must outlive a restart, small enough to be written with every departure from steady state.

use serde::{Deserialize, Serialize};

use crate::confirm::{self, Suspect};
use crate::downtime::Downtime;
use crate::event::{Reason, RoundReport, Status};
use crate::flapping::Flaps;
use crate::heartbeat::Pulse;
use crate::late;
use crate::observation::{Failure, Outcome, Word};
use crate::place::{NetworkNo, PlaceNo, Region, RegionSet};
use crate::rare::Rare;
use crate::time::Timestamp;
use crate::verdict::Lane;
use crate::watch::Watch;

use super::cover::LastTold;
use super::evidence::Evidence;
use super::unjudged::Unjudged;
use super::view::LastCheck;
use super::witness::{DisputedSince, Unpassed};

/// Everything a machine must remember over a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(super) status: Status,
    pub(super) since: Option<Timestamp>,
    pub(super) down_from: Option<RegionSet>,
    pub(super) outage: Option<Box<Outage>>,
    /// Since when it is slow as far as anyone was told.
    pub(super) slow: Option<Timestamp>,
    pub(super) lanes: [Lane; 6],
    pub(super) rounds: Vec<Round>,
    pub(super) suspicion: Option<Box<Suspicion>>,
    /// Going down waits for the other regions until then.
    pub(super) settle_by: Option<Timestamp>,
    pub(super) last_recovered: Option<Timestamp>,
    /// No round has had a word yet: regions that appear are asked at once.
    pub(super) untried: bool,
    pub(super) next_number: u32,
    pub(super) last_check: Option<LastCheck>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) pulse: Rare<Pulse>,
    /// The rounds that explain why regions are down, or may go down.
    pub(super) evidence: Evidence,
    /// Component: start of the newest passed reading, where the vendor calls it degraded.
    pub(super) degraded: Option<Timestamp>,
    /// Nobody was there for a sooner look: the next try is not before then.
    pub(super) follow_not_before: Option<Timestamp>,
    /// The settings under which all this came about: an edit may be made while the coordinator is away.
    pub(super) settings: Settings,
    /// Heartbeat and component: when it was down. Every kind: when it was paused.
    pub(super) downtime: Downtime,
    /// What was last told, while a maintenance window covers the monitor.
    pub(super) window: Option<Box<LastTold>>,
    /// The newest changes that were told; none before the first. An older record ends before this.
    #[serde(deserialize_with = "late::or_default")]
    pub(super) flaps: Option<Box<Flaps>>,
    /// Rounds that nobody could judge, for a reason on the other side.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) unjudged: Option<Box<Unjudged>>,
    /// Regions whose newest round did not pass.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) unpassed: Unpassed,
    /// Starts of the unbroken runs of disputed rounds, by region.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) disputed: DisputedSince,
}

/// What of the monitor's settings the memory depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) revision: u32,
    pub(super) interval_ms: u32,
    pub(super) pinned: Option<Region>,
    pub(super) beat: Option<(i64, i64)>,
    pub(super) paused: bool,
}

impl Settings {
    pub(super) const fn of(watch: &Watch) -> Self {
        Self {
            revision: watch.revision,
            interval_ms: watch.interval_ms,
            pinned: watch.pinned,
            beat: watch.beat,
            paused: watch.paused,
        }
    }
}

/// An outage, from the first alert to the recovery. It outlasts a time in which nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outage {
    pub(super) since: Timestamp,
    pub(super) reason: Failure,
    /// The other down regions were asked to look again, once an outage.
    pub(super) recovery_swept: bool,
    /// They were asked before that, since a region that was only failing passed.
    pub(super) hint_swept: bool,
    /// When the passed round began that made them look: what began before it says nothing of the time since.
    pub(super) passed: Option<Timestamp>,
    /// That it lasts was said up to then, or is not made up for; none: up to when this process took the machine over.
    #[serde(skip)]
    pub(super) repeated_until: Unkept,
    /// Where the wall clock has stepped since: its start by the clock of now. `since` stays as people were told.
    #[serde(skip)]
    pub(super) moved_to: Unkept,
}

/// A value, most often a moment, that is no part of what is remembered: it is not written, and memories are alike
/// whatever it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unkept<T = Timestamp>(pub(super) Option<T>);

impl<T> Default for Unkept<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> PartialEq for Unkept<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unkept<T> {}

/// Some regions saw a failure, and it is being looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suspicion {
    /// Start of its first failed round.
    pub(super) began: Timestamp,
    /// Regions whose newest round failed in it, and that are not down.
    pub(super) failing: RegionSet,
    /// Those of them whose second round is still to be asked for.
    pub(super) second_due: RegionSet,
    /// Nobody was there for a second round: the next try is not before then.
    pub(super) second_not_before: Option<Timestamp>,
}

/// A round under way: scheduled and not finished, or asked for by us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) region: Region,
    pub(super) place: PlaceNo,
    pub(super) network: NetworkNo,
    pub(super) reason: Reason,
    /// Number in the schedule, of a scheduled round.
    pub(super) number: Option<u64>,
    /// Number of the question, of a round that was asked for.
    pub(super) ask: Option<u32>,
    /// Who was asked to run it so far.
    pub(super) tried: Vec<PlaceNo>,
    pub(super) started: Timestamp,
    /// When nothing more is expected of its place.
    pub(super) give_up: Timestamp,
    pub(super) pending: bool,
    /// It has started a sweep.
    pub(super) swept: bool,
    /// It was asked for by the sweep of a round in that region that only waits yet: its word counts only if that fails.
    pub(super) provisional: Option<Region>,
    /// Its word, while it is not known yet whether it counts.
    pub(super) held: Option<Word>,
    /// It was open when the coordinator stopped, and there is nobody to ask yet: the next try.
    pub(super) parked: Option<Timestamp>,
    /// When it ended and how, once it has failed and waits for a second word.
    pub(super) outcome: Option<(Timestamp, Outcome)>,
    pub(super) second: Second,
    /// While it waits: when its region's second round was asked for, or could not be.
    #[serde(skip)]
    pub(super) seconded: Unkept,
}

/// The second word on a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Second {
    pub(super) asked: Vec<PlaceNo>,
    /// The open question: its number, who was asked, until when.
    pub(super) open: Option<(u32, PlaceNo, Timestamp)>,
    /// When the same network is to repeat the check.
    pub(super) repeat_at: Option<Timestamp>,
    pub(super) heard: Option<(PlaceNo, Outcome)>,
    /// Nobody is left to ask.
    pub(super) spent: bool,
    /// A third network's word, where the second contradicts the first. After a restart it is asked again.
    #[serde(skip)]
    pub(super) third: Unkept<(PlaceNo, Outcome)>,
}

impl Outage {
    /// An outage that nobody has recovered from yet.
    pub(super) const fn new(since: Timestamp, reason: Failure) -> Self {
        Self {
            since,
            reason,
            recovery_swept: false,
            hint_swept: false,
            passed: None,
            repeated_until: Unkept(None),
            moved_to: Unkept(None),
        }
    }

    /// Its start by the clock of now, which rounds are compared with.
    pub(super) fn began(&self) -> Timestamp {
        self.moved_to.0.unwrap_or(self.since)
    }

    /// The wall clock stepped by so many milliseconds: what rounds are compared with moves along.
    pub(super) fn shift(&mut self, by: i64) {
        self.moved_to = Unkept(Some(self.began() + by));
        self.passed = self.passed.map(|passed| passed + by);
    }
}

impl Round {
    /// Whether it took three seconds and more, so far as is known.
    pub(super) fn waited(&self) -> bool {
        self.pending
            || self
                .outcome
                .as_ref()
                .is_some_and(|(ended, _)| ended.since(self.started) >= super::PENDING_AFTER)
    }

    /// True where its place has seen the target up.
    pub(super) fn has_passed(&self) -> bool {
        matches!(self.outcome, Some((_, Outcome::Passed(_))))
    }

    /// The word that the round ends with, once the other places' words decide it. A failure counts where a second network
    /// fails too; where that contradicts the first, a third network decides, or the dispute stands once none is left to
    /// ask. A pass stands unless two other networks fail.
    pub(super) fn decided(&self) -> Option<Word> {
        let Second { heard, third, spent, .. } = &self.second;
        let second = heard.as_ref().and_then(|(_, outcome)| confirm::word(outcome));
        let third = third.0.as_ref().and_then(|(_, outcome)| confirm::word(outcome));
        match (self.has_passed(), second, third) {
            (true, Some(Word::Failed), Some(Word::Failed)) => Some(Word::Failed),
            (true, Some(Word::Failed), None) | (true, None, _) => spent.then_some(Word::Passed),
            (true, ..) => Some(Word::Passed),
            (false, Some(Word::Disputed), Some(third)) => Some(third),
            (false, Some(Word::Disputed), None) => spent.then_some(Word::Disputed),
            (false, Some(word), _) => Some(word),
            (false, None, _) => (heard.is_some() || *spent).then_some(Word::Unconfirmed),
        }
    }

    /// The place whose word contradicts the first: the round's own, or that of a failure while its own is still to come.
    pub(super) fn contradicted_by(&self) -> Option<PlaceNo> {
        let (place, outcome) = self.second.heard.as_ref()?;
        let contradicts = if self.has_passed() { Word::Failed } else { Word::Disputed };
        (confirm::word(outcome) == Some(contradicts)).then_some(*place)
    }

    /// Two networks see a failure where the round's own place passed: the round is theirs.
    pub(super) fn side_with_failed(&mut self, network: impl Fn(PlaceNo) -> Option<NetworkNo>) {
        let (Some((ended, passed)), Some((place, failed))) = (self.outcome.take(), self.second.heard.take())
        else {
            return;
        };
        self.second.heard = self.second.third.0.take();
        self.second.third = Unkept(Some((self.place, passed)));
        self.outcome = Some((ended, failed));
        self.network = network(place).unwrap_or(self.network);
        self.place = place;
    }

    /// What a second word is wanted on.
    pub(super) fn suspect(&self) -> Suspect<'_> {
        Suspect {
            region: self.region,
            place: self.place,
            network: self.network,
            started: self.started,
            asked: &self.second.asked,
        }
    }

    /// The round as people and the journal see it.
    pub(super) fn report(&self, word: Word, outcome: Outcome) -> RoundReport {
        let (mut second, mut third) = (self.second.heard.clone(), self.second.third.0.clone());
        let agrees = |(_, seen): &(PlaceNo, Outcome)| match word {
            Word::Failed => matches!(seen, Outcome::Failed(..)),
            Word::Passed => matches!(seen, Outcome::Passed(_)),
            Word::Disputed | Word::Unconfirmed | Word::Inconclusive => false,
        };
        if third.as_ref().is_some_and(agrees) && !second.as_ref().is_some_and(agrees) {
            // The place that agrees explains the word.
            std::mem::swap(&mut second, &mut third);
        }
        RoundReport {
            region: self.region,
            reason: self.reason,
            round: self.number,
            started: self.started,
            word,
            first: self.place,
            outcome,
            second,
            third: third.map(Box::new),
        }
    }
}
