//! Consumers of the event journal: they turn events into notifications.
//!
//! Each consumer has its own cursor, which moves in the same batch as what the consumer writes. So after a
//! crash an event is read again only if nothing was written for it, and none is skipped or repeated. A
//! consumer may add events but never changes monitors' state, so there is no loop.

mod alert_log;
pub mod alerts;
pub mod automatic_incidents;
pub mod bulletin_fanout;
pub mod bulletins;
pub mod evidence_links;
pub mod operator_alerts;

use std::sync::Arc;
use std::time::Duration;

use parallax_core::delivery::Recipient;
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Expect, JournalEvent, Op, Result, Store, StoreError, StoreRead};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

/// Maximum number of events read and handled in one batch.
pub(crate) const EVENTS_PER_BATCH: usize = 64;
/// Pause after an error.
const ERROR_RETRY: Duration = Duration::from_secs(1);

/// A consumer of the journal.
pub trait JournalConsumer: Send + Sync + 'static {
    /// Cursor name; must never change.
    const NAME: &'static str;

    /// Handles consecutive events and returns one batch, which may expect that the records it read are
    /// unchanged. On a conflict the same events are handled again. The batch is empty for irrelevant events.
    ///
    /// # Errors
    /// If the store can't be read.
    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch>;

    /// Called once the batch for these events is durable: for counters.
    fn on_committed(&self, _events: &[JournalEvent]) {}
}

/// Derives the delivery id from event and receiver, so that each pair has exactly one.
pub(crate) fn event_delivery_id(journal_event: &JournalEvent, to: Recipient) -> DeliveryId {
    let (kind, id) = match to {
        Recipient::Destination(id) => (0, id.to_u128()),
        Recipient::Subscriber(id) => (1, id.to_u128()),
        Recipient::Owner(id) => (2, id.to_u128()),
        Recipient::OperatorMail => (3, 0),
        Recipient::OperatorWebhook => (4, 0),
        Recipient::UnconfirmedDestination(id) => (5, id.to_u128()),
        Recipient::Visitor(id) => (6, id.to_u128()),
    };
    let hash = Sha256::new().chain_update(journal_event.seq.to_be_bytes()).chain_update([kind]);
    let hash = hash.chain_update(id.to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
    DeliveryId::new(journal_event.event.at, random)
}

/// Makes a consumer that has never run start with future events, so that nobody is notified about old ones.
/// Must be called before anything else runs.
///
/// # Errors
/// If the store can't be read or written.
pub async fn init_cursor<R: JournalConsumer>(store: &Store) -> Result<()> {
    if store.reader().cursor(R::NAME)? != 0 {
        return Ok(());
    }
    // A cursor of 0 was never set. The very first event never notifies anyone.
    let now = store.reader().last_event()?.max(1);
    let mut batch = Batch::new();
    batch.write(Op::SetCursor(R::NAME.to_owned(), now));
    store.commit(batch).await.map(drop)
}

/// Runs a consumer until the store closes; `wake` is signalled after each batch that writes something.
pub async fn run_consumer<R: JournalConsumer>(consumer: Arc<R>, store: Store, clock: Clock, wake: Arc<Notify>) {
    let mut new_events = store.subscribe_events();
    loop {
        // Marked as seen before reading, so that events committed in the meantime are read again.
        new_events.borrow_and_update();
        match consume_next(&consumer, &store, &clock).await {
            Ok(ConsumerTurn::Wrote) => wake.notify_one(),
            Ok(ConsumerTurn::Skipped) => {}
            Ok(ConsumerTurn::Idle) => {
                if new_events.changed().await.is_err() {
                    return;
                }
            }
            Err(StoreError::Conflict(_)) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                error.log_retry("a journal consumer can't handle events");
                tokio::time::sleep(ERROR_RETRY).await;
            }
        }
    }
}

/// Result of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumerTurn {
    /// Something was written.
    Wrote,
    /// All events were irrelevant.
    Skipped,
    /// No new events.
    Idle,
}

/// Reads the next events and commits the resulting batch together with the cursor.
///
/// # Errors
/// [`StoreError::Conflict`] if another writer was faster; the next turn reads the same events. Other errors
/// if the store can't be read or written.
pub async fn consume_next<R: JournalConsumer>(consumer: &Arc<R>, store: &Store, clock: &Clock) -> Result<ConsumerTurn> {
    let (shared, now) = (Arc::clone(consumer), clock.now());
    let batch_read = store.read(move |read| {
        let cursor = read.cursor(R::NAME)?;
        let events = read.events_after(cursor, EVENTS_PER_BATCH)?;
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(None) };
        let batch = shared.handle_events(read, &events, now)?;
        Ok(Some((cursor, last, events, batch)))
    });
    let Some((cursor, last, events, mut batch)) = batch_read.await? else { return Ok(ConsumerTurn::Idle) };
    let writes = !batch.is_empty();
    batch.expect(Expect::Cursor(R::NAME.to_owned(), cursor));
    batch.write(Op::SetCursor(R::NAME.to_owned(), last));
    store.commit(batch).await?;
    consumer.on_committed(&events);
    Ok(if writes { ConsumerTurn::Wrote } else { ConsumerTurn::Skipped })
}

#[cfg(test)]
mod tests;
