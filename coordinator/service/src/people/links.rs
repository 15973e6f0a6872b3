//! One-time links, and sign-in by one that is mailed.

use std::sync::PoisonError;

use parallax_core::delivery::{DeliveryMessage, MailMessage};
use parallax_core::id::PersonId;
use parallax_core::one_time_link::{LinkKind, LinkOwner, MAX_LINKS, OneTimeLink};
use parallax_core::page::access::normalize_email;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::Timestamp;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::browser::link_id;
use super::{BrowserInfo, PeopleService, SignInStep};
use crate::page_access::sign_in::{BrowserId, LinkValidity};
use crate::{ServiceResult, secret_text};

/// Links for sign-in and for a new password an hour to one mailbox that one network requests.
const LINKS_PER_NETWORK: u32 = 3;
/// Links an hour to one mailbox in all: strangers of one network can't use up those of its owner.
const LINKS_PER_MAILBOX: u32 = 12;
/// Event name of deliveries with a link.
const EVENT: &str = "person.sign-in";

/// A request for a sign-in link to the dashboard.
#[derive(Clone)]
pub struct DashboardLinkRequest {
    /// The email address entered.
    pub email: String,
    /// The browser that requests the link, in which alone it works.
    pub browser: BrowserId,
    /// The network that requests it, if known.
    pub network: Option<u128>,
    /// Path to go to after sign-in; may be empty.
    pub next: String,
    /// True with "Keep me signed in".
    pub is_kept: bool,
}

impl std::fmt::Debug for DashboardLinkRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the browser: with its identifier the link works elsewhere.
        f.debug_struct("DashboardLinkRequest").field("email", &self.email).finish_non_exhaustive()
    }
}

impl PeopleService {
    /// Mails a sign-in link if a person has the address. The answer is the same whether anyone has it or not.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read or written.
    pub async fn request_link(&self, request: &DashboardLinkRequest) -> ServiceResult<()> {
        let email = normalize_email(&request.email).unwrap_or_default();
        let person = self.context.store().reader().person_by_email(&email)?.map(|person| person.value);
        let person = person.filter(|person| self.admit_link(&person.email, request.network)).map(|person| person.id);
        let browser = Sha256::digest(request.browser).into();
        let kind = |person| LinkKind::SignIn { person, browser, next: request.next.clone() };
        let mail = |token: &str| {
            let base_url = self.context.base_url();
            render::dashboard_sign_in(base_url, &format!("{base_url}/sign-in/link/{token}"))
        };
        self.mail_link((&email, EVENT), person.map(kind), request.is_kept, mail).await
    }

    /// Mails a link to the person with that address. Without a link it does the same work, so that timing reveals
    /// nothing.
    pub(super) async fn mail_link(
        &self,
        (email, event): (&str, &str),
        kind: Option<LinkKind>,
        is_kept: bool,
        mail: impl Fn(&str) -> MailMessage,
    ) -> ServiceResult<()> {
        let (token, kind, mail) = (&secret_text::random_token(rand::random()), &kind, &mail);
        // By the address: nobody waits longer or shorter for being known.
        let lock_id = Sha256::digest(email).first_chunk().copied().map_or(0, u128::from_be_bytes);
        self.context
            .commit_change(lock_id, || async move {
                let mut batch = Batch::new();
                batch.write(Op::DeleteExpiredResponses(self.context.now()));
                if let Some(kind) = kind
                    && let LinkOwner::Person(person) = kind.owner()
                {
                    // A password that changes at the same time ends this link, too.
                    Self::touch_person(self.person(person)?, &mut batch);
                    let expires_at = self.add_link(token, (kind.clone(), is_kept), &mut batch).await?;
                    let mail = DeliveryMessage::Mail(mail(token));
                    self.context.mail_visitor((None, event), email, mail, expires_at, &mut batch);
                }
                Ok(((), Some(batch)))
            })
            .await?;
        self.context.deliveries_due.notify_one();
        Ok(())
    }

    /// Returns the validity of a sign-in link in that browser, without using it.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read.
    pub fn link_validity(&self, token: &str, browser: Option<&BrowserId>) -> ServiceResult<LinkValidity> {
        Ok(self.sign_in_link(token, browser)?.err().unwrap_or(LinkValidity::Valid))
    }

