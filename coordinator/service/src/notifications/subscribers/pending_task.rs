//! Background task for subscription requests: confirms webhooks by their answers, and deletes requests that nobody
//! confirms.

use std::ops::Bound;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use parallax_core::delivery::{Delivery, DeliveryState};
use parallax_core::destination::DeliveryHealth;
use parallax_core::id::{PageId, SubscriberId};
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_notify::render::challenge;
use parallax_store::{self as storage, Batch, Expect, Op, Presence, StoreError, StoreRead, VersionedValue};
use tokio::time::{sleep, timeout};

use super::SubscriberService;
use super::confirmation_id;
use crate::notifications::confirmation_limits::UnconfirmedAddress;

/// Interval at which pending challenges are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which unconfirmed requests are swept.
const SWEEP: Duration = Duration::from_secs(3600);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(10);
/// Subscribers read per query.
const AT_ONCE: usize = 512;
/// Maximum pending challenges tracked; the next sweep finds the others.
const MAX_PENDING: usize = 10_000;

impl SubscriberService {
    /// Confirms webhooks by their answers, deletes expired requests and asks imported addresses, as long as the
    /// coordinator runs.
    pub async fn run(self: Arc<Self>) {
        tokio::select! {
            () = self.process_requests() => {}
            () = self.run_import_queue() => {}
        }
    }

    async fn process_requests(&self) {
        let mut swept: Option<Instant> = None;
        loop {
            let result = if swept.is_none_or(|at| at.elapsed() >= SWEEP) {
                self.sweep().await.map(|()| swept = Some(Instant::now()))
            } else {
                self.check_answers().await
            };
            match result {
                Ok(()) if self.has_no_pending() => {
                    // A challenge sent in the meantime has left a permit. A timeout is expected.
                    let _ = timeout(SWEEP, self.pending_subscriptions.challenge_sent.notified()).await;
                }
                Ok(()) => sleep(INTERVAL).await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("subscription requests can't be processed");
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Deletes expired requests on every page, and tracks webhooks that have not answered yet.
    pub(super) async fn sweep(&self) -> storage::Result<()> {
        let pages = self.context.store().read(|store| store.pages()).await?;
        for page in pages.into_iter().map(|page| page.value.id) {
            let mut after = None;
            loop {
                let slice = self.context.store().read(move |store| unconfirmed(store, page, after)).await?;
                let Some(last) = slice.last else { break };
                after = Some(last);
                self.delete_expired(&slice.subscribers).await?;
            }
        }
        Ok(())
    }

    async fn delete_expired(&self, subscribers: &[VersionedValue<Subscriber>]) -> storage::Result<()> {
        let now = self.context.now();
        let (expired, fresh): (Vec<_>, Vec<_>) = subscribers.iter().partition(|it| it.value.is_expired(now));
        for it in fresh.into_iter().filter(|it| matches!(it.value.contact, Contact::Webhook { .. })) {
            self.await_answer(it.value.id);
        }
        let queued = subscribers.iter().find(|it| it.value.is_queued() && !it.value.is_expired(now));
        if let Some(queued) = queued {
            self.import_queue.add(queued.value.page);
        }
        for it in expired {
            let mut batch = Batch::new();
            batch.expect(Expect::Subscriber(it.value.id, Presence::At(it.revision)));
            batch.write(Op::DeleteSubscriber(it.value.id));
            match self.context.store().commit(batch).await {
                // Confirmed at the last moment.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks the outcome of each pending challenge.
    pub(super) async fn check_answers(&self) -> storage::Result<()> {
        let mut after = Bound::Unbounded;
        while let Some(id) = self.next_pending(after) {
            after = Bound::Excluded(id);
            if !self.check_answer(id).await? {
                self.pending().remove(&id);
            }
        }
        Ok(())
    }

    /// Returns true if the answer is still pending; confirms the subscriber if it has arrived and is correct.
    async fn check_answer(&self, id: SubscriberId) -> storage::Result<bool> {
        let reader = self.context.store().reader();
        let Some(subscriber) = reader.subscriber(id)?.filter(|it| it.value.confirmed_at.is_none()) else {
            return Ok(false);
        };
        let Some(question) = reader.delivery(confirmation_id(&subscriber.value))? else { return Ok(false) };
        if matches!(question.value.state, DeliveryState::Waiting(_)) {
            return Ok(true);
        }
        if !is_answered(&question.value) {
            return Ok(false);
        }
        let found_page = subscriber.value.page;
        let confirmed = Subscriber {
            confirmed_at: Some(self.context.now()),
            health: DeliveryHealth::default(),
            ..subscriber.value
        };
        let mut batch = Batch::new();
        batch.expect(Expect::Subscriber(id, Presence::At(subscriber.revision))).write(confirmed);
        match self.context.store().commit(batch).await {
            Ok(_) => {
                if let Some(page) = reader.page(found_page)? {
                    self.limits.release_unconfirmed(page.value.account, &UnconfirmedAddress::Subscriber(id));
                }
                Ok(false)
            }
            // Changed or deleted in the meantime: it is checked again.
            Err(StoreError::Conflict(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Tracks a webhook that got a challenge.
    pub(super) fn await_answer(&self, id: SubscriberId) {
        let mut pending = self.pending();
        if pending.len() < MAX_PENDING {
            pending.insert(id);
        }
        drop(pending);
        self.pending_subscriptions.challenge_sent.notify_one();
    }

    fn has_no_pending(&self) -> bool {
        self.pending().is_empty()
    }

    fn next_pending(&self, after: Bound<SubscriberId>) -> Option<SubscriberId> {
        self.pending().range((after, Bound::Unbounded)).next().copied()
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<SubscriberId>> {
        self.pending_subscriptions.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slice of a page's subscribers.
struct UnconfirmedSlice {
    /// Unconfirmed subscribers of the slice.
    subscribers: Vec<VersionedValue<Subscriber>>,
    /// The last one read; `None` at the end.
    last: Option<SubscriberId>,
}

fn unconfirmed(store: &dyn StoreRead, page: PageId, after: Option<SubscriberId>) -> storage::Result<UnconfirmedSlice> {
    let mut subscribers = store.subscribers_of(page, after, AT_ONCE)?;
    let last = subscribers.last().map(|it| it.value.id);
    subscribers.retain(|it| it.value.confirmed_at.is_none());
    Ok(UnconfirmedSlice { subscribers, last })
}

/// Returns true if a challenge was accepted and answered with its value.
fn is_answered(question: &Delivery) -> bool {
    let (DeliveryState::Delivered(_), Some(last)) = (question.state, question.attempt_log.last()) else {
        return false;
    };
    challenge::challenge_value(question).is_some_and(|value| challenge::is_valid_response(&value, &last.response))
}
