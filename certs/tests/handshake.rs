//! Tests of accepted and rejected handshakes, over in-memory TLS pairs.

#![allow(clippy::unwrap_used, reason = "a failed precondition must fail the test")]

use std::io::Write;
use std::sync::Arc;

use parallax_certs::authority::{AUTHORITY_VALIDITY, MeshAuthority};
use parallax_certs::certificate_fields::COORDINATOR_NAME;
use parallax_certs::credentials::Credentials;
use parallax_certs::csr::AgentKey;
use parallax_certs::identity::AgentIdentity;
use parallax_certs::issue::AGENT_VALIDITY;
use parallax_certs::server_verifier::{CoordinatorTime, find_authority};
use parallax_certs::tls::{agent_config, clock, coordinator_config, join_config};
use parallax_certs::trust_roots::TrustRoots;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

const NOW: i64 = 1_790_000_000;
const MESH: &[u8] = b"parallax/1";
const JOIN: &[u8] = b"parallax-join/1";

fn agent_of(authority: &MeshAuthority) -> Credentials {
    let key = AgentKey::generate().unwrap();
    let issued = authority.issue_agent(&key.request().unwrap(), "agt_fra1", NOW, AGENT_VALIDITY).unwrap();
    key.with_certificate(issued.certificate).unwrap()
}

fn server(credentials: &Credentials, roots: &TrustRoots, now: i64) -> ServerConfig {
    coordinator_config(std::slice::from_ref(credentials), roots, &[MESH, JOIN], clock(move || now)).unwrap()
}

fn client(credentials: &Credentials, roots: &TrustRoots, now: i64, known: Option<i64>) -> ClientConfig {
    agent_config(credentials, roots, &[MESH], clock(move || now), CoordinatorTime::new(known)).unwrap()
}

/// A finished handshake, or the side that refused and all application data that the server has read.
struct HandshakeResult {
    server: ServerConnection,
    client: ClientConnection,
}

/// Runs a handshake with `early` queued by the client from the start.
fn handshake(server: ServerConfig, client: ClientConfig, early: &[u8]) -> Result<HandshakeResult, (String, Vec<u8>)> {
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    let name = COORDINATOR_NAME.try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    client.writer().write_all(early).unwrap();
    let mut heard = Vec::new();
    for _ in 0..10 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut left = wire.as_slice();
        while !left.is_empty() {
            server.read_tls(&mut left).unwrap();
        }
        let judged = server.process_new_packets();
        std::io::Read::read_to_end(&mut server.reader(), &mut heard).ok();
        if let Err(error) = judged {
            return Err((format!("server: {error}"), heard));
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut left = wire.as_slice();
        while !left.is_empty() {
            client.read_tls(&mut left).unwrap();
        }
        if let Err(error) = client.process_new_packets() {
            return Err((format!("client: {error}"), heard));
        }
    }
    assert!(!server.is_handshaking() && !client.is_handshaking());
    assert_eq!(heard, early);
    Ok(HandshakeResult { server, client })
}

fn refused_by(side: &str, met: Result<HandshakeResult, (String, Vec<u8>)>) {
    let Err((reason, heard)) = met else { panic!("the handshake went through") };
    assert!(reason.starts_with(side), "{reason}");
    assert!(heard.is_empty(), "{reason}");
}

#[test]
fn an_agent_and_its_coordinator_authenticate_each_other() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let met = handshake(server(&coordinator, &roots, NOW), client(&agent_of(&authority), &roots, NOW, None), b"hello")
        .unwrap_or_else(|(reason, _)| panic!("{reason}"));
    let leaf = &met.server.peer_certificates().unwrap()[0];
    assert_eq!(AgentIdentity::of_agent(leaf).unwrap().agent, "agt_fra1");
    assert_eq!(met.server.alpn_protocol(), Some(MESH));
    assert_eq!(met.client.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    assert_eq!(met.client.tls13_tickets_received(), 0);
}

