//! Subscriptions of visitors to a page's incidents: request, confirmation, choice of monitors, and unsubscribing.
//!
//! A request reveals nothing about other people's addresses: the answer and the work are the same whether the address
//! is new, known, confirmed, or switched off. Nor can a request cause more than one message a day to an address.

mod administration;
mod counts_cache;
mod export;
mod import;
mod import_queue;
mod mailboxes;
mod pending_task;
mod request;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::destination::DeliveryHealth;
use parallax_core::id::{DeliveryId, MonitorId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::rate_limit::FixedWindowLimit;
use parallax_core::subscriber::confirmation_limit::ConfirmationOrigin;
use parallax_core::subscriber::request::{SubscriberAddress, SubscriptionRequest, ValidSubscription, read_monitors};
use parallax_core::subscriber::{CONFIRMATION_INTERVAL, Contact, MAX_SUBSCRIBERS, Subscriber, decode_link};
use parallax_core::time::HOUR;
use parallax_core::validation::ValidationErrors;
use parallax_notify::render;
use parallax_store::{Batch, Expect, Op, Presence, VersionedValue};
use serde_json::json;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

pub use self::administration::{SubscriberCounts, SubscriberFilter, SubscriberSlice, SubscriberState};
use self::counts_cache::CountsCache;
pub use self::import::{ImportReport, MAX_QUEUED};
use self::import_queue::ImportQueue;
use self::request::{NewSubscriber, subscriber_after_request};
use crate::context::ServiceContext;
use crate::notifications::confirmation_limits::{ConfirmationLimits, UnconfirmedAddress};
use crate::notifications::confirmation_requests::{record_request, request_key};
use crate::{Caller, ServiceError, ServiceResult};

/// Event name of a webhook's challenge, sent before anything else: the response must be the value of `challenge`.
pub const CHALLENGE: &str = render::challenge::CHALLENGE_EVENT;
/// Event name of the confirmation mail.
pub(crate) const CONFIRMATION: &str = "subscription.confirmation";

/// Maximum challenges to one host in an hour.
const CHALLENGES_PER_HOST: u32 = 10;

/// Subscription requests whose webhook has not answered yet, and the number of challenges per host.
#[derive(Debug)]
struct PendingSubscriptions {
    pending: Mutex<BTreeSet<SubscriberId>>,
    host_limit: Mutex<FixedWindowLimit<String>>,
    /// Notified when a challenge is sent.
    challenge_sent: Notify,
}

impl Default for PendingSubscriptions {
    fn default() -> Self {
        Self {
            pending: Mutex::default(),
            host_limit: Mutex::new(FixedWindowLimit::new(HOUR)),
            challenge_sent: Notify::new(),
        }
    }
}

/// Response to a subscription request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscribeResponse {
    /// A confirmation mail was sent, if anything was.
    MailSent,
    /// A challenge was sent, if anything was. The values are shown only once, and are void if nothing was sent.
    ChallengeSent {
        /// Secret that signs its deliveries.
        secret: String,
        /// Token in its links.
        link: String,
    },
}

/// Owns subscribers of pages. A subscription has no effect before it is confirmed, and requests reveal nothing about
/// other people's addresses.
#[derive(Debug)]
pub struct SubscriberService {
    context: Arc<ServiceContext>,
    pub(crate) limits: Arc<ConfirmationLimits>,
    /// Requests whose webhook has not answered yet.
    pending_subscriptions: PendingSubscriptions,
    counts_cache: CountsCache,
    /// Pages with imported addresses that wait to be asked.
    import_queue: ImportQueue,
}

impl SubscriberService {
    pub(crate) fn new(context: &Arc<ServiceContext>, limits: &Arc<ConfirmationLimits>) -> Self {
        Self {
            context: Arc::clone(context),
            limits: Arc::clone(limits),
            pending_subscriptions: PendingSubscriptions::default(),
            counts_cache: CountsCache::default(),
            import_queue: ImportQueue::default(),
        }
    }

    /// Accepts a visitor's subscription to the page. It has no effect until it is confirmed.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] for an invalid address, monitors of another page, or a page with the maximum of
    /// subscribers; [`ServiceError::PageConfirmationLimit`] and [`ServiceError::AccountConfirmationLimit`] if too many
    /// confirmation requests were sent recently.
    pub async fn subscribe(&self, page: &Page, ask: &SubscriptionRequest) -> ServiceResult<SubscribeResponse> {
        self.subscribe_by((ConfirmationOrigin::Visitor, None), page, ask, None).await
    }

