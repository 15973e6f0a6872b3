//! Background task for subscription requests: confirms webhooks by their answers, and deletes requests that nobody
//! confirms.

use std::ops::Bound;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use parallax_core::delivery::{Delivery, Stage};
use parallax_core::destination::Health;
use parallax_core::id::{PageId, SubscriberId};
use parallax_core::subscriber::{Contact, Subscriber};
use tokio::time::{sleep, timeout};

use super::super::Service;
use super::super::asking::Pending;
use super::question_id;
use crate::letters::challenge;
use crate::storage::{self, Batch, Expect, Is, Op, Read, StoreError, Versioned};

/// Interval at which pending challenges are checked.
const LOOK: Duration = Duration::from_secs(1);
/// Interval at which unconfirmed requests are swept.
const SWEEP: Duration = Duration::from_secs(3600);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(10);
/// Subscribers read per query.
const AT_ONCE: usize = 512;
/// Maximum pending challenges tracked; the next sweep finds the others.
const MAX_PENDING: usize = 10_000;

impl Service {
    /// Confirms webhooks by their answers and deletes expired requests, as long as the coordinator runs.
    pub async fn keep_subscribers(self) {
        let mut swept: Option<Instant> = None;
        loop {
            let done = if swept.is_none_or(|at| at.elapsed() >= SWEEP) {
                self.sweep_subscribers().await.map(|()| swept = Some(Instant::now()))
            } else {
                self.hear_answers().await
            };
            match done {
                Ok(()) if self.awaits_none() => {
                    // A challenge sent in the meantime has left a permit. A timeout is expected.
                    let _ = timeout(SWEEP, self.0.wishes.asked.notified()).await;
                }
                Ok(()) => sleep(LOOK).await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    error.log_retry("subscription requests can't be processed");
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Deletes expired requests on every page, and tracks webhooks that have not answered yet.
    pub(in crate::service) async fn sweep_subscribers(&self) -> storage::Result<()> {
        let pages = self.store().read(|store| store.pages()).await?;
        for page in pages.into_iter().map(|page| page.value.id) {
            let mut after = None;
            loop {
                let slice = self.store().read(move |store| unconfirmed(store, page, after)).await?;
                let Some(last) = slice.last else { break };
                after = Some(last);
                self.drop_stale(&slice.found).await?;
            }
        }
        Ok(())
    }

    async fn drop_stale(&self, found: &[Versioned<Subscriber>]) -> storage::Result<()> {
        let now = self.now();
        let (stale, fresh): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.value.is_stale(now));
        for it in fresh.into_iter().filter(|it| matches!(it.value.contact, Contact::Webhook { .. })) {
            self.await_answer(it.value.id);
        }
        for it in stale {
            let mut batch = Batch::new();
            batch.expect(Expect::Subscriber(it.value.id, Is::At(it.revision)));
            batch.write(Op::DeleteSubscriber(it.value.id));
            match self.store().commit(batch).await {
                // Confirmed at the last moment.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks the outcome of each pending challenge.
    pub(in crate::service) async fn hear_answers(&self) -> storage::Result<()> {
        let mut after = Bound::Unbounded;
        while let Some(id) = self.next_pending(after) {
            after = Bound::Excluded(id);
            if !self.hear_answer(id).await? {
                self.pending().remove(&id);
            }
        }
        Ok(())
    }

    /// Returns true if the answer is still pending; confirms the subscriber if it has arrived and is correct.
    async fn hear_answer(&self, id: SubscriberId) -> storage::Result<bool> {
        let reader = self.store().reader();
        let Some(found) = reader.subscriber(id)?.filter(|it| it.value.confirmed_at.is_none()) else {
            return Ok(false);
        };
        let Some(question) = reader.delivery(question_id(&found.value))? else { return Ok(false) };
        if matches!(question.value.stage, Stage::Waiting(_)) {
            return Ok(true);
        }
        if !is_answered(&question.value) {
            return Ok(false);
        }
        let found_page = found.value.page;
        let confirmed =
            Subscriber { confirmed_at: Some(self.now()), health: Health::default(), ..found.value };
        let mut batch = Batch::new();
        batch.expect(Expect::Subscriber(id, Is::At(found.revision))).write(confirmed);
        match self.store().commit(batch).await {
            Ok(_) => {
                if let Some(page) = reader.page(found_page)? {
                    self.release_unconfirmed(page.value.account, &Pending::Subscriber(id));
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
        self.0.wishes.asked.notify_one();
    }

    fn awaits_none(&self) -> bool {
        self.pending().is_empty()
    }

    fn next_pending(&self, after: Bound<SubscriberId>) -> Option<SubscriberId> {
        self.pending().range((after, Bound::Unbounded)).next().copied()
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<SubscriberId>> {
        self.0.wishes.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slice of a page's subscribers.
struct Slice {
    /// Unconfirmed subscribers of the slice.
    found: Vec<Versioned<Subscriber>>,
    /// The last one read; `None` at the end.
    last: Option<SubscriberId>,
}

fn unconfirmed(store: &dyn Read, page: PageId, after: Option<SubscriberId>) -> storage::Result<Slice> {
    let mut found = store.subscribers_of(page, after, AT_ONCE)?;
    let last = found.last().map(|it| it.value.id);
    found.retain(|it| it.value.confirmed_at.is_none());
    Ok(Slice { found, last })
}

/// Returns true if a challenge was accepted and answered with its value.
fn is_answered(question: &Delivery) -> bool {
    let (Stage::Delivered(_), Some(last)) = (question.stage, question.log.last()) else { return false };
    challenge::value(question).is_some_and(|value| challenge::is_answer(&value, &last.answer))
}
