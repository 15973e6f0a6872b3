//! Authorization for public pages: resolves the page that a visitor requests, and decides whether they may see it.

use std::sync::Arc;

use parallax_core::page::branding::Language;
use parallax_core::page::{NO_ACCOUNT, Page};

use super::PageAccessService;
use super::{Protection, VisitorCredentials};
pub use crate::hosts::PageAddress;
use crate::{ServiceError, ServiceResult};

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

impl PageAccessService {
    /// Authorizes a visitor without credentials for the page with that slug.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown slug and for a page that this visitor may not see, without a
    /// difference.
    pub fn authorize_anonymous(&self, slug: &str, address: PageAddress) -> ServiceResult<AuthorizedPage> {
        match self.authorize(slug, address, &VisitorCredentials::default())? {
            AccessDecision::Granted(authorized) => Ok(*authorized),
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
        address: PageAddress,
        credentials: &VisitorCredentials,
    ) -> ServiceResult<AccessDecision> {
        let page = self.existing_page(slug).inspect_err(|_| self.equalize_timing())?;
        let is_authorized = self.is_authorized(&page, credentials);
        Ok(match Protection::of(&page) {
            Protection::Password if !is_authorized => AccessDecision::PasswordRequired,
            Protection::Private if !is_authorized => AccessDecision::SignInRequired,
            Protection::Public | Protection::Password | Protection::Private => {
                let path_prefix = self.hosts.path_prefix_of(&page.slug, address);
                AccessDecision::Granted(Box::new(AuthorizedPage { page, address, path_prefix }))
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

    /// Returns true if the stored page is still the one that was authorized. Ignores the state of a pending domain
    /// claim, which emits no event and is not shown.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn is_current(&self, authorized: &AuthorizedPage) -> ServiceResult<bool> {
        let page = self.context.store().reader().page(authorized.page.id)?;
        let domain_claim = authorized.page.domain_claim.clone();
        Ok(page.is_some_and(|page| Page { domain_claim, ..page.value } == *authorized.page))
    }

    /// Returns the page with that slug without authorization, for steps before sign-in.
    pub(super) fn existing_page(&self, slug: &str) -> ServiceResult<Arc<Page>> {
        let page = self.page_by_slug(slug)?;
        page.filter(|page| page.account != NO_ACCOUNT).ok_or(ServiceError::NotFound)
    }

    /// Decides whether this visitor may see the page. The only place that does.
    fn is_authorized(&self, page: &Page, credentials: &VisitorCredentials) -> bool {
        !is_protected(page) || self.has_access(page, credentials)
    }
}

const fn is_protected(page: &Page) -> bool {
    !matches!(Protection::of(page), Protection::Public)
}
