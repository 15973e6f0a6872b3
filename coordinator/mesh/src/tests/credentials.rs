//! Tests of certificates over time: renewal, expiry, revocation, rotation of the authority, and use by two hosts.

use parallax_certs::identity::AgentIdentity;
use parallax_certs::rotation::AuthorityStore;
use parallax_core::time::MINUTE;
use parallax_protocol::message::{self, TrustReport};
use rustls::client::Resumption;

use super::*;

/// Returns the next authorities frame.
async fn told(agent: &mut TestAgent) -> message::TrustedAuthorities {
    loop {
        if let ToAgent::Authorities(told) = agent.hear().await {
            return told;
        }
    }
}

/// Renews over the live connection. Returns the new credentials.
async fn renew(agent: &mut TestAgent, member: &Member) -> (Member, TrustRoots) {
    let key = AgentKey::generate().unwrap();
    agent.say(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let ToAgent::Renewed(renewed) = agent.hear_more().await else { panic!("not renewed") };
    let leaf = renewed.certificates_der.into_iter().next().unwrap().into();
    let roots = TrustRoots::new(renewed.authorities_der.into_iter().map(Into::into).collect()).unwrap();
    (Member { id: member.id, credentials: key.with_certificate(leaf).unwrap() }, roots)
}

fn holds(member: &Member, roots: &TrustRoots) -> ToCoordinator {
    let serial = AgentIdentity::of_agent(&member.credentials.chain()[0]).unwrap().serial.as_bytes().to_vec();
    ToCoordinator::TrustReport(TrustReport { authorities: roots.key_hashes().unwrap(), serial })
}

/// Waits until the frames sent before have been processed.
async fn settled(agent: &mut TestAgent) {
    agent.say(&ToCoordinator::TimeRequest { sent_us: 7 }).await;
    assert!(matches!(agent.hear_more().await, ToAgent::Time(_)));
}

#[tokio::test]
async fn a_certificate_is_renewed_over_the_live_connection_and_the_old_one_stays_good() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    let key = AgentKey::generate().unwrap();
    agent.say(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let ToAgent::Renewed(renewed) = agent.hear_more().await else { panic!("not renewed") };
    let leaf = renewed.certificates_der.into_iter().next().unwrap().into();
    let fresh = Member { id: member.id, credentials: key.with_certificate(leaf).unwrap() };
    assert_eq!(renewed.authorities_der.len(), 1);
    agent.say(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    let again = agent.hear_more().await;
    assert_eq!(again, ToAgent::RenewRefused { reason: CloseReason::RateLimited });
    world.connect(&fresh).await;
    world.connect(&member).await;
}

#[tokio::test]
async fn a_connection_ends_with_its_certificate() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let agent = world.connect(&member).await;
    world.clock.set(NOW + AGENT_VALIDITY * SECOND);
    world.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    assert_eq!(closed(&agent.connection).await, CloseReason::Expired);
    world.until_connected(1, false).await;
}

#[tokio::test]
async fn a_connection_lasts_as_long_as_the_certificate_that_the_agent_says_to_hold() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    world.clock.set(NOW + AGENT_VALIDITY * SECOND / 3 * 2);
    let (fresh, roots) = renew(&mut agent, &member).await;
    agent.say(&holds(&fresh, &roots)).await;
    settled(&mut agent).await;
    world.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    let early = timeout(Duration::from_millis(2_500), agent.connection.closed()).await;
    assert!(early.is_err(), "{early:?}");
    world.clock.set(NOW + (AGENT_VALIDITY / 3 * 5 + 1) * SECOND);
    let reason = timeout(LIMIT, closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Expired);
}

#[tokio::test]
async fn a_certificate_that_was_made_and_never_held_does_not_lengthen_a_connection() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    world.clock.set(NOW + AGENT_VALIDITY * SECOND / 3 * 2);
    renew(&mut agent, &member).await;
    world.clock.set(NOW + (AGENT_VALIDITY + 1) * SECOND);
    let reason = timeout(LIMIT, closed(&agent.connection)).await.expect("in time");
    assert_eq!(reason, CloseReason::Expired);
}

