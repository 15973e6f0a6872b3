//! Tests of a whole agent against a minimal coordinator, over real QUIC on loopback.
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

mod coordinator;
mod departure;
mod identity;

use coordinator::{MiniCoordinator, MiniSession, eventually};
use parallax_agent::config::{AgentConfig, NameServers};
use parallax_agent::error::AgentError;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::check::{WireCheckSpec, WireHttpCheck, WireKeywordMode, WireMethod, WireTcpCheck};
use parallax_protocol::close::CloseReason;
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::message::{
    CheckReason, DurabilityMark, ExternalAddress, RenewedCertificate, TimeResponse, ToAgent, ToCoordinator,
    TrustedAuthorities, WireCheckNow, WireCheckNowResponse,
};
use parallax_protocol::result::{AddressClass, WireFailure, WireOutcome, WirePhase};
use parallax_protocol::version::{JOIN_V1, MESH_V2};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const BOOK: u64 = 5;

/// A running agent.
struct Agent {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), AgentError>>,
}

impl Agent {
    fn start(config: AgentConfig) -> Self {
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            let _ = stopped.await;
        };
        Self { stop, task: tokio::spawn(parallax_agent::run(config, shutdown)) }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

fn config(folder: &Path) -> AgentConfig {
    AgentConfig {
        allow_private: true,
        allow_own_host: true,
        source: Some("127.0.0.1".parse().unwrap()),
        resolvers: NameServers::Servers(vec!["127.0.0.1:9".parse().unwrap()]),
        ..AgentConfig::new(folder.join("agent"))
    }
}

async fn target() -> (TcpListener, WireCheckSpec) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, WireCheckSpec::Tcp(WireTcpCheck { host: "127.0.0.1".into(), port }))
}

fn schedule(revision: u64, spec: WireCheckSpec) -> ToAgent {
    let assignment = Assignment {
        monitor: WireMonitorId(1 << 80),
        slot: 3,
        revision: 9,
        spec,
        interval_ms: 1_000,
        offset_ms: 0,
        every: 1,
        turn: 0,
        account: 0,
    };
    let change =
        ScheduleChange { slot_epoch: BOOK, base: None, revision, put: vec![assignment], drop: vec![], has_more: false };
    ToAgent::Schedule(change)
}

/// Returns the outcome of a check-now.
async fn outcome(session: &MiniSession, spec: WireCheckSpec) -> WireOutcome {
    let monitor = WireMonitorId(77);
    let request = WireCheckNow { id: 1, monitor, revision: 2, spec, reason: CheckReason::Manual, deadline_ms: 5_000 };
    match session.check_now(&request).await.pop() {
        Some(WireCheckNowResponse::Done(done)) => done.report.outcome.clone(),
        other => panic!("{other:?}"),
    }
}

async fn held(session: &mut MiniSession, revision: u64) {
    let held = ToCoordinator::ScheduleApplied { slot_epoch: BOOK, revision };
    session.control_until(|frame| *frame == held).await;
}

#[tokio::test]
async fn a_host_joins_runs_checks_responds_and_says_goodbye() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let (_listener, spec) = target().await;
    let record = coordinator.join(&config(folder.path())).await.unwrap();
    assert_eq!((record.name.as_str(), record.region.as_str()), ("fra1", "europe"));
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    assert!(session.hello.schedule.is_none() && session.hello.earlier_boots.is_empty());

    session.send(&schedule(1, spec.clone())).await;
    held(&mut session, 1).await;
    let slots = |slot| (slot == 3).then_some(WireMonitorId(1 << 80));
    let first = session.batch(slots).await;
    assert_eq!((first.first_seq, first.boot), (1, session.hello.boot));
    let result = &first.results[0].result;
    assert_eq!((&result.report.outcome, result.revision), (&WireOutcome::Passed, 9));
    assert_eq!(result.round.unwrap(), u64::try_from(result.started_ms).unwrap() / 1_000);
    assert!(result.report.phases.connect_us.is_some(), "the first result of a revision is sent in full");
    session.send(&ToAgent::Ack(DurabilityMark { boot: first.boot, through: first.through })).await;

    let request = WireCheckNow {
        id: 1,
        monitor: WireMonitorId(77),
        revision: 2,
        spec,
        reason: CheckReason::Confirm,
        deadline_ms: 5_000,
    };
    let answers = session.check_now(&request).await;
    let [WireCheckNowResponse::Done(answer)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((answer.monitor, answer.round, &answer.report.outcome), (WireMonitorId(77), None, &WireOutcome::Passed));

    let second = session.batch(slots).await;
    assert_eq!(second.first_seq, first.through + 1);
    // A busy host may skip a round that would begin more than half a second late.
    assert!(second.results[0].result.round > result.round);
    session.acknowledge_everything();
    agent.stop().await;
    assert_eq!(session.closed().await, Some(CloseReason::Done));
}

#[tokio::test]
async fn unacknowledged_results_are_sent_on_the_next_connection() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let (_listener, spec) = target().await;
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    session.send(&schedule(1, spec)).await;
    let first = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
    session.close(CloseReason::ShuttingDown);
    let mut again = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(again.hello.boot, first.boot);
    assert_eq!(again.hello.schedule.map(|held| held.revision), Some(1));
    let resent = again.batch(|_| Some(WireMonitorId(1 << 80))).await;
    assert_eq!(resent.first_seq, 1);
    assert_eq!(resent.results[0].result.round, first.results[0].result.round);
    assert!(resent.results[0].result.age_ms >= first.results[0].result.age_ms);
    drop(agent);
}

