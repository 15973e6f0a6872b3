//! Tests of protocol versions: the newest that both ends support is used; an agent without any is refused with that
//! reason.

use parallax_protocol::version::MESH_V2;

use super::*;

/// Dials as an agent that offers those protocol names, and returns the negotiated one.
async fn negotiate(test_mesh: &TestMesh, member: &Member, offered: &[&[u8]]) -> Result<Vec<u8>, ConnectionError> {
    let now = clock(|| NOW.as_millis() / SECOND);
    let config = agent_config(&member.credentials, &test_mesh.roots, offered, now, CoordinatorTime::new(None)).unwrap();
    let connection = test_mesh.dial(config).await?;
    let data = connection.handshake_data().unwrap().downcast::<quinn::crypto::rustls::HandshakeData>();
    let name = data.unwrap().protocol.unwrap();
    let (mut control, receive) = connection.open_bi().await?;
    write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
    let first = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await.unwrap();
    assert!(matches!(first, Some(ToAgent::Welcome(_))));
    Ok(name)
}

#[tokio::test]
async fn the_newest_version_that_both_sides_support_is_used() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    for (offered, newest) in [
        (&[MESH_V1][..], MESH_V1),
        (&[MESH_V2, MESH_V1], MESH_V2),
        (&[MESH_V1, MESH_V2], MESH_V2),
        (&[b"parallax/3", MESH_V1], MESH_V1),
        (&[b"parallax/4", b"parallax/3", MESH_V2, MESH_V1, b"something"], MESH_V2),
    ] {
        assert_eq!(negotiate(&test_mesh, &member, offered).await.unwrap(), newest);
    }
}

#[tokio::test]
async fn an_agent_receives_its_public_address_if_its_version_has_the_frame() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    for (offered, is_sent) in [(MESH_V1, false), (MESH_V2, true)] {
        let now = clock(|| NOW.as_millis() / SECOND);
        let config =
            agent_config(&member.credentials, &test_mesh.roots, &[offered], now, CoordinatorTime::new(None)).unwrap();
        let connection = test_mesh.dial(config).await.unwrap();
        let (mut control, receive) = connection.open_bi().await.unwrap();
        write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
        let mut frames = FrameReceiver::new(receive, MAX_FRAME);
        let first = frames.next::<ToAgent>().await.unwrap();
        assert!(matches!(first, Some(ToAgent::Welcome(_))), "{first:?}");
        let second = frames.next::<ToAgent>().await.unwrap().unwrap();
        match second {
            ToAgent::ExternalAddress(external) => assert!(is_sent && external.address.is_loopback(), "{external:?}"),
            _ => assert!(!is_sent, "{second:?}"),
        }
    }
}

#[tokio::test]
async fn an_agent_without_a_common_version_is_refused_for_that() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    for offered in [&[b"parallax/3".as_slice()][..], &[b"parallax/0"], &[b"h3", b"http/1.1"]] {
        let refused = negotiate(&test_mesh, &member, offered).await.unwrap_err().to_string();
        // TLS alert 120, no_application_protocol (RFC 7301, section 3.2).
        assert!(refused.contains("error 120"), "{refused}");
    }
    assert!(test_mesh.mesh.agents().iter().all(|agent| agent.connected_since.is_none()));
}

#[tokio::test]
async fn rounds_go_to_agents_that_can_do_them() {
    let test_mesh = TestMesh::start().await;
    test_mesh.schedule([monitor(1, 1)]);
    let (capable, incapable) = (test_mesh.member(1).await, test_mesh.member(2).await);
    let only = |kind| AgentHello { kinds: vec![kind], ..hello(None) };
    let mut incapable = test_mesh.connect_as(&incapable, only(parallax_protocol::check::WireCheckKind::Http)).await;
    // Alone it gets the rounds: it reports itself that it can't run them, and that does not count as an outage.
    let ToAgent::Schedule(alone) = incapable.next_work_frame().await else { panic!("no schedule") };
    assert_eq!(alone.put.len(), 1);
    let mut capable = test_mesh.connect_as(&capable, only(parallax_protocol::check::WireCheckKind::Tcp)).await;
    let ToAgent::Schedule(all) = capable.next_work_frame().await else { panic!("no schedule") };
    assert_eq!(all.put.first().map(|one| one.every), Some(1), "all rounds are its own");
    let ToAgent::Schedule(none) = incapable.next_work_frame().await else { panic!("no schedule") };
    assert_eq!((none.put.len(), none.drop.len()), (0, 1));
}
