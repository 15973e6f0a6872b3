//! One monitor's day: agents that keep their schedule whatever happens, a coordinator that commits, crashes and
//! restarts from its stored state, and a mesh that is slow, duplicates messages and loses them.

mod acts;
mod agents;

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::assign::ScheduleShare;
use parallax_core::check::CheckKind;
use parallax_core::event::{AlertKind, EventKind, MonitorStatus, ProbeResponse};
use parallax_core::machine::{FinishedRound, MachineOutput, MachineState, MachineStep, MonitorMachine};
use parallax_core::observation::{Observation, Reading, RoundOutcome};
use parallax_core::time::{DAY, MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, Region, Vantage};

use super::invariants::{Invariants, JOURNAL};
use super::plan::{DayAction, DayPlan, DayTargetState, FaultScope};
use super::seeded_random::SeededRandom;

/// Maximum size of a machine's stored state, in bytes.
const STATE_BYTES: usize = 24 * 1024;
/// Milliseconds from a change to its commit.
const COMMIT: i64 = 30;
/// Maximum number of probe requests in one hour: six regions, each with second rounds, confirmations by three
/// vantages and sweeps, all the time.
const QUESTIONS: usize = 6_000;

/// Scheduled action or message in transit, by real time.
enum Next {
    Act(DayAction),
    /// Next scheduled round of a vantage, with the number of its plan.
    Due(usize, u64, u64),
    /// Result of a vantage, with the number of the connection that it was sent on.
    Result(usize, u64, u64, Observation),
    /// Probe request, with its connection and coordinator life.
    Question(usize, u64, u64, u32),
    Answer(u64, u32, ProbeResponse),
    Commit(u64),
}

/// One agent.
struct Agent {
    vantage: Vantage,
    enrolled: bool,
    /// Incremented whenever its connection ends.
    connection: u64,
    plan: u64,
    share: Option<ScheduleShare>,
    revision: u32,
    /// Finished results that are not acknowledged.
    unsent: BTreeMap<u64, Observation>,
}

/// Process of the coordinator.
struct Process {
    machine: MonitorMachine,
    /// Outputs not committed yet.
    uncommitted: Vec<MachineOutput>,
    /// Results received but not acknowledged yet: agent and number.
    unacknowledged: Vec<(usize, u64)>,
    commit_due: bool,
    frozen: Option<Timestamp>,
}

pub(crate) struct SimulatedDay {
    chance: SeededRandom,
    plan: DayPlan,
    start: i64,
    now: i64,
    skew: i64,
    queue: BTreeMap<(i64, u64), Next>,
    count: u64,
    agents: Vec<Agent>,
    process: Option<Process>,
    life: u64,
    written: MachineState,
    alive: Timestamp,
    journal: Vec<(i64, Reading)>,
    windows: usize,
    target_states: Vec<(u64, FaultScope, DayTargetState)>,
    calm: Option<(i64, DayTargetState)>,
    invariants: Invariants,
    /// Rounds that ended and reached the coordinator: each must be in history.
    ran: BTreeSet<(Region, u64)>,
    /// Rounds that need not be stored: they arrived while the monitor was paused, or from a vantage that does not
    /// count.
    excused: BTreeSet<(Region, u64)>,
    questions: Vec<i64>,
    failed_second: usize,
}

impl SimulatedDay {
    /// Simulates the day of that seed. Returns a digest of all outputs, and the alerts.
    pub(crate) fn simulate(seed: u64) -> (u64, BTreeMap<AlertKind, usize>) {
        let mut chance = SeededRandom::new(seed);
        let plan = DayPlan::of(&mut chance);
        let start = 20_000 * DAY;
        let agents = plan.vantages.iter().map(|vantage| Agent {
            vantage: *vantage,
            enrolled: true,
            connection: 0,
            plan: 0,
            share: None,
            revision: 1,
            unsent: BTreeMap::new(),
        });
        let networks = plan.vantages.iter().map(|vantage| (vantage.no, vantage.network)).collect();
        let mut held = Invariants::new(plan.settings.kind.is_regional(), networks);
        held.unique = plan.numbered;
        let mut world = Self {
            agents: agents.collect(),
            chance,
            start,
            now: start,
            skew: 0,
            queue: BTreeMap::new(),
            count: 0,
            process: None,
            life: 0,
            written: MachineState::default(),
            alive: Timestamp::from_millis(start),
            journal: Vec::new(),
            windows: 0,
            target_states: Vec::new(),
            calm: None,
            invariants: held,
            ran: BTreeSet::new(),
            excused: BTreeSet::new(),
            questions: Vec::new(),
            failed_second: 0,
            plan,
        };
        for (at, act) in std::mem::take(&mut world.plan.acts) {
            world.schedule(start + at, Next::Act(act));
        }
        world.begin();
        while world.turn() {}
        world.end();
        (world.invariants.digest, world.invariants.alerts)
    }

