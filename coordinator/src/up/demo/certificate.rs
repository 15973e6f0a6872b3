//! The demo's certificate and the authority that its agents trust for it; both live as long as the demo.

use std::fmt::Display;
use std::sync::Arc;

use parallax_core::time::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;

use crate::up::UpError;

/// A name that resolves to this host (RFC 6761) without any name server.
pub(super) const HOST: &str = "shop.localhost";
/// Lifetime of the certificate in seconds: as long as those of public authorities.
const LIFE: i64 = 90 * 24 * 60 * 60;
/// Seconds before now at which its validity starts.
const BACKDATE: i64 = 60 * 60;

/// The authority's root certificate and the TLS acceptor.
pub(in crate::up) struct DemoCertificate {
    /// Root certificate for clients to trust.
    pub(in crate::up) root: CertificateDer<'static>,
    pub(super) acceptor: TlsAcceptor,
}

impl DemoCertificate {
    /// Creates both.
    pub(in crate::up) fn make(now: Timestamp) -> Result<Self, UpError> {
        let mut authority = params(&[], "Parallax demo authority", now)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().map_err(fault)?).map_err(fault)?;
        let key = KeyPair::generate().map_err(fault)?;
        let leaf = params(&[HOST], HOST, now)?.signed_by(&key, &authority).map_err(fault)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fault)?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).map_err(fault)?)
            .map_err(fault)?;
        let root = CertificateDer::from(authority.der().to_vec());
        Ok(Self { root, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}

fn params(hosts: &[&str], name: &str, now: Timestamp) -> Result<CertificateParams, UpError> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).map_err(fault)?;
    let second = now.as_millis() / 1000;
    params.not_before = OffsetDateTime::from_unix_timestamp(second - BACKDATE).map_err(fault)?;
    params.not_after = OffsetDateTime::from_unix_timestamp(second + LIFE).map_err(fault)?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn fault(error: impl Display) -> UpError {
    UpError::Certificate(error.to_string())
}
