//! A page's subscribers, managed by its owner: list, add after confirmation, and delete.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::role::Permission;
use parallax_core::subscriber::confirmation_limit::ConfirmationOrigin;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, MAX_SUBSCRIBERS, Subscriber};
use parallax_core::undo::InverseChange;
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, StoreRead, VersionedValue};

use super::SubscriberService;
use super::contact_fingerprint;
use crate::hosts::hostname::url_host;
use crate::idempotency::{IdempotentRequest, RequestOutcome};
use crate::notifications::confirmation_requests::is_opted_out;
use crate::{Caller, ServiceError, ServiceResult};

/// Subscribers read per query.
const AT_ONCE: usize = 1000;
/// Rule for an address whose reader unsubscribed.
const OPTED_OUT: &str = "belongs to a reader who unsubscribed: only they can subscribe again, on the page";

/// Part of a list of subscribers, with a cursor.
#[derive(Debug, Clone)]
pub struct SubscriberSlice {
    /// Oldest first.
    pub subscribers: Vec<Subscriber>,
    /// Cursor of the next part; `None` at the end.
    pub next: Option<SubscriberId>,
}

impl SubscriberSlice {
    /// The same for readers who may not see the addresses.
    pub(super) fn masked(self) -> Self {
        Self { subscribers: self.subscribers.into_iter().map(Subscriber::masked).collect(), ..self }
    }
}

/// State of a subscription, as its owner filters by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberState {
    /// It gets updates.
    Confirmed,
    /// It was asked and has not confirmed.
    Asked,
    /// It was imported and waits to be asked.
    Queued,
    /// It was switched off, because deliveries failed.
    Off,
}

impl SubscriberState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Confirmed, Self::Asked, Self::Queued, Self::Off];

    /// State of that subscriber.
    pub const fn of(subscriber: &Subscriber) -> Self {
        match (subscriber.confirmed_at, subscriber.health.disabled) {
            (None, _) if subscriber.is_queued() => Self::Queued,
            (None, _) => Self::Asked,
            (Some(_), Some(_)) => Self::Off,
            (Some(_), None) => Self::Confirmed,
        }
    }

    /// Name in forms and addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Asked => "asked",
            Self::Queued => "queued",
            Self::Off => "off",
        }
    }
}

/// Number of a page's subscribers, by state and channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubscriberCounts {
    /// Confirmed mailboxes.
    pub email: usize,
    /// Confirmed webhooks.
    pub webhook: usize,
    /// Those that were asked and have not confirmed.
    pub asked: usize,
    /// Those that were imported and wait to be asked.
    pub queued: usize,
    /// Those that were switched off.
    pub off: usize,
}

impl SubscriberCounts {
    /// Number of subscribers that get updates of the whole page.
    pub const fn confirmed(&self) -> usize {
        self.email + self.webhook
    }

    /// Number of all subscribers.
    pub const fn total(&self) -> usize {
        self.confirmed() + self.asked + self.queued + self.off
    }

    pub(super) fn add(&mut self, subscriber: &Subscriber) {
        let count = match (SubscriberState::of(subscriber), &subscriber.contact) {
            (SubscriberState::Asked, _) => &mut self.asked,
            (SubscriberState::Queued, _) => &mut self.queued,
            (SubscriberState::Off, _) => &mut self.off,
            (SubscriberState::Confirmed, Contact::Email(_)) => &mut self.email,
            (SubscriberState::Confirmed, Contact::Webhook { .. }) => &mut self.webhook,
        };
        *count += 1;
    }
}

/// Filter and paging of a list of subscribers.
#[derive(Debug, Clone, Default)]
pub struct SubscriberFilter {
    /// Part of the address, in any case; empty for all. Of a webhook only the host counts.
    pub search: String,
    /// Only those in that state.
    pub state: Option<SubscriberState>,
    /// Cursor: only those after it.
    pub after: Option<SubscriberId>,
    /// Maximum number.
    pub limit: usize,
}

