//! TLS settings of the HTTPS listener: versions, cipher suites, ALPN and the certificate resolver.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use rustls::version::{TLS12, TLS13};

/// ALPN protocols, preferred first (RFC 7301).
const ALPN_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds the settings: TLS 1.3 and 1.2 with ring's cipher suites. Sessions are not kept across restarts, and early
/// data is not accepted.
///
/// # Errors
/// If the cipher suites do not match the versions, which does not happen.
pub(super) fn server_config(resolver: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = ALPN_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}
