//! Past of the vendor's component, which has no rounds in history: its machine is run through an outage and keeps the
//! record of its downtime.

use parallax_core::event::{Event, EventKind, ProbeRequest, ProbeResponse};
use parallax_core::machine::{MachineOutput, MachineStep, MonitorMachine};
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{Mesh, NetworkNo, Vantage, VantageNo};

use super::super::demo_agents::DEMO_AGENTS;
use super::readings::{ComponentPast, SimulatedMonitor};
use super::script::{Calendar, OUTAGES, ScriptedOutage};

/// Milliseconds that a check takes.
const DURATION: i64 = 300;
/// Milliseconds after a change within which all checks that it causes have ended.
const SETTLED_AFTER: i64 = 20 * SECOND;
/// Outputs and deadlines handled after one change, at most.
const MAX_STEPS: usize = 1000;

/// Runs the machine of a component through its outages. The machine is paused and resumed at the end, so that it waits
/// for new checks once the coordinator runs.
pub(super) fn component_past(calendar: Calendar, monitor: &SimulatedMonitor) -> ComponentPast {
    let mut run = ComponentRun::start(calendar, monitor);
    for outage in OUTAGES.iter().filter(|outage| outage.monitors.contains(&monitor.key)) {
        run.pass_through(calendar, outage);
    }
    let mut settings = monitor.settings.clone();
    settings.paused = true;
    run.step(calendar.now, |machine, step| machine.handle_edit(settings, step));
    run.step(calendar.now, |machine, step| machine.handle_edit(monitor.settings.clone(), step));
    ComponentPast { state: run.machine.state().clone(), events: run.events }
}

/// A machine that is run.
struct ComponentRun<'a> {
    monitor: &'a SimulatedMonitor,
    mesh: Mesh,
    machine: MonitorMachine,
    requests: Vec<ProbeRequest>,
    events: Vec<Event>,
    /// Failure that every check finds; none if checks pass.
    failure: Option<Failure>,
}

impl<'a> ComponentRun<'a> {
    /// Creates the machine at the start of the history; its first check passes.
    fn start(calendar: Calendar, monitor: &'a SimulatedMonitor) -> Self {
        let agents = (monitor.first_agent.0..).zip(&DEMO_AGENTS);
        let mesh = Mesh::new(agents.map(|(number, agent)| Vantage {
            no: VantageNo(number),
            region: agent.region,
            network: NetworkNo(u16::from(agent.network != DEMO_AGENTS[0].network)),
            connected: true,
            quarantined: false,
            unfit: false,
        }));
        let (now, mut out) = (calendar.from(), Vec::new());
        let mut step = MachineStep { now, mesh: &mesh, out: &mut out };
        let machine = MonitorMachine::new(monitor.settings.clone(), &mut step);
        let (requests, events) = (Vec::new(), Vec::new());
        let mut run = Self { monitor, mesh, machine, requests, events, failure: None };
        run.take(now, out);
        run.settle(now);
        // Its creation is no event of its outages.
        run.events.clear();
        run
    }

    /// Lets a round fail at the start of the outage, and one pass at its end.
    fn pass_through(&mut self, calendar: Calendar, outage: &ScriptedOutage) {
        let span = calendar.span(outage.start, outage.minutes);
        for (at, failure) in [(span.from, Some((outage.failure)())), (span.to, None)] {
            self.failure = failure;
            let round = at.as_millis().checked_div(i64::from(self.monitor.interval_ms()));
            let round = round.and_then(|round| u64::try_from(round).ok());
            let Some(observation) = self.observation(self.monitor.first_agent, round, at) else { return };
            self.step(at + DURATION, |machine, step| machine.handle_observation(observation, step));
            self.settle(at);
        }
    }

    /// Answers requests and lets deadlines pass until nothing is left to do.
    fn settle(&mut self, from: Timestamp) {
        let mut now = from;
        for _ in 0..MAX_STEPS {
            if let Some(request) = self.requests.pop() {
                now = now + DURATION;
                let observation = self.observation(request.vantage, None, now - DURATION);
                let response = observation.map_or(ProbeResponse::NoResponse, ProbeResponse::Observed);
                self.step(now, |machine, step| machine.handle_response(request.number, response, step));
                continue;
            }
            match self.machine.poll_timeout() {
                Some(at) if at <= from + SETTLED_AFTER => {
                    now = now.max(at);
                    self.step(now, MonitorMachine::handle_timeout);
                }
                _ => return,
            }
        }
    }

    fn step(&mut self, now: Timestamp, input: impl FnOnce(&mut MonitorMachine, &mut MachineStep<'_>)) {
        let mut out = Vec::new();
        input(&mut self.machine, &mut MachineStep { now, mesh: &self.mesh, out: &mut out });
        self.take(now, out);
    }

    fn take(&mut self, at: Timestamp, out: Vec<MachineOutput>) {
        let (page, monitor) = (Some(self.monitor.record.page), Some(self.monitor.record.id));
        for output in out {
            match output {
                MachineOutput::Probe(request) => self.requests.push(request),
                MachineOutput::Event(kind) if matches!(*kind, EventKind::StatusChanged(_)) => {
                    self.events.push(Event { at, page, monitor, kind: *kind });
                }
                MachineOutput::Event(_) | MachineOutput::Reading(_) => {}
            }
        }
    }

    fn observation(&self, vantage: VantageNo, round: Option<u64>, started: Timestamp) -> Option<Observation> {
        let vantage = self.mesh.vantage(vantage)?;
        let outcome = match &self.failure {
            Some(failure) => ProbeOutcome::Failed(Measurements::default(), failure.clone()),
            None => ProbeOutcome::Passed(Measurements::default()),
        };
        Some(Observation {
            revision: self.monitor.record.revision,
            region: vantage.region,
            vantage: vantage.no,
            network: vantage.network,
            round,
            started,
            ended: started + DURATION,
            outcome,
        })
    }
}
