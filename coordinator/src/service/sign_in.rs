//! Sign-in of visitors: with a page's password, or with a link mailed to those who may see a private page.
//!
//! Requesting a link reveals nothing about an address: the answer and the work are the same whether it may see the
//! page or not. Only mailboxes that the owner allows, by address or domain, ever get a mail.

use std::sync::{Arc, PoisonError};

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage, Tries, mailbox_name};
use parallax_core::id::DeliveryId;
use parallax_core::page::Page;
use parallax_core::page::access::mailbox;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::ask::Address;
use parallax_core::time::{MINUTE, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::doors::{Guard, Pass};
use super::{Error, Result, Service, password};
use crate::letters;
use crate::storage::{Batch, Expect, Is, Op, Remembered, Versioned};

/// Lifetime of a link in milliseconds.
pub const LINK_LIFE: i64 = 15 * MINUTE;
/// Maximum links an hour to one mailbox requested from one client IP, over all pages.
const LINKS_OF_A_PLACE: u32 = 3;
/// Maximum links an hour to one mailbox in total: strangers at one client IP can't use them up.
const LINKS_AN_HOUR: u32 = 12;
/// Maximum links an hour for one page.
const LINKS_OF_A_PAGE: u32 = 1800;
/// Maximum links an hour for one account's pages.
const LINKS_OF_AN_ACCOUNT: u32 = 3600;
/// Event name of deliveries with a link.
const EVENT: &str = "page.sign-in";

/// Random browser identifier, stored in a cookie.
pub type Browser = [u8; 16];

/// A request for a sign-in link.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The email address entered.
    pub email: String,
    /// The page's URL as its visitor reached it.
    pub address: String,
    /// The browser that requests the link.
    pub browser: Browser,
    /// The visitor's client IP as a number, if known.
    pub place: Option<u128>,
    /// Redirect target after sign-in: a path inside the page, or empty.
    pub to: String,
}

/// Validity of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It signs its bearer in.
    Good,
    /// Another browser requested it.
    Elsewhere,
    /// It was used, has expired, or never existed.
    Dead,
}

/// Result of a sign-in by link.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// The browser token.
    pub pass: Pass,
    /// Redirect target.
    pub to: String,
}

/// Stored target of a link.
#[derive(Serialize, Deserialize)]
struct Meant {
    page: String,
    email: String,
    to: String,
}

impl Service {
    /// Returns a browser token if the page's password is right. Takes the same time whether the page exists or not.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown slug, [`Error::Busy`] if too many passwords are being checked.
    pub async fn try_password(&self, slug: &str, password: &str) -> Result<Option<Pass>> {
        let page = self.behind(slug);
        let guarded = page.as_ref().ok().filter(|page| Guard::of(page) == Guard::Password);
        let hash = guarded.and_then(|page| page.password.as_deref());
        let is_right = password::verify(password, hash).await?;
        let page = page?;
        Ok(is_right.then(|| self.pass(&page)))
    }

    /// Returns the cookie name of the page's browser token, for signing out.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown slug.
    pub fn pass_of(&self, slug: &str) -> Result<String> {
        let page = self.behind(slug)?;
        Ok(self.pass_name(&page))
    }

    /// Mails a link if the address may see the private page.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid address, [`Error::NotFound`] for a page that is not private.
    pub async fn ask_to_sign_in(&self, slug: &str, asking: &Asking) -> Result<()> {
        let page = self.private_behind(slug)?;
        let email = mailbox(&asking.email).map_err(|rule| Refusals::one("email", rule))?;
        let receiver = Some(email)
            .filter(|email| page.allowed.has(email) && self.may_be_linked(&page, email, asking.place));
        let now = self.now();
        let mut batch = Batch::new();
        // The same work for addresses that may not, so that timing reveals nothing.
        batch.write(Op::ForgetExpired(now));
        if let Some(email) = receiver {
            self.write_link(&page, &email, asking, &mut batch);
        }
        self.store().commit(batch).await?;
        self.0.outgoing.notify_one();
        Ok(())
    }

    /// Returns the validity of a link in that browser, without using it.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that is not private.
    pub fn link(&self, slug: &str, token: &str, browser: Option<&Browser>) -> Result<Link> {
        let page = self.private_behind(slug)?;
        Ok(self.linked_to(&page, token, browser)?.err().unwrap_or(Link::Good))
    }

