//! Subscriptions of visitors to a page's incidents: request, confirmation, choice of monitors, and unsubscribing.
//!
//! A request reveals nothing about other people's addresses: the answer and the work are the same whether the address
//! is new, known, confirmed, or switched off. Nor can a request cause more than one message a day to an address.

mod keep;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Mutex;

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::destination::Health;
use parallax_core::id::{DeliveryId, MonitorId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::refusal::Refusals;
use parallax_core::subscriber::ask::{self, Address, Ask, Asked};
use parallax_core::subscriber::asking::Asker;
use parallax_core::subscriber::{ASKED_AGAIN, Contact, MAX_SUBSCRIBERS, Subscriber, read_link};
use parallax_core::time::HOUR;
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

use self::request::{Fresh, asked_now};
use super::asking::Pending;
use super::pace::Pace;
use super::{Error, Result, Service};
use crate::letters;
use crate::storage::{Batch, Expect, Is, Op, Remembered, Versioned};

/// Event name of a webhook's challenge, sent before anything else: the response must be the value of `challenge`.
pub const CHALLENGE: &str = letters::challenge::CHALLENGE;
/// Event name of the confirmation mail.
pub const CONFIRMATION: &str = "subscription.confirmation";

/// Maximum challenges to one host in an hour.
const TIMES: u32 = 10;

/// Subscription requests whose webhook has not answered yet, and the number of challenges per host.
#[derive(Debug)]
pub(super) struct Wishes {
    pending: Mutex<BTreeSet<SubscriberId>>,
    hosts: Mutex<Pace<String>>,
    /// Notified when a challenge is sent.
    asked: Notify,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { pending: Mutex::default(), hosts: Mutex::new(Pace::new(HOUR)), asked: Notify::new() }
    }
}

/// Response to a subscription request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscribed {
    /// A confirmation mail was sent, if anything was.
    Mailed,
    /// A challenge was sent, if anything was. The values are shown only once, and are void if nothing was sent.
    Challenged {
        /// Secret that signs its deliveries.
        secret: String,
        /// Token in its links.
        link: String,
    },
}

impl Service {
    /// Accepts a visitor's subscription to the page. It has no effect until it is confirmed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid address, monitors of another page, or a page with the maximum of
    /// subscribers; [`Error::PageAsks`] and [`Error::AccountAsks`] if too many confirmation requests were sent
    /// recently.
    pub async fn subscribe(&self, page: &Page, ask: &Ask) -> Result<Subscribed> {
        self.subscribe_by(Asker::Visitor, page, ask, None).await
    }

    /// The same for a visitor at that client IP, whose valid requests are counted: [`Error::PageAsks`] beyond the
    /// limit.
    ///
    /// # Errors
    /// As for [`Self::subscribe`].
    pub async fn subscribe_from(&self, place: u128, page: &Page, ask: &Ask) -> Result<Subscribed> {
        self.subscribe_by(Asker::Visitor, page, ask, Some(place)).await
    }

    /// The same for visitors and owners: [`Error::PageAsks`] and [`Error::AccountAsks`] if too many confirmation
    /// requests were sent, and [`Error::PlanLimit`] if the owner has too many unconfirmed addresses.
    pub(super) async fn subscribe_by(
        &self,
        asker: Asker,
        page: &Page,
        ask: &Ask,
        place: Option<u128>,
    ) -> Result<Subscribed> {
        let on_page = self.ids_on(page).await?;
        let asked = ask.settle(&on_page, &|address| self.refused(address))?;
        if let Some(place) = place {
            self.admit_visitor(place)?;
        }
        self.admit_asking(page, asker).await?;
        let id = page.id;
        if self.store().read(move |store| store.subscribers_count(id)).await? >= MAX_SUBSCRIBERS {
            return Err(Refusals::one("page", "has the maximum number of subscribers").into());
        }
        let fresh = Fresh::new(self.now(), asker == Asker::Owner);
        if fresh.by_owner {
            let known = self.store().reader().subscriber_by(id, fingerprint(&asked.address))?;
            // A confirmed address gets no confirmation request and needs no slot.
            if known.as_ref().is_none_or(|known| known.value.confirmed_at.is_none()) {
                let subscriber = known.map_or(fresh.id, |known| known.value.id);
                self.hold_unconfirmed(page.account, Pending::Subscriber(subscriber)).await?;
            }
        }
        let is_paced = self.is_paced(&asked.address);
        let (asked, new) = (&asked, &fresh);
        let made = self
            .change(id.to_u128(), || async move {
                if let Some(old) = self.unanswered(page, asked)?.filter(|_| !is_paced) {
                    self.commit(Some(Batch::new().write(Op::DeleteSubscriber(old)).clone())).await?;
                }
                let step = if is_paced { None } else { self.step(page, asked, new)? };
                Ok(match step {
                    Some((subscriber, batch)) => (Some(subscriber), Some(batch)),
                    // The same work, so that timing reveals nothing either.
                    None => (None, Some(Batch::new().write(Op::ForgetExpired(self.now())).clone())),
                })
            })
            .await?;
        self.0.outgoing.notify_one();
        match &asked.address {
            Address::Email(_) => Ok(Subscribed::Mailed),
            Address::Webhook { .. } => {
                if let Some(subscriber) = made {
                    self.await_answer(subscriber.id);
                }
                Ok(Subscribed::Challenged { link: fresh.link(), secret: fresh.secret })
            }
        }
    }

