//! Shared resources of the probes: the guarded dialler, TLS settings, caches and a time limit.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use parallax_dial::{AdmittedAddresses, BlockedAddressMode, DialError, DialGuard, Host};
use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, VerifierBuilderError, WebPkiServerVerifier},
    crypto::CryptoProvider,
};
use rustls_pki_types::CertificateDer;
use tokio::time::Instant;
use url::Url;

use super::{
    chain_cache::ChainCache, component::VendorPageCache, domain::Registries, http::budget::MemoryBudget, ping::Pingers,
};

/// Resources of every probe of this agent; cheap to clone.
#[derive(Debug, Clone)]
pub struct ProbeContext {
    guard: Arc<DialGuard>,
    web_tls: Arc<ClientConfig>,
    crypto: Arc<CryptoProvider>,
    verifier: Arc<WebPkiServerVerifier>,
    pingers: Arc<Pingers>,
    registries: Arc<Registries>,
    pages: Arc<VendorPageCache>,
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
    /// Default time limit of a whole check.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// Creates resources for probes that dial through `guard` and trust `roots`.
    ///
    /// # Errors
    /// [`ProbeSetupError::Tls`] if the TLS library refuses its settings, [`ProbeSetupError::Roots`] for no roots at all.
    pub fn new(guard: DialGuard, roots: RootCertStore) -> Result<Self, ProbeSetupError> {
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&crypto))
            .build()
            .map_err(ProbeSetupError::Roots)?;
        let mut tls = ClientConfig::builder_with_provider(Arc::clone(&crypto))
            .with_safe_default_protocol_versions()
            .map_err(ProbeSetupError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ChainCache::new(Arc::clone(&verifier))))
            .with_no_client_auth();
        // Every check is a first visit: a resumed session would hide a broken certificate.
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let pingers = Arc::new(Pingers::new(guard.policy().source));
        Ok(Self {
            guard: Arc::new(guard),
            web_tls: Arc::new(tls),
            crypto,
            verifier,
            pingers,
            registries: Arc::new(Registries::new(None)),
            pages: Arc::new(VendorPageCache::new(VendorPageCache::LIFETIME)),
            budget: Arc::default(),
            limit: Self::LIMIT,
        })
    }

    /// Sets another time limit for a whole check.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets one RDAP service for every domain, instead of the registries' own.
    #[must_use]
    pub fn with_rdap(mut self, base: &Url) -> Self {
        self.registries = Arc::new(Registries::new(Some(base)));
        self
    }

    /// Sets another address of the bootstrap registry of RDAP services (RFC 9224), if given, and a file that
    /// caches its contents over a restart.
    #[must_use]
    pub fn with_bootstrap(mut self, address: Option<&Url>, file: PathBuf) -> Self {
        self.registries = Arc::new(Registries::new(None).with_bootstrap(address, file));
        self
    }

    /// Sets another WHOIS server that refers to those of registries without RDAP; all listen on its port.
    #[must_use]
    pub fn with_whois(mut self, root: SocketAddr) -> Self {
        self.registries = Arc::new(Registries::with_whois(root));
        self
    }

    /// Sets another cache lifetime of a vendor's page, which all its followers share.
    #[must_use]
    pub fn with_pages_fresh_for(mut self, fresh: Duration) -> Self {
        self.pages = Arc::new(VendorPageCache::new(fresh));
        self
    }

    /// Detects the product of a vendor's page in one check instead of over several, for a single run.
    #[must_use]
    pub fn with_full_page_detection(mut self) -> Self {
        self.pages = Arc::new(VendorPageCache::with_full_detection());
        self
    }

    /// Returns the product that a component check detected on a vendor's page.
    #[must_use]
    pub fn vendor_product(&self, vendor_url: &str) -> Option<&'static str> {
        self.pages.product(vendor_url)
    }

    /// Returns the guard that probes dial through.
    #[must_use]
    pub fn guard(&self) -> &DialGuard {
        &self.guard
    }

    /// Returns the time limit of a whole check.
    #[must_use]
    pub fn limit(&self) -> Duration {
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

    /// Returns the crypto provider and the certificate verifier.
    pub(super) fn trust(&self) -> (Arc<CryptoProvider>, Arc<WebPkiServerVerifier>) {
        (Arc::clone(&self.crypto), Arc::clone(&self.verifier))
    }

    /// Returns the sockets for pings.
    pub(super) fn pingers(&self) -> &Pingers {
        &self.pingers
    }

    /// Returns true if this host permits pings (ICMP).
    pub(crate) fn may_ping(&self) -> bool {
        self.pingers.may_send()
    }

    /// Returns the registries for domains.
    pub(super) fn registries(&self) -> &Registries {
        &self.registries
    }

    /// Returns the cache of vendors' pages.
    pub(super) fn page_cache(&self) -> &VendorPageCache {
        &self.pages
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
