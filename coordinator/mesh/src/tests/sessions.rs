//! Tests of sessions: which agents may connect, which connection is current, and what ends it.

use parallax_core::vantage::Region;
use parallax_protocol::message::TimeReport;

use super::*;

#[tokio::test]
async fn a_mesh_connection_without_a_certificate_is_closed_at_once() {
    let world = TestMesh::start().await;
    let config = join_config(world.key_hash, &[MESH_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    let connection = world.dial(config).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::MissingCertificate);
    assert_eq!(world.mesh.counters().without_identity.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_stranger_with_a_certificate_of_another_installation_is_refused_in_the_handshake() {
    let (world, other) = (TestMesh::start().await, TestMesh::start().await);
    let stranger = other.member(1).await;
    if let Ok(connection) = world.dial_mesh(&stranger.credentials).await {
        let ended = timeout(LIMIT, connection.closed()).await.unwrap();
        assert!(matches!(ended, ConnectionError::ConnectionClosed(_)), "{ended}");
    }
    assert_eq!(world.mesh.counters().connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_agent_that_the_records_do_not_know_is_told_so() {
    let world = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let id = AgentId::from_u128(9).to_string();
    let issued = world.authority.issue_agent(&key.request().unwrap(), &id, NOW.as_millis() / SECOND, AGENT_VALIDITY);
    let credentials = key.with_certificate(issued.unwrap().certificate).unwrap();
    let connection = world.dial_mesh(&credentials).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::UnknownAgent);
}

#[tokio::test]
async fn the_newest_connection_of_an_identity_replaces_the_one_before() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let first = world.connect(&member).await;
    let second = world.connect(&member).await;
    assert_eq!(closed(&first.connection).await, CloseReason::Replaced);
    world.until_connected(1, true).await;
    assert!(second.connection.close_reason().is_none());
    assert_eq!(world.mesh.counters().replaced.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_revoked_agent_is_closed_at_once_and_never_comes_back() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let agent = world.connect(&member).await;
    world.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    world.mesh.refresh();
    let reason = timeout(Duration::from_secs(10), closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Revoked);
    assert!(world.mesh.mesh().borrow().vantage(VantageNo(1)).is_none());
    let again = world.dial_mesh(&member.credentials).await.unwrap();
    assert_eq!(closed(&again).await, CloseReason::Revoked);
}

#[tokio::test]
async fn a_revoked_or_forgotten_agent_that_comes_back_is_told_in_a_frame() {
    let world = TestMesh::start().await;
    let (revoked, forgotten) = (world.member(1).await, world.member(2).await);
    world.records.agents.lock().unwrap().get_mut(&revoked.id).unwrap().revoked_at = Some(NOW);
    world.records.agents.lock().unwrap().remove(&forgotten.id);
    world.records.removed.lock().unwrap().insert(forgotten.id);
    for (member, reason) in [(revoked, CloseReason::Revoked), (forgotten, CloseReason::UnknownAgent)] {
        let connection = world.dial_mesh(&member.credentials).await.unwrap();
        let (mut control, receive) = connection.open_bi().await.unwrap();
        write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
        let told = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await.unwrap();
        assert_eq!(told, Some(ToAgent::Closing { reason }));
        assert_eq!(closed(&connection).await, reason);
    }
}

#[tokio::test]
async fn an_agent_that_a_restored_store_does_not_know_is_not_told_to_delete_anything() {
    let world = TestMesh::start().await;
    let newer = world.member(1).await;
    // Neither revoked nor removed: the store is older than its join.
    world.records.agents.lock().unwrap().remove(&newer.id);
    let connection = world.dial_mesh(&newer.credentials).await.unwrap();
    let (mut control, receive) = connection.open_bi().await.unwrap();
    // The close may come before it is written.
    let _ = write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await;
    let told = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await;
    assert!(!matches!(told, Ok(Some(_))), "{told:?}");
    assert_eq!(closed(&connection).await, CloseReason::UnknownAgent);
}

#[tokio::test]
async fn a_closed_connection_leaves_the_place_at_once() {
    let world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.until_connected(1, true).await;
    agent.connection.close(VarInt::from_u32(0), b"");
    world.until_connected(1, false).await;
}

#[tokio::test]
async fn an_agent_that_says_goodbye_leaves_the_place_before_it_closes() {
    let world = TestMesh::start().await;
    let mut agent = world.connect(&world.member(1).await).await;
    agent.say(&ToCoordinator::Goodbye).await;
    world.until_connected(1, false).await;
    assert!(agent.connection.close_reason().is_none());
}

#[tokio::test]
async fn frames_that_break_the_protocol_close_with_the_reason_they_break() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let undecodable = [3_u32.to_le_bytes().as_slice(), &[0xff, 0xff, 0xff]].concat();
    let cases = [(u32::MAX.to_le_bytes().to_vec(), CloseReason::FrameTooLong), (undecodable, CloseReason::Undecodable)];
    for (bytes, reason) in cases {
        let mut agent = world.connect(&member).await;
        agent.control.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&agent.connection).await, reason);
        let connection = world.dial_mesh(&member.credentials).await.unwrap();
        let (mut control, _receive) = connection.open_bi().await.unwrap();
        control.write_all(&bytes).await.unwrap();
        assert_eq!(closed(&connection).await, reason);
    }
    let mut agent = world.connect(&member).await;
    agent.say(&ToCoordinator::Hello(hello(None))).await;
    assert_eq!(closed(&agent.connection).await, CloseReason::OutOfOrder);
    let connection = world.dial_mesh(&member.credentials).await.unwrap();
    let (mut control, _receive) = connection.open_bi().await.unwrap();
    let many = AgentHello { earlier_boots: vec![BOOT; 33], ..hello(None) };
    write(&mut control, &ToCoordinator::Hello(many), MAX_FRAME).await.unwrap();
    assert_eq!(closed(&connection).await, CloseReason::Invalid);
}

#[tokio::test]
async fn time_is_told_and_a_clock_that_is_off_is_shown() {
    let world = TestMesh::start().await;
    let mut agent = world.connect(&world.member(1).await).await;
    agent.say(&ToCoordinator::TimeRequest { sent_us: 42 }).await;
    let ToAgent::Time(told) = agent.hear_more().await else { panic!("no time") };
    assert_eq!((told.echo_us, told.coordinator_ms), (42, NOW.as_millis()));
    agent.say(&ToCoordinator::TimeReport(TimeReport { skew_ms: 5_000, round_trip_ms: 1 })).await;
    agent.say(&ToCoordinator::TimeRequest { sent_us: 43 }).await;
    agent.hear_more().await;
    let view = world.mesh.agents();
    assert!(view[0].is_clock_off && view[0].skew_ms == Some(5_000));
    assert_eq!(view[0].agent.region, Region::Europe);
}

#[tokio::test]
async fn a_mesh_that_stops_tells_its_agents() {
    let world = TestMesh::start().await;
    let agent = world.connect(&world.member(1).await).await;
    world.mesh.stop().await;
    assert_eq!(closed(&agent.connection).await, CloseReason::ShuttingDown);
}

#[tokio::test]
async fn a_seat_is_given_up_however_its_session_ends() {
    let mut world = TestMesh::start().await;
    let _agent = world.connect(&world.member(1).await).await;
    world.until_connected(1, true).await;
    // As if the listener task had crashed: its sessions end immediately.
    let rooms = std::mem::replace(&mut world.mesh.tasks, Supervisor::default().task_group());
    rooms.stop().await;
    world.until_connected(1, false).await;
}
