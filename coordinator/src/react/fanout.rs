//! Bulletin fan-out: sends each bulletin to its page's subscribers in slices, in order of their ids.
//!
//! A slice is one batch: its deliveries and the bulletin's progress. So a crash neither duplicates nor skips
//! a delivery, and the next start resumes. The next slice is made when most of the previous ones are sent, so
//! a bulletin to thousands of subscribers neither fills the delivery queue nor delays other bulletins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::id::{BulletinId, DeliveryId, SubscriberId};
use parallax_core::page::NOBODY;
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::subscribers::start_of;
use crate::clock::Clock;
use crate::storage::{Batch, Expect, Is, Read, Result, Store, StoreError, Versioned};

/// Subscribers in one slice.
pub const SLICE: usize = 50;
/// Due and unsent deliveries of a bulletin above which no further slice is made.
pub const AHEAD: usize = 100;
/// Interval at which waiting bulletins are checked.
const PAUSE: Duration = Duration::from_millis(200);
/// Pause after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Result of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Slices were written.
    Wrote,
    /// More slices wait until earlier ones are sent.
    Waits,
    /// Every bulletin is complete.
    Rests,
}

/// Sends bulletins until the store closes. `woken` signals a new bulletin; `wake` signals the deliverer.
pub async fn run(store: Store, clock: Clock, woken: Arc<Notify>, wake: Arc<Notify>) {
    loop {
        match turn(&store, &clock).await {
            Ok(Turn::Wrote) => wake.notify_one(),
            Ok(Turn::Waits) => {
                // A timeout only means that nothing new came.
                if timeout(PAUSE, woken.notified()).await.is_ok() {
                    wake.notify_one();
                }
            }
            Ok(Turn::Rests) => {
                woken.notified().await;
                // The batch that wrote the bulletin may also contain other deliveries.
                wake.notify_one();
            }
            Err(StoreError::Conflict(_)) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                error.log_retry("can't send bulletins");
                sleep(RETRY).await;
            }
        }
    }
}

/// Writes the next slice of each bulletin that may have one. Only the oldest bulletin of each incident is
/// sent, so that updates arrive in order.
///
/// # Errors
/// [`StoreError::Conflict`] if a subscriber left or the page changed at the same time; the next turn reads
/// the new state. Other errors if the store can't be read or written.
pub async fn turn(store: &Store, clock: &Clock) -> Result<Turn> {
    let now = clock.now();
    let look = store.read(move |read| {
        let mut incidents = BTreeSet::new();
        let mut open = read.open_bulletins()?;
        open.sort_by_key(|bulletin| bulletin.value.seq);
        open.retain(|bulletin| incidents.insert(bulletin.value.incident));
        let unsent = if open.is_empty() { BTreeMap::new() } else { unsent(read, now)? };
        Ok((open, unsent))
    });
    let (open, unsent) = look.await?;
    let mut done = if open.is_empty() { Turn::Rests } else { Turn::Waits };
    for bulletin in open {
        let key = (bulletin.value.incident.to_u128(), bulletin.value.seq);
        if unsent.get(&key).is_some_and(|count| *count >= AHEAD) {
            continue;
        }
        if let Some(batch) = store.read(move |read| slice(read, &bulletin, now)).await? {
            store.commit(batch).await?;
            done = Turn::Wrote;
        }
    }
    Ok(done)
}

/// Number of due and unsent deliveries to subscribers, by incident and event number. A delivery that is
/// retried later does not count, so a failing receiver doesn't delay others.
fn unsent(read: &dyn Read, now: Timestamp) -> Result<BTreeMap<(u128, u64), usize>> {
    let mut counts = BTreeMap::new();
    for waiting in read.waiting()? {
        if waiting.due <= now && matches!(waiting.lane.to, Recipient::Subscriber(_)) {
            *counts.entry((waiting.lane.subject, waiting.seq)).or_insert(0) += 1;
        }
    }
    Ok(counts)
}

/// Builds the batch of a bulletin's next slice; `None` if the bulletin is gone.
fn slice(read: &dyn Read, known: &Versioned<Bulletin>, now: Timestamp) -> Result<Option<Batch>> {
    let Some(bulletin) = read.bulletin(known.value.id)?.filter(|it| !it.value.done) else { return Ok(None) };
    let bulletin = bulletin.value;
    let Some(page) = read.page(bulletin.page)? else { return Ok(None) };
    let mut batch = Batch::new();
    batch.expect(Expect::Page(page.value.id, Is::At(page.revision)));
    if page.value.account == NOBODY || page.value.private {
        batch.write(Bulletin { done: true, ..bulletin });
        return Ok(Some(batch));
    }
    let found = read.subscribers_of(bulletin.page, bulletin.reached, SLICE)?;
    for subscriber in &found {
        if hears(&subscriber.value, &bulletin) {
            // A subscriber who leaves before this is committed gets nothing.
            batch.expect(Expect::Subscriber(subscriber.value.id, Is::Present));
            batch.write(delivery(&bulletin, subscriber.value.id, now));
        }
    }
    let reached = found.last().map(|last| last.value.id).or(bulletin.reached);
    batch.write(Bulletin { reached, done: found.len() < SLICE, ..bulletin });
    Ok(Some(batch))
}

/// Returns true if a subscriber receives the bulletin: those who confirmed after it was created don't.
fn hears(subscriber: &Subscriber, bulletin: &Bulletin) -> bool {
    subscriber.hears(&bulletin.affected)
        && subscriber.confirmed_at.is_some_and(|at| at <= bulletin.created_at)
}

fn delivery(bulletin: &Bulletin, to: SubscriberId, now: Timestamp) -> Delivery {
    Delivery {
        id: delivery_id(bulletin.id, bulletin.created_at, to),
        page: Some(bulletin.page),
        to: Recipient::Subscriber(to),
        event: bulletin.event.clone(),
        monitor: None,
        incident: Some(bulletin.incident),
        seq: bulletin.seq,
        letter: Letter::Bulletin(bulletin.id),
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: None,
    }
}

/// Derives the id of a subscriber's delivery from bulletin and subscriber, so that each pair has exactly one.
fn delivery_id(bulletin: BulletinId, at: Timestamp, to: SubscriberId) -> DeliveryId {
    let digest = Sha256::digest([bulletin.to_u128().to_be_bytes(), to.to_u128().to_be_bytes()].concat());
    DeliveryId::new(at, start_of(&digest))
}