#[test]
fn an_agent_of_another_authority_is_refused() {
    let (ours, theirs) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
    let roots = ours.roots().unwrap();
    let coordinator = ours.issue_coordinator().unwrap();
    refused_by(
        "server",
        handshake(server(&coordinator, &roots, NOW), client(&agent_of(&theirs), &roots, NOW, None), b""),
    );
}

#[test]
fn a_coordinator_of_another_authority_is_refused_before_anything_is_sent() {
    let (ours, theirs) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
    let coordinator = theirs.issue_coordinator().unwrap();
    let roots = TrustRoots::new(vec![ours.certificate().clone(), theirs.certificate().clone()]).unwrap();
    let agent = client(&agent_of(&ours), &ours.roots().unwrap(), NOW, None);
    refused_by("client", handshake(server(&coordinator, &roots, NOW), agent, b"results"));
}

#[test]
fn a_coordinators_certificate_is_refused_for_an_agent() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    refused_by("server", handshake(server(&coordinator, &roots, NOW), client(&coordinator, &roots, NOW, None), b""));
}

#[test]
fn an_agents_certificate_is_refused_for_a_coordinator() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let agent = agent_of(&authority);
    let chain = vec![agent.chain()[0].clone(), authority.certificate().clone()];
    let pem = agent.to_pem();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::clone_key(
        &rustls_pki_types::pem::PemObject::from_pem_slice(pem.as_bytes()).unwrap(),
    );
    let posing = Credentials::new(chain, key.secret_pkcs8_der().to_vec()).unwrap();
    refused_by("client", handshake(server(&posing, &roots, NOW), client(&agent, &roots, NOW, None), b"results"));
    let joining = join_config(authority.key_hash(), &[JOIN], clock(|| NOW)).unwrap();
    refused_by("client", handshake(server(&posing, &roots, NOW), joining, b"secret"));
}

#[test]
fn an_expired_agent_is_refused_and_one_not_yet_valid_too() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let agent = agent_of(&authority);
    for (now, good) in
        [(NOW - 3_601, false), (NOW - 3_600, true), (NOW + AGENT_VALIDITY, true), (NOW + AGENT_VALIDITY + 1, false)]
    {
        let met = handshake(server(&coordinator, &roots, now), client(&agent, &roots, NOW, None), b"");
        if good {
            assert!(met.is_ok(), "{now}");
        } else {
            refused_by("server", met);
        }
    }
}

#[test]
fn an_expired_coordinator_is_refused_by_an_agent_that_knows_the_time() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let after = NOW + AUTHORITY_VALIDITY + 1;
    let agent = client(&agent_of(&authority), &roots, after, Some(after));
    refused_by("client", handshake(server(&coordinator, &roots, NOW), agent, b"results"));
}

#[test]
fn a_self_signed_stranger_is_refused() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let made = rcgen::generate_simple_self_signed(vec![COORDINATOR_NAME.to_owned()]).unwrap();
    let stranger = Credentials::new(vec![made.cert.der().clone()], made.signing_key.serialize_der()).unwrap();
    refused_by("server", handshake(server(&coordinator, &roots, NOW), client(&stranger, &roots, NOW, None), b""));
    refused_by(
        "client",
        handshake(server(&stranger, &roots, NOW), client(&agent_of(&authority), &roots, NOW, None), b"x"),
    );
}

#[test]
fn a_host_without_a_certificate_joins_the_authority_its_token_names() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let joining = join_config(authority.key_hash(), &[JOIN], clock(|| NOW)).unwrap();
    let met = handshake(server(&coordinator, &authority.roots().unwrap(), NOW), joining, b"secret")
        .unwrap_or_else(|(reason, _)| panic!("{reason}"));
    assert!(met.server.peer_certificates().is_none());
    assert_eq!(met.server.alpn_protocol(), Some(JOIN));
    let sent = met.client.peer_certificates().unwrap();
    assert_eq!(find_authority(&sent[1..], &authority.key_hash()).unwrap(), authority.roots().unwrap());
}

