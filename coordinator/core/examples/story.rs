//! A story by hand: feeds observations to one machine and prints its outputs.
//!
//! Run it with `cargo run -p parallax-core --example story`.
//! The rules have no clock and no network: time, mesh and results are arguments. A target answers, then refuses
//! connections, then answers again; every probe request is answered by its vantage in the same way.

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeMap;

use parallax_core::check::CheckKind;
use parallax_core::effective::{ConfirmationPolicy, EffectiveSettings};
use parallax_core::event::{EventKind, ProbeResponse};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{MachineOutput, MachineStep, MonitorMachine};
use parallax_core::observation::{Failure, Measurements, Observation, ProbeOutcome};
use parallax_core::time::{MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, NetworkNo, Region, RegionSet, Vantage, VantageNo};

/// Start of the story.
const START: Timestamp = Timestamp::from_millis(1_795_783_560_000);
/// Interval between two rounds in one region.
const INTERVAL_MS: u32 = 60_000;

/// A machine with its mesh, and the outcome with which every check ends now.
struct Story {
    machine: MonitorMachine,
    mesh: Mesh,
    now: Timestamp,
    outcome: ProbeOutcome,
}

fn main() {
    // Two regions, three networks: any failure can be confirmed, and any dispute decided.
    let mesh = Mesh::new([(1, Region::Europe), (2, Region::Europe), (3, Region::Asia)].map(|(no, region)| Vantage {
        no: VantageNo(no),
        region,
        network: NetworkNo(no),
        connected: true,
        quarantined: false,
        unfit: false,
    }));

    println!("the monitor is created");
    let mut out = Vec::new();
    let machine = MonitorMachine::new(settings(), &mut MachineStep { now: START, mesh: &mesh, out: &mut out });
    let mut story = Story { machine, mesh, now: START, outcome: passed() };
    story.handle(out);

    story.pass_time(MINUTE);
    println!("the target refuses connections");
    story.outcome = refused();
    story.scheduled_round(VantageNo(1));
    story.pass_time(20 * SECOND);

    println!("the target answers again");
    story.outcome = passed();
    story.pass_time(40 * SECOND);
    story.scheduled_round(VantageNo(2));
    story.pass_time(10 * SECOND);

    println!("reasons for the status now:");
    for reason in story.machine.inspect(&story.mesh, story.now).reasons {
        println!("  {reason}");
    }
}

impl Story {
    /// Runs a scheduled round of that vantage now.
    fn scheduled_round(&mut self, vantage: VantageNo) {
        let round = self.now.as_millis().unsigned_abs() / u64::from(INTERVAL_MS);
        let Some(seen) = self.observation(vantage, Some(round)) else { return };
        let mut out = Vec::new();
        self.machine.handle_observation(seen, &mut MachineStep { now: self.now, mesh: &self.mesh, out: &mut out });
        self.handle(out);
    }

    /// Moves the time forward and fires the machine's deadlines on the way.
    fn pass_time(&mut self, millis: i64) {
        let until = self.now + millis;
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            let mut out = Vec::new();
            self.machine.handle_timeout(&mut MachineStep { now: self.now, mesh: &self.mesh, out: &mut out });
            self.handle(out);
        }
        self.now = until;
    }

    /// Prints outputs, then answers the probe requests among them, until there are no more.
    fn handle(&mut self, outputs: Vec<MachineOutput>) {
        let second = self.now.since(START) / SECOND;
        let print = |text: String| println!("  {second:>3} s  {text}");
        let mut requests = Vec::new();
        for output in outputs {
            match output {
                MachineOutput::Probe(request) => {
                    print(format!("probe request to vantage {}: {}", request.vantage.0, request.reason.name()));
                    requests.push(request);
                }
                MachineOutput::Reading(round) => {
                    print(format!("reading in {}: {}", round.region, round.outcome.name()))
                }
                MachineOutput::Event(event) => match *event {
                    EventKind::StatusChanged(change) => print(format!(
                        "event: {} to {}, alert: {}",
                        change.from.name(),
                        change.to.name(),
                        change.alert.map_or("none", |alert| alert.name())
                    )),
                    EventKind::Round(report) => print(format!(
                        "event: round ({}) in {}: {}",
                        report.reason.name(),
                        report.region,
                        report.round_outcome.name()
                    )),
                    other => print(format!("event: {other:?}")),
                },
            }
        }
        for request in requests {
            let Some(seen) = self.observation(request.vantage, None) else { continue };
            let (response, mut out) = (ProbeResponse::Observed(seen), Vec::new());
            let mut step = MachineStep { now: self.now, mesh: &self.mesh, out: &mut out };
            self.machine.handle_response(request.number, response, &mut step);
            self.handle(out);
        }
    }

    /// Builds the observation of a check that the vantage runs now.
    fn observation(&self, vantage: VantageNo, round: Option<u64>) -> Option<Observation> {
        let Vantage { region, network, .. } = *self.mesh.vantage(vantage)?;
        let (started, ended) = (self.now, self.now);
        Some(Observation {
            revision: 1,
            region,
            vantage,
            network,
            round,
            started,
            ended,
            outcome: self.outcome.clone(),
        })
    }
}

fn settings() -> EffectiveSettings {
    EffectiveSettings {
        monitor: MonitorId::from_u128(7),
        account: AccountId::from_u128(1),
        revision: 1,
        kind: CheckKind::Tcp,
        interval_ms: INTERVAL_MS,
        pinned: None,
        uptime_regions: None,
        latency_regions: RegionSet::only(Region::Europe),
        slow_threshold_ms: None,
        slow_thresholds: BTreeMap::new(),
        heartbeat: None,
        confirmation: ConfirmationPolicy::OtherNetwork,
        repeat_minutes: None,
        paused: false,
        acknowledged_outage: None,
    }
}

fn passed() -> ProbeOutcome {
    ProbeOutcome::Passed(Measurements { latency_ms: Some(40), ..Measurements::default() })
}

fn refused() -> ProbeOutcome {
    ProbeOutcome::Failed(Measurements::default(), Failure::Refused)
}
