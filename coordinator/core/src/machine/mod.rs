//! State machine of one monitor. Inputs: observations, probe responses, pings and deadlines. Outputs: probe requests,
//! readings and events.
//!
//! A machine is a plain value in the style of quinn-proto: the `handle_*` methods take inputs,
//! [`MonitorMachine::poll_timeout`] returns when to call [`MonitorMachine::handle_timeout`] next, and `now` and the mesh are always
//! arguments. Outputs are pushed to the [`MachineStep`]'s list.
//!
//! - `round`, `confirmation`, `conclude`: rounds, their confirmations and their ends.
//! - `suspicion`: after a confirmed failure, the wait for a second one and the sweep of the other regions.
//! - `status`: the monitor's status, from the verdict of the counted regions.
//! - `fast_path`: a plain pass without open rounds. `resume`: restarts. `clock`: steps of the wall clock.
//! - `maintenance`: windows, in which alerts are silent. `still_down`: repeated alerts. `flapping`: monitors that go up and
//!   down again and again. `unjudged`: checks without a usable outcome.
//!
//! Details of the rules that are easy to miss:
//! - A region whose newest round was not conclusive (unconfirmed, inconclusive) stays in its suspicion, and in
//!   `downFrom`, as the newest conclusive round put it there. A witness of "up" remains one over inconclusive or
//!   disputed rounds until it is stale; an unconfirmed failure ends that.
//! - A pending round has an early second round only if it was already pending when the second rounds began. The
//!   outcome of that one is held until the first has its own, and is void if the first did not fail.
//! - A second round keeps four seconds from its region's first, even if the suspicion began earlier: any closer, it
//!   would not count.
//! - Outcomes of a provisional sweep wait for the check that triggered it: they count once that check has failed at
//!   its own vantage, and are only reported if it passes.
//! - An outage that several regions contribute to starts with the first failed round of them all, even if another
//!   region's second round ended first.
//! - A suspicion sweeps once: a round that becomes pending during one is confirmed early but triggers no sweep.
//! - A failure that began before the monitor recovered belongs to the previous outage: it does not lead to a new one,
//!   and its region is checked again at once.
//! - A vendor's page that cannot be read for half an hour makes a component unknown even while it is down.
//! - A heartbeat's last check is its last ping, even while it is down for a missing one; a ping after the deadline
//!   ends the outage and does not undo it.
//! - A round whose number does not fit the current schedule (of another interval) is dropped. One of an older
//!   revision is history only, and so is a late failure: unconfirmed, or failed if its region had been down since
//!   before it.
//! - For fifteen seconds after a start of the coordinator, missing agents are not judged, and open rounds are
//!   requested again as soon as a vantage is available.
//! - A change caused by an edit or by the passing of time takes effect at that moment; one caused by a round, at its
//!   start.

mod announced_state;
mod clock;
mod conclude;
mod confirmation;
mod early_second_rounds;
mod evidence;
mod explanation;
mod fast_path;
mod flapping;
mod heartbeat;
mod inspection;
mod machine_view;
mod maintenance;
mod resume;
mod round;
mod round_outcomes;
mod round_requests;
mod state;
mod status;
mod still_down;
mod suspicion;
mod unjudged;

pub use inspection::{
    DeadlineKind, MachineDeadline, MachineInspection, RegionInspection, RoundInspection, SuspicionInspection,
};
pub use machine_view::{LastCheck, MachineView};
pub use state::MachineState;
use state::StateSettings;

use crate::boxed_if_set::BoxedIfSet;
use crate::effective::EffectiveSettings;
use crate::event::{EventKind, MonitorStatus, ProbeRequest, ProbeResponse};
use crate::observation::{Observation, RoundOutcome};
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet, VantageNo};
use crate::verdict::{RegionState, RegionStatus};

/// Milliseconds after which an unfinished check is reported as pending.
pub const PENDING_AFTER: i64 = 3 * SECOND;
/// Age in milliseconds beyond which an arriving round is history only.
pub const LATE_AFTER: i64 = 2 * MINUTE;

/// Context of one call: the current time, the current mesh, and the list for outputs.
#[derive(Debug)]
pub struct MachineStep<'a> {
    /// Current time.
    pub now: Timestamp,
    /// Current mesh.
    pub mesh: &'a Mesh,
    /// Outputs, in order.
    pub out: &'a mut Vec<MachineOutput>,
}

/// Output of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineOutput {
    /// Send a probe request to a vantage.
    Probe(ProbeRequest),
    /// Store this finished scheduled round.
    Reading(FinishedRound),
    /// Append this event to the journal.
    Event(Box<EventKind>),
}

impl MachineOutput {
    fn event(what: EventKind) -> Self {
        Self::Event(Box::new(what))
    }
}

/// Finished scheduled round. The engine adds the monitor's number and the time it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRound {
    /// Region of the round.
    pub region: Region,
    /// Vantage that ran the round first.
    pub vantage: VantageNo,
    /// Number of the round.
    pub round: u64,
    /// Start of the round.
    pub started: Timestamp,
    /// Final outcome.
    pub outcome: RoundOutcome,
    /// Response time in milliseconds, for a passed round that has one.
    pub latency_ms: Option<u32>,
}

