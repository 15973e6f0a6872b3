//! Inspection of a machine for operators and developers: regions, open rounds, deadlines, and reasons for its status.
//!
//! An inspection is computed from a copy of the machine, so it costs the engine only that copy.

use crate::confirmation::can_confirm;
use crate::effective::EffectiveSettings;
use crate::event::{ProbeReason, RoundReport};
use crate::heartbeat::HeartbeatState;
use crate::observation::{Failure, ProbeOutcome, RoundOutcome};
use crate::time::Timestamp;
use crate::vantage::{Mesh, Region, RegionSet, VantageNo};
use crate::verdict::{RegionState, RegionStatus};

use super::state::OpenRound;
use super::{MachineView, MonitorMachine};

/// State of a machine in full, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineInspection {
    /// Time of the inspection.
    pub at: Timestamp,
    /// State as shown to users.
    pub view: MachineView,
    /// Effective settings.
    pub settings: EffectiveSettings,
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Regions that are checked, or have a state; empty for a heartbeat.
    pub regions: Vec<RegionInspection>,
    /// Rounds that are running or wait for confirmation.
    pub open_rounds: Vec<RoundInspection>,
    /// Open suspicion, if any.
    pub suspicion: Option<SuspicionInspection>,
    /// Set while a maintenance window covers the monitor.
    pub in_maintenance: bool,
    /// Set if a second network can confirm its failures now.
    pub confirmable: bool,
    /// Heartbeats: pings and deadline.
    pub heartbeat: Option<HeartbeatState>,
    /// Rounds that explain why regions are down, or may go down.
    pub evidence: Vec<RoundReport>,
    /// Deadlines of the machine, earliest first.
    pub deadlines: Vec<MachineDeadline>,
    /// Reasons why the status is as it is: a sentence for each fact.
    pub reasons: Vec<String>,
}

/// State of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionInspection {
    /// The region.
    pub region: Region,
    /// Its status.
    pub status: RegionStatus,
    /// Set if it counts for up and down.
    pub counts: bool,
    /// Start of the first failed round of a possible run of two.
    pub first_failure: Option<Timestamp>,
    /// While down: start of the first failed round.
    pub down_since: Option<Timestamp>,
    /// Reason of the newest failure; none once a round has passed.
    pub failure: Option<Failure>,
    /// Start of the newest finished round.
    pub newest_started: Option<Timestamp>,
    /// Arrival of the newest round that was not inconclusive.
    pub newest_arrived: Option<Timestamp>,
    /// Outcome of the newest round, if it did not pass.
    pub not_passed: Option<RoundOutcome>,
    /// Start of the unbroken run of disputed rounds, if the newest round belongs to one.
    pub disputed_since: Option<Timestamp>,
}

/// Round that has not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundInspection {
    /// Region of the round.
    pub region: Region,
    /// Reason it is run.
    pub reason: ProbeReason,
    /// Number in the schedule, for a scheduled round.
    pub number: Option<u64>,
    /// Start of the round.
    pub started: Timestamp,
    /// Vantage that runs it.
    pub vantage: VantageNo,
    /// Outcome at that vantage; pending if its check takes long.
    pub first: Option<ProbeOutcome>,
    /// Second vantage and its outcome.
    pub second: Option<(VantageNo, ProbeOutcome)>,
    /// Third vantage and its outcome.
    pub third: Option<(VantageNo, ProbeOutcome)>,
    /// Vantage that was asked to confirm it, and the time until which its response is awaited.
    pub confirming: Option<(VantageNo, Timestamp)>,
    /// Region whose pending round triggered it: it counts only if that one fails.
    pub provisional_for: Option<Region>,
}

/// Open suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspicionInspection {
    /// Start of the first failed round.
    pub began: Timestamp,
    /// Regions whose newest round failed and that are not down.
    pub failing: RegionSet,
    /// Regions of these whose second round is still to be requested.
    pub second_due: RegionSet,
}

/// Deadline of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineDeadline {
    /// Time of the deadline.
    pub at: Timestamp,
    /// Event at that time.
    pub kind: DeadlineKind,
    /// Region concerned, if it is one.
    pub region: Option<Region>,
}

/// Kind of a machine's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineKind {
    /// A running round, or its confirmation, is given to another vantage.
    RoundTimeout,
    /// The second round of a suspicion begins.
    SecondRound,
    /// The second round of a pending round begins.
    EarlySecondRound,
    /// The monitor goes down without waiting for other regions.
    ScopeDecision,
    /// A region without new rounds becomes unknown.
    Stale,
    /// A certificate or domain that fails is checked again.
    FollowUp,
    /// While slow: the oldest reading expires.
    ReadingExpiry,
    /// A heartbeat's ping must have arrived.
    Ping,
    /// A still-down alert is sent.
    StillDownAlert,
    /// A flapping monitor counts as stable again.
    Stable,
}

