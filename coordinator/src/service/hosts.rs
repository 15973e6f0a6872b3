//! Hostnames served here: the base URL's, the pages' slugs under the root domain, and their custom domains.

use std::fmt;
use std::net::IpAddr;

use parallax_core::page::Page;

use super::authorize::{PageAddress, normalize_host};
use super::{Service, ServiceResult};

/// Returns the reason why a hostname has no certificate.
type Problem = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Source of certificate problems.
pub(super) struct CertificateProblems(Box<Problem>);

impl fmt::Debug for CertificateProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified")
    }
}

/// Owner of a hostname.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOwner {
    /// The base URL: dashboard, API, and pages by path.
    Base,
    /// The page with that slug, whether it exists or not: the namespace under the root domain is for pages only.
    Page(String),
    /// Unknown.
    Unknown,
}

impl Service {
    /// Returns the owner of a host in the form of a `Host` header.
    ///
    /// An IP address and `localhost` count as the base URL's: no page is served there. If the base URL itself has
    /// only an IP address, this host's names are unknown, and every name that is not a page's counts as one of them.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](super::ServiceError::Internal) if the store can't be read.
    pub fn host_owner(&self, host: &str) -> ServiceResult<HostOwner> {
        if let Some(slug) = self.slug_of_host(host)? {
            return Ok(HostOwner::Page(slug));
        }
        let is_base = match (normalize_host(host), self.base_host()) {
            (Some(host), Some(own)) => host == own || is_ip_or_localhost(&host) || is_ip_or_localhost(&own),
            (Some(_), None) => true,
            (None, _) => is_ip_or_localhost(host),
        };
        Ok(if is_base { HostOwner::Base } else { HostOwner::Unknown })
    }

    /// Returns the HTTPS origin of a host, such as `https://shop.example`, with the base URL's port; `None` for an
    /// unknown host.
    ///
    /// # Errors
    /// As [`Service::host_owner`].
    pub fn https_origin(&self, host: &str) -> ServiceResult<Option<String>> {
        let after = self.base_url().split_once("://").map_or("", |(_, rest)| rest);
        let authority = after.split('/').next().unwrap_or_default();
        Ok(match self.host_owner(host)? {
            HostOwner::Unknown => None,
            HostOwner::Base => Some(format!("https://{authority}")),
            HostOwner::Page(_) => {
                let port = authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                let port = port.map(|(_, port)| format!(":{port}")).unwrap_or_default();
                normalize_host(host).map(|host| format!("https://{host}{port}"))
            }
        })
    }

    /// Returns the origins of a page's own hostnames: as the base URL is served, or over TLS by a proxy in front.
    pub fn own_origins(&self, page: &Page) -> Vec<String> {
        let label = self.settings().root_domain.as_ref().map(|root| format!("{}.{root}", page.slug));
        let hosts = label.into_iter().chain(page.custom_domain.clone());
        hosts
            .flat_map(|host| {
                [self.page_url_at(&page.slug, PageAddress::OwnHost, Some(&host)), format!("https://{host}")]
            })
            .collect()
    }

    /// Returns true if a certificate for that name is allowed: it is the base URL's name or an existing page's.
    ///
    /// # Errors
    /// As [`Service::host_owner`].
    pub fn is_served_host(&self, name: &str) -> ServiceResult<bool> {
        if is_ip_or_localhost(name) {
            return Ok(false);
        }
        match self.host_owner(name)? {
            HostOwner::Base => Ok(normalize_host(name) == self.base_host()),
            HostOwner::Page(slug) => Ok(self.store().reader().page_by_slug(&slug)?.is_some()),
            HostOwner::Unknown => Ok(false),
        }
    }

    /// Returns the name of the base URL; `None` if it has only an IP address.
    pub fn base_name(&self) -> Option<String> {
        url_hostname(self.base_url())
    }

    /// Lists every name served here: the base URL's first, then the pages' in order of creation.
    ///
    /// # Errors
    /// As [`Service::host_owner`].
    pub async fn served_names(&self) -> ServiceResult<Vec<String>> {
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
    pub fn set_certificate_problems(&self, told: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
        let _ = self.0.certificate_problems.set(CertificateProblems(Box::new(told)));
    }

    /// Returns the reason why a page's custom domain has no valid certificate, or soon will not; `None` if all is
    /// well, or no certificates are ordered here.
    pub fn domain_problem(&self, page: &Page) -> Option<String> {
        let (told, host) = (self.0.certificate_problems.get()?, page.custom_domain.as_ref()?);
        (told.0)(host)
    }
}

/// Returns the name in a URL such as `https://status.example:8443`; `None` if it has an IP address.
pub fn url_hostname(url: &str) -> Option<String> {
    url_host(url).filter(|host| !is_ip_or_localhost(host))
}

/// Returns the host in a URL in normalized form.
pub(super) fn url_host(url: &str) -> Option<String> {
    let after = url.split_once("://").map_or("", |(_, rest)| rest);
    normalize_host(after.split('/').next().unwrap_or_default())
}

/// Returns true for an IP address or `localhost`, which are not public names.
fn is_ip_or_localhost(host: &str) -> bool {
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
            assert!(is_ip_or_localhost(host), "{host}");
        }
        for host in ["example.com", "localhost.example", "1.2.3.4.example"] {
            assert!(!is_ip_or_localhost(host), "{host}");
        }
    }
}
