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
    /// Creates an empty resolver. `base` is the host whose certificate is used for clients without SNI. It does not
    /// select the page, which depends on the `Host` header.
    pub fn new(base: Option<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(ResolverState { base_host: base, ..ResolverState::default() })))
    }

    /// Sets the operator's certificate.
    pub fn set_operator(&self, pair: CertificateAndKey) {
        self.update(|all| all.operator = Some(pair.clone()));
    }

    /// Sets the certificate issued for a host.
    pub(crate) fn set_issued(&self, host: &str, pair: CertificateAndKey) {
        self.update(|all| all.issued.insert(host.to_owned(), pair.clone()));
    }

    /// Removes the certificate issued for a host.
    pub fn remove(&self, host: &str) {
        self.update(|all| all.issued.remove(host));
    }

    /// Selects the certificate for a host, or for the base host if `None`.
    pub(crate) fn certificate_for(&self, host: Option<&str>) -> Option<CertificateAndKey> {
        let all = self.0.load();
        let Some(host) = host.or(all.base_host.as_deref()) else { return all.operator.clone() };
        let host = host.to_ascii_lowercase();
        let own = all.operator.as_ref();
        own.filter(|own| own.covers(&host))
            .or_else(|| all.issued.get(&host))
            // For the base host, a certificate with the wrong name is better than none.
            .or_else(|| own.filter(|_| all.base_host.as_deref() == Some(&host)))
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
        self.0.rcu(|all| {
            let mut all = ResolverState::clone(all);
            change(&mut all);
            all
        });
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate_for(hello.server_name()).map(|pair| pair.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::certified_key::tests::pem;
    use super::*;

    fn pair(names: &[&str], until: i32) -> CertificateAndKey {
        let (certificate, key) = pem(names, until);
        CertificateAndKey::read(&certificate, &key).unwrap()
    }

    #[test]
    fn a_name_is_shown_its_own_certificate_and_an_unknown_one_none() {
        let shown = CertificateResolver::new(Some("status.example".to_owned()));
        assert!(shown.certificate_for(None).is_none() && shown.certificate_for(Some("status.example")).is_none());
        shown.set_issued("status.example", pair(&["status.example"], 2080));
        shown.set_issued("shop.example", pair(&["shop.example"], 2081));
        let until = |host| shown.certificate_for(host).map(|pair| pair.not_after);
        assert_eq!(until(None), until(Some("status.example")));
        assert_ne!(until(Some("Shop.Example")), until(Some("status.example")));
        assert_eq!(until(Some("other.example")), None);
        shown.remove("shop.example");
        assert_eq!(until(Some("shop.example")), None);
    }

    #[test]
    fn the_operators_own_goes_first_where_it_covers_the_name() {
        let shown = CertificateResolver::new(Some("status.example".to_owned()));
        shown.set_issued("a.pages.example", pair(&["a.pages.example"], 2080));
        shown.set_issued("shop.example", pair(&["shop.example"], 2081));
        shown.set_operator(pair(&["status.example", "*.pages.example"], 2090));
        let own = shown.operator().map(|own| own.not_after);
        let until = |host| shown.certificate_for(host).map(|pair| pair.not_after);
        for host in [None, Some("status.example"), Some("a.pages.example"), Some("b.pages.example")] {
            assert_eq!(until(host), own, "{host:?}");
        }
        assert_ne!(until(Some("shop.example")), own);
        assert_eq!(until(Some("other.example")), None);
    }

    #[test]
    fn the_base_host_is_shown_its_own_where_the_operators_does_not_cover_it() {
        let shown = CertificateResolver::new(Some("status.example".to_owned()));
        shown.set_operator(pair(&["*.pages.example"], 2090));
        let own = shown.operator().map(|own| own.not_after);
        let until = |host| shown.certificate_for(host).map(|pair| pair.not_after);
        assert_eq!(until(None), own, "there is no other");
        shown.set_issued("status.example", pair(&["status.example"], 2080));
        let issued = shown.issued("status.example").map(|pair| pair.not_after);
        assert_ne!(issued, own);
        for host in [None, Some("status.example"), Some("Status.Example")] {
            assert_eq!(until(host), issued, "{host:?}");
        }
        assert_eq!(until(Some("a.pages.example")), own);
    }
}
