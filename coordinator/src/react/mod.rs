//! Readers of the event journal: what happened becomes what is told of it.
//!
//! Each reaction has a cursor of its own, which moves in the same batch as what the reaction writes. So a crash has it
//! read something again that it wrote nothing of, and never skip or repeat anything. A reaction may add events; the
//! monitors' state is none of its affair, so there is no loop.

pub mod alerts;
pub mod fanout;
pub mod incidents;
mod log;
pub mod notices;
pub mod subscribers;

use std::sync::Arc;
use std::time::Duration;

use parallax_core::delivery::Recipient;
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::storage::{Batch, Expect, Op, Read, Recorded, Result, Store, StoreError};

/// Events that are read, and answered by one batch, at once.
pub const AT_ONCE: usize = 64;
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// One reader of the journal.
pub trait Reaction: Send + Sync + 'static {
    /// Name of its cursor: never to be changed.
    const NAME: &'static str;

    /// What these events, which follow one another, lead to: one batch, which may expect that what was read of the store
    /// still stands. Where it does not, the same events come again. Nothing for what is none of its affair.
    ///
    /// # Errors
    /// When the store can't be read.
    fn react(&self, read: &dyn Read, events: &[Recorded], now: Timestamp) -> Result<Batch>;

    /// Told once what these events led to is durable: for counting.
    fn written(&self, _events: &[Recorded]) {}
}

/// The id of the delivery that tells a receiver of an event. It is made of both, so that nothing can have two ids.
pub fn delivery_id(recorded: &Recorded, to: Recipient) -> DeliveryId {
    let (kind, id) = match to {
        Recipient::Destination(id) => (0, id.to_u128()),
        Recipient::Subscriber(id) => (1, id.to_u128()),
        Recipient::Owner(id) => (2, id.to_u128()),
        Recipient::OperatorMail => (3, 0),
        Recipient::OperatorHook => (4, 0),
        Recipient::Asked(id) => (5, id.to_u128()),
        Recipient::Visitor(id) => (6, id.to_u128()),
    };
    let hash = Sha256::new().chain_update(recorded.seq.to_be_bytes()).chain_update([kind]);
    let hash = hash.chain_update(id.to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
    DeliveryId::new(recorded.event.at, random)
}

/// Makes a reaction that has never run begin with what comes from now on: nobody wants to be told of what happened before
/// the program could tell. Called before anything else runs.
///
/// # Errors
/// When the store can't be read or written.
pub async fn begin<R: Reaction>(store: &Store) -> Result<()> {
    if store.reader().cursor(R::NAME)? != 0 {
        return Ok(());
    }
    // A cursor of 0 is one that was never set. The first event of all tells nobody anything.
    let now = store.reader().last_event()?.max(1);
    let mut batch = Batch::new();
    batch.write(Op::SetCursor(R::NAME.to_owned(), now));
    store.commit(batch).await.map(drop)
}

/// Runs a reaction as long as the coordinator does; `wake` is told after each batch that writes something.
pub async fn run<R: Reaction>(reaction: Arc<R>, store: Store, clock: Clock, wake: Arc<Notify>) {
    let mut seen = store.events_seen();
    loop {
        // Marked as seen before it is read: what is committed meanwhile is looked at again.
        seen.borrow_and_update();
        match turn(&reaction, &store, &clock).await {
            Ok(Turn::Wrote) => wake.notify_one(),
            Ok(Turn::Passed) => {}
            Ok(Turn::Rests) => {
                if seen.changed().await.is_err() {
                    return;
                }
            }
            Err(StoreError::Conflict(_)) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                error.log_retry("what happened can't be told");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// What one turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something was written.
    Wrote,
    /// There were events, none of its affair.
    Passed,
    /// There is nothing new.
    Rests,
}

/// Reads the next events and commits what they lead to, the cursor with it.
///
/// # Errors
/// [`StoreError::Conflict`] where something else was faster: the next turn reads the same events. Others when the store
/// can't be read or written.
pub async fn turn<R: Reaction>(reaction: &Arc<R>, store: &Store, clock: &Clock) -> Result<Turn> {
    let (reading, now) = (Arc::clone(reaction), clock.now());
    let answer = store.read(move |read| {
        let cursor = read.cursor(R::NAME)?;
        let events = read.events_after(cursor, AT_ONCE)?;
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(None) };
        let batch = reading.react(read, &events, now)?;
        Ok(Some((cursor, last, events, batch)))
    });
    let Some((cursor, last, events, mut batch)) = answer.await? else { return Ok(Turn::Rests) };
    let writes = !batch.is_empty();
    batch.expect(Expect::Cursor(R::NAME.to_owned(), cursor));
    batch.write(Op::SetCursor(R::NAME.to_owned(), last));
    store.commit(batch).await?;
    reaction.written(&events);
    Ok(if writes { Turn::Wrote } else { Turn::Passed })
}
