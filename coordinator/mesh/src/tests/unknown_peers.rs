//! Tests of peers that are refused in the handshake or right after it: each for its own reason, and nothing is
//! stored.

use parallax_certs::files;
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::id as wire_id;
use parallax_protocol::result::{CheckResult, NumberedResult, ProbeReport, WireOutcome};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType, SerialNumber,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::*;

const NAME: &str = "spiffe://parallax/agent/00000000000000000000000000000009";

/// Builds a certificate that claims to be an agent's.
fn leaf(usages: Vec<ExtendedKeyUsagePurpose>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "agent");
    params.subject_alt_names = vec![SanType::URI(NAME.try_into().unwrap())];
    params.extended_key_usages = usages;
    params.serial_number = Some(SerialNumber::from_slice(&[0x41; 16]));
    params
}

/// Returns the key of the test's own authority: what a thief of the coordinator's disk would have.
fn thief(test_mesh: &TestMesh) -> Issuer<'static, KeyPair> {
    let text = test_mesh.authority.to_pem();
    let key = PrivatePkcs8KeyDer::from(private_key(&text));
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    Issuer::from_ca_cert_der(test_mesh.authority.certificate(), key).unwrap()
}

fn credentials_with_key(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Credentials {
    Credentials::new(chain, key.serialize_der()).unwrap()
}

/// Dials with credentials and returns the text of the coordinator's refusal.
async fn refusal(test_mesh: &TestMesh, credentials: &Credentials) -> String {
    let now = clock(|| NOW.as_millis() / SECOND);
    let honest = test_mesh.authority.issue_coordinator().unwrap();
    let mut config = agent_config(&honest, &test_mesh.roots, &[MESH_V1], now, CoordinatorTime::new(None)).unwrap();
    // Bypasses the client's own checks of its certificate.
    let key = PrivatePkcs8KeyDer::from(pkcs8(credentials)).into();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let certified_key = rustls::sign::CertifiedKey::new(credentials.chain().to_vec(), key);
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified_key));
    match test_mesh.dial(config).await {
        Ok(connection) => timeout(LIMIT, connection.closed()).await.expect("in time").to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn every_unknown_peer_is_refused_for_its_own_reason_and_nothing_is_stored() {
    let (test_mesh, other) = (TestMesh::start().await, TestMesh::start().await);
    let client = || vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let sign = |params: CertificateParams| params.signed_by(&key, &thief(&test_mesh)).unwrap().der().clone();

    let foreign = other.member(1).await.credentials;
    let coordinator = test_mesh.authority.issue_coordinator().unwrap();
    let as_agent = Credentials::new(vec![coordinator.chain()[0].clone()], pkcs8(&coordinator)).unwrap();
    let self_signed = credentials_with_key(vec![leaf(client()).self_signed(&key).unwrap().der().clone()], &key);
    let wrong_usage = credentials_with_key(vec![sign(leaf(vec![ExtendedKeyUsagePurpose::CodeSigning]))], &key);
    let no_usage = credentials_with_key(vec![sign(leaf(Vec::new()))], &key);
    let long = credentials_with_key(vec![sign(leaf(client())); 11], &key);
    let mut padded = leaf(client());
    padded.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![4; 10_000])];
    let large = credentials_with_key(vec![sign(padded)], &key);
    let mut giant = leaf(client());
    giant.custom_extensions = vec![CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![4; 1 << 20])];
    let giant = credentials_with_key(vec![sign(giant)], &key);
    let mut nameless = leaf(client());
    nameless.subject_alt_names = vec![SanType::DnsName("agent.example".try_into().unwrap())];
    let nameless = credentials_with_key(vec![sign(nameless)], &key);
    let unknown = credentials_with_key(vec![sign(leaf(client()))], &key);
    let mut authority = leaf(client());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = credentials_with_key(vec![sign(authority)], &key);

    let cases = [
        ("another installation's", foreign, "UnknownIssuer"),
        ("a coordinator's as an agent's", as_agent, "allows server authentication"),
        ("self-signed", self_signed, "is self-signed"),
        ("of a wrong usage", wrong_usage, "allows 1, 3, 6, 1, 5, 5, 7, 3, 3"),
        ("of no usage", no_usage, "identity unknown"),
        ("in a chain of eleven", long, "more than two"),
        ("of 10 kB", large, "longer than 8192 bytes"),
        ("of 1 MB", giant, "HandshakePayloadTooLarge"),
        ("without an agent's name", nameless, "identity unknown"),
        ("of an agent that is not enrolled", unknown, "identity unknown"),
        ("of an authority", authority, "CaUsedAsEndEntity"),
    ];
    let before = test_mesh.records.agents.lock().unwrap().len();
    let mut refused = Vec::new();
    for (case, credentials, words) in &cases {
        let reason = refusal(&test_mesh, credentials).await;
        refused.push((reason.contains(words), *case, reason));
    }
    assert!(refused.iter().all(|(is_for_its_reason, ..)| *is_for_its_reason), "{refused:#?}");
    assert_eq!(test_mesh.records.agents.lock().unwrap().len(), before);
    assert!(test_mesh.mesh.agents().is_empty());
    assert_eq!(test_mesh.mesh.counters().results.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_agent_posing_as_a_coordinator_is_refused() {
    let test_mesh = TestMesh::start().await;
    let member = test_mesh.member(1).await;
    let posing = Credentials::new(
        vec![member.credentials.chain()[0].clone(), test_mesh.authority.certificate().clone()],
        pkcs8(&member.credentials),
    )
    .unwrap();
    let now = || clock(|| NOW.as_millis() / SECOND);
    let server =
        parallax_certs::tls::coordinator_config(&[posing], &test_mesh.roots, &[MESH_V1, JOIN_V1], now()).unwrap();
    let server = quinn::crypto::rustls::QuicServerConfig::try_from(server).unwrap();
    let server = quinn::ServerConfig::with_crypto(Arc::new(server));
    let posing = Endpoint::server(server, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = posing.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        while let Some(incoming) = posing.accept().await {
            if let Ok(connection) = incoming.await {
                return connection.accept_bi().await.is_ok();
            }
        }
        false
    });
    for config in [
        agent_config(&member.credentials, &test_mesh.roots, &[MESH_V1], now(), CoordinatorTime::new(None)).unwrap(),
        join_config(test_mesh.key_hash, &[JOIN_V1], now()).unwrap(),
    ] {
        let crypto = QuicClientConfig::try_from(config).unwrap();
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let dialled =
            endpoint.connect_with(ClientConfig::new(Arc::new(crypto)), address, COORDINATOR_NAME).unwrap().await;
        assert!(dialled.is_err());
    }
    assert!(!serve.is_finished(), "no stream was opened");
    serve.abort();
}

