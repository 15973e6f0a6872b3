//! Sign-in of visitors: with a page's password, or with a link mailed to those who may see a private page.
//!
//! Requesting a link reveals nothing about an address: the answer and the work are the same whether it may see the
//! page or not. Only mailboxes that the owner allows, by address or domain, ever get a mail.

use std::sync::{Arc, PoisonError};

use parallax_core::delivery::DeliveryMessage;
use parallax_core::page::Page;
use parallax_core::page::access::normalize_email;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::validation::ValidationErrors;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{AccessToken, PageAccessService, Protection, password};
use crate::{ServiceError, ServiceResult};

/// Lifetime of a link in milliseconds.
pub const LINK_LIFE: i64 = 15 * MINUTE;
/// Maximum links an hour to one mailbox requested from one client IP, over all pages.
const LINKS_PER_IP: u32 = 3;
/// Maximum links an hour to one mailbox in total: strangers at one client IP can't use them up.
const LINKS_PER_MAILBOX: u32 = 12;
/// Maximum links an hour for one page.
const LINKS_PER_PAGE: u32 = 1800;
/// Maximum links an hour for one account's pages.
const LINKS_PER_ACCOUNT: u32 = 3600;
/// Event name of deliveries with a link.
const EVENT: &str = "page.sign-in";

/// Random browser identifier, stored in a cookie.
pub type BrowserId = [u8; 16];

/// A request for a sign-in link.
#[derive(Debug, Clone)]
pub struct SignInRequest {
    /// The email address entered.
    pub email: String,
    /// The page's URL as its visitor reached it.
    pub page_url: String,
    /// The browser that requests the link.
    pub browser: BrowserId,
    /// The visitor's client IP as a number, if known.
    pub client_ip: Option<u128>,
    /// Redirect target after sign-in: a path inside the page, or empty.
    pub redirect_to: String,
}

/// Validity of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkValidity {
    /// It signs its bearer in.
    Valid,
    /// Another browser requested it.
    OtherBrowser,
    /// It was used, has expired, or never existed.
    Invalid,
}

/// Result of a sign-in by link.
#[derive(Debug, Clone)]
pub struct SignInResult {
    /// The access token.
    pub token: AccessToken,
    /// Redirect target.
    pub redirect_to: String,
}

/// Stored target of a link.
#[derive(Serialize, Deserialize)]
struct LinkTarget {
    page: String,
    email: String,
    to: String,
}

impl PageAccessService {
    /// Returns an access token if the page's password is right. Takes the same time whether the page exists or not.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown slug, [`ServiceError::Busy`] if too many passwords are being checked.
    pub async fn try_password(&self, slug: &str, password: &str) -> ServiceResult<Option<AccessToken>> {
        let page = self.existing_page(slug);
        let guarded = page.as_ref().ok().filter(|page| Protection::of(page) == Protection::Password);
        let hash = guarded.and_then(|page| page.password_hash.as_deref());
        let is_right = password::verify(password, hash).await?;
        let page = page?;
        Ok(is_right.then(|| self.access_token(&page)))
    }

    /// Returns the cookie name of the page's access token, for signing out.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for an unknown slug.
    pub fn token_cookie_of(&self, slug: &str) -> ServiceResult<String> {
        let page = self.existing_page(slug)?;
        Ok(self.token_cookie(&page))
    }

    /// Mails a link if the address may see the private page.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for an invalid address, [`ServiceError::NotFound`] for a page that is not private.
    pub async fn request_sign_in(&self, slug: &str, request: &SignInRequest) -> ServiceResult<()> {
        let page = self.private_page(slug)?;
        let email = normalize_email(&request.email).map_err(|rule| ValidationErrors::single("email", rule))?;
        let receiver = Some(email)
            .filter(|email| page.allowed_visitors.allows(email) && self.admit_link(&page, email, request.client_ip));
        let now = self.context.now();
        let mut batch = Batch::new();
        // The same work for addresses that may not, so that timing reveals nothing.
        batch.write(Op::DeleteExpiredResponses(now));
        if let Some(email) = receiver {
            self.write_link(&page, &email, request, &mut batch);
        }
        self.context.store().commit(batch).await?;
        self.context.deliveries_due.notify_one();
        Ok(())
    }

    /// Returns the validity of a link in that browser, without using it.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that is not private.
    pub fn link_validity(&self, slug: &str, token: &str, browser: Option<&BrowserId>) -> ServiceResult<LinkValidity> {
        let page = self.private_page(slug)?;
        Ok(self.find_link(&page, token, browser)?.err().unwrap_or(LinkValidity::Valid))
    }

