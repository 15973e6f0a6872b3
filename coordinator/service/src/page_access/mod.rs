//! Page access: access tokens in browsers' cookies and feed tokens in URLs let visitors see a protected page. Both are
//! created and verified with an HMAC key.
//!
//! Both are bound to the page's protection at the time: any change of its password, of `private` or of the allowed
//! visitors invalidates them all. Nothing of them is stored.

pub mod authorize;
mod page_index;
pub mod password;
pub mod sign_in;
pub(crate) mod token_key;

use std::fmt;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parallax_core::page::Page;
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::time::{DAY, HOUR, SECOND};
use subtle::ConstantTimeEq;

use self::page_index::PageIndex;
pub use self::token_key::AccessTokenKey;
use super::context::ServiceContext;
use super::hosts::HostService;

/// Lifetime of an access token in milliseconds. It does not expire earlier when unused: a status page is visited
/// rarely, and then there is no time to sign in.
pub const ACCESS_TOKEN_LIFE: i64 = 30 * DAY;

/// Protection of a page. A private page with a password counts as private: its visitors are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// None.
    Public,
    /// A password.
    Password,
    /// Sign-in by email.
    Private,
}

impl Protection {
    /// Returns the protection of that page.
    pub const fn of(page: &Page) -> Self {
        match (page.private, &page.password_hash) {
            (true, _) => Self::Private,
            (false, Some(_)) => Self::Password,
            (false, None) => Self::Public,
        }
    }
}

/// Credentials that a visitor presents.
#[derive(Clone, Default)]
pub struct VisitorCredentials {
    /// Access tokens by cookie name.
    pub access_tokens: Vec<(String, String)>,
    /// A feed token.
    pub feed_token: Option<String>,
}

impl fmt::Debug for VisitorCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisitorCredentials").field("access_tokens", &self.access_tokens.len()).finish_non_exhaustive()
    }
}

/// Access token of a browser, kept in a cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Its cookie name, different for each page.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Decides which visitors may see a page, and signs them in. It alone creates an
/// [`AuthorizedPage`](authorize::AuthorizedPage). Tokens are computed, never stored.
#[derive(Debug)]
pub struct PageAccessService {
    context: Arc<ServiceContext>,
    hosts: Arc<HostService>,
    /// Cache of public pages.
    page_index: PageIndex,
    /// Sign-in links sent, by mailbox, page and account.
    sign_in_limit: Mutex<FixedWindowLimit<String>>,
}

impl PageAccessService {
    pub(crate) fn new(context: &Arc<ServiceContext>, hosts: &Arc<HostService>) -> Self {
        Self {
            context: Arc::clone(context),
            hosts: Arc::clone(hosts),
            page_index: PageIndex::default(),
            sign_in_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
        }
    }

    /// Returns the token by which programs without cookies read a protected page's feeds, calendar, badges and
    /// status; `None` for a public page. It is a URL path segment, so it uses characters that need no escaping.
    pub fn feed_token(&self, page: &Page) -> Option<String> {
        (Protection::of(page) != Protection::Public).then(|| self.feed_token_mac(page))
    }

    /// Returns the base URL of a protected page's feeds for such programs, without a trailing slash.
    pub fn feed_base_url(&self, page: &Page) -> Option<String> {
        self.feed_token(page).map(|token| format!("{}/t/{token}", self.context.page_url(page)))
    }

    /// The cookie name of a page's access token: it reveals nothing about the page.
    fn token_cookie(&self, page: &Page) -> String {
        let mac = self.context.mac(&[b"name", &page.id.to_u128().to_be_bytes()]);
        hex::encode(&mac.as_ref()[..8])
    }

    /// Creates an access token for the page with its current protection.
    fn access_token(&self, page: &Page) -> AccessToken {
        let until = self.now_seconds() + ACCESS_TOKEN_LIFE / SECOND;
        AccessToken { name: self.token_cookie(page), value: format!("{until}.{}", self.access_token_mac(page, until)) }
    }

    /// Returns true if the credentials are valid for the page with its current protection.
    fn has_access(&self, page: &Page, credentials: &VisitorCredentials) -> bool {
        let name = self.token_cookie(page);
        let tokens = credentials.access_tokens.iter().filter(|(token_name, _)| *token_name == name);
        let by_pass = tokens.fold(false, |is_good, (_, value)| self.is_valid_token(page, value) || is_good);
        let token = credentials.feed_token.as_deref().unwrap_or_default();
        let by_token = self.feed_token_mac(page).as_bytes().ct_eq(token.as_bytes());
        by_pass || bool::from(by_token)
    }

    /// Does as much work as [`Self::has_access`] for a page that does not exist, so that timing reveals nothing.
    fn equalize_timing(&self) {
        for purpose in [&b"name"[..], b"pass", b"feed"] {
            std::hint::black_box(self.context.mac(&[purpose, &[0; 16], &[0; 100]]));
        }
    }

    fn is_valid_token(&self, page: &Page, value: &str) -> bool {
        let Some((until, seal)) = value.split_once('.') else { return false };
        let Ok(seconds) = until.parse::<i64>() else { return false };
        let is_ours = self.access_token_mac(page, seconds).as_bytes().ct_eq(seal.as_bytes());
        // No token is valid for longer than one created now.
        let remaining = seconds.saturating_sub(self.now_seconds());
        bool::from(is_ours) && (1..=ACCESS_TOKEN_LIFE / SECOND).contains(&remaining)
    }

    fn access_token_mac(&self, page: &Page, until: i64) -> String {
        let id = page.id.to_u128().to_be_bytes();
        URL_SAFE_NO_PAD.encode(self.context.mac(&[b"pass", &id, &protection_bytes(page), &until.to_be_bytes()]))
    }

    fn feed_token_mac(&self, page: &Page) -> String {
        let id = page.id.to_u128().to_be_bytes();
        URL_SAFE_NO_PAD.encode(self.context.mac(&[b"feed", &id, &protection_bytes(page)]))
    }

    fn now_seconds(&self) -> i64 {
        self.context.now().as_millis().div_euclid(SECOND)
    }
}

/// Serializes a page's protection to bytes that change with each change of it. The revision alone would suffice; the
/// settings are included because a restored store repeats revision numbers.
fn protection_bytes(page: &Page) -> Vec<u8> {
    let mut bytes = page.access_revision.to_be_bytes().to_vec();
    bytes.extend([u8::from(page.private), u8::from(page.password_hash.is_some())]);
    bytes.extend_from_slice(&(page.allowed_visitors.people.len() as u64).to_be_bytes());
    for text in page.password_hash.iter().chain(&page.allowed_visitors.people).chain(&page.allowed_visitors.domains) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes
}