    /// The same for a visitor at that client IP, whose valid requests are counted:
    /// [`ServiceError::PageConfirmationLimit`] beyond the limit.
    ///
    /// # Errors
    /// As for [`Self::subscribe`].
    pub async fn subscribe_from_ip(
        &self,
        network: u128,
        page: &Page,
        ask: &SubscriptionRequest,
    ) -> ServiceResult<SubscribeResponse> {
        self.subscribe_by((ConfirmationOrigin::Visitor, None), page, ask, Some(network)).await
    }

    /// The same for visitors and owners, with the caller who asks by themselves: [`ServiceError::PageConfirmationLimit`] and
    /// [`ServiceError::AccountConfirmationLimit`] if too many confirmation requests were sent, and
    /// [`ServiceError::PlanLimit`] if the owner has too many unconfirmed addresses.
    async fn subscribe_by(
        &self,
        (origin, caller): (ConfirmationOrigin, Option<&Caller>),
        page: &Page,
        ask: &SubscriptionRequest,
        network: Option<u128>,
    ) -> ServiceResult<SubscribeResponse> {
        let on_page = self.context.monitor_ids(page).await?;
        let valid = ask.validate(&on_page, &|address| self.context.blocked_address_class(address))?;
        if let Some(network) = network {
            self.limits.admit_visitor(network)?;
        }
        self.limits.admit_confirmation(page, origin).await?;
        let id = page.id;
        let new_subscriber = NewSubscriber::new(self.context.now(), origin == ConfirmationOrigin::Owner);
        let existing = match origin {
            ConfirmationOrigin::Owner => {
                self.context.store().reader().subscriber_by_contact(id, contact_fingerprint(&valid.address))?
            }
            // A full page answers a visitor the same, whether the address is on it or not.
            ConfirmationOrigin::Visitor => None,
        };
        if existing.is_none()
            && self.context.store().read(move |store| store.subscribers_count(id)).await? >= MAX_SUBSCRIBERS
        {
            return Err(ValidationErrors::single("page", "has the maximum number of subscribers").into());
        }
        // A confirmed address gets no confirmation request and needs no slot.
        if new_subscriber.by_owner && existing.as_ref().is_none_or(|existing| existing.value.confirmed_at.is_none()) {
            let subscriber = existing.map_or(new_subscriber.id, |existing| existing.value.id);
            self.limits.reserve_unconfirmed(page.account, UnconfirmedAddress::Subscriber(subscriber)).await?;
        }
        let is_paced = self.is_host_limited(&valid.address);
        let (valid, new) = (&valid, &new_subscriber);
        let result = self
            .context
            .commit_change(id.to_u128(), || async move {
                if let Some(old) = self.unanswered_webhook(page, valid)?.filter(|_| !is_paced) {
                    self.context.commit(Some(Batch::new().write(Op::DeleteSubscriber(old)).clone())).await?;
                }
                let step = if is_paced { None } else { self.request_batch(page, valid, new)? };
                Ok(match step {
                    Some((subscriber, mut batch)) => {
                        if let Some(caller) = caller {
                            self.context.log_change(caller, &mut batch)?;
                        }
                        (Some(subscriber), Some(batch))
                    }
                    // The same work, so that timing reveals nothing either.
                    None => (None, Some(Batch::new().write(Op::DeleteExpiredResponses(self.context.now())).clone())),
                })
            })
            .await?;
        self.context.deliveries_due.notify_one();
        match &valid.address {
            SubscriberAddress::Email(_) => Ok(SubscribeResponse::MailSent),
            SubscriberAddress::Webhook { .. } => {
                if let Some(subscriber) = result {
                    self.await_answer(subscriber.id);
                }
                Ok(SubscribeResponse::ChallengeSent { link: new_subscriber.link(), secret: new_subscriber.secret })
            }
        }
    }