#[tokio::test]
async fn a_revoked_agent_gets_no_new_certificate_and_is_closed_for_asking() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let mut agent = world.connect(&member).await;
    // The mesh was not notified: only the records have the revocation.
    world.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    let key = AgentKey::generate().unwrap();
    agent.say(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    assert_eq!(closed(&agent.connection).await, CloseReason::Revoked);
    assert_eq!(world.mesh.counters().renewed.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_session_is_never_resumed_so_revocation_is_looked_up_each_time() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let now = clock(|| NOW.as_millis() / SECOND);
    let mut config =
        agent_config(&member.credentials, &world.roots, &[MESH_V1], now, CoordinatorTime::new(None)).unwrap();
    config.resumption = Resumption::in_memory_sessions(8);
    config.enable_early_data = true;
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let dial = || endpoint.connect_with(config.clone(), world.mesh.address(), COORDINATOR_NAME).unwrap();
    let first = dial().await.unwrap();
    let (mut control, receive) = first.open_bi().await.unwrap();
    write(&mut control, &ToCoordinator::Hello(hello(None)), MAX_FRAME).await.unwrap();
    let welcome = FrameReceiver::new(receive, MAX_FRAME).next::<ToAgent>().await.unwrap();
    assert!(matches!(welcome, Some(ToAgent::Welcome(_))));
    world.records.agents.lock().unwrap().get_mut(&member.id).unwrap().revoked_at = Some(NOW);
    world.mesh.refresh();
    assert_eq!(closed(&first).await, CloseReason::Revoked);
    // There is no ticket for early data, and a full handshake ends with a look-up in the records.
    let again = match dial().into_0rtt() {
        Ok(_) => panic!("a ticket was issued"),
        Err(connecting) => connecting.await.unwrap(),
    };
    assert_eq!(closed(&again).await, CloseReason::Revoked);
}

#[tokio::test]
async fn an_authority_is_exchanged_while_agents_are_connected_and_one_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    parallax_certs::files::ensure_private_folder(&data).unwrap();
    let now = NOW.as_millis() / SECOND;
    let mut held = AuthorityStore::open(&data, now).unwrap();
    let world = TestMesh::with(MeshAuthority::from_pem(&held.signing().to_pem()).unwrap()).await;
    let old = held.signing().key_hash();
    let (here, away) = (world.member(1).await, world.member(2).await);
    let mut agent = world.connect(&here).await;
    assert_eq!(told(&mut agent).await.authorities_der.len(), 1);

    held.start(now).unwrap();
    world.mesh.set_trust(Trust::from(&held)).unwrap();
    let both = told(&mut agent).await;
    assert_eq!((both.authorities_der.len(), both.renew), (2, false));
    let both = TrustRoots::new(both.authorities_der.into_iter().map(Into::into).collect()).unwrap();
    agent.say(&holds(&here, &both)).await;
    settled(&mut agent).await;
    let view = |no: usize| world.mesh.agents()[no].credentials.clone();
    assert_eq!(view(0).unwrap().certified_by, Some(old));
    assert_eq!(view(0).unwrap().trusts.len(), 2);
    assert_eq!(view(1), None);

    held.switch().unwrap();
    let new = held.signing().key_hash();
    world.mesh.set_trust(Trust::from(&held)).unwrap();
    assert!(told(&mut agent).await.renew);
    let (fresh, _) = renew(&mut agent, &here).await;
    agent.say(&holds(&fresh, &both)).await;
    settled(&mut agent).await;
    assert_eq!(view(0).unwrap().certified_by, Some(new));
    assert!(agent.connection.close_reason().is_none(), "the same connection all the time");

    // A disconnected agent knows only the old authority: it can connect and receives the new one.
    let mut late = world.connect(&away).await;
    let word = told(&mut late).await;
    assert!(word.renew && word.authorities_der.len() == 2);
    // A token from before is still valid, and so is the renewed certificate.
    assert!(matches!(
        world.join(&world.invite(3).expose(), &AgentKey::generate().unwrap()).await,
        Ok(JoinResponse::Enrolled(_))
    ));
    let mut agent = world.connect_trusting(&fresh, &both).await;
    assert!(!told(&mut agent).await.renew);

    // Rolled back: the old authority signs again, and agents that moved on are asked to renew.
    held.switch_back().unwrap();
    world.mesh.set_trust(Trust::from(&held)).unwrap();
    assert!(told(&mut agent).await.renew);
    held.switch().unwrap();
    world.mesh.set_trust(Trust::from(&held)).unwrap();
    assert!(!told(&mut agent).await.renew);

    held.finish().unwrap();
    world.mesh.set_trust(Trust::from(&held)).unwrap();
    assert_eq!(told(&mut agent).await.authorities_der.len(), 1);
    world.connect_trusting(&fresh, &both).await;
    // An agent that never renewed can't connect any more.
    let late = world.dial_mesh(&away.credentials).await;
    assert!(late.is_err(), "the coordinator presents an authority that it does not know");
}

