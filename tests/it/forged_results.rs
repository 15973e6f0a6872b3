//! A malicious agent with a valid certificate that reports more than its share: rounds of another agent, rounds that
//! are not due yet, and endless status reports.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_agent::connection::{self, CoordinatorConnection};
use parallax_agent::data_folder::DataFolder;
use parallax_certs::server_verifier::CoordinatorTime;
use parallax_certs::tls;
use parallax_core::observation::{Reading, RoundOutcome};
use parallax_core::time::SECOND;
use parallax_protocol::assignment::{Assignment, ScheduleChangeAssembler};
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::frame::{FrameReader, MAX_FRAME, encode};
use parallax_protocol::id::BootId;
use parallax_protocol::message::{AgentHello, ToAgent, ToCoordinator};
use parallax_protocol::result::{CheckResult, NumberedResult, ProbeReport, WireOutcome, WireOwnFault};
use parallax_protocol::version::SUPPORTED_MESH_VERSIONS;
use parallax_tests::eventually::{API_PERIOD, eventually_every, wall_clock};
use parallax_tests::free_ports::free_port;
use parallax_tests::installation::{AgentProcess, CoordinatorProcess};
use parallax_tests::journal_check::StoredJournal;
use parallax_tests::name_server;
use parallax_tests::test_target::TestTarget;
use quinn::{RecvStream, SendStream};
use serde::Serialize;
use serde_json::json;

/// Interval of ten seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Rounds before and after the current one that are claimed.
const CLAIMED: u64 = 60;
/// Changes of the host's fitness that are reported in a row.
const REPORTS: usize = 3000;
/// Longest wait for the honest agent's rounds.
const SOON: Duration = Duration::from_secs(90);
/// Longest wait for a round of the honest agent that no claim has taken: its turn comes every 20 s.
const LATER: Duration = Duration::from_secs(120);

/// Connection of a malicious agent.
struct MaliciousAgent {
    _link: CoordinatorConnection,
    control: SendStream,
    receiving: RecvStream,
    reader: FrameReader,
    results: SendStream,
    /// Its share of the schedule, by slot.
    share: BTreeMap<u32, Assignment>,
    parts: ScheduleChangeAssembler,
    acknowledged: u64,
    seq: u64,
}

fn now_ms() -> i64 {
    wall_clock().as_millis()
}

impl MaliciousAgent {
    async fn connect(data: &Path, mesh: SocketAddr) -> Self {
        let membership = DataFolder::open(data).unwrap().membership().unwrap();
        let clock = tls::clock(|| now_ms() / SECOND);
        let known = CoordinatorTime::new(Some(now_ms() / SECOND));
        let tls = tls::agent_config(
            &membership.credentials,
            &membership.roots,
            SUPPORTED_MESH_VERSIONS,
            clock,
            known.clone(),
        );
        let link = connection::dial(&mesh.to_string(), None, tls.unwrap(), drop).await.unwrap();
        let (control, receiving) = link.connection.open_bi().await.unwrap();
        let results = link.connection.open_uni().await.unwrap();
        let mut liar = Self {
            _link: link,
            control,
            receiving,
            reader: FrameReader::new(MAX_FRAME),
            results,
            share: BTreeMap::new(),
            parts: ScheduleChangeAssembler::default(),
            acknowledged: 0,
            seq: 0,
        };
        let hello = AgentHello {
            software: "0.1.0".into(),
            boot: BootId(7),
            earlier_boots: Vec::new(),
            schedule: None,
            wall_ms: now_ms(),
            kinds: Vec::new(),
            faults: Vec::new(),
            certificate_ends_ms: now_ms() + 86_400_000,
        };
        liar.say(&ToCoordinator::Hello(hello)).await;
        liar
    }

    async fn say(&mut self, frame: &impl Serialize) {
        self.control.write_all(&encode(frame, MAX_FRAME).unwrap()).await.unwrap();
    }

    /// Handles the next frame, and acknowledges a schedule as an honest agent does.
    async fn handle_frame(&mut self) {
        let frame: ToAgent = loop {
            if let Some(frame) = self.reader.next_value().unwrap() {
                break frame;
            }
            let chunk = self.receiving.read_chunk(64 << 10, true).await.unwrap().expect("it stays connected");
            self.reader.feed(&chunk.bytes);
        };
        match frame {
            ToAgent::Schedule(part) | ToAgent::ScheduleByAccount { change: part, .. } => {
                let Some(change) = self.parts.push(part).unwrap() else { return };
                if change.base.is_none() {
                    self.share.clear();
                }
                self.share.retain(|_, assignment| !change.drop.contains(&assignment.monitor));
                self.share.extend(change.put.into_iter().map(|assignment| (assignment.slot, assignment)));
                let (book, revision) = (change.slot_epoch, change.revision);
                self.say(&ToCoordinator::ScheduleApplied { slot_epoch: book, revision }).await;
            }
            ToAgent::Ack(mark) => self.acknowledged = mark.through,
            _ => {}
        }
    }

    /// Handles frames until the condition holds.
    async fn until(&mut self, is: impl Fn(&Self) -> bool) {
        let hearing = async {
            while !is(self) {
                self.handle_frame().await;
            }
        };
        tokio::time::timeout(SOON, hearing).await.expect("in time");
    }