/// State machine of one monitor.
#[derive(Debug, Clone)]
pub struct MonitorMachine {
    settings: EffectiveSettings,
    state: MachineState,
    /// Time at which this process took over the machine: regions are not stale for anything before.
    taken_over_at: Timestamp,
    /// Regions that count for up and down, as of the last step.
    counted: RegionSet,
    /// Set if the state has changed in a way that cannot be rebuilt from the readings, and must be stored.
    changed: bool,
}

impl MonitorMachine {
    /// Creates the machine of a new monitor, and requests a first round from every region at once.
    pub fn new(settings: EffectiveSettings, step: &mut MachineStep<'_>) -> Self {
        let counted = settings.counted_regions(step.mesh);
        let state = MachineState {
            needs_first_rounds: true,
            settings: StateSettings::of(&settings),
            ..MachineState::default()
        };
        let mut machine = Self { settings, state, taken_over_at: step.now, counted, changed: true };
        machine.request_first_rounds(step);
        machine
    }

    /// Restores a machine from storage. Open probe requests are sent again; `away_since` is when the coordinator was
    /// last known to run.
    pub fn restore(
        settings: EffectiveSettings,
        state: MachineState,
        away_since: Timestamp,
        step: &mut MachineStep<'_>,
    ) -> Self {
        let counted = if step.mesh.vantages().is_empty() {
            settings.pinned.map_or(settings.uptime_regions.unwrap_or(RegionSet::ALL), RegionSet::only)
        } else {
            settings.counted_regions(step.mesh)
        };
        let mut machine = Self { settings, state, taken_over_at: step.now, counted, changed: false };
        machine.skip_still_down(step.now);
        if machine.state.settings != StateSettings::of(&machine.settings) {
            machine.apply_settings(step);
        }
        machine.expect_next_ping(step);
        machine.extend_for_absence(away_since, step);
        machine.resume_rounds(step);
        machine
    }

    /// State to be stored.
    pub fn state(&self) -> &MachineState {
        &self.state
    }

    /// Current status.
    pub fn status(&self) -> MonitorStatus {
        self.state.status
    }

    /// Effective settings of the monitor.
    pub fn settings(&self) -> &EffectiveSettings {
        &self.settings
    }

    /// Returns true if the state must be stored; resets the flag.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Handles a vantage's observation of a scheduled round: pending, or its outcome. One of an older revision is
    /// history only; observations of a quarantined vantage are dropped, and so are rounds of another interval.
    pub fn handle_observation(&mut self, mut observation: Observation, step: &mut MachineStep<'_>) {
        if self.settings.paused || observation.revision > self.settings.revision || !self.is_of_schedule(&observation) {
            return;
        }
        self.repair_future_times(step.now);
        // An agent's clock that is ahead must not make every later round count as late.
        observation.started = observation.started.min(step.now);
        let shadow = step.mesh.vantage(observation.vantage).is_some_and(|vantage| vantage.quarantined);
        if shadow || self.settings.pinned.is_some_and(|pinned| pinned != observation.region) {
            return;
        }
        self.handle_scheduled(observation, step);
        self.update(step);
    }

    /// Handles the response to a probe request. Responses to requests that are no longer open are dropped.
    pub fn handle_response(&mut self, number: u32, answer: ProbeResponse, step: &mut MachineStep<'_>) {
        self.apply_response(number, answer, step);
        self.update(step);
    }

    /// Handles a change of the mesh: regions may have been added or removed.
    pub fn handle_mesh(&mut self, step: &mut MachineStep<'_>) {
        if self.settings.paused || self.settings.heartbeat.is_some() || self.is_mesh_unknown(step) {
            return;
        }
        let looked_from = self.checkable_regions(step.mesh);
        for region in Region::ALL.into_iter().filter(|region| !looked_from.contains(*region)) {
            if self.state.regions.get_mut(region.index()).is_some_and(RegionState::clear) {
                self.remove_from_suspicion(region);
                self.remove_evidence(region);
                self.clear_outcome(region);
                self.changed = true;
            }
        }
        if self.state.needs_first_rounds {
            self.request_first_rounds(step);
        }
        self.state.rounds.iter_mut().filter_map(|round| round.retry_at.as_mut()).for_each(|at| *at = step.now);
        self.retry_waiting(step);
        self.update(step);
    }

    /// Handles a change of the monitor, its page or its plan. Everything is judged again at once.
    pub fn handle_edit(&mut self, settings: EffectiveSettings, step: &mut MachineStep<'_>) {
        if settings.repeat_minutes != self.settings.repeat_minutes
            || settings.acknowledged_outage != self.settings.acknowledged_outage
        {
            self.skip_still_down(step.now);
        }
        self.settings = settings;
        self.apply_settings(step);
        self.update(step);
    }

