//! Finished rounds, as events and evidence report them.

use serde::{Deserialize, Serialize};

use crate::observation::{ProbeOutcome, RoundOutcome};
use crate::time::Timestamp;
use crate::vantage::{Region, VantageNo};

/// Finished round with the outcome of every vantage: the evidence for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Region of the round.
    pub region: Region,
    /// Reason it was run.
    pub reason: ProbeReason,
    /// Number of the scheduled round.
    pub round: Option<u64>,
    /// Start of the round.
    pub started: Timestamp,
    /// Final outcome.
    pub round_outcome: RoundOutcome,
    /// Vantage that ran the round first.
    pub first_vantage: VantageNo,
    /// Outcome at the first vantage.
    pub first_outcome: ProbeOutcome,
    /// Second vantage and its outcome. For a failed round decided by two of three: the vantage that agreed.
    pub second: Option<(VantageNo, ProbeOutcome)>,
    /// Third vantage and its outcome, if the first two disagreed; for a failed round the one that was outvoted.
    /// Stored only with [`EventKind::Round`](super::EventKind::Round).
    #[serde(skip)]
    pub third: Option<Box<(VantageNo, ProbeOutcome)>>,
}

/// Reason a check is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeReason {
    /// Due in the schedule.
    Scheduled,
    /// First check of a new or changed monitor.
    First,
    /// Confirmation of a failure.
    Confirm,
    /// Second round of a suspicion.
    Second,
    /// Check from another region, because one saw a failure (or a recovery).
    Sweep,
    /// Earlier check while failing (certificate, domain).
    FollowUp,
    /// Requested by a user.
    Manual,
}

impl ProbeReason {
    /// Every reason, in order.
    pub const ALL: [Self; 7] =
        [Self::Scheduled, Self::First, Self::Confirm, Self::Second, Self::Sweep, Self::FollowUp, Self::Manual];

    /// Name in the API.
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
