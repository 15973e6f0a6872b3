//! Events: everything that can happen, as one enum stored in the journal and read by its consumers.

use serde::{Deserialize, Serialize};

mod alert_kind;
mod round_report;
mod stored_report;

pub use alert_kind::AlertKind;
pub use round_report::{ProbeReason, RoundReport};

use crate::acknowledgement::{Acknowledgement, AcknowledgementWithdrawal};
use crate::compat;
use crate::flapping::{Flapping, FlappingEnd};
use crate::heartbeat::DeadlineExtension;
use crate::id::{AgentId, MonitorId, PageId};
use crate::incident::IncidentEvent;
use crate::observation::{Failure, Observation};
use crate::operator_alert::OperatorAlert;
use crate::quarantine::Contradictions;
use crate::time::Timestamp;
use crate::vantage::{RegionSet, VantageNo};

/// A monitor's status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MonitorStatus {
    /// No data (yet).
    #[default]
    Unknown,
    /// Responds as expected.
    Up,
    /// Responds, but slower than its threshold.
    Slow,
    /// Two rounds in a row failed, each confirmed from another network.
    Down,
}

impl MonitorStatus {
    /// Every status, in order.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Up, Self::Slow, Self::Down];

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Slow => "slow",
            Self::Down => "down",
        }
    }
}

/// Event: an entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time of the event.
    pub at: Timestamp,
    /// Page concerned, if any.
    pub page: Option<PageId>,
    /// Monitor concerned, if any.
    pub monitor: Option<MonitorId>,
    /// Kind of event.
    pub kind: EventKind,
}

/// Kind of event and its data. Variants are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// A monitor's status changed.
    StatusChanged(StatusChange),
    /// A round ended with anything but a plain pass.
    #[serde(with = "stored_report")]
    Round(RoundReport),
    /// A monitor was created, changed or deleted.
    MonitorEdited(EditKind),
    /// A page was created or changed.
    PageEdited(EditKind),
    /// An agent joined.
    AgentJoined(AgentId),
    /// An agent was revoked.
    AgentRevoked(AgentId),
    /// A vantage was quarantined or released, with those that contradicted it. Older records lack them.
    QuarantineChanged(VantageNo, bool, #[serde(deserialize_with = "compat::or_default")] Contradictions),
    /// While a monitor is down, its set of down regions changed.
    ScopeChanged(Option<RegionSet>),
    /// An incident or a maintenance window has an update.
    Incident(IncidentEvent),
    /// Operator alert.
    OperatorAlert(OperatorAlert),
    /// A heartbeat has more time for its ping, because the coordinator was away when it may have arrived.
    DeadlineExtended(DeadlineExtension),
    /// A monitor that was flapping is stable again.
    FlappingEnded(FlappingEnd),
    /// For a while no check of a monitor could be judged, for an external reason.
    Unjudged(UnjudgedPeriod),
    /// Somebody acknowledged a running outage.
    OutageAcknowledged(Acknowledgement),
    /// The acknowledgement of a running outage was taken back.
    AcknowledgementWithdrawn(AcknowledgementWithdrawal),
}

impl EventKind {
    /// Returns true if a person's or the scheduler's change caused it, which the driver has to apply to its machines.
    pub const fn is_edit(&self) -> bool {
        match self {
            Self::MonitorEdited(_)
            | Self::PageEdited(_)
            | Self::Incident(_)
            | Self::OutageAcknowledged(_)
            | Self::AcknowledgementWithdrawn(_) => true,
            Self::StatusChanged(_)
            | Self::Round(_)
            | Self::AgentJoined(_)
            | Self::AgentRevoked(_)
            | Self::QuarantineChanged(..)
            | Self::ScopeChanged(_)
            | Self::OperatorAlert(_)
            | Self::DeadlineExtended(_)
            | Self::FlappingEnded(_)
            | Self::Unjudged(_) => false,
        }
    }
}

/// Kind of edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditKind {
    /// Created.
    Created,
    /// Changed.
    Changed,
    /// Deleted.
    Deleted,
}

/// Change of a monitor's status, with the data for its alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    /// Previous status.
    pub from: MonitorStatus,
    /// New status.
    pub to: MonitorStatus,
    /// Alert to send, if any.
    pub alert: Option<AlertKind>,
    /// Start of the new status: the first failed round, the passing round, or the slow reading.
    pub since: Timestamp,
    /// Start of the outage, if the change belongs to one.
    pub down_since: Option<Timestamp>,
    /// Reason it is, or was, down.
    pub reason: Option<Failure>,
    /// Regions it is down in, while others see it up.
    pub down_from: Option<RegionSet>,
    /// Deciding reading, in milliseconds.
    pub latency_ms: Option<u32>,
    /// Threshold that was crossed, in milliseconds.
    pub threshold_ms: Option<u32>,
    /// Duration of the outage or slow period that ended, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Rounds that led to it.
    pub evidence: Vec<RoundReport>,
    /// Changes so far, while the monitor flaps. Older records lack this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub flapping: Option<Flapping>,
}

impl StatusChange {
    /// Returns true if the status differs from before. It does not for a still-down alert.
    pub fn is_transition(&self) -> bool {
        self.from != self.to
    }

    /// Returns true if an outage begins with it or is announced by it: not for a monitor that is down again after an
    /// unknown period within one outage, nor for a still-down alert. One that begins in a maintenance window has no
    /// alert, and without rounds no evidence either.
    pub fn begins_outage(&self) -> bool {
        let is_explained = self.alert == Some(AlertKind::WentDown) || !self.evidence.is_empty();
        // A heartbeat is never down again after an unknown period: only a pause makes it unknown, which ends its outage.
        let is_job = matches!(self.reason, Some(Failure::PingMissed | Failure::JobFailed(_)));
        let was_judged = self.from != MonitorStatus::Unknown;
        self.to == MonitorStatus::Down && self.is_transition() && (is_explained || is_job || was_judged)
    }

    /// Returns true if an outage begins with it that a maintenance window keeps silent.
    pub fn begins_silent_outage(&self) -> bool {
        self.begins_outage() && self.alert.is_none()
    }

    /// Creates a change to `to` without an alert. The caller sets the previous status.
    pub(crate) const fn new(to: MonitorStatus, since: Timestamp) -> Self {
        Self {
            from: MonitorStatus::Unknown,
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

/// Period in which no check of a monitor could be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnjudgedPeriod {
    /// Start of the first of these checks.
    pub since: Timestamp,
    /// Reason of the newest one, as reported by the agent.
    pub reason: String,
}

/// Request to a vantage to run a check now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeRequest {
    /// Number of the request, unique within its monitor.
    pub number: u32,
    /// Vantage that runs the check.
    pub vantage: VantageNo,
    /// Reason of the request.
    pub reason: ProbeReason,
    /// Time until which a response is useful.
    pub deadline: Timestamp,
}

/// Response to a [`ProbeRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeResponse {
    /// Observation of the check, preceded by [`ProbeOutcome::Pending`](crate::observation::ProbeOutcome::Pending) if it
    /// takes long.
    Observed(Observation),
    /// The vantage is not connected, did not respond in time, or refused.
    NoResponse,
}