    /// Adapts the state to changed settings.
    fn apply_settings(&mut self, step: &mut MachineStep<'_>) {
        let new = StateSettings::of(&self.settings);
        let old = std::mem::replace(&mut self.state.settings, new);
        self.changed = true;
        if old.interval_ms != new.interval_ms {
            self.state.regions.iter_mut().for_each(RegionState::reset_numbers);
            // Rounds in progress have numbers that do not exist in the new schedule.
            self.state.rounds.iter_mut().for_each(|round| round.number = None);
        }
        if new.paused || old.revision != new.revision || old.paused {
            self.drop_open_rounds(step);
        }
        if new.paused {
            self.pause(step);
            return;
        }
        self.state.downtime.resume(step.now);
        if let (Some((period, grace)), Some((new_period, new_grace))) = (old.heartbeat, new.heartbeat) {
            self.state.heartbeat.adjust_deadline(period + grace, new_period + new_grace);
        }
        self.expect_next_ping(step);
        if old.revision != new.revision || old.paused {
            self.state.suspicion = None;
            self.state.scope_deadline = None;
            self.state.degraded_since = None;
            self.state.unjudged = None;
            self.state.not_passed = BoxedIfSet::default();
            self.state.disputed_since = BoxedIfSet::default();
            self.state.regions.iter_mut().for_each(RegionState::reset_counters);
            // Regions that are down stay down, and their evidence stays too.
            for region in Region::ALL {
                if !self.state.regions.get(region.index()).is_some_and(|state| state.status == RegionStatus::Down) {
                    self.remove_evidence(region);
                }
            }
            self.state.needs_first_rounds = true;
        }
        self.handle_mesh(step);
        if old.pinned != new.pinned {
            self.request_first_rounds(step);
        }
    }

    /// Handles a deadline that has passed.
    pub fn handle_timeout(&mut self, step: &mut MachineStep<'_>) {
        if self.settings.paused {
            return;
        }
        self.repair_future_times(step.now);
        self.expire_rounds(step);
        self.request_second_rounds(step);
        self.request_early_second_rounds(step);
        self.request_follow_ups(step);
        self.mark_stale(step);
        self.expire_readings(step);
        self.check_deadline(step);
        self.update(step);
        self.emit_still_down(step);
        self.end_flapping(step);
    }

    /// Time at which to call [`MonitorMachine::handle_timeout`] next; none if nothing is scheduled. In steady state the
    /// result only ever moves later, so a caller may cache an earlier one and poll again when it fires.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.settings.paused {
            return None;
        }
        let rounds = self.state.rounds.iter().filter_map(Self::round_deadline);
        let stale_times = self.state.regions.iter().enumerate().filter_map(|(index, _)| self.stale_at(index));
        rounds
            .chain(stale_times)
            .chain(self.second_rounds_at())
            .chain(self.early_second_rounds_at())
            .chain(self.state.scope_deadline)
            .chain(self.follow_up_at())
            .chain(self.reading_expires_at())
            .chain(self.heartbeat_deadline())
            .chain(self.next_still_down_at())
            .chain(self.stable_at())
            .min()
    }

    /// Returns true while a round is running or waiting for confirmation.
    pub fn has_rounds(&self) -> bool {
        !self.state.rounds.is_empty()
    }

    /// Returns the monitor's state at a given time, as shown to users.
    pub fn view(&self, mesh: &Mesh, now: Timestamp) -> MachineView {
        let outage = self.state.outage.as_ref();
        MachineView {
            status: self.state.status,
            since: self.state.since,
            down_from: self.state.down_from,
            down_reason: outage
                .filter(|_| self.state.status == MonitorStatus::Down)
                .map(|outage| outage.reason.clone()),
            slow_from: self.slow_from(mesh, now),
            outage_since: outage.map(|outage| outage.since),
            seen_up: self.recently_seen(RegionStatus::Up, now),
            seen_down: self.recently_seen(RegionStatus::Down, now),
            last_check: self.state.last_check.clone(),
            expires_at: self.state.expires_at,
            last_ping_at: self.state.heartbeat.last_ping,
            last_run_ms: self.state.heartbeat.last_run_ms,
            downtime: self.settings.kind.has_downtime().then(|| self.state.downtime.clone()),
            pauses: self.state.downtime.pauses(),
            unjudged: self.is_unjudged(),
            unconfirmable: !crate::confirmation::can_confirm(&self.settings, mesh),
            flapping: self.flapping(),
            unconfirmed_from: self.unconfirmed_from(mesh, now),
            disputed_since: self.disputed_since(mesh, now),
        }
    }

    /// Regions that can be checked at all: a pinned one only while a vantage is enrolled in it.
    fn checkable_regions(&self, mesh: &Mesh) -> RegionSet {
        let regions = self.settings.checked_regions(mesh);
        if self.settings.kind.is_regional() { regions.intersection(mesh.enrolled_regions()) } else { regions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_stays_small_since_there_is_one_for_every_monitor() {
        assert_eq!((size_of::<RegionState>(), size_of::<MonitorMachine>()), (80, 960));
    }
}
