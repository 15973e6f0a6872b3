//! Certificate resolver: selects the operator's certificate or the one issued for the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Pair, config};

/// The certificates in use; can be changed while connections are served. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<ArcSwap<All>>);

#[derive(Debug, Clone, Default)]
struct All {
    /// The operator's certificate, used for every host that it covers.
    own: Option<Pair>,
    /// Host of the base URL, for clients without SNI.
    base: Option<String>,
    issued: BTreeMap<String, Pair>,
}

impl Shown {
    /// Creates an empty resolver. `base` is the host whose certificate is used for clients without SNI. It does not
    /// select the page, which depends on the `Host` header.
    pub fn new(base: Option<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(All { base, ..All::default() })))
    }

    /// Sets the operator's certificate.
    pub fn put_own(&self, pair: Pair) {
        self.change(|all| all.own = Some(pair.clone()));
    }

    /// Sets the certificate issued for a host.
    pub fn put_issued(&self, host: &str, pair: Pair) {
        self.change(|all| all.issued.insert(host.to_owned(), pair.clone()));
    }

    /// Removes the certificate issued for a host.
    pub fn forget(&self, host: &str) {
        self.change(|all| all.issued.remove(host));
    }

    /// Selects the certificate for a host, or for the base host if `None`.
    pub fn pair(&self, host: Option<&str>) -> Option<Pair> {
        let all = self.0.load();
        let Some(host) = host.or(all.base.as_deref()) else { return all.own.clone() };
        let host = host.to_ascii_lowercase();
        let own = all.own.as_ref();
        own.filter(|own| own.covers(&host))
            .or_else(|| all.issued.get(&host))
            // For the base host, a certificate with the wrong name is better than none.
            .or_else(|| own.filter(|_| all.base.as_deref() == Some(&host)))
            .cloned()
    }

    /// The certificate issued for a host.
    pub fn issued(&self, host: &str) -> Option<Pair> {
        self.0.load().issued.get(host).cloned()
    }

    /// The operator's certificate.
    pub fn own(&self) -> Option<Pair> {
        self.0.load().own.clone()
    }

    /// TLS settings of the listener.
    ///
    /// # Errors
    /// If the cipher suites do not match the versions, which does not happen.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        config::server(Arc::new(self.clone()))
    }

    fn change<T>(&self, change: impl Fn(&mut All) -> T) {
        self.0.rcu(|all| {
            let mut all = All::clone(all);
            change(&mut all);
            all
        });
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair(hello.server_name()).map(|pair| pair.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::pair::tests::pem;
    use super::*;

    fn pair(names: &[&str], until: i32) -> Pair {
        let (certificate, key) = pem(names, until);
        Pair::read(&certificate, &key).unwrap()
    }

    #[test]
    fn a_name_is_shown_its_own_certificate_and_an_unknown_one_none() {
        let shown = Shown::new(Some("status.example".to_owned()));
        assert!(shown.pair(None).is_none() && shown.pair(Some("status.example")).is_none());
        shown.put_issued("status.example", pair(&["status.example"], 2080));
        shown.put_issued("shop.example", pair(&["shop.example"], 2081));
        let until = |host| shown.pair(host).map(|pair| pair.not_after);
        assert_eq!(until(None), until(Some("status.example")));
        assert_ne!(until(Some("Shop.Example")), until(Some("status.example")));
        assert_eq!(until(Some("other.example")), None);
        shown.forget("shop.example");
        assert_eq!(until(Some("shop.example")), None);
    }

    #[test]
    fn the_operators_own_goes_first_where_it_covers_the_name() {
        let shown = Shown::new(Some("status.example".to_owned()));
        shown.put_issued("a.pages.example", pair(&["a.pages.example"], 2080));
        shown.put_issued("shop.example", pair(&["shop.example"], 2081));
        shown.put_own(pair(&["status.example", "*.pages.example"], 2090));
        let own = shown.own().map(|own| own.not_after);
        let until = |host| shown.pair(host).map(|pair| pair.not_after);
        for host in [None, Some("status.example"), Some("a.pages.example"), Some("b.pages.example")] {
            assert_eq!(until(host), own, "{host:?}");
        }
        assert_ne!(until(Some("shop.example")), own);
        assert_eq!(until(Some("other.example")), None);
    }

    #[test]
    fn the_base_host_is_shown_its_own_where_the_operators_does_not_cover_it() {
        let shown = Shown::new(Some("status.example".to_owned()));
        shown.put_own(pair(&["*.pages.example"], 2090));
        let own = shown.own().map(|own| own.not_after);
        let until = |host| shown.pair(host).map(|pair| pair.not_after);
        assert_eq!(until(None), own, "there is no other");
        shown.put_issued("status.example", pair(&["status.example"], 2080));
        let issued = shown.issued("status.example").map(|pair| pair.not_after);
        assert_ne!(issued, own);
        for host in [None, Some("status.example"), Some("Status.Example")] {
            assert_eq!(until(host), issued, "{host:?}");
        }
        assert_eq!(until(Some("a.pages.example")), own);
    }
}