#[test]
fn a_joining_host_sends_nothing_to_an_authority_its_token_does_not_name() {
    let (ours, theirs) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
    let coordinator = theirs.issue_coordinator().unwrap();
    let joining = join_config(ours.key_hash(), &[JOIN], clock(|| NOW)).unwrap();
    refused_by("client", handshake(server(&coordinator, &theirs.roots().unwrap(), NOW), joining, b"secret"));
    // Presenting the right authority with a leaf it did not sign does not help.
    let posing = Credentials::new(
        vec![coordinator.chain()[0].clone(), ours.certificate().clone()],
        rustls_pki_types::pem::PemObject::from_pem_slice(coordinator.to_pem().as_bytes())
            .map(|key: rustls_pki_types::PrivatePkcs8KeyDer<'_>| key.secret_pkcs8_der().to_vec())
            .unwrap(),
    )
    .unwrap();
    let joining = join_config(ours.key_hash(), &[JOIN], clock(|| NOW)).unwrap();
    refused_by("client", handshake(server(&posing, &theirs.roots().unwrap(), NOW), joining, b"secret"));
}

#[test]
fn a_host_with_a_wrong_clock_still_joins_and_connects() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let agent = agent_of(&authority);
    for wrong in [0, NOW - 86_400, NOW + 86_400, 4_102_444_800] {
        let joining = join_config(authority.key_hash(), &[JOIN], clock(move || wrong)).unwrap();
        assert!(handshake(server(&coordinator, &roots, NOW), joining, b"secret").is_ok(), "{wrong}");
        let mesh = client(&agent, &roots, wrong, Some(NOW));
        assert!(handshake(server(&coordinator, &roots, NOW), mesh, b"results").is_ok(), "{wrong}");
    }
}

#[test]
fn two_authorities_are_trusted_side_by_side_while_one_replaces_the_other() {
    let (old, new) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
    let both = TrustRoots::new(vec![old.certificate().clone(), new.certificate().clone()]).unwrap();
    for coordinator in [&old, &new] {
        for agent in [&old, &new] {
            let credentials = coordinator.issue_coordinator().unwrap();
            let met = handshake(server(&credentials, &both, NOW), client(&agent_of(agent), &both, NOW, None), b"x");
            assert!(met.is_ok());
        }
    }
}

#[test]
fn each_client_gets_a_certificate_of_an_authority_it_trusts() {
    let (old, new) = (MeshAuthority::generate(NOW).unwrap(), MeshAuthority::generate(NOW).unwrap());
    let both = TrustRoots::new(vec![new.certificate().clone(), old.certificate().clone()]).unwrap();
    let presented = [new.issue_coordinator().unwrap(), old.issue_coordinator().unwrap()];
    let server = || coordinator_config(&presented, &both, &[MESH, JOIN], clock(|| NOW)).unwrap();
    for one in [&old, &new] {
        let agent = client(&agent_of(one), &one.roots().unwrap(), NOW, None);
        let met = handshake(server(), agent, b"x").unwrap_or_else(|(reason, _)| panic!("{reason}"));
        let leaf = &met.server.peer_certificates().unwrap()[0];
        assert_eq!(both.issuer_of(leaf), Some(one.key_hash()));
        let joining = join_config(one.key_hash(), &[JOIN], clock(|| NOW)).unwrap();
        assert!(handshake(server(), joining, b"secret").is_ok());
    }
    let third = MeshAuthority::generate(NOW).unwrap();
    refused_by("client", handshake(server(), client(&agent_of(&old), &third.roots().unwrap(), NOW, None), b"x"));
}

#[test]
fn a_peer_that_speaks_another_protocol_is_refused() {
    let authority = MeshAuthority::generate(NOW).unwrap();
    let roots = authority.roots().unwrap();
    let coordinator = authority.issue_coordinator().unwrap();
    let unknown_protocol = join_config(authority.key_hash(), &[b"http/1.1"], clock(|| NOW)).unwrap();
    refused_by("server", handshake(server(&coordinator, &roots, NOW), unknown_protocol, b"x"));
}