    /// Claims that every round around the current time has passed, also those of other agents; waits for the
    /// acknowledgement.
    async fn claim(&mut self) {
        let assignment = self.share.values().next().unwrap().clone();
        let now = assignment.round_at(now_ms());
        let first = self.seq + 1;
        let claims = (now - 2..now + CLAIMED).map(|round| {
            let report = ProbeReport { latency_ms: Some(1), ..ProbeReport::outcome_only(WireOutcome::Passed) };
            let (monitor, revision) = (assignment.monitor, assignment.revision);
            CheckResult { monitor, revision, round: Some(round), started_ms: now_ms() - 2, age_ms: 1, report }
        });
        let numbered: Vec<NumberedResult> =
            (first..).zip(claims).map(|(seq, result)| NumberedResult { seq, result }).collect();
        self.seq = numbered.last().unwrap().seq;
        let batch = ResultBatch::pack(BootId(7), now_ms(), &numbered, |_| Some(assignment.slot)).unwrap();
        let frame = encode(&ResultFrame::Batch(batch), MAX_FRAME).unwrap();
        self.results.write_all(&frame).await.unwrap();
        let through = self.seq;
        self.until(|liar| liar.acknowledged >= through).await;
    }
}

/// Returns an agent that uses the test's name server, so that it is fit to check whatever this host's is like.
async fn honest(coordinator: &CoordinatorProcess, folder: &Path) -> AgentProcess {
    let at = SocketAddr::from(([127, 0, 0, 1], free_port()));
    tokio::spawn(name_server::serve(at, BTreeMap::new()));
    let settings = folder.join("honest.toml");
    std::fs::write(&settings, format!("resolvers = [\"{at}\"]\n")).unwrap();
    let mut agent = AgentProcess::new("fra1", folder, None);
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", &settings.to_string_lossy()]);
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lying_agent_writes_no_rounds_of_others_none_ahead_and_no_flood_of_log_lines() {
    let folder = tempfile::TempDir::new().unwrap();
    let liars = folder.path().to_owned();
    let mut coordinator = CoordinatorProcess::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let _honest = honest(&coordinator, folder.path()).await;
    let token = coordinator.invite("fra2", "europe", "AS64501", &[]).unwrap();
    let agent = AgentProcess::new("fra2", &liars, None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    coordinator.wait_for_agents(1).await;
    let mut liar = MaliciousAgent::connect(&agent.data(), coordinator.ready.mesh).await;
    coordinator.wait_for_agents(2).await;
    let connected_at = now_ms();
    let account = coordinator.create_account("pro");
    // The target refuses connections: the honest agent reports failures, and never a pass.
    let target = TestTarget::start().await;
    let url = target.url();
    drop(target);
    let made = account.client.create_monitor(&account.page, &json!({"name": "shop", "url": url})).await;
    // The region's rounds are divided between the two agents.
    liar.until(|liar| liar.share.values().any(|assignment| assignment.every == 2)).await;
    liar.claim().await;
    let id = made["id"].as_str().unwrap().to_owned();
    let path = format!("/pages/{}/monitors/{id}/checks?limit=100", account.page);
    // Honest rounds count again, at the latest once the claimed round numbers have passed.
    eventually_every(API_PERIOD, "honest rounds are reported", LATER, async || {
        let checks = account.client.get(&path).await.expect_status(200)["checks"].take();
        checks.as_array().unwrap().iter().any(|check| check["result"] != "passed").then_some(())
    })
    .await;

    let before = coordinator.process.log().len();
    let begun = std::time::Instant::now();
    for number in 0..REPORTS {
        let faults = if number.is_multiple_of(2) { vec![WireOwnFault::NoRoute] } else { Vec::new() };
        liar.say(&ToCoordinator::Fitness { faults }).await;
    }
    // The response means that all claims were handled.
    let claimed_at = now_ms();
    liar.claim().await;
    coordinator.process.wait_for_log("results were dropped", SOON).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let log = coordinator.process.log();
    let lines = log[before..].lines().filter(|line| line.contains("fra2")).count();
    assert!(lines <= 4 * (seconds + 2), "{lines} lines in {seconds} s");

    let share = liar.share.values().next().unwrap().clone();
    coordinator.process.kill();
    let journal = StoredJournal::read(&coordinator.data()).await;
    // The honest agent was enrolled first.
    let honest = journal.readings.iter().map(|reading| reading.vantage).min().expect("there are readings");
    let forged = |reading: &&Reading| {
        let is_own = reading.round % u64::from(share.every) == u64::from(share.turn);
        let is_ahead = reading.due.as_millis() > claimed_at + 30_000 && reading.outcome == RoundOutcome::Passed;
        // Before it connected, rounds are history that no other agent reported.
        let is_since = reading.due.as_millis() > connected_at + 5_000;
        (reading.vantage != honest && !is_own && is_since) || is_ahead
    };
    let forged: Vec<&Reading> = journal.readings.iter().filter(forged).collect();
    assert!(forged.is_empty(), "{forged:?}");
    let is_seen = |reading: &Reading| reading.vantage == honest && reading.outcome != RoundOutcome::Passed;
    assert!(journal.readings.iter().any(is_seen), "{:?}", journal.readings);
}