    /// Lists the monitors of a page that a subscriber may choose, in page order, by id and name.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub async fn choices(&self, page: &Page) -> Result<Vec<(MonitorId, String)>> {
        let id = page.id;
        let monitors = self.store().read(move |store| store.monitors_of(id)).await?;
        Ok(monitors.into_iter().map(|it| (it.value.id, it.value.name)).collect())
    }

    /// Returns the subscriber that a link belongs to, as it may be shown to the bearer of the link.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the link is not for this page, has expired, or belongs to a webhook that has not
    /// answered.
    pub fn subscription(&self, page: &Page, link: &str) -> Result<Subscriber> {
        self.linked_on(page, link).map(|found| found.value)
    }

    /// Confirms a mailbox's subscription, or changes which monitors a subscriber follows; `monitors` are monitor ids,
    /// `None` means the whole page.
    ///
    /// # Errors
    /// [`Error::NotFound`] as for [`Self::subscription`], [`Error::Invalid`] for monitors of another page.
    pub async fn confirm(&self, page: &Page, link: &str, monitors: Option<&[String]>) -> Result<Subscriber> {
        let on_page = self.ids_on(page).await?;
        let monitors = ask::chosen(monitors, &on_page).map_err(|rule| Refusals::one("monitors", rule))?;
        let monitors = &monitors;
        let id = self.linked_on(page, link)?.value.id;
        let confirmed = self.change(id.to_u128(), || async move {
            let before = self.linked_on(page, link)?;
            let now = self.now();
            let after = Subscriber {
                monitors: monitors.clone(),
                confirmed_at: before.value.confirmed_at.or(Some(now)),
                health: Health::default(),
                ..before.value.clone()
            };
            let mut batch = Batch::new();
            if after != before.value {
                batch.expect(Expect::Page(page.id, Is::Present));
                batch.expect(Expect::Subscriber(id, Is::At(before.revision))).write(after.clone());
            }
            if before.value.confirmed_at.is_none() {
                // A confirmed reader may subscribe to other pages on the same day.
                if let Contact::Email(email) = &after.contact {
                    self.forget_asked(&Address::Email(email.clone()), &mut batch)?;
                }
            }
            Ok((after, (!batch.is_empty()).then_some(batch)))
        });
        let confirmed = confirmed.await?;
        self.release_unconfirmed(page.account, &Pending::Subscriber(id));
        Ok(confirmed)
    }

    /// Deletes a subscriber, whatever has become of its page's protection and slug. An outdated link is not an error.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a malformed link.
    pub async fn unsubscribe(&self, link: &str) -> Result<()> {
        let (id, _) = read_link(link).ok_or(Error::NotFound)?;
        self.change(id.to_u128(), || async move {
            let batch = self.linked(link)?.map(|found| {
                let is = Expect::Subscriber(id, Is::At(found.revision));
                Batch::new().expect(is).write(Op::DeleteSubscriber(id)).clone()
            });
            Ok(((), batch))
        })
        .await
    }

    /// Returns the page of a current subscriber's link: unsubscribing works even if the page is not public.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn page_of_link(&self, link: &str) -> Result<Option<Page>> {
        let Some(found) = self.linked(link)? else { return Ok(None) };
        Ok(self.store().reader().page(found.value.page)?.map(|page| page.value))
    }

    fn linked(&self, link: &str) -> Result<Option<Versioned<Subscriber>>> {
        let Some((id, token)) = read_link(link) else { return Ok(None) };
        let found = self.store().reader().subscriber(id)?;
        Ok(found.filter(|found| bool::from(found.value.token.ct_eq(&token))))
    }

    fn linked_on(&self, page: &Page, link: &str) -> Result<Versioned<Subscriber>> {
        let now = self.now();
        let is_good = |it: &Subscriber| {
            let is_shown = matches!(it.contact, Contact::Email(_)) || it.confirmed_at.is_some();
            it.page == page.id && is_shown && !it.is_stale(now)
        };
        self.linked(link)?.filter(|found| is_good(&found.value)).ok_or(Error::NotFound)
    }

    /// Returns an earlier request of a webhook that has not answered, once it may be repeated: it is replaced by a
    /// request with a new id, which reveals no earlier one.
    fn unanswered(&self, page: &Page, asked: &Asked) -> Result<Option<SubscriberId>> {
        let found = self.store().reader().subscriber_by(page.id, fingerprint(&asked.address))?;
        let is_old = |it: &Subscriber| {
            let is_webhook = matches!(it.contact, Contact::Webhook { .. });
            is_webhook && it.confirmed_at.is_none() && self.now().since(it.asked_at) >= ASKED_AGAIN
        };
        Ok(found.map(|found| found.value).filter(is_old).map(|old| old.id))
    }

    /// Builds the subscriber to store for a request and the batch that sends the confirmation request; `None` if
    /// nothing is to be sent.
    fn step(&self, page: &Page, asked: &Asked, fresh: &Fresh) -> Result<Option<(Subscriber, Batch)>> {
        let (reader, now) = (self.store().reader(), self.now());
        let name = asked_name(&asked.address);
        let last = reader.remembered(&name)?;
        let is_lately = last.as_ref().is_some_and(|last| last.value.expires_at > now);
        let before = reader.subscriber_by(page.id, fingerprint(&asked.address))?;
        let new = fresh.subscriber(page, asked, now);
        let Some(subscriber) = asked_now(before.as_ref().map(|it| &it.value), new, is_lately) else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Page(page.id, Is::Present));
        let is = before.as_ref().map_or(Is::Absent, |before| Is::At(before.revision));
        batch.expect(Expect::Subscriber(subscriber.id, is));
        if before.is_none() {
            batch.expect(Expect::SubscribersBelow(page.id, MAX_SUBSCRIBERS));
        }
        let is = last.map_or(Is::Absent, |last| Is::At(last.revision));
        batch.expect(Expect::Remembered(name.clone(), is));
        let remembered =
            Remembered { fingerprint: [0; 32], answer: Vec::new(), expires_at: now + ASKED_AGAIN };
        batch.write(Op::ForgetExpired(now)).write(Op::Remember(name, remembered));
        batch.write(subscriber.clone()).write(self.question(page, &subscriber, fresh));
        Ok(Some((subscriber, batch)))
    }

    /// Builds the confirmation request to a subscriber.
    fn question(&self, page: &Page, subscriber: &Subscriber, fresh: &Fresh) -> Delivery {
        let (url, now) = (self.page_url(page), self.now());
        let (event, letter) = match &subscriber.contact {
            Contact::Email(_) => {
                (CONFIRMATION, Letter::Mail(letters::confirmation(page, &url, &subscriber.confirm_url(&url))))
            }
            Contact::Webhook { .. } => {
                let question = json!({
                    "event": CHALLENGE, "page": page.name, "pageUrl": url,
                    "challenge": fresh.challenge, "at": now.as_millis(),
                });
                (CHALLENGE, Letter::Json(question.to_string().into_bytes()))
            }
        };
        Delivery {
            id: question_id(subscriber),
            page: Some(page.id),
            to: Recipient::Subscriber(subscriber.id),
            event: event.to_owned(),
            monitor: None,
            incident: None,
            seq: 0,
            letter,
            // A challenge is sent only once: strangers can cause it.
            once: matches!(subscriber.contact, Contact::Webhook { .. }),
            created_at: now,
            stage: Stage::Waiting(now),
            tries: Default::default(),
            log: Vec::new(),
            began: None,
        }
    }

    /// Returns true if a host got the maximum of challenges in the current window.
    fn is_paced(&self, address: &Address) -> bool {
        let Address::Webhook { host, .. } = address else { return false };
        self.paced(&self.0.wishes.hosts, TIMES, host).is_err()
    }

    /// Lifts the limit of one confirmation request a day for an address whose reader has confirmed.
    pub(super) fn forget_asked(&self, address: &Address, batch: &mut Batch) -> Result<()> {
        let name = asked_name(address);
        if let Some(last) = self.store().reader().remembered(&name)? {
            batch.expect(Expect::Remembered(name.clone(), Is::At(last.revision)));
            batch.write(Op::Remember(name, Remembered { expires_at: self.now(), ..last.value }));
        }
        Ok(())
    }
}

/// Identifies a contact among a page's subscribers.
pub(super) fn fingerprint(address: &Address) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::digest(address.plain()).into();
    let mut start = [0; 16];
    start.copy_from_slice(digest.get(..16).unwrap_or(&[0; 16]));
    start
}

/// The key under which an address's last confirmation request is stored, for all pages.
pub(super) fn asked_name(address: &Address) -> String {
    format!("asked/{}", hex(&Sha256::digest(address.receiver())))
}

/// Derives the id of a subscriber's last confirmation request.
fn question_id(subscriber: &Subscriber) -> DeliveryId {
    let digest = Sha256::digest([&b"question"[..], &subscriber.id.to_u128().to_be_bytes()].concat());
    let mut random = [0; 10];
    random.copy_from_slice(digest.get(..10).unwrap_or(&[0; 10]));
    DeliveryId::new(subscriber.asked_at, random)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
