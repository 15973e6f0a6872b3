//! State machine of one monitor. Inputs: observations, probe responses, pings and deadlines. Outputs: probe requests,
//! readings and events.
//!
//! A machine is a plain value in the style of quinn-proto: the `handle_*` methods take inputs,
//! [`Machine::poll_timeout`] returns when to call [`Machine::handle_timeout`] next, and `now` and the mesh are always
//! arguments. Outputs are pushed to the [`Step`]'s list. Rounds are in `round`, their confirmations in `second` and
//! their ends in `conclude`; suspicions and sweeps in `suspicion`, the monitor's status in `status`. `steady` is the
//! fast path, `resume` handles restarts, `cover` maintenance, `repeat` still-down alerts, `flap` flapping, `unjudged`
//! checks that cannot be judged, and `clock` clock faults.
//!
//! The rules follow the design document. It leaves these points open, which are decided here:
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

mod beat;
mod clock;
mod conclude;
mod cover;
mod early;
mod evidence;
mod flap;
mod repeat;
mod resume;
mod round;
mod second;
mod state;
mod status;
mod steady;
mod suspicion;
mod unjudged;
mod view;
mod witness;

use state::Settings;
pub use state::State;
pub use view::{LastCheck, View};

use crate::event::{Answer, Ask, Status, What};
use crate::observation::{Observation, Word};
use crate::place::{Mesh, PlaceNo, Region, RegionSet};
use crate::rare::Rare;
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::verdict::{Lane, Standing};
use crate::watch::Watch;

/// Milliseconds after which an unfinished check is reported as pending.
pub const PENDING_AFTER: i64 = 3 * SECOND;
/// Age in milliseconds beyond which an arriving round is history only.
pub const LATE: i64 = 2 * MINUTE;

/// Context of one call: the current time, the current mesh, and the list for outputs.
#[derive(Debug)]
pub struct Step<'a> {
    /// Current time.
    pub now: Timestamp,
    /// Current mesh.
    pub mesh: &'a Mesh,
    /// Outputs, in order.
    pub out: &'a mut Vec<Output>,
}

/// Output of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a probe request to a vantage.
    Ask(Ask),
    /// Store this finished scheduled round.
    Reading(Finished),
    /// Append this event to the journal.
    Happened(Box<What>),
}

impl Output {
    fn happened(what: What) -> Self {
        Self::Happened(Box::new(what))
    }
}

/// Finished scheduled round. The engine adds the monitor's number and the time it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Region of the round.
    pub region: Region,
    /// Vantage that ran the round first.
    pub place: PlaceNo,
    /// Number of the round.
    pub round: u64,
    /// Start of the round.
    pub started: Timestamp,
    /// Final outcome.
    pub word: Word,
    /// Response time in milliseconds, for a passed round that has one.
    pub latency_ms: Option<u32>,
}

/// State machine of one monitor.
#[derive(Debug, Clone)]
pub struct Machine {
    watch: Watch,
    state: State,
    /// Time at which this process took over the machine: regions are not stale for anything before.
    born: Timestamp,
    /// Regions that count for up and down, as of the last step.
    counted: RegionSet,
    /// Set if the state has changed in a way that cannot be rebuilt from the readings, and must be stored.
    changed: bool,
}

impl Machine {
    /// Creates the machine of a new monitor, and requests a first round from every region at once.
    pub fn new(watch: Watch, step: &mut Step<'_>) -> Self {
        let counted = watch.counted(step.mesh);
        let state = State { untried: true, settings: Settings::of(&watch), ..State::default() };
        let mut machine = Self { watch, state, born: step.now, counted, changed: true };
        machine.ask_first_rounds(step);
        machine
    }