#[tokio::test]
async fn an_agent_starts_with_its_stored_schedule_and_sends_earlier_results() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let (_listener, spec) = target().await;
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    session.send(&schedule(1, spec)).await;
    let first = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
    // Without an acknowledgement the shutdown leaves the results on disk.
    agent.stop().await;
    let away = AgentConfig { coordinator: Some("127.0.0.1:9".into()), ..config(folder.path()) };
    let agent = Agent::start(away);
    let status = folder.path().join("agent/status.json");
    eventually(|| {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let status: Option<parallax_agent::status::AgentStatus> = serde_json::from_str(&text).ok();
        status.is_some_and(|status| status.passed > 0)
    })
    .await;
    agent.stop().await;
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.hello.earlier_boots.len(), 2);
    assert_eq!(session.hello.earlier_boots[0], first.boot);
    let resent = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
    assert_eq!((resent.boot, resent.first_seq), (first.boot, 1));
    let offline = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
    assert_eq!((offline.boot, offline.first_seq), (session.hello.earlier_boots[1], 1));
    drop(agent);
}

#[tokio::test]
async fn a_hanging_check_is_reported_as_pending_and_ends_by_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    // The listener's backlog accepts the connection; the request is never answered.
    let (listener, _) = target().await;
    let spec = WireCheckSpec::Http(WireHttpCheck {
        url: format!("http://{}/", listener.local_addr().unwrap()),
        method: WireMethod::Get,
        headers: vec![],
        body: None,
        expect_status: None,
        keyword: None,
        keyword_mode: WireKeywordMode::Present,
    });
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let session = coordinator.accept(BOOK, vec![]).await;
    let request = WireCheckNow {
        id: 1,
        monitor: WireMonitorId(1),
        revision: 1,
        spec,
        reason: CheckReason::Sweep,
        deadline_ms: 6_000,
    };
    let answers = session.check_now(&request).await;
    let [WireCheckNowResponse::Pending, WireCheckNowResponse::Done(done)] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    let timed_out = WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::FirstByte });
    assert_eq!(done.report.outcome, timed_out);
    drop(agent);
}

#[tokio::test]
async fn two_hundred_monitors_are_each_checked_every_round_and_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let (listener, spec) = target().await;
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    let put = (0..200u32).map(|slot| Assignment {
        monitor: WireMonitorId(u128::from(slot)),
        slot,
        revision: 1,
        spec: spec.clone(),
        interval_ms: 5_000,
        offset_ms: slot * 10,
        every: 1,
        turn: 0,
        account: 0,
    });
    let change =
        ScheduleChange { slot_epoch: BOOK, base: None, revision: 1, put: put.collect(), drop: vec![], has_more: false };
    session.send(&ToAgent::Schedule(change)).await;
    let mut rounds: BTreeMap<WireMonitorId, Vec<u64>> = BTreeMap::new();
    let mut next_seq = 1;
    while rounds.len() < 200 || rounds.values().any(|rounds| rounds.len() < 2) {
        let batch = session.batch(|slot| Some(WireMonitorId(u128::from(slot)))).await;
        assert_eq!(batch.first_seq, next_seq);
        next_seq = batch.through + 1;
        session.send(&ToAgent::Ack(DurabilityMark { boot: batch.boot, through: batch.through })).await;
        for numbered in batch.results {
            let result = numbered.result;
            assert_eq!(result.report.outcome, WireOutcome::Passed);
            rounds.entry(result.monitor).or_default().push(result.round.unwrap());
        }
    }
    for (monitor, rounds) in rounds {
        // No duplicates; a busy host may skip a round.
        assert!(rounds.windows(2).all(|pair| pair[1] > pair[0]), "{monitor}: {rounds:?}");
    }
    drop(agent);
}

#[tokio::test]
async fn two_agents_in_one_process_come_from_their_own_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let mut seen = Vec::new();
    let mut agents = Vec::new();
    for address in ["127.0.0.2", "127.0.0.3"] {
        let config = AgentConfig {
            source: Some(address.parse().unwrap()),
            data: folder.path().join(address),
            ..config(folder.path())
        };
        coordinator.join(&config).await.unwrap();
        agents.push(Agent::start(config));
        seen.push(coordinator.accept(BOOK, vec![]).await);
    }
    let addresses: Vec<String> = seen.iter().map(MiniSession::peer).collect();
    assert_eq!(addresses, ["127.0.0.2", "127.0.0.3"]);
}

#[tokio::test]
async fn a_clock_step_is_followed_by_a_time_request_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let (_listener, spec) = target().await;
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    session.send(&schedule(1, spec)).await;
    let is_time_request = |frame: &ToCoordinator| matches!(frame, ToCoordinator::TimeRequest { .. });
    // The next regular request would come in a minute.
    for _ in 0..3 {
        session.control_until(is_time_request).await;
    }
    let before = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
    let coordinator_ms = before.sent_ms + 3_600_000;
    session.send(&ToAgent::Time(TimeResponse { echo_us: TimeResponse::UNSOLICITED, coordinator_ms })).await;
    let ToCoordinator::TimeRequest { sent_us } = session.control_until(is_time_request).await else {
        panic!("no time request")
    };
    session.send(&ToAgent::Time(TimeResponse { echo_us: sent_us, coordinator_ms })).await;
    // Rounds follow the new time as soon as the agent has it.
    loop {
        let batch = session.batch(|_| Some(WireMonitorId(1 << 80))).await;
        if batch.results.iter().any(|it| it.result.round.unwrap() >= coordinator_ms.unsigned_abs() / 1_000) {
            break;
        }
    }
    session.acknowledge_everything();
    agent.stop().await;
}
