//! Tests of an agent's identity and trust: certificates, versions, its own addresses, authorities.

use super::*;

#[tokio::test]
async fn a_certificate_past_two_thirds_of_its_life_is_renewed_over_the_live_connection() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    let twenty_five_days = 25 * 86_400;
    coordinator.join_as_of(&config(folder.path()), -twenty_five_days).await.unwrap();
    let before = std::fs::read(folder.path().join("agent/credentials.pem")).unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    let request = session.control_until(|frame| matches!(frame, ToCoordinator::Renew { .. })).await;
    let ToCoordinator::Renew { csr_der } = request else { panic!() };
    let renewed = RenewedCertificate {
        certificates_der: vec![coordinator.issue(&csr_der, 0)],
        authorities_der: vec![coordinator.authority()],
    };
    session.send(&ToAgent::Renewed(renewed)).await;
    let path = folder.path().join("agent/credentials.pem");
    eventually(|| std::fs::read(&path).unwrap() != before).await;
    session.close(CloseReason::ShuttingDown);
    let again = coordinator.accept(BOOK, vec![]).await;
    assert!(again.hello.certificate_ends_ms > session.hello.certificate_ends_ms);
    drop(agent);
}

#[tokio::test]
async fn a_newer_coordinator_gets_the_common_version() {
    let folder = tempfile::tempdir().unwrap();
    let newer: [&[u8]; 4] = [b"parallax/4", b"parallax/3", b"parallax/2", b"parallax-join/1"];
    let coordinator = MiniCoordinator::with_protocols(&newer);
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(session.version(), b"parallax/2");
    drop(agent);
}

#[tokio::test]
async fn learned_own_addresses_are_not_checked_and_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::with_protocols(&[MESH_V2, JOIN_V1]);
    let closed = AgentConfig { allow_own_host: false, ..config(folder.path()) };
    coordinator.join(&closed).await.unwrap();
    let agent = Agent::start(closed.clone());
    let session = coordinator.accept(BOOK, vec![]).await;
    // Addresses of no local interface.
    let addresses = ["10.77.0.1", "fd77::1"].map(|address| address.parse().unwrap());
    for address in addresses {
        session.send(&ToAgent::ExternalAddress(ExternalAddress { address })).await;
    }
    let target = |host: &str| WireCheckSpec::Tcp(WireTcpCheck { host: host.into(), port: 80 });
    let refused = WireOutcome::Failed(WireFailure::AddressNotAllowed { class: AddressClass::Own });
    for host in ["10.77.0.1", "fd77::1"] {
        assert_eq!(outcome(&session, target(host)).await, refused, "{host}");
    }
    agent.stop().await;
    let record = parallax_agent::data_folder::read_record(&closed.data).unwrap().unwrap();
    assert_eq!(record.seen_from, [addresses[1], addresses[0]]);
    assert_eq!(record.coordinator_addresses, ["127.0.0.1".parse::<IpAddr>().unwrap()]);

    let agent = Agent::start(closed);
    let session = coordinator.accept(BOOK, vec![]).await;
    assert_eq!(outcome(&session, target("10.77.0.1")).await, refused, "before the coordinator sends it again");
    agent.stop().await;
}

#[tokio::test]
async fn announced_authorities_are_stored_and_a_renewal_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (coordinator, second) = (MiniCoordinator::start(), MiniCoordinator::start());
    coordinator.join(&config(folder.path())).await.unwrap();
    let agent = Agent::start(config(folder.path()));
    let mut session = coordinator.accept(BOOK, vec![]).await;
    let nonsense = TrustedAuthorities { authorities_der: vec![vec![1, 2, 3]], renew: false };
    session.send(&ToAgent::Authorities(nonsense)).await;
    let both = vec![coordinator.authority(), second.authority()];
    session.send(&ToAgent::Authorities(TrustedAuthorities { authorities_der: both.clone(), renew: true })).await;
    let held = session.control_until(|frame| matches!(frame, ToCoordinator::TrustReport(_))).await;
    let ToCoordinator::TrustReport(before) = held else { panic!() };
    assert_eq!(before.authorities.len(), 2);
    let stored = std::fs::read_to_string(folder.path().join("agent/authorities.pem")).unwrap();
    assert_eq!(stored.matches("BEGIN CERTIFICATE").count(), 2, "saved before it is reported");
    let request = session.control_until(|frame| matches!(frame, ToCoordinator::Renew { .. })).await;
    let ToCoordinator::Renew { csr_der } = request else { panic!() };
    let certificates_der = vec![coordinator.issue(&csr_der, 0)];
    session.send(&ToAgent::Renewed(RenewedCertificate { certificates_der, authorities_der: both })).await;
    let held = session.control_until(|frame| matches!(frame, ToCoordinator::TrustReport(_))).await;
    let ToCoordinator::TrustReport(after) = held else { panic!() };
    assert_ne!(after.serial, before.serial);
    drop(agent);
}

#[tokio::test]
async fn a_coordinator_of_another_authority_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (right, wrong) = (MiniCoordinator::start(), MiniCoordinator::start());
    let token = right.token();
    let refused = parallax_agent::join::join(&config(folder.path()), &wrong.address(), &token).await;
    assert!(matches!(refused, Err(AgentError::Unreachable { .. })), "{refused:?}");
    assert!(!wrong.has_join_request());
    assert!(!folder.path().join("agent/credentials.pem").exists());
}

#[tokio::test]
async fn a_refused_token_leaves_nothing_and_reports_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = MiniCoordinator::start();
    coordinator.refuse(CloseReason::TokenUsed);
    let refused = coordinator.join(&config(folder.path())).await;
    assert!(matches!(refused, Err(AgentError::Refused(CloseReason::TokenUsed))), "{refused:?}");
    assert!(!folder.path().join("agent/credentials.pem").exists());
    assert!(matches!(
        parallax_agent::run(config(folder.path()), std::future::pending()).await,
        Err(AgentError::NotJoined(_))
    ));
}
