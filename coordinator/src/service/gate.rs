//! The one gate of the public pages: which page a visitor asks for, and whether this visitor may see it.

use std::sync::Arc;

use parallax_core::page::look::Language;
use parallax_core::page::{NOBODY, Page};

use super::doors::{Guard, Shown};
use super::{Error, Result, Service};

/// By which of its addresses a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Door {
    /// Its label below the base URL: `{base_url}/p/{slug}`.
    Shared,
    /// A host of its own: its label under the root domain, or its custom domain.
    Own,
}

/// A page that its visitor may see. Only the gate makes one, so whoever shows anything of a page has passed it.
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

    /// By which address it was asked for.
    pub const fn door(&self) -> Door {
        self.door
    }

    /// What the page's paths begin with at that address: empty at a host of its own, else such as `/p/shop`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Whether not everybody may see it: nothing of it may be kept by a cache, or found by a search.
    pub fn is_guarded(&self) -> bool {
        is_guarded(&self.page)
    }
}

/// What the gate says.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Come in.
    In(Box<Admitted>),
    /// The page is there for those who know its password.
    Password,
    /// The page is there for those who show who they are.
    SignIn,
}

impl Service {
    /// The page under an address label, for a visitor who shows nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a label that no page has, and for a page that this visitor may not see: alike.
    pub fn admit(&self, slug: &str, door: Door) -> Result<Admitted> {
        match self.admit_showing(slug, door, &Shown::default())? {
            Entry::In(admitted) => Ok(*admitted),
            Entry::Password | Entry::SignIn => Err(Error::NotFound),
        }
    }

    /// The page under an address label, for a visitor who shows that, or what he has to show instead.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a label that no page has.
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

    /// The language that a page with that label speaks; that of most where there is no such page.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
    pub fn language_of(&self, slug: &str) -> Result<Language> {
        Ok(self.page_under(slug)?.map(|page| page.language).unwrap_or_default())
    }

    /// What the paths of a page with that label begin with, whether there is one or not.
    pub fn root_of(&self, slug: &str, door: Door) -> String {
        match door {
            Door::Own => String::new(),
            Door::Shared => format!("{}/p/{slug}", self.base_of(door)),
        }
    }

    /// What the paths of files begin with that are no page's own.
    pub fn base_of(&self, door: Door) -> &str {
        match door {
            Door::Own => "",
            Door::Shared => self.base_path(),
        }
    }

    /// Where a page with that label is, as its visitor came to it; `host` is the host that he named.
    pub fn address_at(&self, slug: &str, door: Door, host: Option<&str>) -> String {
        match (door, host.and_then(plain)) {
            (Door::Own, Some(host)) => {
                // Own hosts are served as the base URL is.
                let (scheme, rest) = self.base_url().split_once("://").unwrap_or(("https", ""));
                let authority = rest.split('/').next().unwrap_or_default();
                let port =
                    authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
                port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
            }
            (Door::Own | Door::Shared, _) => format!("{}/p/{slug}", self.base_url()),
        }
    }

    /// Whether the page is in the store as its visitor was let in to it, but for what is noted of a domain that it only
    /// asks for: that tells of no event, and nothing of it is shown.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
    pub fn is_still(&self, admitted: &Admitted) -> Result<bool> {
        let page = self.store().reader().page(admitted.page.id)?;
        let asks = admitted.page.domain_claim.clone();
        Ok(page.is_some_and(|page| Page { domain_claim: asks, ..page.value } == *admitted.page))
    }

    /// The page with that label, whoever asks: for what is to be done before anybody is let in.
    pub(super) fn behind(&self, slug: &str) -> Result<Arc<Page>> {
        let found = self.page_under(slug)?;
        found.filter(|page| page.account != NOBODY).ok_or(Error::NotFound)
    }

    /// The label of the page that a host belongs to, in the form of a `Host` header; none for a host that is no page's.
    ///
    /// A label under the root domain is given whether a page has it or not: what lies below is pages' alone.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
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

    /// The path of the base URL, without a trailing slash.
    pub fn base_path(&self) -> &str {
        let after = self.base_url().split_once("://").map_or("", |(_, rest)| rest);
        after.find('/').and_then(|at| after.get(at..)).unwrap_or("")
    }

    /// Whether this visitor is let in: here, and nowhere else.
    fn may_enter(&self, page: &Page, shown: &Shown) -> bool {
        !is_guarded(page) || self.is_good(page, shown)
    }

    /// Whether a host, in the form of a `Host` header, is that of the base URL.
    pub fn is_base_host(&self, host: &str) -> bool {
        plain(host).is_some_and(|host| self.base_host().is_some_and(|own| own == host))
    }

    /// The host of the base URL, as hosts are compared.
    pub(super) fn base_host(&self) -> Option<String> {
        super::hosts::host_of(self.base_url())
    }
}

const fn is_guarded(page: &Page) -> bool {
    !matches!(Guard::of(page), Guard::Open)
}

/// A host as it is compared: in small letters, without a port and without the root's dot. None for what is no name.
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