impl SubscriberFilter {
    fn admits(&self, subscriber: &Subscriber) -> bool {
        let search = self.search.to_lowercase();
        let is_found = search.is_empty()
            || match &subscriber.contact {
                Contact::Email(email) => email.to_lowercase().contains(&search),
                Contact::Webhook { url, .. } => url_host(url).is_some_and(|host| host.contains(&search)),
            };
        is_found && self.state.is_none_or(|state| SubscriberState::of(subscriber) == state)
    }
}

impl SubscriberService {
    /// Counts the page's subscribers by state and channel, up to the maximum of a page.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn counts(&self, caller: &Caller, page: PageId) -> ServiceResult<SubscriberCounts> {
        let page = self.context.page(caller, page)?.id;
        let counts = self.context.store().read(move |store| {
            let mut counts = SubscriberCounts::default();
            scan(store, page, None, MAX_SUBSCRIBERS, |subscriber| {
                counts.add(&subscriber);
                true
            })?;
            Ok(counts)
        });
        Ok(counts.await?)
    }

    /// Returns the same counts, at most 30 seconds old: for screens that only mention them.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn recent_counts(&self, caller: &Caller, page: PageId) -> ServiceResult<SubscriberCounts> {
        let id = self.context.page(caller, page)?.id;
        let now = self.context.now();
        if let Some(counts) = self.counts_cache.get(id, now) {
            return Ok(counts);
        }
        let counts = self.counts(caller, page).await?;
        self.counts_cache.put(id, counts, now);
        Ok(counts)
    }

    /// Lists the page's subscribers that pass the filter, oldest first. A caller who may not edit gets masked
    /// addresses, and can't search: the matches would reveal what the mask hides.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn search(
        &self,
        caller: &Caller,
        page: PageId,
        mut filter: SubscriberFilter,
    ) -> ServiceResult<SubscriberSlice> {
        let page = self.context.page(caller, page)?.id;
        let is_masked = !caller.allows(Permission::Edit);
        if is_masked {
            filter.search.clear();
        }
        let slice = self.context.store().read(move |store| {
            let (mut subscribers, mut next) = (Vec::<Subscriber>::new(), None);
            scan(store, page, filter.after, MAX_SUBSCRIBERS, |subscriber| {
                let is_full = subscribers.len() >= filter.limit;
                if filter.admits(&subscriber) && is_full {
                    next = subscribers.last().map(|last| last.id);
                    return false;
                }
                if filter.admits(&subscriber) {
                    subscribers.push(subscriber);
                }
                true
            })?;
            Ok(SubscriberSlice { subscribers, next })
        });
        let slice = slice.await?;
        Ok(if is_masked { slice.masked() } else { slice })
    }

    /// Lists up to `limit` of the page's subscribers after that one, confirmed or not, oldest first. A caller who may
    /// not edit gets masked addresses.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] for a page that the key can't access.
    pub async fn list(
        &self,
        caller: &Caller,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> ServiceResult<SubscriberSlice> {
        let page = self.context.page(caller, page)?.id;
        let slice = self.slice(page, after, limit).await?;
        Ok(if caller.allows(Permission::Edit) { slice } else { slice.masked() })
    }

    pub(super) async fn slice(
        &self,
        page: PageId,
        after: Option<SubscriberId>,
        limit: usize,
    ) -> ServiceResult<SubscriberSlice> {
        let slice = self.context.store().read(move |store| store.subscribers_of(page, after, limit + 1)).await?;
        let has_more = slice.len() > limit;
        let subscribers: Vec<_> = slice.into_iter().take(limit).map(|it| it.value).collect();
        let next = subscribers.last().filter(|_| has_more).map(|last| last.id);
        Ok(SubscriberSlice { subscribers, next })
    }

    /// Sends a confirmation mail to a mailbox. It gets nothing else until its reader confirms.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`], and [`ServiceError::Invalid`], also if its reader
    /// unsubscribed from the page, or if the mailbox got a confirmation mail within the last day for another page and is
    /// not on this one;
    /// [`ServiceError::PageConfirmationLimit`] and [`ServiceError::AccountConfirmationLimit`] if too many were sent
    /// recently, [`ServiceError::PlanLimit`] if too many have not confirmed.
    pub async fn add(
        &self,
        caller: &Caller,
        page: PageId,
        ask: &SubscriptionRequest,
        once: &IdempotentRequest<'_, Subscriber>,
    ) -> ServiceResult<RequestOutcome<Subscriber>> {
        caller.require(Permission::Edit)?;
        let page = &self.context.page(caller, page)?;
        if let Some(answer) = self.context.replayed_answer(once)? {
            return Ok(RequestOutcome::Replayed(answer));
        }
        let address =
            ask.validate(&self.context.monitor_ids(page).await?, &|it| self.context.blocked_address_class(it))?.address;
        let opt_out = self.context.opt_out_key(page.id, &address);
        if is_opted_out(self.context.store().reader().as_ref(), &opt_out, self.context.now())? {
            return Err(ValidationErrors::single("email", OPTED_OUT).into());
        }
        self.subscribe_by((ConfirmationOrigin::Owner, Some(caller)), page, ask, None).await?;
        let fingerprint = contact_fingerprint(&address);
        self.context
            .commit_change(page.id.to_u128(), || async move {
                if let Some(answer) = self.context.replayed_answer(once)? {
                    return Ok((RequestOutcome::Replayed(answer), None));
                }
                let existing = self.context.store().reader().subscriber_by_contact(page.id, fingerprint)?;
                let subscriber = existing.ok_or_else(|| {
                    ValidationErrors::single(
                        "email",
                        "was sent a confirmation mail within the last day: its reader must confirm",
                    )
                })?;
                let mut batch = Batch::new();
                self.context.store_answer(once, &subscriber.value, &mut batch)?;
                Ok((RequestOutcome::Fresh(subscriber.value), (!batch.is_empty()).then_some(batch)))
            })
            .await
    }

    /// Deletes a subscriber. Pending deliveries to it are dropped.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`], [`ServiceError::NotFound`].
    pub async fn delete(
        &self,
        caller: &Caller,
        page: PageId,
        id: SubscriberId,
        once: &IdempotentRequest<'_, ()>,
    ) -> ServiceResult<RequestOutcome<()>> {
        let removed = self
            .context
            .change_page_once(caller, page, id.to_u128(), once, |page| async move {
                let subscriber = self.subscriber_on(&page, id)?;
                let mut batch = Batch::new();
                batch.expect(Expect::Subscriber(id, Presence::At(subscriber.revision))).write(Op::DeleteSubscriber(id));
                if once.undo().is_some() {
                    batch.ops.extend(self.note_of_removal(&subscriber.value));
                }
                let inverse = || InverseChange::Subscriber(Box::new(subscriber.value));
                self.context.record_undo(caller, once, inverse, &mut batch);
                Ok(((), batch))
            })
            .await;
        self.counts_cache.forget(page);
        removed
    }

    fn subscriber_on(&self, page: &Page, id: SubscriberId) -> ServiceResult<VersionedValue<Subscriber>> {
        let subscriber = self.context.store().reader().subscriber(id)?;
        subscriber.filter(|subscriber| subscriber.value.page == page.id).ok_or(ServiceError::NotFound)
    }
}

/// Passes up to `limit` of a page's subscribers after that one to `take`, until it returns false.
pub(super) fn scan(
    store: &dyn StoreRead,
    page: PageId,
    mut after: Option<SubscriberId>,
    limit: usize,
    mut take: impl FnMut(Subscriber) -> bool,
) -> parallax_store::Result<()> {
    let mut remaining = limit;
    while remaining > 0 {
        let count = remaining.min(AT_ONCE);
        let read = store.subscribers_of(page, after, count)?;
        let is_last = read.len() < count;
        remaining -= read.len();
        for subscriber in read {
            after = Some(subscriber.value.id);
            if !take(subscriber.value) {
                return Ok(());
            }
        }
        if is_last {
            break;
        }
    }
    Ok(())
}
