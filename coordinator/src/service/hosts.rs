//! Which hosts are ours: the base URL's, the pages' labels under the root domain, and their own domains.

use std::fmt;
use std::net::IpAddr;

use parallax_core::page::Page;

use super::gate::{Door, plain};
use super::{Result, Service};

/// Says why a hostname has no certificate.
type Problem = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Whoever says so.
pub(super) struct Certified(Box<Problem>);

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified")
    }
}

/// Whose a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The base URL's: dashboard, API, and pages by their path.
    Base,
    /// The page's with that label, whether there is such a page or not: what lies below the root domain is pages' alone.
    Page(String),
    /// Nobody's.
    Nobody,
}

impl Service {
    /// Whose a host is, in the form of a `Host` header.
    ///
    /// An address counts as the base URL's, as this host's own name does: no page is there. Where the base URL has no
    /// name but an address, nobody has told us our names, and every name that is no page's is taken for one of them.
    ///
    /// # Errors
    /// [`Error::Internal`](super::Error::Internal) where the store can't be read.
    pub fn whose(&self, host: &str) -> Result<Whose> {
        if let Some(slug) = self.page_at(host)? {
            return Ok(Whose::Page(slug));
        }
        let is_base = match (plain(host), self.base_host()) {
            (Some(host), Some(own)) => host == own || is_no_name(&host) || is_no_name(&own),
            (Some(_), None) => true,
            (None, _) => is_no_name(host),
        };
        Ok(if is_base { Whose::Base } else { Whose::Nobody })
    }

    /// Where a host is visited over TLS, such as `https://shop.example`, with the base URL's port; none for a host that
    /// is nobody's.
    ///
    /// # Errors
    /// As [`Service::whose`].
    pub fn secure_address(&self, host: &str) -> Result<Option<String>> {
        let after = self.base_url().split_once("://").map_or("", |(_, rest)| rest);
        let authority = after.split('/').next().unwrap_or_default();
        Ok(match self.whose(host)? {
            Whose::Nobody => None,
            Whose::Base => Some(format!("https://{authority}")),
            Whose::Page(_) => {
                let port = authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                let port = port.map(|(_, port)| format!(":{port}")).unwrap_or_default();
                plain(host).map(|host| format!("https://{host}{port}"))
            }
        })
    }

    /// Where browsers find a page at hosts of its own: served as the base URL is, or over TLS by a proxy in front.
    pub fn own_addresses(&self, page: &Page) -> Vec<String> {
        let label = self.settings().root_domain.as_ref().map(|root| format!("{}.{root}", page.slug));
        let hosts = label.into_iter().chain(page.custom_domain.clone());
        hosts
            .flat_map(|host| [self.address_at(&page.slug, Door::Own, Some(&host)), format!("https://{host}")])
            .collect()
    }

    /// Whether a certificate for that name would be for something of ours: the base URL's name, or an existing page's.
    ///
    /// # Errors
    /// As [`Service::whose`].
    pub fn is_ours(&self, name: &str) -> Result<bool> {
        if is_no_name(name) {
            return Ok(false);
        }
        match self.whose(name)? {
            Whose::Base => Ok(plain(name) == self.base_host()),
            Whose::Page(slug) => Ok(self.store().reader().page_by_slug(&slug)?.is_some()),
            Whose::Nobody => Ok(false),
        }
    }

    /// The name of the base URL; none where it has only an address.
    pub fn base_name(&self) -> Option<String> {
        name_of(self.base_url())
    }

    /// Every name that is ours: the base URL's first, then the pages' in the order of their making.
    ///
    /// # Errors
    /// As [`Service::whose`].
    pub async fn names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.base_name().into_iter().collect();
        let root = self.settings().root_domain.clone();
        for page in self.store().read(|store| store.pages()).await? {
            let page = page.value;
            if page.slug.starts_with('!') {
                continue;
            }
            names.extend(root.as_ref().map(|root| format!("{}.{root}", page.slug)));
            names.extend(page.custom_domain);
        }
        Ok(names)
    }

    /// Has whoever keeps certificates say why a hostname has none, in words for its owner. Only the first call counts.
    pub fn told_of_certificates_by(&self, told: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.certificates.set(Certified(Box::new(told)));
    }

    /// Why a page is not served at its own domain over TLS, or will not be for long; none where all is well, or no
    /// certificates are ordered here.
    pub fn domain_problem(&self, page: &Page) -> Option<String> {
        let (told, host) = (self.0.certificates.get()?, page.custom_domain.as_ref()?);
        (told.0)(host)
    }
}

/// The name in an address such as `https://status.example:8443`; none where it has an IP address.
pub fn name_of(url: &str) -> Option<String> {
    host_of(url).filter(|host| !is_no_name(host))
}

/// The host in an address, as it is compared.
pub(super) fn host_of(url: &str) -> Option<String> {
    let after = url.split_once("://").map_or("", |(_, rest)| rest);
    plain(after.split('/').next().unwrap_or_default())
}

/// Whether that is an address, or what every host calls itself: no name that others could ask for.
fn is_no_name(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(host, |(inner, _)| inner);
    let name = bare.strip_suffix('.').unwrap_or(bare);
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_no_names() {
        for host in ["127.0.0.1", "[::1]", "[::1]:80", "::1", "localhost", "a.localhost", "localhost."] {
            assert!(is_no_name(host), "{host}");
        }
        for host in ["example.com", "localhost.example", "1.2.3.4.example"] {
            assert!(!is_no_name(host), "{host}");
        }
    }
}
