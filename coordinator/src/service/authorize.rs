//! Authorization for public pages: resolves the page that a visitor requests, and decides whether they may see it.

use std::sync::Arc;

use parallax_core::page::branding::Language;
use parallax_core::page::{NO_ACCOUNT, Page};

use super::page_access::{Protection, VisitorCredentials};
use super::{Service, ServiceError, ServiceResult};

/// Kind of address by which a page is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageAddress {
    /// Its slug below the base URL: `{base_url}/p/{slug}`.
    BasePath,
    /// A hostname of its own: its slug under the root domain, or its custom domain.
    OwnHost,
}

/// A page that its visitor may see. Only this module creates one, so code that renders a page's content has been
/// authorized.
#[derive(Debug, Clone)]
pub struct AuthorizedPage {
    page: Arc<Page>,
    address: PageAddress,
    path_prefix: String,
}

impl AuthorizedPage {
    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Returns the kind of address by which it was requested.
    pub const fn address(&self) -> PageAddress {
        self.address
    }

    /// Returns the prefix of the page's paths at that address: empty at a hostname of its own, otherwise such as
    /// `/p/shop`.
    pub fn path_prefix(&self) -> &str {
        &self.path_prefix
    }

    /// Returns true if the page is not public: it must not be cached or indexed by search engines.
    pub fn is_protected(&self) -> bool {
        is_protected(&self.page)
    }
}

/// Result of authorization.
#[derive(Debug, Clone)]
pub enum AccessDecision {
    /// Access is granted.
    Granted(Box<AuthorizedPage>),
    /// The page needs its password.
    PasswordRequired,
    /// The page needs a sign-in by email.
    SignInRequired,
}

impl Service {
    /// Authorizes a visitor without credentials for the page with that slug.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown slug and for a page that this visitor may not see, without a difference.
    pub fn authorize_anonymous(&self, slug: &str, door: PageAddress) -> ServiceResult<AuthorizedPage> {
        match self.authorize(slug, door, &VisitorCredentials::default())? {
            AccessDecision::Granted(admitted) => Ok(*admitted),
            AccessDecision::PasswordRequired | AccessDecision::SignInRequired => Err(ServiceError::NotFound),
        }
    }

    /// Authorizes a visitor with those credentials for the page with that slug, or returns which credentials are
    /// needed.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown slug.
    pub fn authorize(
        &self,
        slug: &str,
        door: PageAddress,
        shown: &VisitorCredentials,
    ) -> ServiceResult<AccessDecision> {
        let page = self.existing_page(slug).inspect_err(|_| self.equalize_timing())?;
        let is_let_in = self.is_authorized(&page, shown);
        Ok(match Protection::of(&page) {
            Protection::Password if !is_let_in => AccessDecision::PasswordRequired,
            Protection::Private if !is_let_in => AccessDecision::SignInRequired,
            Protection::Public | Protection::Password | Protection::Private => {
                let root = self.path_prefix_of(&page.slug, door);
                AccessDecision::Granted(Box::new(AuthorizedPage { page, address: door, path_prefix: root }))
            }
        })
    }