    /// Lists the monitors of a page that a subscriber may choose, in page order, by id and name.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub async fn monitor_choices(&self, page: &Page) -> ServiceResult<Vec<(MonitorId, String)>> {
        let id = page.id;
        let monitors = self.context.store().read(move |store| store.monitors_of(id)).await?;
        Ok(monitors.into_iter().map(|it| (it.value.id, it.value.name)).collect())
    }

    /// Returns the subscriber that a link belongs to, as it may be shown to the bearer of the link.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the link is not for this page, has expired, or belongs to a webhook that has not
    /// answered.
    pub fn subscription(&self, page: &Page, link: &str) -> ServiceResult<Subscriber> {
        self.valid_subscriber(page, link).map(|subscriber| subscriber.value)
    }

    /// Confirms a mailbox's subscription, or changes which monitors a subscriber follows; `monitors` are monitor ids,
    /// `None` means the whole page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] as for [`Self::subscription`], [`ServiceError::Invalid`] for monitors of another
    /// page.
    pub async fn confirm(&self, page: &Page, link: &str, monitors: Option<&[String]>) -> ServiceResult<Subscriber> {
        let on_page = self.context.monitor_ids(page).await?;
        let monitors = read_monitors(monitors, &on_page).map_err(|rule| ValidationErrors::single("monitors", rule))?;
        let monitors = &monitors;
        let id = self.valid_subscriber(page, link)?.value.id;
        let confirmed = self.context.commit_change(id.to_u128(), || async move {
            let before = self.valid_subscriber(page, link)?;
            let now = self.context.now();
            let after = Subscriber {
                monitors: monitors.clone(),
                confirmed_at: before.value.confirmed_at.or(Some(now)),
                queued_at: None,
                health: DeliveryHealth::default(),
                ..before.value.clone()
            };
            let mut batch = Batch::new();
            if after != before.value {
                batch.expect(Expect::Page(page.id, Presence::Present));
                batch.expect(Expect::Subscriber(id, Presence::At(before.revision))).write(after.clone());
            }
            if before.value.confirmed_at.is_none() {
                // A confirmed reader may subscribe to other pages on the same day.
                if let Some(address) = after.contact.mailbox() {
                    self.context.allow_next_request(&address, &mut batch)?;
                    self.context.withdraw_opt_out(page.id, &address, &mut batch)?;
                }
            }
            Ok((after, (!batch.is_empty()).then_some(batch)))
        });
        let confirmed = confirmed.await?;
        self.limits.release_unconfirmed(page.account, &UnconfirmedAddress::Subscriber(id));
        Ok(confirmed)
    }

    /// Deletes a subscriber, even if its page's protection or slug has changed. An outdated link is not an error.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a malformed link.
    pub async fn unsubscribe(&self, link: &str) -> ServiceResult<()> {
        let (id, _) = decode_link(link).ok_or(ServiceError::NotFound)?;
        self.context
            .commit_change(id.to_u128(), || async move {
                let batch = self.subscriber_by_link(link)?.map(|subscriber| {
                    let mut batch = Batch::new();
                    batch.expect(Expect::Subscriber(id, Presence::At(subscriber.revision)));
                    batch.write(Op::DeleteSubscriber(id)).write(self.opt_out_of(&subscriber.value));
                    batch
                });
                let batch = match batch {
                    Some(batch) => Some(batch),
                    None => self.removal_without_undo(link)?,
                };
                Ok(((), batch))
            })
            .await
    }

    /// Returns the page of a subscriber's link, even of one whose removal can be undone: unsubscribing works even if
    /// the page is not public.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub fn page_of_link(&self, link: &str) -> ServiceResult<Option<Page>> {
        let page = match self.subscriber_by_link(link)? {
            Some(subscriber) => Some(subscriber.value.page),
            None => self.page_of_removed(link)?,
        };
        let Some(page) = page else { return Ok(None) };
        Ok(self.context.store().reader().page(page)?.map(|page| page.value))
    }

    fn subscriber_by_link(&self, link: &str) -> ServiceResult<Option<VersionedValue<Subscriber>>> {
        let Some((id, token)) = decode_link(link) else { return Ok(None) };
        let subscriber = self.context.store().reader().subscriber(id)?;
        Ok(subscriber.filter(|subscriber| bool::from(subscriber.value.token.ct_eq(&token))))
    }

    fn valid_subscriber(&self, page: &Page, link: &str) -> ServiceResult<VersionedValue<Subscriber>> {
        let now = self.context.now();
        let is_valid = |it: &Subscriber| {
            let is_shown = matches!(it.contact, Contact::Email(_)) || it.confirmed_at.is_some();
            it.page == page.id && is_shown && !it.is_expired(now)
        };
        self.subscriber_by_link(link)?.filter(|subscriber| is_valid(&subscriber.value)).ok_or(ServiceError::NotFound)
    }

    /// Returns an earlier request of a webhook that has not answered, once it may be repeated: it is replaced by a
    /// request with a new id, which reveals no earlier one.
    fn unanswered_webhook(&self, page: &Page, request: &ValidSubscription) -> ServiceResult<Option<SubscriberId>> {
        let subscriber =
            self.context.store().reader().subscriber_by_contact(page.id, contact_fingerprint(&request.address))?;
        let is_old = |it: &Subscriber| {
            let is_webhook = matches!(it.contact, Contact::Webhook { .. });
            is_webhook
                && it.confirmed_at.is_none()
                && self.context.now().since(it.confirmation_sent_at) >= CONFIRMATION_INTERVAL
        };
        Ok(subscriber.map(|subscriber| subscriber.value).filter(is_old).map(|old| old.id))
    }

    /// Builds the subscriber to store for a request and the batch that sends the confirmation request; `None` if
    /// nothing is to be sent.
    fn request_batch(
        &self,
        page: &Page,
        request: &ValidSubscription,
        new_subscriber: &NewSubscriber,
    ) -> ServiceResult<Option<(Subscriber, Batch)>> {
        let (reader, now) = (self.context.store().reader(), self.context.now());
        let name = request_key(&request.address);
        let last = reader.stored_response(&name)?;
        let is_lately = last.as_ref().is_some_and(|last| last.value.expires_at > now);
        let before = reader.subscriber_by_contact(page.id, contact_fingerprint(&request.address))?;
        let new = new_subscriber.subscriber(page, request, now);
        let Some(subscriber) = subscriber_after_request(before.as_ref().map(|it| &it.value), new, is_lately) else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Page(page.id, Presence::Present));
        let presence = before.as_ref().map_or(Presence::Absent, |before| Presence::At(before.revision));
        batch.expect(Expect::Subscriber(subscriber.id, presence));
        if before.is_none() {
            batch.expect(Expect::SubscribersBelow(page.id, MAX_SUBSCRIBERS));
        }
        record_request(name, last.as_ref(), now, &mut batch);
        batch.write(subscriber.clone()).write(self.confirmation_request(page, &subscriber, new_subscriber));
        Ok(Some((subscriber, batch)))
    }

    /// Builds the confirmation request to a subscriber.
    fn confirmation_request(&self, page: &Page, subscriber: &Subscriber, new_subscriber: &NewSubscriber) -> Delivery {
        let (url, now) = (self.context.page_url(page), self.context.now());
        let (event, message) = match &subscriber.contact {
            Contact::Email(_) => (
                CONFIRMATION,
                DeliveryMessage::Mail(render::subscription_confirmation(page, &url, &subscriber.confirm_url(&url))),
            ),
            Contact::Webhook { .. } => {
                let question = json!({
                    "event": CHALLENGE, "page": page.name, "pageUrl": url,
                    "challenge": new_subscriber.challenge, "at": now.as_millis(),
                });
                (CHALLENGE, DeliveryMessage::Json(question.to_string().into_bytes()))
            }
        };
        let to = Recipient::Subscriber(subscriber.id);
        Delivery {
            page: Some(page.id),
            // A challenge is sent only once: strangers can cause it.
            is_single_attempt: matches!(subscriber.contact, Contact::Webhook { .. }),
            ..Delivery::waiting(confirmation_id(subscriber), to, event, message, now)
        }
    }

    /// Returns true if a host got the maximum of challenges in the current window.
    fn is_host_limited(&self, address: &SubscriberAddress) -> bool {
        let SubscriberAddress::Webhook { host, .. } = address else { return false };
        self.context.check_rate(&self.pending_subscriptions.host_limit, CHALLENGES_PER_HOST, host).is_err()
    }
}

/// Identifies a contact among a page's subscribers.
pub fn contact_fingerprint(address: &SubscriberAddress) -> [u8; 16] {
    Sha256::digest(address.normalized()).first_chunk().copied().unwrap_or_default()
}

/// Derives the id of a subscriber's last confirmation request.
fn confirmation_id(subscriber: &Subscriber) -> DeliveryId {
    let digest = Sha256::digest([&b"question"[..], &subscriber.id.to_u128().to_be_bytes()].concat());
    DeliveryId::new(subscriber.confirmation_sent_at, digest.first_chunk().copied().unwrap_or_default())
}
