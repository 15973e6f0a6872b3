//! Hostnames served here: the base URL's, the pages' slugs under the root domain, and their custom domains.

use std::fmt;
use std::net::IpAddr;

use parallax_core::page::Page;

use super::gate::{Door, plain};
use super::{Result, Service};

/// Returns the reason why a hostname has no certificate.
type Problem = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Source of certificate problems.
pub(super) struct Certified(Box<Problem>);

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified")
    }
}

/// Owner of a hostname.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The base URL: dashboard, API, and pages by path.
    Base,
    /// The page with that slug, whether it exists or not: the namespace under the root domain is for pages only.
    Page(String),
    /// Unknown.
    Nobody,
}

impl Service {
    /// Returns the owner of a host in the form of a `Host` header.
    ///
    /// An IP address and `localhost` count as the base URL's: no page is served there. If the base URL itself has
    /// only an IP address, this host's names are unknown, and every name that is not a page's counts as one of them.
    ///
    /// # Errors
    /// [`Error::Internal`](super::Error::Internal) if the store can't be read.
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

    /// Returns the HTTPS origin of a host, such as `https://shop.example`, with the base URL's port; `None` for an
    /// unknown host.
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

    /// Returns the origins of a page's own hostnames: as the base URL is served, or over TLS by a proxy in front.
    pub fn own_addresses(&self, page: &Page) -> Vec<String> {
        let label = self.settings().root_domain.as_ref().map(|root| format!("{}.{root}", page.slug));
        let hosts = label.into_iter().chain(page.custom_domain.clone());
        hosts
            .flat_map(|host| [self.address_at(&page.slug, Door::Own, Some(&host)), format!("https://{host}")])
            .collect()
    }

    /// Returns true if a certificate for that name is allowed: it is the base URL's name or an existing page's.
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

    /// Returns the name of the base URL; `None` if it has only an IP address.
    pub fn base_name(&self) -> Option<String> {
        name_of(self.base_url())
    }

    /// Lists every name served here: the base URL's first, then the pages' in order of creation.
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

    /// Sets the source of certificate problems, in words for the page's owner. Only the first call counts.
    pub fn told_of_certificates_by(&self, told: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.certificates.set(Certified(Box::new(told)));
    }

    /// Returns the reason why a page's custom domain has no valid certificate, or soon will not; `None` if all is
    /// well, or no certificates are ordered here.
    pub fn domain_problem(&self, page: &Page) -> Option<String> {
        let (told, host) = (self.0.certificates.get()?, page.custom_domain.as_ref()?);
        (told.0)(host)
    }
}

/// Returns the name in a URL such as `https://status.example:8443`; `None` if it has an IP address.
pub fn name_of(url: &str) -> Option<String> {
    host_of(url).filter(|host| !is_no_name(host))
}

/// Returns the host in a URL in normalized form.
pub(super) fn host_of(url: &str) -> Option<String> {
    let after = url.split_once("://").map_or("", |(_, rest)| rest);
    plain(after.split('/').next().unwrap_or_default())
}

/// Returns true for an IP address or `localhost`, which are not public names.
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
