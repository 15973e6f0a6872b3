//! Authorization for public pages: resolves the page that a visitor requests, and decides whether they may see it.

use std::sync::Arc;

use parallax_core::page::look::Language;
use parallax_core::page::{NOBODY, Page};

use super::doors::{Guard, Shown};
use super::{Error, Result, Service};

/// Kind of address by which a page is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Door {
    /// Its slug below the base URL: `{base_url}/p/{slug}`.
    Shared,
    /// A hostname of its own: its slug under the root domain, or its custom domain.
    Own,
}

/// A page that its visitor may see. Only this module creates one, so code that renders a page's content has been
/// authorized.
#[derive(Debug, Clone)]
pub struct Admitted {
    page: Arc<Page>,
    door: Door,
    root: String,
}

impl Admitted {
    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Returns the kind of address by which it was requested.
    pub const fn door(&self) -> Door {
        self.door
    }

    /// Returns the prefix of the page's paths at that address: empty at a hostname of its own, otherwise such as
    /// `/p/shop`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns true if the page is not public: it must not be cached or indexed by search engines.
    pub fn is_guarded(&self) -> bool {
        is_guarded(&self.page)
    }
}

/// Result of authorization.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Access is granted.
    In(Box<Admitted>),
    /// The page needs its password.
    Password,
    /// The page needs a sign-in by email.
    SignIn,
}

impl Service {
    /// Authorizes a visitor without credentials for the page with that slug.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown slug and for a page that this visitor may not see, without a difference.
    pub fn admit(&self, slug: &str, door: Door) -> Result<Admitted> {
        match self.admit_showing(slug, door, &Shown::default())? {
            Entry::In(admitted) => Ok(*admitted),
            Entry::Password | Entry::SignIn => Err(Error::NotFound),
        }
    }

    /// Authorizes a visitor with those credentials for the page with that slug, or returns which credentials are
    /// needed.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown slug.
    pub fn admit_showing(&self, slug: &str, door: Door, shown: &Shown) -> Result<Entry> {
        let page = self.behind(slug).inspect_err(|_| self.look_in_vain())?;
        let is_let_in = self.may_enter(&page, shown);
        Ok(match Guard::of(&page) {
            Guard::Password if !is_let_in => Entry::Password,
            Guard::Private if !is_let_in => Entry::SignIn,
            Guard::Open | Guard::Password | Guard::Private => {
                let root = self.root_of(&page.slug, door);
                Entry::In(Box::new(Admitted { page, door, root }))
            }
        })
    }

    /// Returns the language of the page with that slug; the default language if there is none.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn language_of(&self, slug: &str) -> Result<Language> {
        Ok(self.page_under(slug)?.map(|page| page.language).unwrap_or_default())
    }

    /// Returns the path prefix of a page with that slug, whether it exists or not.
    pub fn root_of(&self, slug: &str, door: Door) -> String {
        match door {
            Door::Own => String::new(),
            Door::Shared => format!("{}/p/{slug}", self.base_of(door)),
        }
    }

    /// Returns the path prefix of shared files.
    pub fn base_of(&self, door: Door) -> &str {
        match door {
            Door::Own => "",
            Door::Shared => self.base_path(),
        }
    }

    /// Returns the URL of a page with that slug as its visitor reached it; `host` is the requested host.
    pub fn address_at(&self, slug: &str, door: Door, host: Option<&str>) -> String {
        match (door, host.and_then(plain)) {
            (Door::Own, Some(host)) => {
                // Own hostnames use the scheme and port of the base URL.
                let (scheme, rest) = self.base_url().split_once("://").unwrap_or(("https", ""));
                let authority = rest.split('/').next().unwrap_or_default();
                let port =
                    authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
                port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
            }
            (Door::Own | Door::Shared, _) => format!("{}/p/{slug}", self.base_url()),
        }
    }

    /// Returns true if the stored page is still the one that was authorized. Ignores the state of a pending domain
    /// claim, which emits no event and is not shown.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn is_still(&self, admitted: &Admitted) -> Result<bool> {
        let page = self.store().reader().page(admitted.page.id)?;
        let asks = admitted.page.domain_claim.clone();
        Ok(page.is_some_and(|page| Page { domain_claim: asks, ..page.value } == *admitted.page))
    }

    /// Returns the page with that slug without authorization, for steps before sign-in.
    pub(super) fn behind(&self, slug: &str) -> Result<Arc<Page>> {
        let found = self.page_under(slug)?;
        found.filter(|page| page.account != NOBODY).ok_or(Error::NotFound)
    }

    /// Returns the slug of the page that a host (in the form of a `Host` header) belongs to; `None` for a host of no
    /// page.
    ///
    /// A label under the root domain is returned whether a page has it or not: that namespace is for pages only.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn page_at(&self, host: &str) -> Result<Option<String>> {
        let Some(host) = plain(host) else { return Ok(None) };
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
    fn may_enter(&self, page: &Page, shown: &Shown) -> bool {
        !is_guarded(page) || self.is_good(page, shown)
    }

    /// Returns true if a host, in the form of a `Host` header, is that of the base URL.
    pub fn is_base_host(&self, host: &str) -> bool {
        plain(host).is_some_and(|host| self.base_host().is_some_and(|own| own == host))
    }

    /// Returns the host of the base URL in normalized form.
    pub(super) fn base_host(&self) -> Option<String> {
        super::hosts::host_of(self.base_url())
    }
}

const fn is_guarded(page: &Page) -> bool {
    !matches!(Guard::of(page), Guard::Open)
}

/// Normalizes a host: lowercase, without port and trailing dot. `None` for an invalid name.
pub(super) fn plain(host: &str) -> Option<String> {
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
        assert_eq!(plain("Shop.Example.:443").as_deref(), Some("shop.example"));
        assert_eq!(plain("127.0.0.1:80").as_deref(), Some("127.0.0.1"));
        for bad in ["", ".", "[::1]:80", "a b", "ex\u{e4}mple", "a/b"] {
            assert_eq!(plain(bad), None, "{bad}");
        }
    }
}
