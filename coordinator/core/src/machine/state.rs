//! Stored state of a machine: everything that must survive a restart, small enough to be written on every change.

use serde::{Deserialize, Serialize};

use crate::boxed_if_set::BoxedIfSet;
use crate::compat;
use crate::confirmation::{self, PendingFailure};
use crate::downtime::Downtime;
use crate::effective::EffectiveSettings;
use crate::event::{MonitorStatus, ProbeReason, RoundReport};
use crate::flapping::FlapHistory;
use crate::heartbeat::HeartbeatState;
use crate::observation::{Failure, ProbeOutcome, RoundOutcome};
use crate::time::Timestamp;
use crate::vantage::{NetworkNo, Region, RegionSet, VantageNo};
use crate::verdict::RegionState;

use super::announced_state::AnnouncedState;
use super::evidence::PackedReports;
use super::machine_view::LastCheck;
use super::round_outcomes::{DisputedRuns, UnpassedRounds};
use super::unjudged::UnjudgedRun;

/// Everything a machine must keep across a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineState {
    pub(super) status: MonitorStatus,
    pub(super) since: Option<Timestamp>,
    pub(super) down_from: Option<RegionSet>,
    pub(super) outage: Option<Box<OpenOutage>>,
    /// Time since which it is slow, as far as was announced.
    pub(super) slow_since: Option<Timestamp>,
    pub(super) regions: [RegionState; 6],
    pub(super) rounds: Vec<OpenRound>,
    pub(super) suspicion: Option<Box<Suspicion>>,
    /// Deadline until which going down waits for other regions.
    pub(super) scope_deadline: Option<Timestamp>,
    pub(super) last_recovered: Option<Timestamp>,
    /// Set until the first round that is not inconclusive: regions that appear are checked at once.
    pub(super) needs_first_rounds: bool,
    pub(super) next_request: u32,
    pub(super) last_check: Option<LastCheck>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) heartbeat: BoxedIfSet<HeartbeatState>,
    /// Rounds that explain why regions are down, or may go down.
    pub(super) evidence: PackedReports,
    /// Component checks: start of the newest passed reading, if the vendor reports degraded performance.
    pub(super) degraded_since: Option<Timestamp>,
    /// Earliest time of the next follow-up check, set if no vantage was available.
    pub(super) follow_up_not_before: Option<Timestamp>,
    /// Settings under which this state was built: an edit may be made while the coordinator is away.
    pub(super) settings: StateSettings,
    /// Heartbeat and component: downtime. Every type: pauses.
    pub(super) downtime: Downtime,
    /// State last announced, while a maintenance window covers the monitor.
    pub(super) announced_before_window: Option<Box<AnnouncedState>>,
    /// Newest announced changes; none before the first. Older records lack this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub(super) flap_history: Option<Box<FlapHistory>>,
    /// Rounds that could not be judged, for an external reason.
    #[serde(deserialize_with = "crate::compat::or_default")]
    pub(super) unjudged: Option<Box<UnjudgedRun>>,
    /// Regions whose newest round did not pass.
    #[serde(deserialize_with = "crate::compat::or_default")]
    pub(super) not_passed: UnpassedRounds,
    /// Start of the unbroken run of disputed rounds, by region.
    #[serde(deserialize_with = "crate::compat::or_default")]
    pub(super) disputed_since: DisputedRuns,
}

/// Settings that the state depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateSettings {
    pub(super) revision: u32,
    pub(super) interval_ms: u32,
    pub(super) pinned: Option<Region>,
    pub(super) heartbeat: Option<(i64, i64)>,
    pub(super) paused: bool,
}

impl StateSettings {
    pub(super) const fn of(settings: &EffectiveSettings) -> Self {
        Self {
            revision: settings.revision,
            interval_ms: settings.interval_ms,
            pinned: settings.pinned,
            heartbeat: settings.heartbeat,
            paused: settings.paused,
        }
    }
}

