//! Tests of certificates over time: renewal, expiry, revocation, rotation of the authority, and use by two hosts.

use parallax_certs::identity::AgentIdentity;
use parallax_certs::rotation::AuthorityStore;
use parallax_core::time::MINUTE;
use parallax_protocol::message::{self, TrustReport};
use rustls::client::Resumption;

use super::*;

/// Returns the next authorities frame.
async fn next_authorities(agent: &mut TestAgent) -> message::TrustedAuthorities {
    loop {
        if let ToAgent::Authorities(authorities) = agent.next_frame().await {
            return authorities;
        }
    }
}

/// Renews over the live connection. Returns the new credentials.
async fn renew(agent: &mut TestAgent, member: &Member) -> (Member, TrustRoots) {
    let key = AgentKey::generate().unwrap();
    agent.send(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let ToAgent::Renewed(renewed) = agent.next_reply().await else { panic!("not renewed") };
    let leaf = renewed.certificates_der.into_iter().next().unwrap().into();
    let roots = TrustRoots::new(renewed.authorities_der.into_iter().map(Into::into).collect()).unwrap();
    (Member { id: member.id, credentials: key.with_certificate(leaf).unwrap() }, roots)
}

fn trust_report(member: &Member, roots: &TrustRoots) -> ToCoordinator {
    let serial = AgentIdentity::of_agent(&member.credentials.chain()[0]).unwrap().serial.as_bytes().to_vec();
    ToCoordinator::TrustReport(TrustReport { authorities: roots.key_hashes().unwrap(), serial })
}

/// Waits until the frames sent before have been processed.
async fn wait_processed(agent: &mut TestAgent) {
    agent.send(&ToCoordinator::TimeRequest { sent_us: 7 }).await;
    assert!(matches!(agent.next_reply().await, ToAgent::Time(_)));
}

#[tokio::test]
async fn a_certificate_is_renewed_over_the_live_connection_and_the_old_one_stays_valid() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    let key = AgentKey::generate().unwrap();
    agent.send(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let ToAgent::Renewed(renewed) = agent.next_reply().await else { panic!("not renewed") };
    let leaf = renewed.certificates_der.into_iter().next().unwrap().into();
    let renewed_member = Member { id: member.id, credentials: key.with_certificate(leaf).unwrap() };
    assert_eq!(renewed.authorities_der.len(), 1);
    agent.send(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let refusal = agent.next_reply().await;
    assert_eq!(refusal, ToAgent::RenewRefused { reason: CloseReason::RateLimited });
    test_mesh.connect(&renewed_member).await;
    test_mesh.connect(&member).await;
}

#[tokio::test]
async fn a_connection_ends_with_its_certificate() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let agent = test_mesh.connect(&member).await;
    test_mesh.clock.set(NOW + AGENT_VALIDITY * SECOND);
    test_mesh.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    assert_eq!(closed(&agent.connection).await, CloseReason::Expired);
    test_mesh.wait_connected(1, false).await;
}

#[tokio::test]
async fn a_connection_lasts_as_long_as_the_certificate_that_the_agent_reports() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    test_mesh.clock.set(NOW + AGENT_VALIDITY * SECOND / 3 * 2);
    let (renewed_member, roots) = renew(&mut agent, &member).await;
    agent.send(&trust_report(&renewed_member, &roots)).await;
    wait_processed(&mut agent).await;
    test_mesh.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    let early = timeout(Duration::from_millis(2_500), agent.connection.closed()).await;
    assert!(early.is_err(), "{early:?}");
    test_mesh.clock.set(NOW + (AGENT_VALIDITY / 3 * 5 + 1) * SECOND);
    let reason = timeout(LIMIT, closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Expired);
}

#[tokio::test]
async fn an_issued_certificate_that_was_never_reported_does_not_extend_the_connection() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    test_mesh.clock.set(NOW + AGENT_VALIDITY * SECOND / 3 * 2);
    renew(&mut agent, &member).await;
    test_mesh.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    let reason = timeout(LIMIT, closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Expired);
}

