//! Resources that all probes share: the guarded dialler, TLS settings, a memory budget and a time limit.

use std::{sync::Arc, time::Duration};

use parallax_dial::{AdmittedAddresses, BlockedAddressMode, DialError, DialGuard, Host};
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, VerifierBuilderError},
    crypto::CryptoProvider,
};
use rustls_pki_types::CertificateDer;
use tokio::time::Instant;

use super::{chain_cache::ChainCache, memory_budget::MemoryBudget, tls::WebVerifier};

/// Resources that all probes share; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ProbeContext {
    guard: Arc<DialGuard>,
    web_tls: Arc<ClientConfig>,
    crypto: Arc<CryptoProvider>,
    verifier: WebVerifier,
    budget: Arc<MemoryBudget>,
    limit: Duration,
}

/// The probes' settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeSetupError {
    /// The TLS library refuses its settings.
    #[error("TLS settings can't be used: {0}")]
    Tls(#[source] rustls::Error),
    /// No root certificate is trusted, so no certificate could ever be valid.
    #[error("roots can't be used: {0}")]
    Roots(#[source] VerifierBuilderError),
    /// A root certificate of the operator can't be read.
    #[error("root certificate can't be used: {0}")]
    Root(#[source] rustls::Error),
}

impl ProbeContext {
    /// Creates resources for probes that dial through `guard`, trust `roots`, and end within `limit`.
    ///
    /// # Errors
    /// [`ProbeSetupError::Tls`] if the TLS library refuses its settings, [`ProbeSetupError::Roots`] for no roots at
    /// all.
    pub(super) fn new(guard: DialGuard, roots: RootCertStore, limit: Duration) -> Result<Self, ProbeSetupError> {
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebVerifier::new(roots, &crypto).map_err(ProbeSetupError::Roots)?;
        let mut tls = ClientConfig::builder_with_provider(Arc::clone(&crypto))
            .with_safe_default_protocol_versions()
            .map_err(ProbeSetupError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ChainCache::new(verifier.clone())))
            .with_no_client_auth();
        // Every check is a first visit: a resumed session would hide a broken certificate.
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { guard: Arc::new(guard), web_tls: Arc::new(tls), crypto, verifier, budget: Arc::default(), limit })
    }

    /// Sets another time limit for a whole check.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// Returns the guard that probes dial through.
    pub(super) fn guard(&self) -> &DialGuard {
        &self.guard
    }

    /// Returns the time limit of a whole check.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the deadline of a check that starts now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// Returns the TLS settings for the web, offering HTTP/2 and HTTP/1.1.
    pub(super) fn web_tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.web_tls)
    }

    /// Returns the TLS library's cryptography.
    pub(super) fn crypto(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.crypto)
    }

    /// Returns the verifier of certificates, which caches nothing.
    pub(super) fn verifier(&self) -> &WebVerifier {
        &self.verifier
    }

    /// Returns the memory budget of bodies that are being read.
    pub(super) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Resolves and judges the target of a check.
    pub(super) async fn admit(
        &self,
        host: &Host,
        port: u16,
        deadline: Instant,
    ) -> Result<AdmittedAddresses, DialError> {
        self.guard.admit(host, port, BlockedAddressMode::DropBlocked, deadline).await
    }
}

/// Returns the roots that browsers trust, and those of the operator.
///
/// # Errors
/// [`ProbeSetupError::Root`] if one of `extra` is not a certificate.
pub fn roots(extra: &[CertificateDer<'_>]) -> Result<RootCertStore, ProbeSetupError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in extra {
        roots.add(certificate.clone().into_owned()).map_err(ProbeSetupError::Root)?;
    }
    Ok(roots)
}