/// Outage from its first alert to the recovery. It continues while the status is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenOutage {
    pub(super) since: Timestamp,
    pub(super) reason: Failure,
    /// Set once the other down regions were checked again, once for each outage.
    pub(super) recovery_swept: bool,
    /// Set once they were checked again earlier, because a region that was only suspected passed.
    pub(super) hint_swept: bool,
    /// Start of the passed round that triggered the re-check: rounds that began before it say nothing about the time
    /// since.
    pub(super) recovery_started: Option<Timestamp>,
    /// Time up to which still-down alerts were sent or skipped; none: up to when this process took over.
    #[serde(skip)]
    pub(super) still_down_handled_until: NotStored,
    /// Start by the current clock, if the wall clock has stepped since. `since` stays as announced.
    #[serde(skip)]
    pub(super) adjusted_start: NotStored,
}

/// Value, usually a time, that is not part of the stored state: it is not serialized, and comparisons ignore it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotStored<T = Timestamp>(pub(super) Option<T>);

impl<T> Default for NotStored<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> PartialEq for NotStored<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for NotStored<T> {}

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
pub(super) struct OpenRound {
    pub(super) region: Region,
    pub(super) vantage: VantageNo,
    pub(super) network: NetworkNo,
    pub(super) reason: ProbeReason,
    /// Number in the schedule, for a scheduled round.
    pub(super) number: Option<u64>,
    /// Number of the probe request, for a requested round.
    pub(super) request: Option<u32>,
    /// Vantages tried so far.
    pub(super) tried: Vec<VantageNo>,
    pub(super) started: Timestamp,
    /// Time after which no response is expected.
    pub(super) expires: Timestamp,
    pub(super) pending: bool,
    /// Set if it has triggered a sweep.
    pub(super) has_swept: bool,
    /// Region of the pending round that triggered it: it counts only if that one fails.
    pub(super) provisional_for: Option<Region>,
    /// Outcome, while it is not known yet whether it counts.
    pub(super) held_outcome: Option<RoundOutcome>,
    /// Next attempt to find a vantage, for a round that was open when the coordinator stopped.
    pub(super) retry_at: Option<Timestamp>,
    /// End and outcome, once it has failed and waits for confirmation.
    pub(super) outcome: Option<(Timestamp, ProbeOutcome)>,
    pub(super) confirmation: Confirmation,
    /// While pending: time at which its region's second round was requested, or could not be.
    #[serde(skip)]
    pub(super) second_round_requested: NotStored,
}

/// Confirmation of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Confirmation {
    pub(super) tried: Vec<VantageNo>,
    /// Open probe request: its number, vantage and deadline.
    pub(super) open_request: Option<(u32, VantageNo, Timestamp)>,
    /// Time at which the same network is to repeat the check.
    pub(super) repeat_at: Option<Timestamp>,
    pub(super) second_outcome: Option<(VantageNo, ProbeOutcome)>,
    /// Set if no vantage is left to try.
    pub(super) exhausted: bool,
    /// Outcome of a third network, if the second contradicts the first. Requested again after a restart.
    #[serde(skip)]
    pub(super) third_outcome: NotStored<(VantageNo, ProbeOutcome)>,
}

impl OpenOutage {
    /// Creates an outage without any recovery so far.
    pub(super) const fn new(since: Timestamp, reason: Failure) -> Self {
        Self {
            since,
            reason,
            recovery_swept: false,
            hint_swept: false,
            recovery_started: None,
            still_down_handled_until: NotStored(None),
            adjusted_start: NotStored(None),
        }
    }

    /// Start by the current clock, for comparison with rounds.
    pub(super) fn adjusted_start(&self) -> Timestamp {
        self.adjusted_start.0.unwrap_or(self.since)
    }

    /// Moves the times that rounds are compared with, after a step of the wall clock.
    pub(super) fn shift(&mut self, by: i64) {
        self.adjusted_start = NotStored(Some(self.adjusted_start() + by));
        self.recovery_started = self.recovery_started.map(|passed| passed + by);
    }
}

