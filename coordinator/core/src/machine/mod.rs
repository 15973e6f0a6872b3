//! One monitor's life: observations, answers, beats and deadlines go in; questions, readings and changes come out.
//!
//! A machine is a plain value in quinn's manner: the `handle_*` methods take what arrived, [`Machine::poll_timeout`]
//! says when to call [`Machine::handle_timeout`] next, and `now` and the mesh are always arguments. What comes out is
//! pushed to the [`Step`]'s list. Rounds live in `round`, suspicions and sweeps in `suspicion`, the monitor's status in
//! `status`.

mod beat;
mod round;
mod second;
mod state;
mod status;
mod suspicion;
mod view;

pub use state::State;
pub use view::{LastCheck, View};

use crate::event::{Answer, Ask, Status, What};
use crate::observation::{Facts, Observation, Outcome, Reading, Word};
use crate::place::{Mesh, PlaceNo, Region};
use crate::slowness::Passed;
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::verdict::Standing;
use crate::watch::Watch;

/// Milliseconds that a check waits for its answer before its place says so.
pub const PENDING_AFTER: i64 = 3 * SECOND;
/// Milliseconds after a start in which agents come back.
const REJOIN: i64 = 15 * SECOND;
/// Milliseconds after a start between two looks for an agent that is to be asked.
const REJOIN_LOOK: i64 = SECOND;
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
    /// Until then agents come back after a start of ours: who is not there yet is waited for.
    rejoin_until: Timestamp,
    /// The state has left what the readings alone would tell, and must be written.
    changed: bool,
}

impl Machine {
    /// The machine of a new monitor. It asks every region for a first round at once.
    pub fn new(watch: Watch, step: &mut Step<'_>) -> Self {
        let state = State { untried: true, ..State::default() };
        let mut machine = Self { watch, state, born: step.now, rejoin_until: step.now, changed: true };
        machine.ask_first_rounds(step);
        machine
    }

    /// A machine back from storage. Questions that were open are asked again; `away_since` is when the coordinator was
    /// last known to run.
    pub fn restore(watch: Watch, state: State, away_since: Timestamp, step: &mut Step<'_>) -> Self {
        let rejoin_until = step.now + REJOIN;
        let mut machine = Self { watch, state, born: step.now, rejoin_until, changed: false };
        machine.resume_beat(away_since, step);
        machine.resume_rounds(step);
        machine
    }

    /// What it must remember, to be written.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What it watches.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Whether the state must be written since it was last asked; asking resets it.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A plain pass in steady state, which is almost every observation: noted without looking any further. None when
    /// the observation needs [`Machine::handle_observation`].
    pub fn note_steady(&mut self, observation: &Observation, now: Timestamp) -> Option<Finished> {
        let Outcome::Passed(facts) = &observation.outcome else { return None };
        let round = observation.round?;
        if !self.is_steady() || observation.revision != self.watch.revision || self.watch.paused {
            return None;
        }
        let threshold = self.watch.threshold(observation.region);
        if self.state.status != Status::Up
            || facts.latency_ms.zip(threshold).is_some_and(|(latency, threshold)| latency > threshold)
        {
            return None;
        }
        let lane = self.state.lanes.get_mut(self.watch.lane(observation.region))?;
        let is_news = lane.standing == Standing::Up
            && lane.first_failed.is_none()
            && lane.newest.is_none_or(|newest| observation.started > newest)
            && now.since(observation.started) <= LATE;
        if !is_news || !lane.note_round(round) {
            return None;
        }
        lane.newest = Some(observation.started);
        lane.fresh = Some(now);
        let latency_ms = facts.latency_ms.filter(|_| self.watch.kind.has_latency());
        if let (Some(latency_ms), true) = (latency_ms, threshold.is_some()) {
            lane.readings.insert(Passed {
                place: observation.place,
                started: observation.started,
                latency_ms,
            });
        }
        if self.watch.uptime_regions.is_none_or(|set| set.contains(observation.region)) {
            self.state.last_check = Some(LastCheck::passed(observation.ended, facts));
        }
        Some(Finished {
            region: observation.region,
            place: observation.place,
            round,
            word: Word::Passed,
            latency_ms,
        })
    }