#[tokio::test]
async fn a_revoked_agent_that_requests_a_certificate_is_disconnected() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&member).await;
    // The mesh was not notified: only the records have the revocation.
    test_mesh.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    let key = AgentKey::generate().unwrap();
    agent.send(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    assert_eq!(closed(&agent.connection).await, CloseReason::Revoked);
    assert_eq!(test_mesh.mesh.counters().renewed.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn tls_sessions_are_never_resumed_so_revocation_is_checked_each_time() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let now = clock(|| NOW.as_millis() / SECOND);
    let mut config =
        agent_config(&member.credentials, &test_mesh.roots, &[MESH_V1], now, CoordinatorTime::new(None)).unwrap();
    config.resumption = Resumption::in_memory_sessions(8);
    config.enable_early_data = true;
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let dial = || endpoint.connect_with(config.clone(), test_mesh.mesh.address(), COORDINATOR_NAME).unwrap();
    let first = dial().await.unwrap();
    let (mut control, receive) = first.open_bi().await.unwrap();
    write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
    let welcome = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await.unwrap();
    assert!(matches!(welcome, Some(ToAgent::Welcome(_))));
    test_mesh.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    test_mesh.mesh.refresh();
    assert_eq!(closed(&first).await, CloseReason::Revoked);
    // There is no ticket for early data, and a full handshake ends with a look-up in the records.
    let second_connection = match dial().into_0rtt() {
        Ok(_) => panic!("a ticket was issued"),
        Err(connecting) => connecting.await.unwrap(),
    };
    assert_eq!(closed(&second_connection).await, CloseReason::Revoked);
}

#[tokio::test]
async fn the_authority_is_rotated_while_one_agent_is_connected_and_one_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::ensure_private_folder(&data).unwrap();
    let now = NOW.as_millis() / SECOND;
    let mut authorities = AuthorityStore::open(&data, now).unwrap();
    let test_mesh = TestMesh::with_authority(MeshAuthority::from_pem(&authorities.signing().to_pem()).unwrap()).await;
    let old = authorities.signing().key_hash();
    let (connected, disconnected) = (test_mesh.member(1).await, test_mesh.member(2).await);
    let mut agent = test_mesh.connect(&connected).await;
    assert_eq!(next_authorities(&mut agent).await.authorities_der.len(), 1);

    authorities.start(now).unwrap();
    test_mesh.mesh.set_trust(Trust::from(&authorities)).unwrap();
    let both = next_authorities(&mut agent).await;
    assert_eq!((both.authorities_der.len(), both.renew), (2, false));
    let both = TrustRoots::new(both.authorities_der.into_iter().map(Into::into).collect()).unwrap();
    agent.send(&trust_report(&connected, &both)).await;
    wait_processed(&mut agent).await;
    let view = |no: usize| test_mesh.mesh.agents()[no].credentials.clone();
    assert_eq!(view(0).unwrap().certified_by, Some(old));
    assert_eq!(view(0).unwrap().trusts.len(), 2);
    assert_eq!(view(1), None);

    authorities.switch().unwrap();
    let new = authorities.signing().key_hash();
    test_mesh.mesh.set_trust(Trust::from(&authorities)).unwrap();
    assert!(next_authorities(&mut agent).await.renew);
    let (renewed_member, _) = renew(&mut agent, &connected).await;
    agent.send(&trust_report(&renewed_member, &both)).await;
    wait_processed(&mut agent).await;
    assert_eq!(view(0).unwrap().certified_by, Some(new));
    assert!(agent.connection.close_reason().is_none(), "the same connection all the time");

    // A disconnected agent knows only the old authority: it can connect and receives the new one.
    let mut late_agent = test_mesh.connect(&disconnected).await;
    let frame = next_authorities(&mut late_agent).await;
    assert!(frame.renew && frame.authorities_der.len() == 2);
    // A token from before is still valid, and so is the renewed certificate.
    assert!(matches!(
        test_mesh.join(&test_mesh.invite(3).expose(), &AgentKey::generate().unwrap()).await,
        Ok(JoinResponse::Enrolled(_))
    ));
    let mut agent = test_mesh.connect_trusting(&renewed_member, &both).await;
    assert!(!next_authorities(&mut agent).await.renew);

    // Rolled back: the old authority signs again, and agents that moved on are asked to renew.
    authorities.switch_back().unwrap();
    test_mesh.mesh.set_trust(Trust::from(&authorities)).unwrap();
    assert!(next_authorities(&mut agent).await.renew);
    authorities.switch().unwrap();
    test_mesh.mesh.set_trust(Trust::from(&authorities)).unwrap();
    assert!(!next_authorities(&mut agent).await.renew);

    authorities.finish().unwrap();
    test_mesh.mesh.set_trust(Trust::from(&authorities)).unwrap();
    assert_eq!(next_authorities(&mut agent).await.authorities_der.len(), 1);
    test_mesh.connect_trusting(&renewed_member, &both).await;
    // An agent that never renewed can't connect any more.
    let late_agent = test_mesh.dial_mesh(&disconnected.credentials).await;
    assert!(late_agent.is_err(), "the coordinator presents an authority that it does not know");
}

