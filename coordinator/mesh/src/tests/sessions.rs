//! Tests of sessions: which agents may connect, which connection is current, and what ends it.

use parallax_core::vantage::Region;
use parallax_protocol::message::TimeReport;

use super::*;

#[tokio::test]
async fn a_mesh_connection_without_a_certificate_is_closed_at_once() {
    let test_mesh = TestMesh::start().await;
    let config = join_config(test_mesh.key_hash, &[MESH_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    let connection = test_mesh.dial(config).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::MissingCertificate);
    assert_eq!(test_mesh.mesh.counters().without_identity.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_agent_of_another_installation_is_refused_in_the_handshake() {
    let (test_mesh, other) = (TestMesh::start().await, TestMesh::start().await);
    let foreign = other.member(1).await;
    if let Ok(connection) = test_mesh.dial_mesh(&foreign.credentials).await {
        let ended = timeout(LIMIT, connection.closed()).await.unwrap();
        assert!(matches!(ended, ConnectionError::ConnectionClosed(_)), "{ended}");
    }
    assert_eq!(test_mesh.mesh.counters().connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_agent_missing_in_the_records_is_closed_as_unknown() {
    let test_mesh = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let id = AgentId::from_u128(9).to_string();
    let issued =
        test_mesh.authority.issue_agent(&key.request().unwrap(), &id, NOW.as_millis() / SECOND, AGENT_VALIDITY);
    let credentials = key.with_certificate(issued.unwrap().certificate).unwrap();
    let connection = test_mesh.dial_mesh(&credentials).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::UnknownAgent);
}

#[tokio::test]
async fn the_newest_connection_of_an_identity_replaces_the_one_before() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let first = test_mesh.connect(&member).await;
    let second = test_mesh.connect(&member).await;
    assert_eq!(closed(&first.connection).await, CloseReason::Replaced);
    test_mesh.wait_connected(1, true).await;
    assert!(second.connection.close_reason().is_none());
    assert_eq!(test_mesh.mesh.counters().replaced.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_revoked_agent_is_closed_at_once_and_cannot_reconnect() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let agent = test_mesh.connect(&member).await;
    test_mesh.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    test_mesh.mesh.refresh();
    let reason = timeout(Duration::from_secs(10), closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Revoked);
    assert!(test_mesh.mesh.mesh().borrow().vantage(VantageNo(1)).is_none());
    let second_connection = test_mesh.dial_mesh(&member.credentials).await.unwrap();
    assert_eq!(closed(&second_connection).await, CloseReason::Revoked);
}

#[tokio::test]
async fn a_revoked_or_removed_agent_that_reconnects_receives_the_reason_in_a_frame() {
    let test_mesh = TestMesh::start().await;
    let (revoked, forgotten) = (test_mesh.member(1).await, test_mesh.member(2).await);
    test_mesh.records.agents.lock().unwrap().get_mut(&revoked.id).unwrap().revoked_at = Some(NOW);
    test_mesh.records.agents.lock().unwrap().remove(&forgotten.id);
    test_mesh.records.removed.lock().unwrap().insert(forgotten.id);
    for (member, reason) in [(revoked, CloseReason::Revoked), (forgotten, CloseReason::UnknownAgent)] {
        let connection = test_mesh.dial_mesh(&member.credentials).await.unwrap();
        let (mut control, receive) = connection.open_bi().await.unwrap();
        write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
        let frame = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await.unwrap();
        assert_eq!(frame, Some(ToAgent::Closing { reason }));
        assert_eq!(closed(&connection).await, reason);
    }
}

#[tokio::test]
async fn an_agent_unknown_to_a_restored_store_receives_no_dismissal() {
    let test_mesh = TestMesh::start().await;
    let newer = test_mesh.member(1).await;
    // Neither revoked nor removed: the store is older than its join.
    test_mesh.records.agents.lock().unwrap().remove(&newer.id);
    let connection = test_mesh.dial_mesh(&newer.credentials).await.unwrap();
    let (mut control, receive) = connection.open_bi().await.unwrap();
    // The coordinator may close the connection before this is written.
    let _ = write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await;
    let frame = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await;
    assert!(!matches!(frame, Ok(Some(_))), "{frame:?}");
    assert_eq!(closed(&connection).await, CloseReason::UnknownAgent);
}

#[tokio::test]
async fn a_closed_connection_disconnects_the_vantage_at_once() {
    let test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.wait_connected(1, true).await;
    agent.connection.close(VarInt::from_u32(0), b"");
    test_mesh.wait_connected(1, false).await;
}

#[tokio::test]
async fn a_goodbye_disconnects_the_vantage_before_the_connection_closes() {
    let test_mesh = TestMesh::start().await;
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    agent.send(&ToCoordinator::Goodbye).await;
    test_mesh.wait_connected(1, false).await;
    assert!(agent.connection.close_reason().is_none());
}

#[tokio::test]
async fn invalid_frames_close_the_connection_with_their_reason() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let undecodable = [3_u32.to_le_bytes().as_slice(), &[0xff, 0xff, 0xff]].concat();
    let cases = [(u32::MAX.to_le_bytes().to_vec(), CloseReason::FrameTooLong), (undecodable, CloseReason::Undecodable)];
    for (bytes, reason) in cases {
        let mut agent = test_mesh.connect(&member).await;
        agent.control.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&agent.connection).await, reason);
        let connection = test_mesh.dial_mesh(&member.credentials).await.unwrap();
        let (mut control, _receive) = connection.open_bi().await.unwrap();
        control.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&connection).await, reason);
    }
    let mut agent = test_mesh.connect(&member).await;
    agent.send(&ToCoordinator::Hello(hello(None))).await;
    assert_eq!(closed(&agent.connection).await, CloseReason::OutOfOrder);
    let connection = test_mesh.dial_mesh(&member.credentials).await.unwrap();
    let (mut control, _receive) = connection.open_bi().await.unwrap();
    let many = AgentHello { earlier_boots: vec![BOOT; 33], ..hello(None) };
    write(&mut control, &ToCoordinator::Hello(many), MAX_FRAME).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::Invalid);
}