    /// Signs a person in with a link, which can then not be used again, or asks for their second factor. Returns the next
    /// step and the path to go to; otherwise the link's validity.
    ///
    /// # Errors
    /// [`ServiceError::Internal`](crate::ServiceError::Internal) if the store can't be read or written.
    pub async fn sign_in_by_link(
        &self,
        token: &str,
        browser_id: Option<&BrowserId>,
        browser: &BrowserInfo,
    ) -> ServiceResult<std::result::Result<(SignInStep, String), LinkValidity>> {
        let lock_id = link_id(token).0.first_chunk().copied().map_or(0, u128::from_be_bytes);
        self.context
            .commit_change(lock_id, || async move {
                let (link, person, next) = match self.sign_in_link(token, browser_id)? {
                    Ok(valid_link) => valid_link,
                    Err(validity) => return Ok((Err(validity), None)),
                };
                let Some(membership) = self.sign_in_membership(person)? else {
                    return Ok((Err(LinkValidity::Invalid), None));
                };
                let stored = self.person(person)?;
                let mut batch = Batch::new();
                batch.expect(Expect::OneTimeLink(link.value.id, Presence::At(link.revision)));
                batch.expect(Expect::AccountMember(membership.account, person, Presence::Present));
                // They may be turning a second factor on.
                batch.expect(Expect::Person(person, Presence::At(stored.revision)));
                batch.write(Op::DeleteOneTimeLink(link.value.id));
                let (target, way) = (membership.account.into(), (link.value.is_kept, browser));
                let step = self.next_step(&stored.value, target, way, &mut batch).await?;
                Ok((Ok((step, next)), Some(batch)))
            })
            .await
    }

    /// Adds a link to a batch, in place of expired ones and the oldest of too many. `is_kept` is for the session that
    /// it starts. Returns the time of its expiry.
    pub(super) async fn add_link(
        &self,
        token: &str,
        (kind, is_kept): (LinkKind, bool),
        batch: &mut Batch,
    ) -> ServiceResult<Timestamp> {
        let (now, owner) = (self.context.now(), kind.owner());
        let link = OneTimeLink { is_kept, ..OneTimeLink::new(link_id(token), kind, now) };
        let mut stored = self.links_of(owner).await?;
        stored.sort_by_key(|link| (link.is_valid(now), link.expires_at));
        let valid = stored.iter().filter(|link| link.is_valid(now)).count();
        for old in stored.iter().take(stored.len() - valid.min(MAX_LINKS - 1)) {
            batch.write(Op::DeleteOneTimeLink(old.id));
        }
        let expires_at = link.expires_at;
        batch.expect(Expect::OneTimeLink(link.id, Presence::Absent)).write(link);
        Ok(expires_at)
    }

    /// Deletes the links of an account or person that match, in a batch.
    pub(super) async fn end_links(
        &self,
        owner: LinkOwner,
        is_match: impl Fn(&OneTimeLink) -> bool,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        for link in self.links_of(owner).await?.iter().filter(|link| is_match(link)) {
            batch.write(Op::DeleteOneTimeLink(link.id));
        }
        Ok(())
    }

    pub(super) async fn links_of(&self, owner: LinkOwner) -> ServiceResult<Vec<OneTimeLink>> {
        let stored = self.context.store().read(move |store| store.one_time_links_of(owner)).await?;
        Ok(stored.into_iter().map(|link| link.value).collect())
    }

    pub(super) fn valid_link(&self, token: &str) -> ServiceResult<Option<VersionedValue<OneTimeLink>>> {
        if !secret_text::is_token(token) {
            return Ok(None);
        }
        let stored = self.context.store().reader().one_time_link(link_id(token))?;
        Ok(stored.filter(|link| link.value.is_valid(self.context.now())))
    }

    #[allow(clippy::type_complexity, reason = "a link with its parts, or the reason why it does not work")]
    fn sign_in_link(
        &self,
        token: &str,
        browser: Option<&BrowserId>,
    ) -> ServiceResult<std::result::Result<(VersionedValue<OneTimeLink>, PersonId, String), LinkValidity>> {
        let Some(link) = self.valid_link(token)? else { return Ok(Err(LinkValidity::Invalid)) };
        let LinkKind::SignIn { person, browser: expected, next } = link.value.kind.clone() else {
            return Ok(Err(LinkValidity::Invalid));
        };
        let fingerprint = browser.map(|browser| <[u8; 32]>::from(Sha256::digest(browser)));
        let is_same = fingerprint.is_some_and(|fingerprint| bool::from(fingerprint.ct_eq(&expected)));
        Ok(if is_same { Ok((link, person, next)) } else { Err(LinkValidity::OtherBrowser) })
    }

    /// Counts a link to a mailbox, for sign-in or a new password alike. One that a limit refuses counts for neither.
    pub(super) fn admit_link(&self, email: &str, network: Option<u128>) -> bool {
        let (mailbox, now) = (SubscriberAddress::Email(email.to_owned()).mailbox_key(), self.context.now());
        let of_network = format!("{mailbox} {network:?}");
        let mut limit = self.link_limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit.would_admit(LINKS_PER_MAILBOX, mailbox.as_str(), now)
            && limit.would_admit(LINKS_PER_NETWORK, of_network.as_str(), now)
            && limit.admit(LINKS_PER_MAILBOX, mailbox.as_str(), now).is_ok()
            && limit.admit(LINKS_PER_NETWORK, of_network.as_str(), now).is_ok()
    }
}
