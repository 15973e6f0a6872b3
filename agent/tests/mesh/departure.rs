//! Tests of the end of a membership: who can cause it, what is deleted, and what is not.

use super::*;
use parallax_agent::departure::Departure;
use parallax_agent::status::AgentStatus;
use parallax_protocol::frame::{MAX_FRAME, encode};
use parallax_protocol::version::{JOIN_V1, MESH_V1, MESH_V2};
use std::time::Duration;

/// Returns the names of the files in the agent's folder.
fn left(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("agent")).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

async fn departure_of(agent: Agent) -> Departure {
    let ended = tokio::time::timeout(Duration::from_secs(30), agent.task).await.unwrap().unwrap();
    let Err(error @ AgentError::Departed { departure, .. }) = ended else { panic!("{ended:?}") };
    assert!(error.to_string().contains("parallax-agent join"), "{error}");
    departure
}

/// Starts an agent with a schedule, which is on its disk.
async fn at_work(coordinator: &MiniCoordinator, folder: &Path) -> (Agent, MiniSession) {
    let (listener, spec) = target().await;
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let agent = Agent::start(config(folder));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    session.send(&schedule(1, spec)).await;
    held(&mut session, 1).await;
    eventually(|| folder.join("agent/schedule.bin").exists() && status(folder).is_some()).await;
    (agent, session)
}

fn status(folder: &Path) -> Option<AgentStatus> {
    serde_json::from_slice(&std::fs::read(folder.join("agent/status.json")).ok()?).ok()
}

#[tokio::test]
async fn a_revoked_agent_stops_and_deletes_everything_and_can_join_again() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    coordinator.join(&config(folder.path())).await.unwrap();
    let (agent, session) = at_work(&coordinator, folder.path()).await;
    session.close(CloseReason::Revoked);
    assert_eq!(departure_of(agent).await, Departure::Revoked);
    assert_eq!(left(folder.path()), ["agent.json", "departed", "lock"]);
    // Each start reports the departure, and connects to nothing.
    assert_eq!(departure_of(Agent::start(config(folder.path()))).await, Departure::Revoked);
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.hello.schedule, None);
    drop(agent);
}

#[tokio::test]
async fn an_agent_that_was_away_is_notified_in_a_frame_on_its_return() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    coordinator.join(&config(folder.path())).await.unwrap();
    let (agent, _session) = at_work(&coordinator, folder.path()).await;
    agent.task.abort();
    let _ = agent.task.await;
    assert!(folder.path().join("agent/schedule.bin").exists());
    let agent = Agent::start(config(folder.path()));
    let connection = coordinator.connection().await;
    let (mut control, _hello) = connection.accept_bi().await.unwrap();
    let closing = ToAgent::Closing { reason: CloseReason::UnknownAgent };
    control.write_all(&encode(&closing, MAX_FRAME).unwrap()).await.unwrap();
    assert_eq!(departure_of(agent).await, Departure::Forgotten);
    assert_eq!(left(folder.path()), ["agent.json", "departed", "lock"]);
}

#[tokio::test]
async fn a_close_before_the_welcome_is_unauthenticated_and_deletes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let connection = coordinator.connection().await;
    connection.close(CloseReason::Revoked.code().into(), b"");
    let fault = || status(folder.path()).and_then(|status| status.link_fault);
    eventually(|| fault().is_some_and(|fault| fault.contains("revoked"))).await;
    assert!(!agent.task.is_finished());
    assert!(folder.path().join("agent/credentials.pem").exists());
    agent.stop().await;
}

#[tokio::test]
async fn an_agent_stops_when_its_certificate_ends_and_checks_nothing_after_a_start() {
    const MONTH: i64 = 30 * 86_400;
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    // The certificate expires in eight seconds.
    coordinator.join_as_of(&config(folder.path()), 8 - MONTH).await.unwrap();
    let (agent, session) = at_work(&coordinator, folder.path()).await;
    session.close(CloseReason::ShuttingDown);
    let away = AgentConfig { coordinator: Some("127.0.0.1:9".into()), ..config(folder.path()) };
    let stored = std::fs::read(folder.path().join("agent/schedule.bin")).unwrap();
    assert_eq!(departure_of(agent).await, Departure::Expired);
    assert_eq!(left(folder.path()), ["agent.json", "authorities.pem", "credentials.pem", "lock"]);
    // As after a crash: the leftover schedule is not run.
    std::fs::write(folder.path().join("agent/schedule.bin"), stored).unwrap();
    let agent = Agent::start(away);
    eventually(|| status(folder.path()).is_some()).await;
    assert_eq!(status(folder.path()).unwrap().monitors, 0);
    assert!(!folder.path().join("agent/schedule.bin").exists());
    agent.stop().await;
    // The host can join again in the same folder.
    coordinator.join_as_of(&config(folder.path()), 0).await.unwrap();
}

#[tokio::test]
async fn a_coordinator_clock_past_the_expiry_suspends_agents_and_ends_none() {
    const YEAR_MS: i64 = 365 * 86_400_000;
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    coordinator.join(&config(folder.path())).await.unwrap();
    let (agent, mut session) = at_work(&coordinator, folder.path()).await;
    let request = session.control_until(|frame| matches!(frame, ToCoordinator::TimeRequest { .. })).await;
    let ToCoordinator::TimeRequest { sent_us } = request else { panic!() };
    let stepped = TimeResponse { echo_us: sent_us, coordinator_ms: session.hello.wall_ms + YEAR_MS };
    session.send(&ToAgent::Time(stepped)).await;
    eventually(|| !folder.path().join("agent/schedule.bin").exists()).await;
    session.close(CloseReason::ShuttingDown);
    let session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.hello.schedule, None);
    assert!(!agent.task.is_finished());
    agent.task.abort();
}

#[tokio::test]
async fn a_schedule_without_accounts_is_requested_again_by_the_version_that_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, spec) = target().await;
    let coordinator = MiniCoordinator::with_protocols(&[MESH_V2, MESH_V1, JOIN_V1]);
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.version(), MESH_V2);
    let ToAgent::Schedule(change) = schedule(1, spec) else { panic!() };
    session.send(&ToAgent::Schedule(change.clone())).await;
    held(&mut session, 1).await;
    session.close(CloseReason::ShuttingDown);
    let mut session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.hello.schedule, None);
    let change = ScheduleChange { revision: 2, ..change };
    session.send(&ToAgent::ScheduleByAccount { change, accounts: vec![7] }).await;
    held(&mut session, 2).await;
    session.close(CloseReason::ShuttingDown);
    let session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.hello.schedule.map(|held| held.revision), Some(2));
    drop(agent);
}
