//! Certificate resolver: selects the operator's certificate or the one issued for the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{CertificateAndKey, server_config};

/// The certificates in use; can be changed while connections are served. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct CertificateResolver(Arc<ArcSwap<ResolverState>>);

#[derive(Debug, Clone, Default)]
struct ResolverState {
    /// The operator's certificate, used for every host that it covers.
    operator: Option<CertificateAndKey>,
    /// Host of the base URL, for clients without SNI.
    base_host: Option<String>,
    issued: BTreeMap<String, CertificateAndKey>,
}

impl CertificateResolver {
    /// Creates an empty resolver. `base_host` is the host whose certificate is used for clients without SNI. It does
    /// not select the page, which depends on the `Host` header.
    pub fn new(base_host: Option<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(ResolverState { base_host, ..ResolverState::default() })))
    }

    /// Sets the operator's certificate.
    pub fn set_operator(&self, certificate: CertificateAndKey) {
        self.update(|state| state.operator = Some(certificate.clone()));
    }

    /// Sets the certificate issued for a host.
    pub(crate) fn set_issued(&self, host: &str, certificate: CertificateAndKey) {
        self.update(|state| state.issued.insert(host.to_owned(), certificate.clone()));
    }

    /// Removes the certificate issued for a host.
    pub fn remove(&self, host: &str) {
        self.update(|state| state.issued.remove(host));
    }

    /// Selects the certificate for a host, or for the base host if `None`.
    pub(crate) fn certificate_for(&self, host: Option<&str>) -> Option<CertificateAndKey> {
        let state = self.0.load();
        let Some(host) = host.or(state.base_host.as_deref()) else { return state.operator.clone() };
        let host = host.to_ascii_lowercase();
        let operator = state.operator.as_ref();
        operator
            .filter(|operator| operator.covers(&host))
            .or_else(|| state.issued.get(&host))
            // For the base host, a certificate with the wrong name is better than none.
            .or_else(|| operator.filter(|_| state.base_host.as_deref() == Some(&host)))
            .cloned()
    }

    /// The certificate issued for a host.
    pub fn issued(&self, host: &str) -> Option<CertificateAndKey> {
        self.0.load().issued.get(host).cloned()
    }

    /// The operator's certificate.
    pub fn operator(&self) -> Option<CertificateAndKey> {
        self.0.load().operator.clone()
    }

    /// TLS settings of the listener.
    ///
    /// # Errors
    /// If the cipher suites do not match the versions, which does not happen.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        server_config::server_config(Arc::new(self.clone()))
    }

    fn update<T>(&self, change: impl Fn(&mut ResolverState) -> T) {
        self.0.rcu(|state| {
            let mut state = ResolverState::clone(state);
            change(&mut state);
            state
        });
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate_for(hello.server_name()).map(|certificate| certificate.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::certified_key::tests::pem;
    use super::*;

    fn certificate(names: &[&str], until: i32) -> CertificateAndKey {
        let (certificate, key) = pem(names, until);
        CertificateAndKey::read(&certificate, &key).unwrap()
    }

    #[test]
    fn each_host_gets_its_own_certificate_and_unknown_hosts_none() {
        let resolver = CertificateResolver::new(Some("status.example".to_owned()));
        assert!(resolver.certificate_for(None).is_none() && resolver.certificate_for(Some("status.example")).is_none());
        resolver.set_issued("status.example", certificate(&["status.example"], 2080));
        resolver.set_issued("shop.example", certificate(&["shop.example"], 2081));
        let expiry_for = |host| resolver.certificate_for(host).map(|certificate| certificate.not_after);
        assert_eq!(expiry_for(None), expiry_for(Some("status.example")));
        assert_ne!(expiry_for(Some("Shop.Example")), expiry_for(Some("status.example")));
        assert_eq!(expiry_for(Some("other.example")), None);
        resolver.remove("shop.example");
        assert_eq!(expiry_for(Some("shop.example")), None);
    }

    #[test]
    fn the_operators_certificate_is_preferred_for_hosts_that_it_covers() {
        let resolver = CertificateResolver::new(Some("status.example".to_owned()));
        resolver.set_issued("a.pages.example", certificate(&["a.pages.example"], 2080));
        resolver.set_issued("shop.example", certificate(&["shop.example"], 2081));
        resolver.set_operator(certificate(&["status.example", "*.pages.example"], 2090));
        let operator_expiry = resolver.operator().map(|certificate| certificate.not_after);
        let expiry_for = |host| resolver.certificate_for(host).map(|certificate| certificate.not_after);
        for host in [None, Some("status.example"), Some("a.pages.example"), Some("b.pages.example")] {
            assert_eq!(expiry_for(host), operator_expiry, "{host:?}");
        }
        assert_ne!(expiry_for(Some("shop.example")), operator_expiry);
        assert_eq!(expiry_for(Some("other.example")), None);
    }

    #[test]
    fn the_base_host_gets_its_issued_certificate_if_the_operators_does_not_cover_it() {
        let resolver = CertificateResolver::new(Some("status.example".to_owned()));
        resolver.set_operator(certificate(&["*.pages.example"], 2090));
        let operator_expiry = resolver.operator().map(|certificate| certificate.not_after);
        let expiry_for = |host| resolver.certificate_for(host).map(|certificate| certificate.not_after);
        assert_eq!(expiry_for(None), operator_expiry, "there is no other");
        resolver.set_issued("status.example", certificate(&["status.example"], 2080));
        let issued_expiry = resolver.issued("status.example").map(|certificate| certificate.not_after);
        assert_ne!(issued_expiry, operator_expiry);
        for host in [None, Some("status.example"), Some("Status.Example")] {
            assert_eq!(expiry_for(host), issued_expiry, "{host:?}");
        }
        assert_eq!(expiry_for(Some("a.pages.example")), operator_expiry);
    }
}
