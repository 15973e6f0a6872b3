//! Asks imported addresses, as fast as the limits of confirmation mails allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::subscriber::confirmation_limit::ConfirmationOrigin;
use parallax_core::subscriber::request::SubscriptionRequest;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_store::{Batch, Expect, Op, Presence, StoreError, VersionedValue};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::SubscriberService;
use super::mailboxes::asked_mailboxes;
use crate::notifications::confirmation_requests::{is_opted_out, request_key};
use crate::{ServiceError, ServiceResult};

/// Pause between two passes: the shortest limit counts by the minute.
const INTERVAL: Duration = Duration::from_secs(60);
/// Subscribers read per query.
const AT_ONCE: usize = 512;
/// Locks for imports: those of pages with different locks run at the same time.
const IMPORT_LOCKS: usize = 16;

/// Pages with imported addresses that wait to be asked, each with the last subscriber that was considered.
#[derive(Debug, Default)]
pub(super) struct ImportQueue {
    pages: Mutex<BTreeMap<PageId, Option<SubscriberId>>>,
    added: Notify,
    locks: [tokio::sync::Mutex<()>; IMPORT_LOCKS],
}

impl ImportQueue {
    /// Adds a page. One that is in the queue keeps its place.
    pub(super) fn add(&self, page: PageId) {
        self.pages().entry(page).or_default();
        self.added.notify_one();
    }

    /// Waits until no other import of the page runs, and keeps others waiting until the guard is dropped.
    pub(super) async fn turn(&self, page: PageId) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let number = usize::try_from(page.to_u128() % IMPORT_LOCKS as u128).unwrap_or(0);
        match self.locks.get(number) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, BTreeMap<PageId, Option<SubscriberId>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of asking one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskResult {
    /// It was asked, or can't be today.
    Done,
    /// A limit is reached: the page waits.
    Full,
}

impl SubscriberService {
    /// Asks imported addresses, as long as the coordinator runs.
    pub(super) async fn run_import_queue(&self) {
        loop {
            match self.ask_queued().await {
                Err(error) => tracing::warn!(%error, "imported addresses can't be asked; retrying in a minute"),
                Ok(()) if self.import_queue.pages().is_empty() => {
                    self.import_queue.added.notified().await;
                    continue;
                }
                Ok(()) => {}
            }
            sleep(INTERVAL).await;
        }
    }

    /// Asks the addresses of every page in the queue, up to the limits. A page that can't be read keeps no other
    /// waiting.
    pub(super) async fn ask_queued(&self) -> ServiceResult<()> {
        let pages: Vec<(PageId, Option<SubscriberId>)> =
            self.import_queue.pages().iter().map(|(page, after)| (*page, *after)).collect();
        let mut result = Ok(());
        for (id, after) in pages {
            // Taken out first: an import meanwhile adds the page again.
            self.import_queue.pages().remove(&id);
            match self.ask_page_with_id(id, after).await {
                Ok(Some(after)) => drop(self.import_queue.pages().insert(id, Some(after))),
                // At the end of the page it leaves the queue. The next sweep finds addresses that could not be asked
                // today.
                Ok(None) => {}
                Err(error) => {
                    self.import_queue.add(id);
                    result = Err(error);
                }
            }
        }
        result
    }

    async fn ask_page_with_id(&self, id: PageId, after: Option<SubscriberId>) -> ServiceResult<Option<SubscriberId>> {
        match self.context.store().reader().page(id)? {
            Some(page) => self.ask_page(&page.value, after).await,
            None => Ok(None),
        }
    }

    /// Asks a page's addresses after that one. Returns the last one before a limit was reached; `None` at the end.
    async fn ask_page(&self, page: &Page, from: Option<SubscriberId>) -> ServiceResult<Option<SubscriberId>> {
        let (id, mut after) = (page.id, from);
        let mut asked = None;
        loop {
            let slice = self.context.store().read(move |store| store.subscribers_of(id, after, AT_ONCE)).await?;
            if slice.is_empty() {
                return Ok(None);
            }
            for subscriber in slice {
                let id = subscriber.value.id;
                if subscriber.value.is_queued()
                    && self.ask_imported(page, subscriber, &mut asked).await? == AskResult::Full
                {
                    // The first of all has none before it: an id below every other.
                    return Ok(Some(after.unwrap_or(SubscriberId::from_u128(0))));
                }
                after = Some(id);
            }
        }
    }

    /// Asks an imported address. `asked` are the page's mailboxes that were asked, once they were read: an import may
    /// have another spelling of one that a visitor entered meanwhile.
    async fn ask_imported(
        &self,
        page: &Page,
        stored: VersionedValue<Subscriber>,
        asked: &mut Option<BTreeSet<String>>,
    ) -> ServiceResult<AskResult> {
        let (id, subscriber) = (page.id, &stored.value);
        let (Contact::Email(email), Some(address)) = (&subscriber.contact, subscriber.contact.mailbox()) else {
            return Ok(AskResult::Done);
        };
        let (reader, now) = (self.context.store().reader(), self.context.now());
        if is_opted_out(reader.as_ref(), &self.context.opt_out_key(id, &address), now)? {
            return self.drop_queued(&stored).await;
        }
        // Asked for another page within the last day.
        if reader.stored_response(&request_key(&address))?.is_some_and(|last| last.value.expires_at > now) {
            return Ok(AskResult::Done);
        }
        if !self.limits.has_room_for_import(page).await? {
            return Ok(AskResult::Full);
        }
        let asked = match asked {
            Some(asked) => asked,
            None => asked.insert(self.context.store().read(move |store| asked_mailboxes(store, id)).await?),
        };
        if !asked.insert(address.mailbox_key()) {
            return self.drop_queued(&stored).await;
        }
        let on_page = self.context.monitor_ids(page).await?;
        let chosen = subscriber.monitors.iter().flatten().filter(|id| on_page.contains(id));
        let chosen: Vec<String> = chosen.map(ToString::to_string).collect();
        let monitors = (!chosen.is_empty()).then_some(chosen);
        let ask = SubscriptionRequest { email: Some(email.clone()), url: None, monitors };
        match self.subscribe_by((ConfirmationOrigin::Owner, None), page, &ask, None).await {
            Ok(_) => Ok(AskResult::Done),
            Err(
                ServiceError::PageConfirmationLimit { .. }
                | ServiceError::AccountConfirmationLimit { .. }
                | ServiceError::PlanLimit(_),
            ) => Ok(AskResult::Full),
            Err(error @ ServiceError::Invalid(_)) => {
                tracing::warn!(%error, page = %page.id, "an imported address can't be asked");
                Ok(AskResult::Done)
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an address that waited to be asked, and must not be.
    async fn drop_queued(&self, stored: &VersionedValue<Subscriber>) -> ServiceResult<AskResult> {
        let id = stored.value.id;
        let mut batch = Batch::new();
        batch.expect(Expect::Subscriber(id, Presence::At(stored.revision))).write(Op::DeleteSubscriber(id));
        match self.context.store().commit(batch).await {
            // Changed meanwhile: the next sweep finds it, if it still waits.
            Ok(_) | Err(StoreError::Conflict(_)) => Ok(AskResult::Done),
            Err(error) => Err(error.into()),
        }
    }
}
