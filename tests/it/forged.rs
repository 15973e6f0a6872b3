//! An agent with a valid certificate that tells more than it was dealt: rounds of another agent, rounds that are not due
//! yet, and reports without end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use parallax_agent::home::Home;
use parallax_agent::link::{self, Link};
use parallax_certs::tls;
use parallax_certs::verify::KnownTime;
use parallax_core::observation::{Reading, Word};
use parallax_core::time::SECOND;
use parallax_protocol::assignment::{Assignment, ChangeParts};
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::frame::{FrameReader, MAX_FRAME, encode};
use parallax_protocol::id::BootId;
use parallax_protocol::message::{Hello, ToAgent, ToCoordinator};
use parallax_protocol::result::{CheckResult, NumberedResult, Outcome, OwnFault, Report};
use parallax_protocol::version::MESH_SPOKEN;
use parallax_tests::dns;
use parallax_tests::eventually::{API_PERIOD, eventually_every, wall_clock};
use parallax_tests::installation::{Agent, Coordinator};
use parallax_tests::journal::Journal;
use parallax_tests::ports::port;
use parallax_tests::targets::Target;
use quinn::{RecvStream, SendStream};
use serde::Serialize;
use serde_json::json;

/// Rounds every ten seconds.
const CONFIG: &str = "[plans.pro]\ninterval_seconds = 10\n";
/// Rounds before and behind the present one that are claimed.
const CLAIMED: u64 = 60;
/// Changes of the host's fitness that are reported in a row.
const REPORTS: usize = 3000;
/// Until an honest agent has told its rounds.
const SOON: Duration = Duration::from_secs(90);
/// Longest wait for a round of the honest agent that no claim has taken: its turn comes every 20 s.
const LATER: Duration = Duration::from_secs(120);

/// An agent's end of a connection, in the wrong hands.
struct Liar {
    _link: Link,
    control: SendStream,
    receiving: RecvStream,
    reader: FrameReader,
    results: SendStream,
    /// The share that it was dealt, by slot.
    share: BTreeMap<u32, Assignment>,
    parts: ChangeParts,
    acknowledged: u64,
    seq: u64,
}

fn now_ms() -> i64 {
    wall_clock().as_millis()
}

impl Liar {
    async fn connect(data: &Path, mesh: SocketAddr) -> Self {
        let membership = Home::open(data).unwrap().membership().unwrap();
        let clock = tls::clock(|| now_ms() / SECOND);
        let known = KnownTime::new(Some(now_ms() / SECOND));
        let tls =
            tls::agent_config(&membership.credentials, &membership.roots, MESH_SPOKEN, clock, known.clone());
        let link = link::dial(&mesh.to_string(), None, tls.unwrap(), drop).await.unwrap();
        let (control, receiving) = link.connection.open_bi().await.unwrap();
        let results = link.connection.open_uni().await.unwrap();
        let mut liar = Self {
            _link: link,
            control,
            receiving,
            reader: FrameReader::new(MAX_FRAME),
            results,
            share: BTreeMap::new(),
            parts: ChangeParts::default(),
            acknowledged: 0,
            seq: 0,
        };
        let hello = Hello {
            software: "0.1.0".into(),
            boot: BootId(7),
            earlier_boots: Vec::new(),
            held: None,
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

    /// Takes in the next frame, and confirms a schedule as an honest agent does.
    async fn hear(&mut self) {
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
                let (book, revision) = (change.book, change.revision);
                self.say(&ToCoordinator::ScheduleHeld { book, revision }).await;
            }
            ToAgent::Ack(mark) => self.acknowledged = mark.through,
            _ => {}
        }
    }

    /// Hears frames until that is so.
    async fn until(&mut self, is: impl Fn(&Self) -> bool) {
        let hearing = async {
            while !is(self) {
                self.hear().await;
            }
        };
        tokio::time::timeout(SOON, hearing).await.expect("in time");
    }