impl OpenRound {
    /// Returns true if the check took three seconds or longer, as far as is known.
    pub(super) fn was_pending(&self) -> bool {
        self.pending
            || self.outcome.as_ref().is_some_and(|(ended, _)| ended.since(self.started) >= super::PENDING_AFTER)
    }

    /// Returns true if its own vantage saw the target up.
    pub(super) fn has_passed(&self) -> bool {
        matches!(self.outcome, Some((_, ProbeOutcome::Passed(_))))
    }

    /// Outcome of the round, once the other vantages decide it. A failure counts if a second network fails too; if
    /// that contradicts the first, a third network decides, or the dispute remains if none is available. A pass
    /// counts unless two other networks fail.
    pub(super) fn decided_outcome(&self) -> Option<RoundOutcome> {
        let Confirmation { second_outcome, third_outcome: third, exhausted: is_exhausted, .. } = &self.confirmation;
        let second = second_outcome.as_ref().and_then(|(_, outcome)| confirmation::confirmed_outcome(outcome));
        let third = third.0.as_ref().and_then(|(_, outcome)| confirmation::confirmed_outcome(outcome));
        match (self.has_passed(), second, third) {
            (true, Some(RoundOutcome::Failed), Some(RoundOutcome::Failed)) => Some(RoundOutcome::Failed),
            (true, Some(RoundOutcome::Failed), None) | (true, None, _) => is_exhausted.then_some(RoundOutcome::Passed),
            (true, ..) => Some(RoundOutcome::Passed),
            (false, Some(RoundOutcome::Disputed), Some(third)) => Some(third),
            (false, Some(RoundOutcome::Disputed), None) => is_exhausted.then_some(RoundOutcome::Disputed),
            (false, Some(round_outcome), _) => Some(round_outcome),
            (false, None, _) => (second_outcome.is_some() || *is_exhausted).then_some(RoundOutcome::Unconfirmed),
        }
    }

    /// Vantage whose outcome contradicts the first: the round's own, or an assumed failure while its own is still
    /// pending.
    pub(super) fn contradicted_by(&self) -> Option<VantageNo> {
        let (vantage, outcome) = self.confirmation.second_outcome.as_ref()?;
        let contradicts = if self.has_passed() { RoundOutcome::Failed } else { RoundOutcome::Disputed };
        (confirmation::confirmed_outcome(outcome) == Some(contradicts)).then_some(*vantage)
    }

    /// Swaps in the failed outcome because two networks saw a failure where the round's own vantage passed.
    pub(super) fn adopt_failure(&mut self) {
        let (Some((ended, passed)), Some((vantage, failed))) =
            (self.outcome.take(), self.confirmation.second_outcome.take())
        else {
            return;
        };
        self.confirmation.second_outcome = self.confirmation.third_outcome.0.take();
        self.confirmation.third_outcome = NotStored(Some((self.vantage, passed)));
        self.outcome = Some((ended, failed));
        self.vantage = vantage;
    }

    /// Returns the facts that a confirmation needs.
    pub(super) fn pending_failure(&self) -> PendingFailure<'_> {
        PendingFailure {
            region: self.region,
            vantage: self.vantage,
            network: self.network,
            started: self.started,
            tried: &self.confirmation.tried,
        }
    }

    /// Builds the report of the round for users and the journal.
    pub(super) fn report(&self, round_outcome: RoundOutcome, outcome: ProbeOutcome) -> RoundReport {
        let (mut second, mut third) =
            (self.confirmation.second_outcome.clone(), self.confirmation.third_outcome.0.clone());
        let agrees = |(_, other): &(VantageNo, ProbeOutcome)| round_outcome.agrees_with(other);
        if third.as_ref().is_some_and(agrees) && !second.as_ref().is_some_and(agrees) {
            // The vantage that agrees explains the outcome.
            std::mem::swap(&mut second, &mut third);
        }
        RoundReport {
            region: self.region,
            reason: self.reason,
            round: self.number,
            started: self.started,
            round_outcome,
            first_vantage: self.vantage,
            first_outcome: outcome,
            second,
            third: third.map(Box::new),
        }
    }
}