impl DeadlineKind {
    /// Name in the output of commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundTimeout => "round-timeout",
            Self::SecondRound => "second-round",
            Self::EarlySecondRound => "early-second-round",
            Self::ScopeDecision => "scope-decision",
            Self::Stale => "stale",
            Self::FollowUp => "follow-up",
            Self::ReadingExpiry => "reading-expiry",
            Self::Ping => "ping",
            Self::StillDownAlert => "still-down-alert",
            Self::Stable => "stable",
        }
    }
}

impl MonitorMachine {
    /// Returns the machine's state in full, with the reasons for its status.
    pub fn inspect(&self, mesh: &Mesh, now: Timestamp) -> MachineInspection {
        let checked = self.checkable_regions(mesh);
        let counted = self.settings.counted_regions(mesh);
        MachineInspection {
            at: now,
            view: self.view(mesh, now),
            settings: self.settings.clone(),
            counted,
            regions: self.region_inspections(checked, counted),
            open_rounds: self.state.rounds.iter().map(RoundInspection::of).collect(),
            suspicion: self.state.suspicion.as_ref().map(|suspicion| SuspicionInspection {
                began: suspicion.began,
                failing: suspicion.failing,
                second_due: suspicion.second_due,
            }),
            in_maintenance: self.is_covered(),
            confirmable: can_confirm(&self.settings, mesh),
            heartbeat: self.settings.heartbeat.map(|_| (*self.state.heartbeat).clone()),
            evidence: self.state.evidence.reports(),
            deadlines: self.deadlines(),
            reasons: self.reasons(mesh, now),
        }
    }

    fn region_inspections(&self, checked: RegionSet, counted: RegionSet) -> Vec<RegionInspection> {
        if self.settings.heartbeat.is_some() {
            return Vec::new();
        }
        let lanes = self.state.regions.iter().zip(Region::ALL);
        let is_known = |lane: &RegionState, region| {
            checked.contains(region) || lane.status != RegionStatus::Unknown || lane.newest_started.is_some()
        };
        lanes
            .filter(|(lane, region)| is_known(lane, *region))
            .map(|(lane, region)| RegionInspection {
                region,
                status: lane.status,
                counts: counted.contains(region),
                first_failure: lane.first_failure().map(|first| first.started),
                down_since: lane.down_since(),
                failure: lane.failure().cloned(),
                newest_started: lane.newest_started,
                newest_arrived: lane.newest_arrived,
                not_passed: self.unpassed_outcome(region),
                disputed_since: self.state.disputed_since.get(region.index()).copied().flatten(),
            })
            .collect()
    }

    /// Deadlines that [`MonitorMachine::poll_timeout`] takes the earliest of.
    fn deadlines(&self) -> Vec<MachineDeadline> {
        if self.settings.paused {
            return Vec::new();
        }
        let deadline = |at, kind, region| MachineDeadline { at, kind, region };
        let rounds = self.state.rounds.iter().filter_map(|round| {
            Some(deadline(Self::round_deadline(round)?, DeadlineKind::RoundTimeout, Some(round.region)))
        });
        let regional = self.settings.kind.is_regional();
        let stale = Region::ALL.into_iter().filter_map(|region| {
            let at = self.stale_at(region.index())?;
            Some(deadline(at, DeadlineKind::Stale, regional.then_some(region)))
        });
        let singles = [
            (self.second_rounds_at(), DeadlineKind::SecondRound),
            (self.early_second_rounds_at(), DeadlineKind::EarlySecondRound),
            (self.state.scope_deadline, DeadlineKind::ScopeDecision),
            (self.follow_up_at(), DeadlineKind::FollowUp),
            (self.reading_expires_at(), DeadlineKind::ReadingExpiry),
            (self.heartbeat_deadline(), DeadlineKind::Ping),
            (self.next_still_down_at(), DeadlineKind::StillDownAlert),
            (self.stable_at(), DeadlineKind::Stable),
        ];
        let singles = singles.into_iter().filter_map(|(at, kind)| Some(deadline(at?, kind, None)));
        let mut all: Vec<MachineDeadline> = rounds.chain(stale).chain(singles).collect();
        all.sort_by_key(|deadline| deadline.at);
        all
    }
}

impl RoundInspection {
    fn of(round: &OpenRound) -> Self {
        let finished = round.outcome.as_ref().map(|(_, outcome)| outcome.clone());
        Self {
            region: round.region,
            reason: round.reason,
            number: round.number,
            started: round.started,
            vantage: round.vantage,
            first: finished.or(round.pending.then_some(ProbeOutcome::Pending)),
            second: round.confirmation.second_outcome.clone(),
            third: round.confirmation.third_outcome.0.clone(),
            confirming: round.confirmation.open_request.map(|(_, vantage, until)| (vantage, until)),
            provisional_for: round.provisional_for,
        }
    }
}

#[cfg(test)]
mod tests;