    /// Claims that every round around now has passed, also those dealt to others; waits until that is acknowledged.
    async fn claim(&mut self) {
        let assignment = self.share.values().next().unwrap().clone();
        let now = assignment.round_at(now_ms());
        let first = self.seq + 1;
        let claims = (now - 2..now + CLAIMED).map(|round| {
            let report = Report { latency_ms: Some(1), ..Report::bare(Outcome::Passed) };
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

/// An agent that asks a name server of the test's own, so that it is fit to check whatever this host's is like.
async fn honest(coordinator: &Coordinator, folder: &Path) -> Agent {
    let at = SocketAddr::from(([127, 0, 0, 1], port()));
    tokio::spawn(dns::serve(at, BTreeMap::new()));
    let settings = folder.join("honest.toml");
    std::fs::write(&settings, format!("resolvers = [\"{at}\"]\n")).unwrap();
    let mut agent = Agent::new("fra1", folder, None);
    let token = coordinator.invite("fra1", "europe", "AS64500", &[]).unwrap();
    agent.join(coordinator.ready.mesh, &token).unwrap();
    agent.run_with(&["--config", &settings.to_string_lossy()]);
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lying_agent_writes_no_rounds_of_others_none_ahead_and_no_flood_of_log_lines() {
    let folder = tempfile::TempDir::new().unwrap();
    let liars = folder.path().to_owned();
    let mut coordinator = Coordinator::serve(SocketAddr::from(([127, 0, 0, 1], 0)), CONFIG).await;
    let _honest = honest(&coordinator, folder.path()).await;
    let token = coordinator.invite("fra2", "europe", "AS64501", &[]).unwrap();
    let agent = Agent::new("fra2", &liars, None);
    agent.join(coordinator.ready.mesh, &token).unwrap();
    coordinator.connected(1).await;
    let mut liar = Liar::connect(&agent.data(), coordinator.ready.mesh).await;
    coordinator.connected(2).await;
    let connected_at = now_ms();
    let account = coordinator.account("pro");
    // It refuses: the honest agent sees it fail in each of its rounds, and none passes.
    let target = Target::start().await;
    let url = target.url();
    drop(target);
    let made = account.client.create_monitor(&account.page, &json!({"name": "shop", "url": url})).await;
    // The region's rounds are dealt out between the two.
    liar.until(|liar| liar.share.values().any(|assignment| assignment.every == 2)).await;
    liar.claim().await;
    let id = made["id"].as_str().unwrap().to_owned();
    let path = format!("/pages/{}/monitors/{id}/checks?limit=100", account.page);
    // Honest rounds go on counting, for as long as the claims reached ahead in the region's own numbers.
    eventually_every(API_PERIOD, "honest rounds are told", LATER, async || {
        let checks = account.client.get(&path).await.is(200)["checks"].take();
        checks.as_array().unwrap().iter().any(|check| check["result"] != "passed").then_some(())
    })
    .await;

    let before = coordinator.process.log().len();
    let begun = std::time::Instant::now();
    for number in 0..REPORTS {
        let faults = if number.is_multiple_of(2) { vec![OwnFault::NoRoute] } else { Vec::new() };
        liar.say(&ToCoordinator::Fitness { faults }).await;
    }
    // Answered once all of that was heard.
    let claimed_at = now_ms();
    liar.claim().await;
    coordinator.process.says("results were dropped", SOON).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let log = coordinator.process.log();
    let lines = log[before..].lines().filter(|line| line.contains("fra2")).count();
    assert!(lines <= 4 * (seconds + 2), "{lines} lines in {seconds} s");

    let share = liar.share.values().next().unwrap().clone();
    coordinator.process.kill();
    let journal = Journal::read(&coordinator.data()).await;
    // The honest agent was enrolled first.
    let honest = journal.readings.iter().map(|reading| reading.place).min().expect("there are readings");
    let forged = |reading: &&Reading| {
        let is_own = reading.round % u64::from(share.every) == u64::from(share.turn);
        let is_ahead = reading.due.as_millis() > claimed_at + 30_000 && reading.word == Word::Passed;
        // Of the time before it connected nothing is known; rounds of then are history that nobody else told.
        let is_since = reading.due.as_millis() > connected_at + 5_000;
        (reading.place != honest && !is_own && is_since) || is_ahead
    };
    let forged: Vec<&Reading> = journal.readings.iter().filter(forged).collect();
    assert!(forged.is_empty(), "{forged:?}");
    let is_seen = |reading: &Reading| reading.place == honest && reading.word != Word::Passed;
    assert!(journal.readings.iter().any(is_seen), "{:?}", journal.readings);
}
