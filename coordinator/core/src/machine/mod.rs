//! One monitor's life: observations, answers, beats and deadlines go in; questions, readings and changes come out.
//!
//! A machine is a plain value in quinn's manner: the `handle_*` methods take what arrived, [`Machine::poll_timeout`]
//! says when to call [`Machine::handle_timeout`] next, and `now` and the mesh are always arguments. What comes out is
//! pushed to the [`Step`]'s list. Rounds live in `round`, their second words in `second` and their ends in `conclude`;
//! suspicions and sweeps in `suspicion`, the monitor's status in `status`; `steady` is the fast path, `resume` a restart, `cover` maintenance, `repeat` what is said while an outage lasts, `flap` whether it flaps, `unjudged` what nobody can judge, `clock` what else befalls time.
//!
//! The law is the design's page on what the service means. Where it leaves something open, this is decided:
//! - A region whose newest round said nothing (unconfirmed, inconclusive) stays in its suspicion, and in `downFrom`, as
//!   the newest round that said something put it there. A witness of "up" stays one over rounds that say nothing or are
//!   disputed, until it is stale; an unconfirmed failure speaks against it.
//! - A round that waits has a second one beside it only where it waited already as the second rounds began. That one's
//!   word is held until the first has its own, and is void where that is no failure.
//! - A second round keeps four seconds from its region's first, also where the suspicion began earlier: nearer it would
//!   not count.
//! - A provisional sweep's words wait for the check that it is for: they count once that check has failed at its own
//!   place, and are only told of where it passes.
//! - An outage that several regions lead to is dated from the first failed round of them all, also where another
//!   region's second round ended first.
//! - A suspicion sweeps once: a round that waits while one is on is confirmed early, and sweeps nobody.
//! - A failure that began before the monitor recovered belongs to the outage that is over: it leads to no new one, and
//!   its region looks again at once.
//! - A vendor's page that can't be read for half an hour makes a component unknown also while it is down.
//! - A heartbeat's last check is its last ping, also while it is down for a missing one; a ping after the deadline ends
//!   the outage and does not undo it.
//! - A round whose number is not of the schedule as it is (of another interval) is dropped; one of an older revision is
//!   history, and so is a late failure: unconfirmed, or failed where its region had been down since before it.
//! - After a start of ours nothing is judged by who is missing for fifteen seconds, and what was open is asked again as
//!   soon as somebody is there.
//! - What an edit or the passing of time decides holds since that moment; what a round decides, since its start.

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

/// Milliseconds that a check waits for its answer before its place says so.
pub const PENDING_AFTER: i64 = 3 * SECOND;
/// Milliseconds after which an arriving round is history only.
pub const LATE: i64 = 2 * MINUTE;

/// One turn of a machine: the moment, the mesh as it is, and where its outputs go.
#[derive(Debug)]
pub struct Step<'a> {
    /// The present moment.
    pub now: Timestamp,
    /// Who is there.
    pub mesh: &'a Mesh,
    /// What comes out, in order.
    pub out: &'a mut Vec<Output>,
}

/// What a machine wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Ask a place to run the check now.
    Ask(Ask),
    /// Keep this finished scheduled round.
    Reading(Finished),
    /// This happened; it goes into the journal.
    Happened(Box<What>),
}

impl Output {
    fn happened(what: What) -> Self {
        Self::Happened(Box::new(what))
    }
}

/// A finished scheduled round. The driver adds the monitor's number and the moment it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Region of the round.
    pub region: Region,
    /// Who looked first.
    pub place: PlaceNo,
    /// Number of the round.
    pub round: u64,
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub word: Word,
    /// Response time in milliseconds, of a passed round that has one.
    pub latency_ms: Option<u32>,
}

/// One monitor's machine.
#[derive(Debug, Clone)]
pub struct Machine {
    watch: Watch,
    state: State,
    /// When this process took the machine over: regions are not stale for what happened before.
    born: Timestamp,
    /// Regions with a say in up and down, as of the last step.
    counted: RegionSet,
    /// The state has left what the readings alone would tell, and must be written.
    changed: bool,
}

impl Machine {
    /// The machine of a new monitor. It asks every region for a first round at once.
    pub fn new(watch: Watch, step: &mut Step<'_>) -> Self {
        let counted = watch.counted(step.mesh);
        let state = State { untried: true, settings: Settings::of(&watch), ..State::default() };
        let mut machine = Self { watch, state, born: step.now, counted, changed: true };
        machine.ask_first_rounds(step);
        machine
    }

    /// A machine back from storage. Questions that were open are asked again; `away_since` is when the coordinator was
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

    /// What it must remember, to be written.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its status.
    pub fn status(&self) -> Status {
        self.state.status
    }

    /// What it watches.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Whether the state must be written since it was last asked; asking resets it.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A place's observation of a scheduled round: pending, or its outcome. That of an older revision is history only;
    /// what a place in quarantine saw is dropped, and so are rounds of another interval.
    pub fn handle_observation(&mut self, mut observation: Observation, step: &mut Step<'_>) {
        if self.watch.paused
            || observation.revision > self.watch.revision
            || !self.is_of_schedule(&observation)
        {
            return;
        }
        self.mend_clock(step.now);
        // A clock ahead of ours must not make every later round a late one.
        observation.started = observation.started.min(step.now);
        let shadow = step.mesh.place(observation.place).is_some_and(|place| place.quarantined);
        if shadow || self.watch.pinned.is_some_and(|pinned| pinned != observation.region) {
            return;
        }
        self.scheduled(observation, step);
        self.settle(step);
    }

    /// What came back for a question. Answers to questions that are no longer open are dropped.
    pub fn handle_answer(&mut self, number: u32, answer: Answer, step: &mut Step<'_>) {
        self.answered(number, answer, step);
        self.settle(step);
    }

    /// The mesh changed: regions may have come or gone.
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

    /// The monitor, its page or its plan changed. Everything is judged anew at once.
    pub fn handle_edit(&mut self, watch: Watch, step: &mut Step<'_>) {
        if watch.repeat_minutes != self.watch.repeat_minutes {
            self.skip_repeats(step.now);
        }
        self.watch = watch;
        self.adopt(step);
        self.settle(step);
    }

    /// Makes the memory fit the settings, which were others when it came about.
    fn adopt(&mut self, step: &mut Step<'_>) {
        let new = Settings::of(&self.watch);
        let old = std::mem::replace(&mut self.state.settings, new);
        self.changed = true;
        if old.interval_ms != new.interval_ms {
            self.state.lanes.iter_mut().for_each(Lane::renumber);
            // The numbers of rounds under way have no place in the new schedule's history.
            self.state.rounds.iter_mut().for_each(|round| round.number = None);
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
            self.state.rounds.clear();
            self.state.suspicion = None;
            self.state.settle_by = None;
            self.state.degraded = None;
            self.state.unjudged = None;
            self.state.unpassed = Rare::default();
            self.state.lanes.iter_mut().for_each(Lane::drop_counters);
            // Those that are down stay so, and with them what explains it.
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

    /// Some deadline has passed.
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

    /// When [`Machine::handle_timeout`] is to be called next; None while nothing is waited for. In steady state the
    /// answer only ever moves later, so a caller may keep an earlier one and ask again when it fires.
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

    /// True while a round runs, or waits for its second word.
    pub fn has_rounds(&self) -> bool {
        !self.state.rounds.is_empty()
    }

    /// What people see of it at a moment.
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
        }
    }

    /// Regions that can be looked from at all: a pinned one only while a place is enrolled in it.
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
