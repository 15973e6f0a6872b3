//! How a visitor is let in: by a page's password, or by a link that is mailed to whoever a private page is for.
//!
//! Whoever asks for a link learns nothing of an address: the answer is the same whether it may see the page or not, and
//! takes the same work. Only mailboxes that the owner has named, or whose domain he has, are ever written to.

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

/// Milliseconds that a link is good for.
pub const LINK_LIFE: i64 = 15 * MINUTE;
/// Links that one mailbox is sent in an hour because of one place, over all pages.
const LINKS_OF_A_PLACE: u32 = 3;
/// Links that it is sent in an hour at all: strangers at one place don't use them up.
const LINKS_AN_HOUR: u32 = 12;
/// Links that are sent in an hour because of one page.
const LINKS_OF_A_PAGE: u32 = 1800;
/// Links that are sent in an hour because of one account's pages.
const LINKS_OF_AN_ACCOUNT: u32 = 3600;
/// What a delivery is called that brings a link.
const EVENT: &str = "page.sign-in";

/// What tells a browser from others, kept by it in a cookie.
pub type Browser = [u8; 16];

/// A wish to be let in.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The address that was given.
    pub email: String,
    /// The page's address as its visitor came to it.
    pub address: String,
    /// Who asks.
    pub browser: Browser,
    /// The number of the place that he asks from, where it is known.
    pub place: Option<u128>,
    /// Where he wanted to go: a path inside the page, or nothing.
    pub to: String,
}

/// What a link is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It lets its bearer in.
    Good,
    /// It was asked for by another browser.
    Elsewhere,
    /// Nothing: it was used, is too old, or never was.
    Dead,
}

/// A visitor who was let in by a link.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// What he shows from now on.
    pub pass: Pass,
    /// Where he wanted to go.
    pub to: String,
}

/// What a link stands for.
#[derive(Serialize, Deserialize)]
struct Meant {
    page: String,
    email: String,
    to: String,
}

impl Service {
    /// The pass for whoever knows the page's password; none for all others. It takes the same time whether there is such
    /// a page or not.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a label that no page has, [`Error::Busy`] where too many passwords are being checked.
    pub async fn try_password(&self, slug: &str, password: &str) -> Result<Option<Pass>> {
        let page = self.behind(slug);
        let guarded = page.as_ref().ok().filter(|page| Guard::of(page) == Guard::Password);
        let hash = guarded.and_then(|page| page.password.as_deref());
        let is_right = password::verify(password, hash).await?;
        let page = page?;
        Ok(is_right.then(|| self.pass(&page)))
    }

    /// The name of the pass that a visitor of the page has, to take it from him.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a label that no page has.
    pub fn pass_of(&self, slug: &str) -> Result<String> {
        let page = self.behind(slug)?;
        Ok(self.pass_name(&page))
    }

    /// Mails a link to whoever may see the private page.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no address, [`Error::NotFound`] for a page that is not private.
    pub async fn ask_to_sign_in(&self, slug: &str, asking: &Asking) -> Result<()> {
        let page = self.private_behind(slug)?;
        let email = mailbox(&asking.email).map_err(|rule| Refusals::one("email", rule))?;
        let receiver = Some(email)
            .filter(|email| page.allowed.has(email) && self.may_be_linked(&page, email, asking.place));
        let now = self.now();
        let mut batch = Batch::new();
        // As much work for those who may not, so that time does not tell.
        batch.write(Op::ForgetExpired(now));
        if let Some(email) = receiver {
            self.write_link(&page, &email, asking, &mut batch);
        }
        self.store().commit(batch).await?;
        self.0.outgoing.notify_one();
        Ok(())
    }

    /// What a link is good for in that browser. Looking changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a page that is not private.
    pub fn link(&self, slug: &str, token: &str, browser: Option<&Browser>) -> Result<Link> {
        let page = self.private_behind(slug)?;
        Ok(self.linked_to(&page, token, browser)?.err().unwrap_or(Link::Good))
    }

    /// Lets a visitor in by a link, which is good for nothing from then on. What else it is good for where it does not.
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

    /// Whether the mailbox may be written to once more. Only those that may see some page are counted.
    fn may_be_linked(&self, page: &Page, email: &str, place: Option<u128>) -> bool {
        let (mailbox, now) = (Address::Email(email.to_owned()).receiver(), self.now());
        let account = format!("account {}", page.account);
        let (there, page) = (format!("{mailbox} {place:?}"), format!("page {}", page.id));
        let mut linked = self.0.linked.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is counted, and nothing remembered, of what is refused for another reason.
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
    // What seems to come of the future was made before the clock was put back.
    (1..=LINK_LIFE).contains(&link.expires_at.since(now))
}

/// The name under which it is remembered what a link is for: its token is kept nowhere.
fn link_name(token: &str) -> String {
    format!("sign-in/{}", hex(&Sha256::digest(token)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