    /// Restores a machine from storage. Open probe requests are sent again; `away_since` is when the coordinator was
    /// last known to run.
    pub fn restore(watch: Watch, state: State, away_since: Timestamp, step: &mut Step<'_>) -> Self {
        let counted = if step.mesh.places().is_empty() {
            watch.pinned.map_or(watch.uptime_regions.unwrap_or(RegionSet::ALL), RegionSet::only)
        } else {
            watch.counted(step.mesh)
        };
        let mut machine = Self { watch, state, born: step.now, counted, changed: false };
        machine.skip_repeats(step.now);
        if machine.state.settings != Settings::of(&machine.watch) {
            machine.adopt(step);
        }
        machine.resume_beat(away_since, step);
        machine.resume_rounds(step);
        machine
    }

    /// State to be stored.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Current status.
    pub fn status(&self) -> Status {
        self.state.status
    }

    /// Effective settings of the monitor.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns true if the state must be stored; resets the flag.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Handles a vantage's observation of a scheduled round: pending, or its outcome. One of an older revision is
    /// history only; observations of a quarantined vantage are dropped, and so are rounds of another interval.
    pub fn handle_observation(&mut self, mut observation: Observation, step: &mut Step<'_>) {
        if self.watch.paused
            || observation.revision > self.watch.revision
            || !self.is_of_schedule(&observation)
        {
            return;
        }
        self.mend_clock(step.now);
        // An agent's clock that is ahead must not make every later round count as late.
        observation.started = observation.started.min(step.now);
        let shadow = step.mesh.place(observation.place).is_some_and(|place| place.quarantined);
        if shadow || self.watch.pinned.is_some_and(|pinned| pinned != observation.region) {
            return;
        }
        self.scheduled(observation, step);
        self.settle(step);
    }

    /// Handles the response to a probe request. Responses to requests that are no longer open are dropped.
    pub fn handle_answer(&mut self, number: u32, answer: Answer, step: &mut Step<'_>) {
        self.answered(number, answer, step);
        self.settle(step);
    }

    /// Handles a change of the mesh: regions may have been added or removed.
    pub fn handle_mesh(&mut self, step: &mut Step<'_>) {
        if self.watch.paused || self.watch.beat.is_some() || self.is_blind(step) {
            return;
        }
        let looked_from = self.looked_from(step.mesh);
        for region in Region::ALL.into_iter().filter(|region| !looked_from.contains(*region)) {
            if self.state.lanes.get_mut(region.index()).is_some_and(Lane::leave) {
                self.forget_suspect(region);
                self.forget_evidence(region);
                self.forget_word(region);
                self.changed = true;
            }
        }
        if self.state.untried {
            self.ask_first_rounds(step);
        }
        self.state.rounds.iter_mut().filter_map(|round| round.parked.as_mut()).for_each(|at| *at = step.now);
        self.retry_parked(step);
        self.settle(step);
    }

    /// Handles a change of the monitor, its page or its plan. Everything is judged again at once.
    pub fn handle_edit(&mut self, watch: Watch, step: &mut Step<'_>) {
        if watch.repeat_minutes != self.watch.repeat_minutes {
            self.skip_repeats(step.now);
        }
        self.watch = watch;
        self.adopt(step);
        self.settle(step);
    }

    /// Adapts the state to changed settings.
    fn adopt(&mut self, step: &mut Step<'_>) {
        let new = Settings::of(&self.watch);
        let old = std::mem::replace(&mut self.state.settings, new);
        self.changed = true;
        if old.interval_ms != new.interval_ms {
            self.state.lanes.iter_mut().for_each(Lane::renumber);
            // Rounds in progress have numbers that do not exist in the new schedule.
            self.state.rounds.iter_mut().for_each(|round| round.number = None);
        }
        if new.paused || old.revision != new.revision || old.paused {
            self.end_waiting(step);
        }
        if new.paused {
            self.pause(step);
            return;
        }
        self.state.downtime.resume(step.now);
        if let (Some((period, grace)), Some((new_period, new_grace))) = (old.beat, new.beat) {
            self.state.pulse.retime(period + grace, new_period + new_grace);
        }
        if old.revision != new.revision || old.paused {
            self.state.suspicion = None;
            self.state.settle_by = None;
            self.state.degraded = None;
            self.state.unjudged = None;
            self.state.unpassed = Rare::default();
            self.state.disputed = Rare::default();
            self.state.lanes.iter_mut().for_each(Lane::drop_counters);
            // Regions that are down stay down, and their evidence stays too.
            for region in Region::ALL {
                if !self.state.lanes.get(region.index()).is_some_and(|lane| lane.standing == Standing::Down) {
                    self.forget_evidence(region);
                }
            }
            self.state.untried = true;
        }
        self.handle_mesh(step);
        if old.pinned != new.pinned {
            self.ask_first_rounds(step);
        }
    }

