//! Benchmark of ingestion: results over real QUIC until they are durable, with one agent per region.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parallax_agent::config::AgentConfig;
use parallax_agent::connection::{self, CoordinatorConnection};
use parallax_agent::data_folder::DataFolder;
use parallax_certs::server_verifier::CoordinatorTime;
use parallax_certs::tls;
use parallax_core::plan::Plan;
use parallax_core::vantage::Region;
use parallax_protocol::assignment::{Assignment, ScheduleChangeAssembler};
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::frame::{MAX_FRAME, encode};
use parallax_protocol::id::BootId;
use parallax_protocol::message::{AgentHello, ToAgent, ToCoordinator};
use parallax_protocol::result::{CheckResult, NumberedResult, ProbeReport, WireOutcome, WirePhases};
use parallax_protocol::version::SUPPORTED_MESH_VERSIONS;
use quinn::SendStream;

use super::coordinator::{self, BenchCoordinator, BenchInstallation, Latencies};
use super::stub_coordinator::{StubFrameReader, send};
use super::{figure, now_ms, process_usage};

/// Regions with one agent each.
const REGIONS: usize = 6;
/// Rounds per monitor that are sent before measuring, so that all agents are in step.
const FIRST_ROUNDS: u64 = 1;
/// Number of results of which one carries its phases, as with real agents.
const FULL_EVERY: u64 = 20;
/// Time for connections to settle before measuring.
const SETTLE: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_secs(120);

/// The agent's side of a connection.
pub(super) struct ResultFeeder {
    region: Region,
    _link: CoordinatorConnection,
    _control: SendStream,
    frames: StubFrameReader,
    results: SendStream,
    assignments: Vec<Assignment>,
    latencies: Latencies,
    /// Last round sent, by slot.
    sent: BTreeMap<u32, u64>,
    /// Last sequence number issued, and the last acknowledged.
    seq: u64,
    fed: u64,
    boot: BootId,
}

/// Measures `rounds` rounds of 30 s of `monitors` monitors in six regions.
pub(super) fn ingest(monitors: u32, rounds: u32) {
    let core = process_usage::split_cores();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let made = coordinator::create_installation(monitors, REGIONS, Plan::Pro).await;
        let running = made.serve(core).await;
        let mut feeders = connect(&made, &running).await;
        let pid = running.process.id();
        send_rounds(&mut feeders, FIRST_ROUNDS).await;
        let (mut results, mut cpu) = (0, 0.0);
        for _ in 0..rounds {
            tokio::time::sleep(Duration::from_millis(30_500)).await;
            let before = process_usage::cpu_seconds(pid);
            let fed = send_rounds(&mut feeders, 1).await;
            let took = process_usage::cpu_seconds(pid) - before;
            results += fed;
            cpu += took;
            figure("ingest_round_cpu", took * 1e6 / count(fed), "us/result", "-");
        }
        figure("ingest_results", count(results), "results", "-");
        figure("ingest_per_cpu_second", count(results) / cpu, "results/s", ">=500000");
        figure("ingest_resident_a_monitor", count(process_usage::resident_bytes(pid)) / f64::from(monitors), "B", "-");
        figure("load", process_usage::load(), "-", "-");
    });
}

/// Has every region's agent join and connect, and waits until each has its share of the schedule.
pub(super) async fn connect(made: &BenchInstallation, running: &BenchCoordinator) -> Vec<ResultFeeder> {
    let mut feeders = Vec::new();
    let address = running.ready.mesh.to_string();
    for (region, token) in &made.tokens {
        let data = made.folder.path().join(region.name());
        // It joined during an earlier start.
        if !data.exists() {
            let joined = parallax_agent::join::join(&AgentConfig::new(&data), &address, token).await;
            joined.expect("the coordinator lets it join");
        }
        feeders.push(open(*region, &data, &address).await);
    }
    tokio::time::sleep(SETTLE).await;
    for feeder in &mut feeders {
        feeder.read_schedule().await;
    }
    feeders
}

/// Sends the newest rounds of every monitor from every agent. Returns how many results became durable.
pub(super) async fn send_rounds(feeders: &mut [ResultFeeder], rounds: u64) -> u64 {
    let packed: Vec<_> = feeders.iter_mut().map(|feeder| feeder.unsent_frames(rounds)).collect();
    let feeding = feeders.iter_mut().zip(packed).map(|(feeder, frames)| feeder.send(frames));
    let fed = tokio::time::timeout(PATIENCE, futures_util::future::join_all(feeding)).await;
    fed.expect("everything is acknowledged in time").into_iter().sum()
}