    /// A place's observation of a scheduled round: pending, or its outcome.
    pub fn handle_observation(&mut self, observation: Observation, step: &mut Step<'_>) {
        if self.watch.paused || observation.revision != self.watch.revision {
            return;
        }
        if self.watch.pinned.is_some_and(|pinned| pinned != observation.region) {
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
        if self.watch.paused || self.watch.beat.is_some() {
            return;
        }
        let enrolled = self.watch.regions(step.mesh);
        for region in Region::ALL.into_iter().filter(|region| !enrolled.contains(*region)) {
            if let Some(lane) = self.state.lanes.get_mut(region.index())
                && lane.standing != Standing::Unknown
            {
                lane.standing = Standing::Unknown;
                lane.first_failed = None;
                self.changed = true;
            }
        }
        if self.state.untried {
            self.ask_first_rounds(step);
        }
        self.settle(step);
    }

    /// The monitor, its page or its plan changed. Everything is judged anew at once.
    pub fn handle_edit(&mut self, watch: Watch, step: &mut Step<'_>) {
        let old = std::mem::replace(&mut self.watch, watch);
        self.changed = true;
        if self.watch.paused {
            self.pause(step);
            return;
        }
        if let Some((period, grace)) = self.watch.beat
            && old.beat != self.watch.beat
        {
            self.state.pulse.retime(period, grace);
        }
        if old.revision != self.watch.revision || old.paused {
            self.state.rounds.clear();
            self.state.suspicion = None;
            self.state.settle_by = None;
            self.state.lanes.iter_mut().for_each(crate::verdict::Lane::drop_counters);
            self.ask_first_rounds(step);
        }
        self.handle_mesh(step);
        self.settle(step);
    }

    /// Some deadline has passed.
    pub fn handle_timeout(&mut self, step: &mut Step<'_>) {
        if self.watch.paused {
            return;
        }
        self.expire_rounds(step);
        self.ask_second_rounds(step);
        self.follow_up(step);
        self.go_stale(step);
        self.check_pulse(step);
        self.settle(step);
    }

    /// When [`Machine::handle_timeout`] is to be called next; None while nothing is waited for. In steady state the
    /// answer only ever moves later, so a caller may keep an earlier one and ask again when it fires.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.watch.paused {
            return None;
        }
        let rounds = self.state.rounds.iter().filter_map(|round| self.round_deadline(round));
        let lanes = self.state.lanes.iter().enumerate().filter_map(|(lane, _)| self.stale_at(lane));
        rounds
            .chain(lanes)
            .chain(self.second_rounds_at())
            .chain(self.state.settle_by)
            .chain(self.follow_up_at())
            .chain(self.pulse_deadline())
            .min()
    }

    /// A finished round out of the journal, written after the state was: noted as it was then, without consequence.
    pub fn replay(&mut self, reading: &Reading) {
        let Some(lane) = self.state.lanes.get_mut(self.watch.lane(reading.region)) else { return };
        if !lane.note_round(reading.round) || lane.newest.is_some_and(|newest| newest >= reading.due) {
            return;
        }
        lane.newest = Some(reading.due);
        lane.fresh = Some(reading.due);
        if let Some(latency_ms) = reading.latency_ms {
            lane.readings.insert(Passed { place: reading.place, started: reading.due, latency_ms });
        }
        let ended = reading.due + i64::from(reading.latency_ms.unwrap_or(0));
        if reading.word == Word::Passed && self.state.last_check.as_ref().is_none_or(|last| last.at < ended) {
            let facts = Facts { latency_ms: reading.latency_ms, ..Facts::default() };
            self.state.last_check = Some(LastCheck::passed(ended, &facts));
        }
    }

    /// What people see of it.
    pub fn view(&self, mesh: &Mesh) -> View {
        View {
            status: self.state.status,
            since: self.state.since,
            down_from: self.state.down_from,
            last_check: self.state.last_check.clone(),
            expires_at: self.state.expires_at,
            last_ping_at: self.state.pulse.last,
            unconfirmable: !crate::confirm::can_confirm(&self.watch, mesh),
        }
    }

    /// Whether nothing is under way: no round, no suspicion, no waiting.
    fn is_steady(&self) -> bool {
        self.state.rounds.is_empty()
            && self.state.suspicion.is_none()
            && self.state.settle_by.is_none()
            && !self.state.untried
    }
}