#[tokio::test]
async fn an_agents_own_claims_about_its_identity_are_ignored() {
    let mut test_mesh = TestMesh::start().await;
    let (one, two) = (test_mesh.member(1).await, test_mesh.member(2).await);
    // A request for another agent's name and for a coordinator's: only its key is used.
    let mut agent = test_mesh.connect(&one).await;
    let key = KeyPair::generate().unwrap();
    let mut claims = CertificateParams::default();
    claims.distinguished_name.push(DnType::CommonName, two.id.to_string());
    let name = format!("spiffe://parallax/agent/{}", two.id);
    claims.subject_alt_names =
        vec![SanType::URI(name.as_str().try_into().unwrap()), SanType::DnsName(COORDINATOR_NAME.try_into().unwrap())];
    let request = claims.serialize_request(&key).unwrap().der().to_vec();
    agent.send(&ToCoordinator::Renew { csr_der: request }).await;
    let ToAgent::Renewed(renewed) = agent.next_reply().await else { panic!("not renewed") };
    let certificate = CertificateDer::from(renewed.certificates_der[0].clone());
    let identity = parallax_certs::identity::AgentIdentity::of_agent(&certificate).unwrap();
    assert_eq!(identity.agent, one.id.to_string());

    // Its results get its own vantage, region and network, whatever it claims.
    test_mesh.schedule([monitor(1, 1)]);
    let mut results = agent.connection.open_uni().await.unwrap();
    let result = CheckResult {
        monitor: wire_id::WireMonitorId(1_001),
        revision: 1,
        round: Some(1),
        started_ms: NOW.as_millis(),
        age_ms: 0,
        report: ProbeReport::outcome_only(WireOutcome::Passed),
    };
    let batch = ResultBatch::pack(BOOT, 0, &[NumberedResult { seq: 1, result }], |_| Some(1)).unwrap();
    write(&mut results, &ResultFrame::Batch(batch), MAX_FRAME).await.unwrap();
    let batch = test_mesh.batch().await;
    assert_eq!(batch.vantage, VantageNo(1));
    let (_, observation) = &batch.observations[0];
    assert_eq!((observation.vantage, observation.region), (VantageNo(1), Region::Europe));
}

fn private_key(pem: &str) -> Vec<u8> {
    PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap().secret_pkcs8_der().to_vec()
}

/// Returns the private key of credentials.
fn pkcs8(credentials: &Credentials) -> Vec<u8> {
    private_key(&credentials.to_pem())
}

#[test]
fn the_authority_files_are_readable_only_by_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    files::ensure_private_folder(&data).unwrap();
    let mut authorities = parallax_certs::rotation::AuthorityStore::open(&data, NOW.as_millis() / SECOND).unwrap();
    authorities.start(NOW.as_millis() / SECOND).unwrap();
    for file in std::fs::read_dir(&data).unwrap() {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.unwrap().metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