    /// Returns the language of the page with that slug; the default language if there is none.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn page_language(&self, slug: &str) -> ServiceResult<Language> {
        Ok(self.page_by_slug(slug)?.map(|page| page.language).unwrap_or_default())
    }

    /// Returns the path prefix of a page with that slug, whether it exists or not.
    pub fn path_prefix_of(&self, slug: &str, door: PageAddress) -> String {
        match door {
            PageAddress::OwnHost => String::new(),
            PageAddress::BasePath => format!("{}/p/{slug}", self.shared_prefix(door)),
        }
    }

    /// Returns the path prefix of shared files.
    pub fn shared_prefix(&self, door: PageAddress) -> &str {
        match door {
            PageAddress::OwnHost => "",
            PageAddress::BasePath => self.base_path(),
        }
    }

    /// Returns the URL of a page with that slug as its visitor reached it; `host` is the requested host.
    pub fn page_url_at(&self, slug: &str, door: PageAddress, host: Option<&str>) -> String {
        match (door, host.and_then(normalize_host)) {
            (PageAddress::OwnHost, Some(host)) => {
                // Own hostnames use the scheme and port of the base URL.
                let (scheme, rest) = self.base_url().split_once("://").unwrap_or(("https", ""));
                let authority = rest.split('/').next().unwrap_or_default();
                let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
                port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
            }
            (PageAddress::OwnHost | PageAddress::BasePath, _) => format!("{}/p/{slug}", self.base_url()),
        }
    }

    /// Returns true if the stored page is still the one that was authorized. Ignores the state of a pending domain
    /// claim, which emits no event and is not shown.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn is_current(&self, admitted: &AuthorizedPage) -> ServiceResult<bool> {
        let page = self.store().reader().page(admitted.page.id)?;
        let asks = admitted.page.domain_claim.clone();
        Ok(page.is_some_and(|page| Page { domain_claim: asks, ..page.value } == *admitted.page))
    }

    /// Returns the page with that slug without authorization, for steps before sign-in.
    pub(super) fn existing_page(&self, slug: &str) -> ServiceResult<Arc<Page>> {
        let found = self.page_by_slug(slug)?;
        found.filter(|page| page.account != NO_ACCOUNT).ok_or(ServiceError::NotFound)
    }

    /// Returns the slug of the page that a host (in the form of a `Host` header) belongs to; `None` for a host of no
    /// page.
    ///
    /// A label under the root domain is returned whether a page has it or not: that namespace is for pages only.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn slug_of_host(&self, host: &str) -> ServiceResult<Option<String>> {
        let Some(host) = normalize_host(host) else { return Ok(None) };
        if self.base_host().is_some_and(|own| own == host) {
            return Ok(None);
        }
        if let Some(root) = &self.settings().root_domain
            && let Some(label) = host.strip_suffix(root.as_str()).and_then(|rest| rest.strip_suffix('.'))
        {
            return Ok(Some(label.to_owned()));
        }
        Ok(self.store().reader().page_by_host(&host)?.map(|page| page.value.slug))
    }

    /// Returns the path of the base URL, without a trailing slash.
    pub fn base_path(&self) -> &str {
        let after = self.base_url().split_once("://").map_or("", |(_, rest)| rest);
        after.find('/').and_then(|at| after.get(at..)).unwrap_or("")
    }

    /// Decides whether this visitor may see the page. The only place that does.
    fn is_authorized(&self, page: &Page, shown: &VisitorCredentials) -> bool {
        !is_protected(page) || self.has_access(page, shown)
    }

    /// Returns true if a host, in the form of a `Host` header, is that of the base URL.
    pub fn is_base_host(&self, host: &str) -> bool {
        normalize_host(host).is_some_and(|host| self.base_host().is_some_and(|own| own == host))
    }

    /// Returns the host of the base URL in normalized form.
    pub(super) fn base_host(&self) -> Option<String> {
        super::hosts::url_host(self.base_url())
    }
}

const fn is_protected(page: &Page) -> bool {
    !matches!(Protection::of(page), Protection::Public)
}

/// Normalizes a host: lowercase, without port and trailing dot. `None` for an invalid name.
pub(super) fn normalize_host(host: &str) -> Option<String> {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_sound = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
    (is_sound && !name.is_empty()).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_in_one_form() {
        assert_eq!(normalize_host("Shop.Example.:443").as_deref(), Some("shop.example"));
        assert_eq!(normalize_host("127.0.0.1:80").as_deref(), Some("127.0.0.1"));
        for bad in ["", ".", "[::1]:80", "a b", "ex\u{e4}mple", "a/b"] {
            assert_eq!(normalize_host(bad), None, "{bad}");
        }
    }
}