    fn schedule(&mut self, at: i64, next: Next) {
        self.count += 1;
        self.queue.insert((at.max(self.now), self.count), next);
    }

    /// Time on the coordinator's clock.
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.now + self.skew)
    }

    fn mesh(&self) -> Mesh {
        Mesh::new(self.agents.iter().filter(|agent| agent.enrolled).map(|agent| agent.vantage))
    }

    fn is_up(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.frozen.is_none())
    }

    /// Runs the next deadline of the machine or the next queued action. Returns false at the end of the day.
    fn turn(&mut self) -> bool {
        let outside = self.queue.keys().next().map(|(at, _)| *at);
        let inside = self.process.as_ref().filter(|process| process.frozen.is_none());
        let inside = inside.and_then(|process| process.machine.poll_timeout());
        let inside = inside.map(|at| (at.as_millis() - self.skew).max(self.now));
        let end = self.start + DAY;
        match (outside, inside) {
            (outside, Some(inside)) if outside.is_none_or(|outside| inside <= outside) && inside < end => {
                let before = self.now;
                self.now = inside;
                self.step(MonitorMachine::handle_timeout);
                let next = self.process.as_ref().and_then(|process| process.machine.poll_timeout());
                let stands = next.is_some_and(|at| at <= self.wall()) && before == inside;
                self.failed_second = if stands { self.failed_second + 1 } else { 0 };
                assert!(self.failed_second < 64, "the timeout makes no progress");
                true
            }
            (Some(outside), _) if outside < end => {
                let Some(((at, _), next)) = self.queue.pop_first() else { return false };
                self.now = at;
                self.handle(next);
                true
            }
            _ => false,
        }
    }

    fn handle(&mut self, next: Next) {
        match next {
            Next::Act(act) => self.act(act),
            Next::Due(index, plan, round) => self.due(index, plan, round),
            Next::Result(index, connection, number, seen) => self.result(index, connection, number, seen),
            Next::Question(index, connection, life, number) => self.question(index, connection, life, number),
            Next::Answer(life, number, answer) => {
                if life == self.life && self.is_up() {
                    let answer = match answer {
                        ProbeResponse::Observed(seen) => ProbeResponse::Observed(self.in_coordinator_time(seen)),
                        ProbeResponse::NoResponse => ProbeResponse::NoResponse,
                    };
                    self.step(|machine, step| machine.handle_response(number, answer, step));
                } else if life == self.life && self.process.is_some() {
                    self.schedule(self.now + SECOND, Next::Answer(life, number, answer));
                }
            }
            Next::Commit(life) => {
                if life == self.life && self.is_up() {
                    self.commit();
                } else if life == self.life {
                    self.schedule(self.now + SECOND, Next::Commit(life));
                }
            }
        }
    }

    /// Converts the real times of a vantage to the coordinator's current clock.
    fn in_coordinator_time(&self, mut seen: Observation) -> Observation {
        seen.started = (seen.started + self.skew).min(self.wall());
        seen.ended = seen.ended + self.skew;
        seen
    }

    fn step(&mut self, act: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>)) {
        let (now, mesh, mut out) = (self.wall(), self.mesh(), Vec::new());
        let Some(process) = self.process.as_mut().filter(|process| process.frozen.is_none()) else { return };
        act(&mut process.machine, &mut MachineStep { now, mesh: &mesh, out: &mut out });
        self.handle_outputs(out);
    }

    /// Handles the outputs of a step.
    fn handle_outputs(&mut self, out: Vec<MachineOutput>) {
        let Some(process) = &mut self.process else { return };
        self.alive = Timestamp::from_millis(self.now + self.skew);
        let mut requests = Vec::new();
        for output in out {
            match &output {
                MachineOutput::Probe(ask) => requests.push(*ask),
                MachineOutput::Event(what) => {
                    if let EventKind::StatusChanged(change) = &**what {
                        assert!(change.alert.is_none() || self.windows == 0, "no alerts during a window: {change:?}");
                    }
                }
                MachineOutput::Reading(_) => {}
            }
            process.uncommitted.push(output);
        }
        if !process.commit_due {
            process.commit_due = true;
            let life = self.life;
            self.schedule(self.now + COMMIT, Next::Commit(life));
        }
        for ask in requests {
            self.questions.retain(|at| self.now - at < 60 * MINUTE);
            self.questions.push(self.now);
            assert!(self.questions.len() < QUESTIONS, "too many probe requests");
            if let Some((since, mood)) = self.calm {
                let settled = self.now - since > 25 * MINUTE && self.plan.settings.kind == CheckKind::Tcp;
                let quiet = matches!(mood, DayTargetState::Up(_));
                assert!(!settled || !quiet, "no probe requests while everything is up: {ask:?}");
            }
            let index = self.agents.iter().position(|agent| agent.vantage.no == ask.vantage);
            let index = index.filter(|index| self.agents[*index].vantage.connected);
            let hop = self.chance.span(10, 400);
            match index {
                Some(index) => {
                    let connection = self.agents[index].connection;
                    self.schedule(self.now + hop, Next::Question(index, connection, self.life, ask.number));
                }
                None => self.schedule(self.now + 1, Next::Answer(self.life, ask.number, ProbeResponse::NoResponse)),
            }
        }
    }

    fn commit(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.commit_due = false;
        if process.machine.take_changed() {
            let bytes = postcard::to_allocvec(process.machine.state()).unwrap();
            assert!(bytes.len() < STATE_BYTES, "{} bytes of state", bytes.len());
            self.written = postcard::from_bytes(&bytes).unwrap();
            assert!(&self.written == process.machine.state(), "the state survives a round trip");
        }
        let (fresh, heard) = (std::mem::take(&mut process.uncommitted), std::mem::take(&mut process.unacknowledged));
        for output in &fresh {
            self.invariants.take(output, self.life, self.now);
            if let MachineOutput::Reading(finished) = output {
                self.journal.push((self.now, as_reading(finished)));
            }
        }
        let process = self.process.as_ref();
        let view = process.map(|process| process.machine.view(&self.mesh(), self.wall()));
        if let Some(view) = view {
            assert_eq!(view.status, self.invariants.status, "no status without an event");
            assert_eq!(view.since, self.invariants.since, "since changes only with an event");
            assert!(view.down_from.is_none() || view.status == MonitorStatus::Down);
        }
        for (index, number) in heard {
            if let Some(seen) = self.agents[index].unsent.remove(&number)
                && let Some(round) = seen.round
            {
                self.ran.insert((self.invariants.lane(seen.region), round));
            }
        }
    }

    /// Starts the process with the stored state and an empty mesh.
    fn begin(&mut self) {
        self.life += 1;
        let (now, mesh, mut out) = (self.wall(), Mesh::default(), Vec::new());
        let settings = self.plan.settings.clone();
        let mut step = MachineStep { now, mesh: &mesh, out: &mut out };
        let mut machine = if self.written == MachineState::default() {
            MonitorMachine::new(settings, &mut step)
        } else {
            let mut written = self.written.clone();
            if self.windows > 0 {
                written.begin_window();
            }
            MonitorMachine::restore(settings, written, self.alive, &mut step)
        };
        machine.handle_window(self.windows > 0, &mut step);
        self.journal.retain(|(at, _)| self.now - at < JOURNAL);
        self.journal.iter().for_each(|(_, reading)| machine.replay(reading));
        self.process = Some(Process {
            machine,
            uncommitted: Vec::new(),
            unacknowledged: Vec::new(),
            commit_due: false,
            frozen: None,
        });
        self.handle_outputs(out);
        self.forget_while_paused();
        // Agents reconnect one by one.
        let there: Vec<usize> = (0..self.agents.len()).filter(|at| self.agents[*at].vantage.connected).collect();
        for index in &there {
            self.agents[*index].vantage.connected = false;
        }
        self.step(MonitorMachine::handle_mesh);
        for index in there {
            let after = self.chance.span(100, 6 * SECOND);
            self.schedule(self.now + after, Next::Act(DayAction::Connect(index, true)));
        }
    }

    /// Checks that every round that was run and delivered is in history, once.
    fn end(&mut self) {
        if self.is_up() {
            self.commit();
        }
        if !self.plan.numbered {
            return;
        }
        let old = u64::try_from((self.now - 10 * MINUTE) / i64::from(self.plan.settings.interval_ms)).unwrap_or(0);
        let missing: Vec<&(Region, u64)> = self
            .ran
            .iter()
            .filter(|key| key.1 < old && !self.invariants.stored.contains_key(key) && !self.excused.contains(key))
            .collect();
        assert!(missing.is_empty(), "rounds missing from history: {missing:?}");
    }
}

fn as_reading(finished: &FinishedRound) -> Reading {
    Reading {
        slot: 1,
        region: finished.region,
        vantage: finished.vantage,
        round: finished.round,
        due: finished.started,
        outcome: finished.outcome,
        latency_ms: finished.latency_ms.filter(|_| finished.outcome == RoundOutcome::Passed),
    }
}
