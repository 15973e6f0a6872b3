//! Hostnames served here: the base URL's, the pages' slugs under the root domain, and their custom domains.

pub mod domains;
pub(crate) mod hostname;

use std::fmt;
use std::sync::Arc;

use parallax_core::page::Page;

pub use self::hostname::url_hostname;
use self::hostname::{is_ip_or_localhost, normalize_host};
use super::ServiceResult;
use super::context::ServiceContext;

/// Returns the reason why a hostname has no certificate.
type Problem = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Source of certificate problems, in words for the page's owner. By default there are none, as where no certificates
/// are ordered.
#[derive(Default)]
pub struct CertificateProblems(Option<Box<Problem>>);

impl CertificateProblems {
    /// Uses this function, which returns the reason why a hostname has no certificate.
    pub fn new(problem: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(problem)))
    }
}

impl fmt::Debug for CertificateProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateProblems")
    }
}

/// Kind of address by which a page is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageAddress {
    /// Its slug below the base URL: `{base_url}/p/{slug}`.
    BasePath,
    /// A hostname of its own: its slug under the root domain, or its custom domain.
    OwnHost,
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

/// Read-only directory of the hostnames served here: the page of each, and the URLs of pages.
#[derive(Debug)]
pub struct HostService {
    context: Arc<ServiceContext>,
    certificate_problems: CertificateProblems,
}

impl HostService {
    pub(crate) fn new(context: &Arc<ServiceContext>, certificate_problems: CertificateProblems) -> Self {
        Self { context: Arc::clone(context), certificate_problems }
    }

    /// Returns the owner of a host in the form of a `Host` header.
    ///
    /// An IP address and `localhost` count as the base URL's: no page is served there. If the base URL itself has
    /// only an IP address, this host's names are unknown, and every name that is not a page's counts as one of them.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](super::ServiceError::Internal) if the store can't be read.
    pub fn owner(&self, host: &str) -> ServiceResult<HostOwner> {
        if let Some(slug) = self.slug_of_host(host)? {
            return Ok(HostOwner::Page(slug));
        }
        let is_base = match (normalize_host(host), self.context.base_host()) {
            (Some(host), Some(base_host)) => {
                host == base_host || is_ip_or_localhost(&host) || is_ip_or_localhost(&base_host)
            }
            (Some(_), None) => true,
            (None, _) => is_ip_or_localhost(host),
        };
        Ok(if is_base { HostOwner::Base } else { HostOwner::Unknown })
    }

    /// Returns the HTTPS origin of a host, such as `https://shop.example`, with the base URL's port; `None` for an
    /// unknown host.
    ///
    /// # Errors
    /// As [`Self::owner`].
    pub fn https_origin(&self, host: &str) -> ServiceResult<Option<String>> {
        let after = self.context.base_url().split_once("://").map_or("", |(_, rest)| rest);
        let authority = after.split('/').next().unwrap_or_default();
        Ok(match self.owner(host)? {
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
        let label = self.context.settings().root_domain.as_ref().map(|root| format!("{}.{root}", page.slug));
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
    /// As [`Self::owner`].
    pub fn is_served(&self, name: &str) -> ServiceResult<bool> {
        if is_ip_or_localhost(name) {
            return Ok(false);
        }
        match self.owner(name)? {
            HostOwner::Base => Ok(normalize_host(name) == self.context.base_host()),
            HostOwner::Page(slug) => Ok(self.context.store().reader().page_by_slug(&slug)?.is_some()),
            HostOwner::Unknown => Ok(false),
        }
    }

    /// Returns the name of the base URL; `None` if it has only an IP address.
    pub fn base_name(&self) -> Option<String> {
        url_hostname(self.context.base_url())
    }

    /// Lists every name served here: the base URL's first, then the pages' in order of creation.
    ///
    /// # Errors
    /// As [`Self::owner`].
    pub async fn served_names(&self) -> ServiceResult<Vec<String>> {
        let mut names: Vec<String> = self.base_name().into_iter().collect();
        let root = self.context.settings().root_domain.clone();
        for page in self.context.store().read(|store| store.pages()).await? {
            let page = page.value;
            if page.slug.starts_with('!') {
                continue;
            }
            names.extend(root.as_ref().map(|root| format!("{}.{root}", page.slug)));
            names.extend(page.custom_domain);
        }
        Ok(names)
    }

    /// Returns the reason why a page's custom domain has no valid certificate, or soon will not; `None` if all is
    /// well, or no certificates are ordered here.
    pub fn certificate_problem(&self, page: &Page) -> Option<String> {
        let (problem, host) = (self.certificate_problems.0.as_ref()?, page.custom_domain.as_ref()?);
        problem(host)
    }

    /// Returns the path prefix of a page with that slug, whether it exists or not.
    pub fn path_prefix_of(&self, slug: &str, address: PageAddress) -> String {
        match address {
            PageAddress::OwnHost => String::new(),
            PageAddress::BasePath => format!("{}/p/{slug}", self.shared_prefix(address)),
        }
    }

    /// Returns the path prefix of shared files.
    pub fn shared_prefix(&self, address: PageAddress) -> &str {
        match address {
            PageAddress::OwnHost => "",
            PageAddress::BasePath => self.base_path(),
        }
    }

    /// Returns the URL of a page with that slug as its visitor reached it; `host` is the requested host.
    pub fn page_url_at(&self, slug: &str, address: PageAddress, host: Option<&str>) -> String {
        match (address, host.and_then(normalize_host)) {
            (PageAddress::OwnHost, Some(host)) => {
                // Own hostnames use the scheme and port of the base URL.
                let (scheme, rest) = self.context.base_url().split_once("://").unwrap_or(("https", ""));
                let authority = rest.split('/').next().unwrap_or_default();
                let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
                port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
            }
            (PageAddress::OwnHost | PageAddress::BasePath, _) => format!("{}/p/{slug}", self.context.base_url()),
        }
    }

    /// Returns the slug of the page that a host (in the form of a `Host` header) belongs to; `None` for a host of no
    /// page.
    ///
    /// A label under the root domain is returned whether a page has it or not: that namespace is for pages only.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub fn slug_of_host(&self, host: &str) -> ServiceResult<Option<String>> {
        let Some(host) = normalize_host(host) else { return Ok(None) };
        if self.context.base_host().is_some_and(|base_host| base_host == host) {
            return Ok(None);
        }
        if let Some(root) = &self.context.settings().root_domain
            && let Some(label) = host.strip_suffix(root.as_str()).and_then(|rest| rest.strip_suffix('.'))
        {
            return Ok(Some(label.to_owned()));
        }
        Ok(self.context.store().reader().page_by_host(&host)?.map(|page| page.value.slug))
    }

    /// Returns the path of the base URL, without a trailing slash.
    pub fn base_path(&self) -> &str {
        let after = self.context.base_url().split_once("://").map_or("", |(_, rest)| rest);
        after.find('/').and_then(|at| after.get(at..)).unwrap_or("")
    }

    /// Returns true if a host, in the form of a `Host` header, is that of the base URL.
    pub fn is_base_host(&self, host: &str) -> bool {
        normalize_host(host).is_some_and(|host| self.context.base_host().is_some_and(|base_host| base_host == host))
    }
}