    /// Signs a visitor in with a link, which is used up by that; otherwise returns the link's validity.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that is not private.
    pub async fn arrive(
        &self,
        slug: &str,
        token: &str,
        browser: Option<&Browser>,
    ) -> Result<std::result::Result<Arrived, Link>> {
        let name = link_name(token);
        let turn = Sha256::digest(&name).iter().take(16).fold(0, |id, byte| (id << 8) | u128::from(*byte));
        let name = &name;
        self.change(turn, || async move {
            let page = self.private_behind(slug)?;
            let (found, meant) = match self.linked_to(&page, token, browser)? {
                Ok(good) => good,
                Err(link) => return Ok((Err(link), None)),
            };
            let now = self.now();
            let mut batch = Batch::new();
            batch.expect(Expect::Remembered(name.clone(), Is::At(found.revision)));
            let used = Remembered { fingerprint: [0; 32], answer: Vec::new(), expires_at: now };
            batch.write(Op::Remember(name.clone(), used)).write(Op::ForgetExpired(now));
            Ok((Ok(Arrived { pass: self.pass(&page), to: meant.to }), Some(batch)))
        })
        .await
    }

    fn private_behind(&self, slug: &str) -> Result<Arc<Page>> {
        let page = self.behind(slug)?;
        if Guard::of(&page) == Guard::Private { Ok(page) } else { Err(Error::NotFound) }
    }

    fn write_link(&self, page: &Page, email: &str, asking: &Asking, batch: &mut Batch) {
        let (now, token) = (self.now(), hex(&rand::random::<[u8; 16]>()));
        let expires_at = now + LINK_LIFE;
        let meant = Meant { page: page.id.to_string(), email: email.to_owned(), to: asking.to.clone() };
        let link = Remembered {
            fingerprint: Sha256::digest(asking.browser).into(),
            answer: serde_json::to_vec(&meant).unwrap_or_default(),
            expires_at,
        };
        let url = format!("{}/sign-in/link?t={token}", asking.address);
        let id = DeliveryId::new(now, rand::random());
        let receiver = Remembered { fingerprint: [0; 32], answer: email.as_bytes().to_vec(), expires_at };
        batch.write(Op::Remember(link_name(&token), link)).write(Op::Remember(mailbox_name(id), receiver));
        batch.write(Delivery {
            id,
            page: Some(page.id),
            to: Recipient::Visitor(id),
            event: EVENT.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            letter: Letter::Mail(letters::sign_in(page, &asking.address, &url)),
            once: false,
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Tries::default(),
            log: Vec::new(),
            began: None,
        });
    }

    fn linked_to(
        &self,
        page: &Page,
        token: &str,
        browser: Option<&Browser>,
    ) -> Result<std::result::Result<(Versioned<Remembered>, Meant), Link>> {
        let found = self.store().reader().remembered(&link_name(token))?;
        let Some(found) = found.filter(|found| is_fresh(&found.value, self.now())) else {
            return Ok(Err(Link::Dead));
        };
        let meant = serde_json::from_slice::<Meant>(&found.value.answer).ok();
        let is_meant = |meant: &Meant| meant.page == page.id.to_string() && page.allowed.has(&meant.email);
        let Some(meant) = meant.filter(is_meant) else { return Ok(Err(Link::Dead)) };
        let known = browser.map(|browser| <[u8; 32]>::from(Sha256::digest(browser)));
        let is_same = known.is_some_and(|known| bool::from(known.ct_eq(&found.value.fingerprint)));
        Ok(if is_same { Ok((found, meant)) } else { Err(Link::Elsewhere) })
    }

    /// Checks the rate limits of sign-in links. Only mailboxes that may see some page are counted.
    fn may_be_linked(&self, page: &Page, email: &str, place: Option<u128>) -> bool {
        let (mailbox, now) = (Address::Email(email.to_owned()).receiver(), self.now());
        let account = format!("account {}", page.account);
        let (there, page) = (format!("{mailbox} {place:?}"), format!("page {}", page.id));
        let mut linked = self.0.linked.lock().unwrap_or_else(PoisonError::into_inner);
        // A request refused by one limit is not counted by the others.
        linked.has_room(LINKS_AN_HOUR, mailbox.as_str(), now)
            && linked.has_room(LINKS_OF_A_PAGE, page.as_str(), now)
            && linked.has_room(LINKS_OF_AN_ACCOUNT, account.as_str(), now)
            && linked.admit(LINKS_OF_A_PLACE, there.as_str(), now).is_ok()
            && linked.admit(LINKS_AN_HOUR, mailbox.as_str(), now).is_ok()
            && linked.admit(LINKS_OF_A_PAGE, page.as_str(), now).is_ok()
            && linked.admit(LINKS_OF_AN_ACCOUNT, account.as_str(), now).is_ok()
    }
}

fn is_fresh(link: &Remembered, now: Timestamp) -> bool {
    // A link from the future was created before the clock was set back.
    (1..=LINK_LIFE).contains(&link.expires_at.since(now))
}

/// The key under which a link is stored: only a hash of its token.
fn link_name(token: &str) -> String {
    format!("sign-in/{}", hex(&Sha256::digest(token)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
