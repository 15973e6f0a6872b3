//! A mesh peer without a valid identity, which presents certificates of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

/// Longest wait for the coordinator.
const LIMIT: Duration = Duration::from_secs(10);

/// Certificate that the peer presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentedCertificate {
    /// No certificate.
    Absent,
    /// A self-signed certificate.
    SelfSigned,
    /// A valid agent certificate by another installation's authority.
    OtherAuthority,
}

/// Connects to the mesh port and returns the reason with which the coordinator closed. `identity` is the agent URI in
/// the certificate.
pub async fn attempt_handshake(
    mesh: SocketAddr,
    alpn: &[u8],
    shows: PresentedCertificate,
    identity: &str,
) -> Result<(), String> {
    crate::use_ring();
    let config = client_config(alpn, shows, identity);
    let client = QuicClientConfig::try_from(config).expect("TLS 1.3 is on");
    let mut endpoint = quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("a UDP socket");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(client)));
    let talk = async {
        let connecting = endpoint.connect(mesh, "coordinator").expect("address is good");
        let connection = connecting.await.map_err(|error| error.to_string())?;
        // With TLS 1.3 the client's handshake completes before the server has verified the certificate: the rejection
        // arrives here, or instead of the first frame.
        let (_send, mut receive) = connection.open_bi().await.map_err(|error| error.to_string())?;
        let mut byte = [0; 1];
        match receive.read_exact(&mut byte).await {
            Ok(()) => Ok(()),
            Err(_) => Err(connection.closed().await.to_string()),
        }
    };
    tokio::time::timeout(LIMIT, talk).await.expect("the coordinator answers a stranger in time")
}

/// Returns a TLS configuration that accepts any server.
pub fn client_config(alpn: &[u8], shows: PresentedCertificate, identity: &str) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3 is known")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
    let mut config = match certificate(shows, identity) {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("key and certificate fit"),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

fn certificate(
    shows: PresentedCertificate,
    identity: &str,
) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let key = KeyPair::generate().expect("a key can be made");
    let mut leaf = CertificateParams::default();
    leaf.subject_alt_names = vec![SanType::URI(identity.try_into().expect("identity is ASCII"))];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = match shows {
        PresentedCertificate::Absent => return None,
        PresentedCertificate::SelfSigned => leaf.self_signed(&key),
        PresentedCertificate::OtherAuthority => {
            let mut authority = CertificateParams::default();
            authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let issuer = Issuer::new(authority, KeyPair::generate().expect("a key can be made"));
            leaf.signed_by(&key, &issuer)
        }
    };
    let certificate = certificate.expect("a certificate can be signed");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Some((vec![certificate.der().clone()], key))
}

/// A verifier that accepts any server: an attacker does not care.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns bytes that look random, identical in each run.
pub fn pseudo_random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(count).collect()
}
