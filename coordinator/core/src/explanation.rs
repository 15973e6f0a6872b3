//! Explanation of a monitor's state: one sentence, what each region saw, and the steps that led to it.
//!
//! It is computed from facts that the caller reads, so that pages, the API and chats can give the same answer.

mod evidence;
mod headline;
mod steps;
#[cfg(test)]
mod tests;
mod wording;

use std::collections::BTreeMap;

use chrono_tz::Tz;

use crate::event::{MonitorStatus, RoundReport, StatusChange};
use crate::id::IncidentId;
use crate::machine::{MachineView, RegionInspection};
use crate::monitor::Monitor;
use crate::time::Timestamp;
use crate::vantage::{Mesh, Region, VantageNo};

pub use evidence::{EvidenceRound, EvidenceRow, EvidenceVerdict, VantageOutcome};
pub use steps::{ExplanationStep, StepLink, StepTone};
pub use wording::{capitalized, clock, period_text, short_duration, spelled_count};

/// Facts that an explanation is made from.
#[derive(Debug, Clone)]
pub struct ExplanationFacts<'a> {
    /// Current time.
    pub now: Timestamp,
    /// Time zone in which times are written.
    pub zone: Tz,
    /// The monitor.
    pub monitor: &'a Monitor,
    /// Its state.
    pub view: &'a MachineView,
    /// End of the maintenance window that covers it, if one does.
    pub maintenance_until: Option<Timestamp>,
    /// State of each region that is checked; empty for heartbeats, and while it can't be read.
    pub regions: &'a [RegionInspection],
    /// Agents as the rules see them.
    pub mesh: &'a Mesh,
    /// Names of agents, as the reader may see them.
    pub agents: &'a BTreeMap<VantageNo, VantageLabel>,
    /// Rounds that were not a plain pass, newest first.
    pub rounds: &'a [RoundReport],
    /// Newest change to the present status; while it is up, the one that began the last outage.
    pub change: Option<&'a StatusChange>,
    /// Time at which that change was announced, if the outage began in a maintenance window, which kept it silent.
    pub announced_at: Option<Timestamp>,
    /// Heartbeat: deadline for the next ping, or the one that was missed.
    pub deadline: Option<Timestamp>,
    /// Alerts of that change, oldest first.
    pub alerts: &'a [AlertResult],
    /// Incident that the outage belongs to.
    pub incident: Option<OutageIncident<'a>>,
}

/// Name of an agent, with its network and region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VantageLabel {
    /// Name, or a number for readers who may not know names.
    pub name: String,
    /// Network, as its operator labelled it.
    pub network: String,
    /// Region.
    pub region: Region,
}

/// Result of one alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertResult {
    /// Name of its destination.
    pub destination: String,
    /// Time of its delivery, or of its newest attempt.
    pub at: Timestamp,
    /// Reason it is not delivered; none once it is.
    pub fault: Option<String>,
}

/// Incident that an outage belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageIncident<'a> {
    /// Its id.
    pub id: IncidentId,
    /// Its title.
    pub title: &'a str,
    /// Its start.
    pub started_at: Timestamp,
}

/// Kind of explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExplanationKind {
    /// It is up.
    Up,
    /// It is up, and the newest round of a region was disputed.
    DisputedRound,
    /// It is up, and a region's rounds have been disputed for five minutes or longer.
    Disputed,
    /// It fails, and no second network can confirm it.
    Unconfirmed,
    /// It is slow.
    Slow,
    /// A vendor reports degraded performance.
    VendorDegraded,
    /// Two rounds in a row failed, each confirmed.
    Down,
    /// A heartbeat's ping is missing.
    PingMissing,
    /// A heartbeat's job reported a failure.
    JobFailed,
    /// A vendor reports an outage.
    VendorDown,
    /// It was checked before, and there is no fresh result.
    NoFreshResult,
    /// The newest check could not be judged, for an external reason.
    Unjudged,
    /// It has not been checked yet.
    NotYetChecked,
    /// A heartbeat has not received a ping yet, or none since it was resumed.
    NoPingYet,
    /// It is paused.
    Paused,
    /// A maintenance window covers it.
    Maintenance,
}

impl ExplanationKind {
    /// Returns true if the state needs a headline: everything but up.
    pub const fn needs_headline(self) -> bool {
        !matches!(self, Self::Up | Self::DisputedRound | Self::NotYetChecked | Self::NoPingYet | Self::Paused)
    }

    /// Returns true if a change to that status says something about the state: what fails now without being down has
    /// nothing to do with the last outage.
    const fn follows_from(self, to: MonitorStatus) -> bool {
        match self {
            Self::Unconfirmed | Self::Disputed | Self::DisputedRound => false,
            Self::Slow | Self::VendorDegraded => matches!(to, MonitorStatus::Slow),
            _ => true,
        }
    }

    /// Returns true if it is an outage.
    pub const fn is_outage(self) -> bool {
        matches!(self, Self::Down | Self::PingMissing | Self::JobFailed | Self::VendorDown)
    }
}

/// Explanation of a monitor's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Kind.
    pub kind: ExplanationKind,
    /// Title, for a headline.
    pub title: String,
    /// First words of the sentence, before a colon; empty if it has none.
    pub lead: String,
    /// The rest of the sentence.
    pub detail: String,
    /// Evidence of each region, in the order of regions; empty for heartbeats and components.
    pub evidence: Vec<EvidenceRow>,
    /// Steps, oldest first.
    pub steps: Vec<ExplanationStep>,
    /// Milliseconds from the first failure to the first alert.
    pub alerted_after_ms: Option<i64>,
}

impl Explanation {
    /// Explains a monitor's state.
    pub fn new(facts: &ExplanationFacts<'_>) -> Self {
        let headline = headline::headline(facts);
        let change = facts.change.filter(|change| headline.kind.follows_from(change.to));
        let facts = &ExplanationFacts { change, ..facts.clone() };
        Self {
            kind: headline.kind,
            title: headline.title,
            lead: headline.lead,
            detail: headline.detail,
            evidence: evidence::rows(facts, headline.kind),
            steps: steps::steps(facts, headline.kind),
            alerted_after_ms: steps::alerted_after(facts),
        }
    }

    /// Explains a state by the monitor and its view alone, for lists: without rounds, agents and alerts.
    pub fn brief(monitor: &Monitor, view: &MachineView, zone: Tz, now: Timestamp) -> Self {
        Self::new(&ExplanationFacts {
            now,
            zone,
            monitor,
            view,
            maintenance_until: None,
            regions: &[],
            mesh: &Mesh::default(),
            agents: &BTreeMap::new(),
            rounds: &[],
            change: None,
            announced_at: None,
            deadline: None,
            alerts: &[],
            incident: None,
        })
    }

    /// The whole sentence.
    pub fn sentence(&self) -> String {
        if self.lead.is_empty() { self.detail.clone() } else { format!("{}: {}", self.lead, self.detail) }
    }
}

impl ExplanationFacts<'_> {
    /// Name of an agent in running text.
    fn name(&self, vantage: VantageNo) -> String {
        self.agents.get(&vantage).map_or_else(|| format!("agent {}", vantage.0), |label| label.name.clone())
    }

    /// Region of an agent, if it is still known.
    fn region(&self, vantage: VantageNo) -> Option<Region> {
        self.agents.get(&vantage).map(|label| label.region)
    }

    /// True if each region judges the monitor separately.
    fn is_regional(&self) -> bool {
        self.monitor.check.kind().is_regional()
    }
}
