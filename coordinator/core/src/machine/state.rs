//! Stored state of a machine: everything that must survive a restart, small enough to be written on every change.

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

/// Everything a machine must keep across a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(super) status: Status,
    pub(super) since: Option<Timestamp>,
    pub(super) down_from: Option<RegionSet>,
    pub(super) outage: Option<Box<Outage>>,
    /// Time since which it is slow, as far as was announced.
    pub(super) slow: Option<Timestamp>,
    pub(super) lanes: [Lane; 6],
    pub(super) rounds: Vec<Round>,
    pub(super) suspicion: Option<Box<Suspicion>>,
    /// Deadline until which going down waits for other regions.
    pub(super) settle_by: Option<Timestamp>,
    pub(super) last_recovered: Option<Timestamp>,
    /// Set until the first round that is not inconclusive: regions that appear are checked at once.
    pub(super) untried: bool,
    pub(super) next_number: u32,
    pub(super) last_check: Option<LastCheck>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) pulse: Rare<Pulse>,
    /// Rounds that explain why regions are down, or may go down.
    pub(super) evidence: Evidence,
    /// Component checks: start of the newest passed reading, if the vendor reports degraded performance.
    pub(super) degraded: Option<Timestamp>,
    /// Earliest time of the next follow-up check, set if no vantage was available.
    pub(super) follow_not_before: Option<Timestamp>,
    /// Settings under which this state was built: an edit may be made while the coordinator is away.
    pub(super) settings: Settings,
    /// Heartbeat and component: downtime. Every type: pauses.
    pub(super) downtime: Downtime,
    /// State last announced, while a maintenance window covers the monitor.
    pub(super) window: Option<Box<LastTold>>,
    /// Newest announced changes; none before the first. Older records lack this field.
    #[serde(deserialize_with = "late::or_default")]
    pub(super) flaps: Option<Box<Flaps>>,
    /// Rounds that could not be judged, for an external reason.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) unjudged: Option<Box<Unjudged>>,
    /// Regions whose newest round did not pass.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) unpassed: Unpassed,
    /// Start of the unbroken run of disputed rounds, by region.
    #[serde(deserialize_with = "crate::late::or_default")]
    pub(super) disputed: DisputedSince,
}

/// Settings that the state depends on.
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

/// Outage from its first alert to the recovery. It continues while the status is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outage {
    pub(super) since: Timestamp,
    pub(super) reason: Failure,
    /// Set once the other down regions were checked again, once for each outage.
    pub(super) recovery_swept: bool,
    /// Set once they were checked again earlier, because a region that was only suspected passed.
    pub(super) hint_swept: bool,
    /// Start of the passed round that triggered the re-check: rounds that began before it say nothing about the time
    /// since.
    pub(super) passed: Option<Timestamp>,
    /// Time up to which still-down alerts were sent or skipped; none: up to when this process took over.
    #[serde(skip)]
    pub(super) repeated_until: Unkept,
    /// Start by the current clock, if the wall clock has stepped since. `since` stays as announced.
    #[serde(skip)]
    pub(super) moved_to: Unkept,
}

/// Value, usually a time, that is not part of the stored state: it is not serialized, and comparisons ignore it.
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

/// Suspicion: some regions saw a failure, and others are being checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suspicion {
    /// Start of the first failed round.
    pub(super) began: Timestamp,
    /// Regions whose newest round failed and that are not down.
    pub(super) failing: RegionSet,
    /// Regions of these whose second round is still to be requested.
    pub(super) second_due: RegionSet,
    /// Earliest time of the next attempt, set if no vantage was available for a second round.
    pub(super) second_not_before: Option<Timestamp>,
}