    /// Handles a deadline that has passed.
    pub fn handle_timeout(&mut self, step: &mut Step<'_>) {
        if self.watch.paused {
            return;
        }
        self.mend_clock(step.now);
        self.expire_rounds(step);
        self.ask_second_rounds(step);
        self.ask_early_seconds(step);
        self.follow_up(step);
        self.go_stale(step);
        self.expire_readings(step);
        self.check_pulse(step);
        self.settle(step);
        self.repeat(step);
        self.become_steady(step);
    }

    /// Time at which to call [`Machine::handle_timeout`] next; none if nothing is scheduled. In steady state the
    /// result only ever moves later, so a caller may cache an earlier one and poll again when it fires.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.watch.paused {
            return None;
        }
        let rounds = self.state.rounds.iter().filter_map(Self::round_deadline);
        let lanes = self.state.lanes.iter().enumerate().filter_map(|(lane, _)| self.stale_at(lane));
        rounds
            .chain(lanes)
            .chain(self.second_rounds_at())
            .chain(self.early_seconds_at())
            .chain(self.state.settle_by)
            .chain(self.follow_up_at())
            .chain(self.reading_expires_at())
            .chain(self.pulse_deadline())
            .chain(self.repeat_at())
            .chain(self.steady_at())
            .min()
    }

    /// Returns true while a round is running or waiting for confirmation.
    pub fn has_rounds(&self) -> bool {
        !self.state.rounds.is_empty()
    }

    /// Returns the monitor's state at a given time, as shown to users.
    pub fn view(&self, mesh: &Mesh, now: Timestamp) -> View {
        let outage = self.state.outage.as_ref();
        View {
            status: self.state.status,
            since: self.state.since,
            down_from: self.state.down_from,
            down_reason: outage
                .filter(|_| self.state.status == Status::Down)
                .map(|outage| outage.reason.clone()),
            slow_from: self.slow_from(mesh, now),
            outage_since: outage.map(|outage| outage.since),
            seen_up: self.seen(Standing::Up, now),
            seen_down: self.seen(Standing::Down, now),
            last_check: self.state.last_check.clone(),
            expires_at: self.state.expires_at,
            last_ping_at: self.state.pulse.last,
            last_run_ms: self.state.pulse.last_run_ms,
            downtime: self.watch.kind.has_downtime().then(|| self.state.downtime.clone()),
            pauses: self.state.downtime.pauses(),
            unjudged: self.is_unjudged(),
            unconfirmable: !crate::confirm::can_confirm(&self.watch, mesh),
            flapping: self.flapping(),
            unconfirmed_from: self.unconfirmed_from(mesh, now),
            disputed_since: self.disputed_since(mesh, now),
        }
    }

    /// Regions that can be checked at all: a pinned one only while a vantage is enrolled in it.
    fn looked_from(&self, mesh: &Mesh) -> RegionSet {
        let regions = self.watch.regions(mesh);
        if self.watch.kind.is_regional() { regions.intersection(mesh.enrolled_regions()) } else { regions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_stays_small_since_there_is_one_for_every_monitor() {
        assert_eq!((size_of::<Lane>(), size_of::<Machine>()), (80, 944));
    }
}
