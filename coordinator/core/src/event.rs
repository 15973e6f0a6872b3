//! Everything that can have happened, as one enum: what the journal keeps and the reactions read.

use serde::{Deserialize, Serialize};

mod whole;

use crate::flapping::{Flapping, Steady};
use crate::heartbeat::Extension;
use crate::id::{AgentId, MonitorId, PageId};
use crate::incident::Told;
use crate::late;
use crate::notice::Notice;
use crate::observation::{Failure, Outcome, Word};
use crate::place::{PlaceNo, Region, RegionSet};
use crate::quarantine::Contradictions;
use crate::time::Timestamp;

/// A monitor's status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Nothing is known (yet).
    #[default]
    Unknown,
    /// It answers as it should.
    Up,
    /// It answers, but slower than its threshold.
    Slow,
    /// Two rounds in a row failed, each confirmed from another network.
    Down,
}

impl Status {
    /// Every status, in its order.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Up, Self::Slow, Self::Down];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Slow => "slow",
            Self::Down => "down",
        }
    }
}

/// Something that happened, when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The page concerned.
    pub page: Option<PageId>,
    /// The monitor concerned.
    pub monitor: Option<MonitorId>,
    /// What.
    pub what: What,
}

/// What happened. Variants are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A monitor's status changed.
    Changed(Change),
    /// A round ended in a way that people want to look at: everything but a plain pass.
    #[serde(with = "whole")]
    Round(RoundReport),
    /// A monitor was made, changed or deleted.
    MonitorEdited(Edited),
    /// A page was made or changed.
    PageEdited(Edited),
    /// An agent joined.
    AgentJoined(AgentId),
    /// An agent was revoked.
    AgentRevoked(AgentId),
    /// A place was put into quarantine, or let out of it; with those that contradicted it. An older record ends before
    /// them.
    Quarantine(PlaceNo, bool, #[serde(deserialize_with = "late::or_default")] Contradictions),
    /// While a monitor is down, the regions that see it down changed.
    ScopeChanged(Option<RegionSet>),
    /// News of an incident or a maintenance window.
    Incident(Told),
    /// News for the operator.
    Notice(Notice),
    /// A heartbeat has more time for its ping, since the coordinator was away when it may have come.
    DeadlineExtended(Extension),
    /// A monitor that was flapping is steady again.
    Steady(Steady),
    /// No check of a monitor could be judged for a while, for a reason on the other side.
    Unjudged(Unjudged),
}

/// How a thing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edited {
    /// It is new.
    Created,
    /// It changed.
    Changed,
    /// It is gone.
    Deleted,
}

/// What is told of a change of status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AlertKind {
    /// A monitor counts as down.
    WentDown,
    /// It still does.
    StillDown,
    /// It is back.
    Recovered,
    /// It turned slow.
    WentSlow,
    /// It is back to normal speed.
    BackToNormal,
}

impl AlertKind {
    /// Every kind, outages first.
    pub const ALL: [Self; 5] =
        [Self::WentDown, Self::StillDown, Self::Recovered, Self::WentSlow, Self::BackToNormal];

    /// The name that the contract uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WentDown => "went-down",
            Self::StillDown => "still-down",
            Self::Recovered => "recovered",
            Self::WentSlow => "went-slow",
            Self::BackToNormal => "back-to-normal",
        }
    }
}

/// One change of a monitor's status, with what is needed to tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Before.
    pub from: Status,
    /// After.
    pub to: Status,
    /// What is told, where anything is.
    pub alert: Option<AlertKind>,
    /// Since when the new status holds: the first failed round, the passing round, or the slow reading.
    pub since: Timestamp,
    /// When the outage began, for what tells of one.
    pub down_since: Option<Timestamp>,
    /// Why it is, or was, down.
    pub reason: Option<Failure>,
    /// Regions it is down from, while others see it up.
    pub down_from: Option<RegionSet>,
    /// The reading that decided, in milliseconds.
    pub latency_ms: Option<u32>,
    /// The threshold that was crossed, in milliseconds.
    pub threshold_ms: Option<u32>,
    /// Length of the outage or of the slow time that ended, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The rounds that led to it.
    pub evidence: Vec<RoundReport>,
    /// The changes to and fro so far, while the monitor flaps. An older record ends before this.
    #[serde(deserialize_with = "late::or_default")]
    pub flapping: Option<Flapping>,
}

impl Change {
    /// Whether the status is another than before. It is not where one is told that it is still down.
    pub fn is_transition(&self) -> bool {
        self.from != self.to
    }

    /// A change to `to`, of which nothing is told yet. Who makes it known fills in where it came from.
    pub(crate) const fn to(to: Status, since: Timestamp) -> Self {
        Self {
            from: Status::Unknown,
            to,
            alert: None,
            since,
            down_since: None,
            reason: None,
            down_from: None,
            latency_ms: None,
            threshold_ms: None,
            duration_ms: None,
            evidence: Vec::new(),
            flapping: None,
        }
    }
}

/// A finished round with every place's word: what a change is explained with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Region of the round.
    pub region: Region,
    /// Why it was run.
    pub reason: Reason,
    /// Number of the scheduled round.
    pub round: Option<u64>,
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub word: Word,
    /// Who looked first.
    pub first: PlaceNo,
    /// What the first place saw.
    pub outcome: Outcome,
    /// The place that looked second, and what it saw. Of a failed round that two of three decided: the place that agreed.
    pub second: Option<(PlaceNo, Outcome)>,
    /// A third network's word, where the first two contradicted each other; of a failed round the word that was outvoted.
    /// Only [`What::Round`] is stored with it.
    #[serde(skip)]
    pub third: Option<Box<(PlaceNo, Outcome)>>,
}

/// A time in which no check of a monitor could be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unjudged {
    /// When the first of these checks began.
    pub since: Timestamp,
    /// The newest one's reason, in the agent's words.
    pub reason: String,
}

/// Why a check is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// Its turn in the schedule.
    Scheduled,
    /// The first look at a new or changed monitor.
    First,
    /// A second place's word on a failure.
    Confirm,
    /// The second round of a suspicion.
    Second,
    /// Another region's look, since one saw a failure (or a recovery).
    Sweep,
    /// A sooner look while something is wrong (certificate, domain).
    FollowUp,
    /// Somebody asked for it.
    Manual,
}

impl Reason {
    /// Every reason, in its order.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::First,
        Self::Confirm,
        Self::Second,
        Self::Sweep,
        Self::FollowUp,
        Self::Manual,
    ];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::First => "first",
            Self::Confirm => "confirmation",
            Self::Second => "second-round",
            Self::Sweep => "sweep",
            Self::FollowUp => "follow-up",
            Self::Manual => "manual",
        }
    }
}

/// A check that a place is asked to run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Number of the question, unique within its monitor.
    pub number: u32,
    /// Who is asked.
    pub place: PlaceNo,
    /// Why.
    pub reason: Reason,
    /// Until when an answer is of use.
    pub deadline: Timestamp,
}

/// What came back for an [`Ask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The check's outcome, or [`Outcome::Pending`] first.
    Seen(crate::observation::Observation),
    /// The place is not there, did not answer in time, or refused.
    Nothing,
}