#[tokio::test]
async fn time_requests_are_answered_and_a_wrong_clock_is_shown() {
    let test_mesh = TestMesh::start().await;
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    agent.send(&ToCoordinator::TimeRequest { sent_us: 42 }).await;
    let ToAgent::Time(time) = agent.next_reply().await else { panic!("no time") };
    assert_eq!((time.echo_us, time.coordinator_ms), (42, NOW.as_millis()));
    agent.send(&ToCoordinator::TimeReport(TimeReport { skew_ms: 5_000, round_trip_ms: 1 })).await;
    agent.send(&ToCoordinator::TimeRequest { sent_us: 43 }).await;
    agent.next_reply().await;
    let view = test_mesh.mesh.agents();
    assert!(view[0].is_clock_off && view[0].skew_ms == Some(5_000));
    assert_eq!(view[0].agent.region, Region::Europe);
}

#[tokio::test]
async fn a_stopping_mesh_notifies_its_agents() {
    let test_mesh = TestMesh::start().await;
    let agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.mesh.stop().await;
    assert_eq!(closed(&agent.connection).await, CloseReason::ShuttingDown);
}

#[tokio::test]
async fn a_session_is_unregistered_however_it_ends() {
    let mut test_mesh = TestMesh::start().await;
    let _agent = test_mesh.connect(&test_mesh.member(1).await).await;
    test_mesh.wait_connected(1, true).await;
    // As if the listener task had crashed: its sessions end immediately.
    let tasks = std::mem::replace(&mut test_mesh.mesh.tasks, Supervisor::default().task_group());
    tasks.stop().await;
    test_mesh.wait_connected(1, false).await;
}