    /// Signs a visitor in with a link, which can then not be used again; otherwise returns the link's validity.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that is not private.
    pub async fn sign_in_by_link(
        &self,
        slug: &str,
        token: &str,
        browser: Option<&BrowserId>,
    ) -> ServiceResult<std::result::Result<SignInResult, LinkValidity>> {
        let name = link_key(token);
        let lock_id = Sha256::digest(&name).iter().take(16).fold(0, |id, byte| (id << 8) | u128::from(*byte));
        let name = &name;
        self.context
            .commit_change(lock_id, || async move {
                let page = self.private_page(slug)?;
                let (stored, target) = match self.find_link(&page, token, browser)? {
                    Ok(valid_link) => valid_link,
                    Err(link) => return Ok((Err(link), None)),
                };
                let now = self.context.now();
                let mut batch = Batch::new();
                batch.expect(Expect::StoredResponse(name.clone(), Presence::At(stored.revision)));
                let used = StoredResponse { fingerprint: [0; 32], response: Vec::new(), expires_at: now };
                batch.write(Op::PutStoredResponse(name.clone(), used)).write(Op::DeleteExpiredResponses(now));
                Ok((Ok(SignInResult { token: self.access_token(&page), redirect_to: target.to }), Some(batch)))
            })
            .await
    }

    fn private_page(&self, slug: &str) -> ServiceResult<Arc<Page>> {
        let page = self.existing_page(slug)?;
        if Protection::of(&page) == Protection::Private { Ok(page) } else { Err(ServiceError::NotFound) }
    }

    fn write_link(&self, page: &Page, email: &str, request: &SignInRequest, batch: &mut Batch) {
        let (now, token) = (self.context.now(), hex::encode(rand::random::<[u8; 16]>()));
        let expires_at = now + LINK_LIFE;
        let target = LinkTarget { page: page.id.to_string(), email: email.to_owned(), to: request.redirect_to.clone() };
        let link = StoredResponse {
            fingerprint: Sha256::digest(request.browser).into(),
            response: serde_json::to_vec(&target).unwrap_or_default(),
            expires_at,
        };
        let url = format!("{}/sign-in/link?t={token}", request.page_url);
        batch.write(Op::PutStoredResponse(link_key(&token), link));
        let mail = DeliveryMessage::Mail(render::sign_in(page, &request.page_url, &url));
        self.context.mail_visitor((Some(page.id), EVENT), email, mail, expires_at, batch);
    }

    fn find_link(
        &self,
        page: &Page,
        token: &str,
        browser: Option<&BrowserId>,
    ) -> ServiceResult<std::result::Result<(VersionedValue<StoredResponse>, LinkTarget), LinkValidity>> {
        let stored = self.context.store().reader().stored_response(&link_key(token))?;
        let Some(stored) = stored.filter(|stored| is_unexpired(&stored.value, self.context.now())) else {
            return Ok(Err(LinkValidity::Invalid));
        };
        let target = serde_json::from_slice::<LinkTarget>(&stored.value.response).ok();
        let is_valid =
            |target: &LinkTarget| target.page == page.id.to_string() && page.allowed_visitors.allows(&target.email);
        let Some(target) = target.filter(is_valid) else { return Ok(Err(LinkValidity::Invalid)) };
        let fingerprint = browser.map(|browser| <[u8; 32]>::from(Sha256::digest(browser)));
        let is_same = fingerprint.is_some_and(|fingerprint| bool::from(fingerprint.ct_eq(&stored.value.fingerprint)));
        Ok(if is_same { Ok((stored, target)) } else { Err(LinkValidity::OtherBrowser) })
    }

    /// Checks the rate limits of sign-in links. Only mailboxes that may see some page are counted.
    fn admit_link(&self, page: &Page, email: &str, network: Option<u128>) -> bool {
        let (mailbox, now) = (SubscriberAddress::Email(email.to_owned()).mailbox_key(), self.context.now());
        let account = format!("account {}", page.account);
        let (mailbox_key, page) = (format!("{mailbox} {network:?}"), format!("page {}", page.id));
        let mut limit = self.sign_in_limit.lock().unwrap_or_else(PoisonError::into_inner);
        // A request refused by one limit is not counted by the others.
        limit.would_admit(LINKS_PER_MAILBOX, mailbox.as_str(), now)
            && limit.would_admit(LINKS_PER_PAGE, page.as_str(), now)
            && limit.would_admit(LINKS_PER_ACCOUNT, account.as_str(), now)
            && limit.admit(LINKS_PER_IP, mailbox_key.as_str(), now).is_ok()
            && limit.admit(LINKS_PER_MAILBOX, mailbox.as_str(), now).is_ok()
            && limit.admit(LINKS_PER_PAGE, page.as_str(), now).is_ok()
            && limit.admit(LINKS_PER_ACCOUNT, account.as_str(), now).is_ok()
    }
}

fn is_unexpired(link: &StoredResponse, now: Timestamp) -> bool {
    // A link from the future was created before the clock was set back.
    (1..=LINK_LIFE).contains(&link.expires_at.since(now))
}

/// The key under which a link is stored: only a hash of its token.
fn link_key(token: &str) -> String {
    format!("sign-in/{}", hex::encode(Sha256::digest(token)))
}