async fn open(region: Region, data: &Path, address: &str) -> ResultFeeder {
    let home = DataFolder::open(data).expect("a home");
    let membership = home.membership().expect("it has joined");
    let clock = tls::clock(|| now_ms() / 1000);
    let known = CoordinatorTime::new(Some(now_ms() / 1000));
    let tls = tls::agent_config(
        &membership.credentials,
        &membership.roots,
        SUPPORTED_MESH_VERSIONS,
        clock,
        Arc::clone(&known),
    );
    let link =
        connection::dial(address, None, tls.expect("TLS settings"), |_| {}).await.expect("the coordinator answers");
    let (mut control, receiving) = link.connection.open_bi().await.expect("a stream");
    let boot = BootId(now_ms().unsigned_abs());
    let hello = AgentHello {
        software: "bench".into(),
        boot,
        earlier_boots: Vec::new(),
        schedule: None,
        wall_ms: now_ms(),
        kinds: Vec::new(),
        faults: Vec::new(),
        certificate_ends_ms: now_ms() + 86_400_000,
    };
    send(&mut control, &ToCoordinator::Hello(hello)).await;
    let results = link.connection.open_uni().await.expect("a stream");
    ResultFeeder {
        region,
        _link: link,
        _control: control,
        frames: StubFrameReader::new(receiving, MAX_FRAME),
        results,
        assignments: Vec::new(),
        latencies: Latencies::new(region.index() as u64 + 1),
        sent: BTreeMap::new(),
        seq: 0,
        fed: 0,
        boot,
    }
}

impl ResultFeeder {
    /// Reads schedule frames from the coordinator until none arrive for a moment.
    async fn read_schedule(&mut self) {
        let mut plan: BTreeMap<u32, Assignment> = BTreeMap::new();
        let mut parts = ScheduleChangeAssembler::default();
        while let Ok(Some(frame)) =
            tokio::time::timeout(Duration::from_millis(500), self.frames.next::<ToAgent>()).await
        {
            let (ToAgent::Schedule(part) | ToAgent::ScheduleByAccount { change: part, .. }) = frame else {
                continue;
            };
            let Some(change) = parts.push(part).expect("parts that fit") else { continue };
            if change.base.is_none() {
                plan.clear();
            }
            plan.retain(|_, assignment| !change.drop.contains(&assignment.monitor));
            plan.extend(change.put.into_iter().map(|assignment| (assignment.slot, assignment)));
        }
        self.assignments = plan.into_values().collect();
        assert!(!self.assignments.is_empty(), "{:?} has nothing to do", self.region);
    }

    /// Returns the newest unsent rounds, packed as an agent packs them: by due time, in batches sorted by slot.
    fn unsent_frames(&mut self, rounds: u64) -> Vec<Vec<u8>> {
        let now = now_ms();
        let mut due: Vec<(i64, u32, u64)> = Vec::new();
        for assignment in &self.assignments {
            let newest = assignment.round_at(now);
            let first = (newest + 1).saturating_sub(rounds);
            let after = self.sent.get(&assignment.slot).map_or(first, |sent| first.max(sent + 1));
            due.extend((after..=newest).map(|round| (assignment.round_start_ms(round), assignment.slot, round)));
            self.sent.insert(assignment.slot, newest);
        }
        due.sort_unstable();
        let by_slot: BTreeMap<u32, &Assignment> = self.assignments.iter().map(|a| (a.slot, a)).collect();
        let slot_of: BTreeMap<_, u32> = self.assignments.iter().map(|a| (a.monitor, a.slot)).collect();
        let mut frames = Vec::new();
        for some in due.chunks_mut(ResultBatch::MAX) {
            some.sort_unstable_by_key(|&(_, slot, round)| (slot, round));
            let mut results = Vec::with_capacity(some.len());
            for &mut (at, slot, round) in some {
                self.seq += 1;
                let assignment = by_slot[&slot];
                let latency_ms = self.latencies.next(slot, self.region);
                let mut report = ProbeReport::outcome_only(WireOutcome::Passed);
                report.latency_ms = Some(latency_ms);
                report.status_code = Some(200);
                if self.seq.is_multiple_of(FULL_EVERY) {
                    report.phases = WirePhases { connect_us: Some(900), tls_us: Some(2_000), ..WirePhases::default() };
                    report.address = Some("192.0.2.1".parse().expect("an address"));
                }
                let started_ms = at + 3;
                let age_ms = (now - started_ms - i64::from(latency_ms)).max(0).unsigned_abs();
                let (monitor, revision) = (assignment.monitor, assignment.revision);
                let result = CheckResult { monitor, revision, round: Some(round), started_ms, age_ms, report };
                results.push(NumberedResult { seq: self.seq, result });
            }
            let batch = ResultBatch::pack(self.boot, now, &results, |monitor| slot_of.get(&monitor).copied());
            let frame = ResultFrame::Batch(batch.expect("a batch that packs"));
            frames.push(encode(&frame, MAX_FRAME).expect("a frame that fits"));
        }
        frames
    }

    /// Sends frames and waits until the last result is acknowledged. Returns the number of results.
    async fn send(&mut self, frames: Vec<Vec<u8>>) -> u64 {
        let Self { results, frames: control, seq, fed, .. } = self;
        let sending = async {
            for frame in &frames {
                results.write_all(frame).await.expect("the coordinator reads");
            }
        };
        let mut acknowledged = 0;
        let hearing = async {
            while acknowledged < *seq {
                match control.next::<ToAgent>().await.expect("the coordinator stays") {
                    ToAgent::Ack(mark) => acknowledged = mark.through,
                    ToAgent::Closing { reason } => panic!("closed: {reason}"),
                    _ => {}
                }
            }
        };
        tokio::join!(sending, hearing);
        *seq - std::mem::replace(fed, *seq)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a count")]
fn count(number: u64) -> f64 {
    number as f64
}