#[tokio::test]
async fn two_hosts_with_one_identity_are_found_and_the_newest_has_the_place() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let host = |number: u64| AgentHello { boot: BootId(number), ..hello(None) };
    let mut last = world.connect_as(&member, host(1)).await;
    let mut shared = Vec::new();
    for turn in 0..4_u64 {
        let next = world.connect_as(&member, host(2 - turn % 2)).await;
        assert_eq!(closed(&last.connection).await, CloseReason::Replaced);
        shared.push(world.mesh.agents()[0].is_shared);
        last = next;
    }
    assert_eq!(shared, [false, false, true, true], "found at the third take-over");
    let mesh = world.mesh.mesh();
    assert!(mesh.borrow().vantage(VantageNo(1)).is_some_and(|place| place.connected && place.quarantined));
    assert_eq!(world.mesh.counters().shared_identities.load(Ordering::Relaxed), 1, "reported once");
}

#[tokio::test]
async fn a_host_that_is_killed_and_started_again_is_no_clone() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let mut connections = Vec::new();
    for boot in 0..8 {
        connections.push(world.connect_as(&member, AgentHello { boot: BootId(boot), ..hello(None) }).await);
    }
    assert!(!world.mesh.agents()[0].is_shared);
}

#[tokio::test]
async fn a_certificate_whose_successor_was_used_gets_no_new_one_and_the_operator_is_shown_it() {
    let world = TestMesh::start().await;
    let stolen = world.member(1).await;
    let mut agent = world.connect(&stolen).await;
    let (fresh, roots) = renew(&mut agent, &stolen).await;
    agent.say(&holds(&fresh, &roots)).await;
    settled(&mut agent).await;
    let mut thief = world.connect(&stolen).await;
    let key = AgentKey::generate().unwrap();
    thief.say(&ToCoordinator::Renew { csr_der: key.request().unwrap() }).await;
    assert_eq!(thief.hear_more().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
    assert_eq!(world.mesh.counters().renewed.load(Ordering::Relaxed), 1);
    assert!(world.mesh.agents()[0].is_superseded);
    // The holder of the newest certificate continues, and its renewal clears the note.
    let mut agent = world.connect(&fresh).await;
    renew(&mut agent, &fresh).await;
    assert!(!world.mesh.agents()[0].is_superseded);
}

#[tokio::test]
async fn an_agent_whose_new_certificate_was_lost_on_the_way_gets_another_for_the_one_before() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    for _ in 0..3 {
        let mut agent = world.connect(&member).await;
        renew(&mut agent, &member).await;
    }
    // One of them arrived after all: from then on the older one can't be used for a renewal.
    let mut agent = world.connect(&member).await;
    let (fresh, _) = renew(&mut agent, &member).await;
    world.connect(&fresh).await;
    let mut late = world.connect(&member).await;
    late.say(&ToCoordinator::Renew { csr_der: AgentKey::generate().unwrap().request().unwrap() }).await;
    assert_eq!(late.hear_more().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
}

#[tokio::test]
async fn an_agent_whose_certificate_is_newer_than_the_restored_records_renews_as_ever() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let snapshot = world.records.agents.lock().unwrap().clone();
    world.clock.set(NOW + AGENT_VALIDITY * SECOND / 2);
    let mut agent = world.connect(&member).await;
    let (fresh, _) = renew(&mut agent, &member).await;
    world.connect(&fresh).await;
    *world.records.agents.lock().unwrap() = snapshot;
    let mut agent = world.connect(&fresh).await;
    renew(&mut agent, &fresh).await;
    // The record has caught up, so the oldest one is superseded.
    let mut old = world.connect(&member).await;
    old.say(&ToCoordinator::Renew { csr_der: AgentKey::generate().unwrap().request().unwrap() }).await;
    assert_eq!(old.hear_more().await, ToAgent::RenewRefused { reason: CloseReason::Superseded });
}

#[tokio::test]
async fn a_pair_that_was_found_is_on_record_and_let_out_there_when_it_rests() {
    let world = TestMesh::start().await;
    let member = world.member(1).await;
    let host = |number: u64| AgentHello { boot: BootId(number), ..hello(None) };
    let mut connections = Vec::new();
    for turn in 0..4_u64 {
        connections.push(world.connect_as(&member, host(turn % 2)).await);
    }
    let recorded = || world.records.agents.lock().unwrap()[&member.id].identity.suspended_until;
    assert_eq!(recorded(), Some(NOW + 5 * MINUTE), "before the agent is welcomed");
    world.clock.set(NOW + 5 * MINUTE + 1);
    timeout(Duration::from_secs(20), async {
        while recorded().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("released");
    assert!(!world.mesh.agents()[0].is_shared);
}
