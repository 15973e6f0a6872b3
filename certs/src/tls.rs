//! rustls settings for each side of the mesh: TLS 1.3 only, ring, no resumption, no early data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::UnixTime;

use crate::authority_hint::{self, HintedCertResolver};
use crate::client_verifier::BoundedClientVerifier;
use crate::credentials::Credentials;
use crate::error::CertsError;
use crate::server_verifier::{CoordinatorTime, CoordinatorVerifier, TrustSource};
use crate::trust_roots::{TrustRoots, key_hash_of};

/// Returns the coordinator's settings. A client certificate is optional, so that mesh and join share one
/// port: the session must match the protocol (ALPN) and [`crate::identity::AgentIdentity`] before it reads
/// anything. A certificate, if sent, must be valid: issued by one of `roots`, for clients, within its
/// validity period by `clock`, in a chain of at most two certificates and 8 KiB.
///
/// Of the `credentials`, each a leaf with its authority, the first whose authority the client names is
/// presented, or else the very first.
///
/// # Errors
/// [`CertsError::Tls`] if rustls rejects key or certificate, [`CertsError::Certificate`] if the second one is not an
/// authority.
pub fn coordinator_config(
    credentials: &[Credentials],
    roots: &TrustRoots,
    protocols: &[&[u8]],
    clock: Arc<dyn TimeProvider>,
) -> Result<ServerConfig, CertsError> {
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots.cert_store()?), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(|_| CertsError::Certificate("cannot be trusted as an authority"))?;
    let mut certificates = Vec::new();
    for credential in credentials {
        // A leaf without its authority can't be requested by name.
        let name = credential.chain().get(1).map(key_hash_of).transpose()?.map(|hash| authority_hint::hint_name(&hash));
        let (chain, key) = credential.for_rustls();
        certificates.push((name, Arc::new(CertifiedKey::from_der(chain, key, &provider)?)));
    }
    let mut config = ServerConfig::builder_with_details(provider, clock)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(BoundedClientVerifier(verifier)))
        .with_cert_resolver(Arc::new(HintedCertResolver(certificates)));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.max_early_data_size = 0;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// Returns an agent's settings for the mesh. The coordinator is verified by `roots` and its constant name, at
/// the time that [`CoordinatorTime::validation_time`] chooses from `clock` (the host's own) and `coordinator_time`.
///
/// # Errors
/// [`CertsError::Tls`] if rustls rejects key or certificate.
pub fn agent_config(
    credentials: &Credentials,
    roots: &TrustRoots,
    protocols: &[&[u8]],
    clock: Arc<dyn TimeProvider>,
    coordinator_time: Arc<CoordinatorTime>,
) -> Result<ClientConfig, CertsError> {
    let provider = Arc::new(default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let hints = roots.key_hashes()?.iter().map(authority_hint::hint_name).collect();
    let trust = TrustSource::Roots { roots: roots.clone(), coordinator_time };
    let verifier = CoordinatorVerifier { trust, hints, algorithms };
    let (chain, key) = credentials.for_rustls();
    let config = ClientConfig::builder_with_details(provider, clock)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(chain, key)?;
    Ok(harden(config, protocols))
}

/// Returns a joining host's settings, before it has any certificate. The server must send leaf and authority;
/// the authority's public key must have the SHA-256 `authority` from the join token. Chain, validity, name
/// and kind are verified too, all within the handshake, so nothing is sent to a server that fails.
///
/// # Errors
/// [`CertsError::Tls`] if rustls rejects the settings.
pub fn join_config(
    authority: [u8; 32],
    protocols: &[&[u8]],
    clock: Arc<dyn TimeProvider>,
) -> Result<ClientConfig, CertsError> {
    let provider = Arc::new(default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let hints = vec![authority_hint::hint_name(&authority)];
    let verifier = CoordinatorVerifier { trust: TrustSource::KeyHash(authority), hints, algorithms };
    let config = ClientConfig::builder_with_details(provider, clock)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(harden(config, protocols))
}

/// Creates a clock for rustls from a function that returns unix seconds.
pub fn clock(unix_seconds: impl Fn() -> i64 + Send + Sync + 'static) -> Arc<dyn TimeProvider> {
    Arc::new(Seconds(unix_seconds))
}

fn harden(mut config: ClientConfig, protocols: &[&[u8]]) -> ClientConfig {
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config
}

struct Seconds<F>(F);

impl<F> fmt::Debug for Seconds<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seconds(..)")
    }
}

impl<F: Fn() -> i64 + Send + Sync> TimeProvider for Seconds<F> {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from((self.0)()).unwrap_or(0);
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