#[tokio::test]
async fn two_hosts_with_one_identity_are_detected_and_the_newest_connection_stays() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let host = |number: u64| AgentHello { boot: BootId(number), ..hello(None) };
    let mut last = test_mesh.connect_as(&member, host(1)).await;
    let mut shared = Vec::new();
    for turn in 0..4_u64 {
        let next = test_mesh.connect_as(&member, host(2 - turn % 2)).await;
        assert_eq!(closed(&last.connection).await, CloseReason::Replaced);
        shared.push(test_mesh.mesh.agents()[0].is_shared);
        last = next;
    }
    assert_eq!(shared, [false, false, true, true], "found at the third take-over");
    let mesh = test_mesh.mesh.mesh();
    assert!(mesh.borrow().vantage(VantageNo(1)).is_some_and(|vantage| vantage.connected && vantage.quarantined));
    assert_eq!(test_mesh.mesh.counters().shared_identities.load(Ordering::Relaxed), 1, "reported once");
}

#[tokio::test]
async fn a_restarted_host_is_no_clone() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let mut connections = Vec::new();
    for boot in 0..8 {
        connections.push(test_mesh.connect_as(&member, AgentHello { boot: BootId(boot), ..hello(None) }).await);
    }
    assert!(!test_mesh.mesh.agents()[0].is_shared);
}

#[tokio::test]
async fn a_superseded_certificate_is_not_renewed_and_is_shown_to_the_operator() {
    let test_mesh = TestMesh::start().await;
    let stolen = test_mesh.member(1).await;
    let mut agent = test_mesh.connect(&stolen).await;
    let (renewed_member, roots) = renew(&mut agent, &stolen).await;
    agent.send(&trust_report(&renewed_member, &roots)).await;
    wait_processed(&mut agent).await;
    let mut thief = test_mesh.connect(&stolen).await;
    let key = AgentKey::generate().unwrap();
    thief.send(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    assert_eq!(thief.next_reply().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
    assert_eq!(test_mesh.mesh.counters().renewed.load(Ordering::Relaxed), 1);
    assert!(test_mesh.mesh.agents()[0].is_superseded);
    // The holder of the newest certificate continues, and its renewal clears the note.
    let mut agent = test_mesh.connect(&renewed_member).await;
    renew(&mut agent, &renewed_member).await;
    assert!(!test_mesh.mesh.agents()[0].is_superseded);
}

#[tokio::test]
async fn an_agent_that_never_received_its_new_certificate_can_renew_again() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    for _ in 0..3 {
        let mut agent = test_mesh.connect(&member).await;
        renew(&mut agent, &member).await;
    }
    // One of them arrived after all: from then on the older one can't be used for a renewal.
    let mut agent = test_mesh.connect(&member).await;
    let (renewed_member, _) = renew(&mut agent, &member).await;
    test_mesh.connect(&renewed_member).await;
    let mut late_agent = test_mesh.connect(&member).await;
    late_agent.send(&ToCoordinator::Renew { csr_der: AgentKey::generate().unwrap().request().unwrap() }).await;
    assert_eq!(late_agent.next_reply().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
}

#[tokio::test]
async fn an_agent_with_a_certificate_newer_than_restored_records_can_renew() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let snapshot = test_mesh.records.agents.lock().unwrap().clone();
    test_mesh.clock.set(NOW + AGENT_VALIDITY * SECOND / 2);
    let mut agent = test_mesh.connect(&member).await;
    let (renewed_member, _) = renew(&mut agent, &member).await;
    test_mesh.connect(&renewed_member).await;
    *test_mesh.records.agents.lock().unwrap() = snapshot;
    let mut agent = test_mesh.connect(&renewed_member).await;
    renew(&mut agent, &renewed_member).await;
    // The record has caught up, so the oldest one is superseded.
    let mut old = test_mesh.connect(&member).await;
    old.send(&ToCoordinator::Renew { csr_der: AgentKey::generate().unwrap().request().unwrap() }).await;
    assert_eq!(old.next_reply().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
}

#[tokio::test]
async fn a_shared_identity_is_recorded_and_released_after_a_quiet_time() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let host = |number: u64| AgentHello { boot: BootId(number), ..hello(None) };
    let mut connections = Vec::new();
    for turn in 0..4_u64 {
        connections.push(test_mesh.connect_as(&member, host(turn % 2)).await);
    }
    let recorded = || test_mesh.records.agents.lock().unwrap()[&member.id].identity.suspended_until;
    assert_eq!(recorded(), Some(NOW + 5 * MINUTE), "before the agent is welcomed");
    test_mesh.clock.set(NOW + 5 * MINUTE + 1);
    timeout(Duration::from_secs(20), async {
        while recorded().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("released");
    assert!(!test_mesh.mesh.agents()[0].is_shared);
}