/// Round in progress: scheduled and not finished, or requested by the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) region: Region,
    pub(super) place: PlaceNo,
    pub(super) network: NetworkNo,
    pub(super) reason: Reason,
    /// Number in the schedule, for a scheduled round.
    pub(super) number: Option<u64>,
    /// Number of the probe request, for a requested round.
    pub(super) ask: Option<u32>,
    /// Vantages tried so far.
    pub(super) tried: Vec<PlaceNo>,
    pub(super) started: Timestamp,
    /// Time after which no response is expected.
    pub(super) give_up: Timestamp,
    pub(super) pending: bool,
    /// Set if it has triggered a sweep.
    pub(super) swept: bool,
    /// Region of the pending round that triggered it: it counts only if that one fails.
    pub(super) provisional: Option<Region>,
    /// Outcome, while it is not known yet whether it counts.
    pub(super) held: Option<Word>,
    /// Next attempt to find a vantage, for a round that was open when the coordinator stopped.
    pub(super) parked: Option<Timestamp>,
    /// End and outcome, once it has failed and waits for confirmation.
    pub(super) outcome: Option<(Timestamp, Outcome)>,
    pub(super) second: Second,
    /// While pending: time at which its region's second round was requested, or could not be.
    #[serde(skip)]
    pub(super) seconded: Unkept,
}

/// Confirmation of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Second {
    pub(super) asked: Vec<PlaceNo>,
    /// Open probe request: its number, vantage and deadline.
    pub(super) open: Option<(u32, PlaceNo, Timestamp)>,
    /// Time at which the same network is to repeat the check.
    pub(super) repeat_at: Option<Timestamp>,
    pub(super) heard: Option<(PlaceNo, Outcome)>,
    /// Set if no vantage is left to try.
    pub(super) spent: bool,
    /// Outcome of a third network, if the second contradicts the first. Requested again after a restart.
    #[serde(skip)]
    pub(super) third: Unkept<(PlaceNo, Outcome)>,
}

impl Outage {
    /// Creates an outage without any recovery so far.
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

    /// Start by the current clock, for comparison with rounds.
    pub(super) fn began(&self) -> Timestamp {
        self.moved_to.0.unwrap_or(self.since)
    }

    /// Moves the times that rounds are compared with, after a step of the wall clock.
    pub(super) fn shift(&mut self, by: i64) {
        self.moved_to = Unkept(Some(self.began() + by));
        self.passed = self.passed.map(|passed| passed + by);
    }
}

impl Round {
    /// Returns true if the check took three seconds or longer, as far as is known.
    pub(super) fn waited(&self) -> bool {
        self.pending
            || self
                .outcome
                .as_ref()
                .is_some_and(|(ended, _)| ended.since(self.started) >= super::PENDING_AFTER)
    }

    /// Returns true if its own vantage saw the target up.
    pub(super) fn has_passed(&self) -> bool {
        matches!(self.outcome, Some((_, Outcome::Passed(_))))
    }

    /// Outcome of the round, once the other vantages decide it. A failure counts if a second network fails too; if
    /// that contradicts the first, a third network decides, or the dispute remains if none is available. A pass
    /// counts unless two other networks fail.
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

    /// Vantage whose outcome contradicts the first: the round's own, or an assumed failure while its own is still
    /// pending.
    pub(super) fn contradicted_by(&self) -> Option<PlaceNo> {
        let (place, outcome) = self.second.heard.as_ref()?;
        let contradicts = if self.has_passed() { Word::Failed } else { Word::Disputed };
        (confirm::word(outcome) == Some(contradicts)).then_some(*place)
    }

    /// Swaps in the failed outcome because two networks saw a failure where the round's own vantage passed.
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

    /// Returns the facts that a confirmation needs.
    pub(super) fn suspect(&self) -> Suspect<'_> {
        Suspect {
            region: self.region,
            place: self.place,
            network: self.network,
            started: self.started,
            asked: &self.second.asked,
        }
    }

    /// Builds the report of the round for users and the journal.
    pub(super) fn report(&self, word: Word, outcome: Outcome) -> RoundReport {
        let (mut second, mut third) = (self.second.heard.clone(), self.second.third.0.clone());
        let agrees = |(_, seen): &(PlaceNo, Outcome)| match word {
            Word::Failed => matches!(seen, Outcome::Failed(..)),
            Word::Passed => matches!(seen, Outcome::Passed(_)),
            Word::Disputed | Word::Unconfirmed | Word::Inconclusive => false,
        };
        if third.as_ref().is_some_and(agrees) && !second.as_ref().is_some_and(agrees) {
            // The vantage that agrees explains the outcome.
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
