//! Bulletin fan-out: sends each bulletin to its page's subscribers in slices, in order of their ids.
//!
//! A slice is one batch: its deliveries and the bulletin's progress. So a crash neither duplicates nor skips
//! a delivery, and the next start resumes. The next slice is created when most of the previous ones are sent, so
//! a bulletin to thousands of subscribers neither fills the delivery queue nor delays other bulletins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::id::{BulletinId, DeliveryId, SubscriberId};
use parallax_core::page::NO_ACCOUNT;
use parallax_core::subscriber::{Bulletin, Subscriber};
use parallax_core::time::Timestamp;
use parallax_runtime::clock::Clock;
use parallax_store::{Batch, Expect, Presence, Result, Store, StoreError, StoreRead, VersionedValue};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::bulletins::id_bytes;

/// Subscribers in one slice.
pub(crate) const SLICE_SIZE: usize = 50;
/// Due and unsent deliveries of a bulletin above which no further slice is created.
pub(crate) const MAX_UNSENT: usize = 100;
/// Interval at which waiting bulletins are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Pause after an error.
const ERROR_RETRY: Duration = Duration::from_secs(1);

/// Result of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FanoutTurn {
    /// Slices were written.
    Wrote,
    /// More slices wait until earlier ones are sent.
    Throttled,
    /// Every bulletin is complete.
    Idle,
}

/// Sends bulletins until the store closes. `new_bulletin` signals a new bulletin; `wake_deliverer` wakes the
/// deliverer.
pub async fn run_fanout(store: Store, clock: Clock, new_bulletin: Arc<Notify>, wake_deliverer: Arc<Notify>) {
    loop {
        match fan_out_next(&store, &clock).await {
            Ok(FanoutTurn::Wrote) => wake_deliverer.notify_one(),
            Ok(FanoutTurn::Throttled) => {
                // A timeout only means that nothing new came.
                if timeout(CHECK_INTERVAL, new_bulletin.notified()).await.is_ok() {
                    wake_deliverer.notify_one();
                }
            }
            Ok(FanoutTurn::Idle) => {
                new_bulletin.notified().await;
                // The batch that wrote the bulletin may also contain other deliveries.
                wake_deliverer.notify_one();
            }
            Err(StoreError::Conflict(_)) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                error.log_retry("can't send bulletins");
                sleep(ERROR_RETRY).await;
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
pub(crate) async fn fan_out_next(store: &Store, clock: &Clock) -> Result<FanoutTurn> {
    let now = clock.now();
    let listing = store.read(move |read| {
        let mut incidents = BTreeSet::new();
        let mut open = read.open_bulletins()?;
        open.sort_by_key(|bulletin| bulletin.value.seq);
        open.retain(|bulletin| incidents.insert(bulletin.value.incident));
        let unsent = if open.is_empty() { BTreeMap::new() } else { unsent(read, now)? };
        Ok((open, unsent))
    });
    let (open, unsent) = listing.await?;
    let mut turn = if open.is_empty() { FanoutTurn::Idle } else { FanoutTurn::Throttled };
    for bulletin in open {
        let key = (bulletin.value.incident.to_u128(), bulletin.value.seq);
        if unsent.get(&key).is_some_and(|count| *count >= MAX_UNSENT) {
            continue;
        }
        if let Some(batch) = store.read(move |read| next_slice(read, &bulletin, now)).await? {
            store.commit(batch).await?;
            turn = FanoutTurn::Wrote;
        }
    }
    Ok(turn)
}

/// Number of due and unsent deliveries to subscribers, by incident and event number. A delivery that is
/// retried later does not count, so a failing receiver doesn't delay others.
fn unsent(read: &dyn StoreRead, now: Timestamp) -> Result<BTreeMap<(u128, u64), usize>> {
    let mut counts = BTreeMap::new();
    for waiting in read.waiting_deliveries()? {
        if waiting.due <= now && matches!(waiting.ordering_key.to, Recipient::Subscriber(_)) {
            *counts.entry((waiting.ordering_key.subject, waiting.seq)).or_insert(0) += 1;
        }
    }
    Ok(counts)
}

/// Builds the batch of a bulletin's next slice; `None` if the bulletin no longer exists or is complete.
fn next_slice(read: &dyn StoreRead, listed: &VersionedValue<Bulletin>, now: Timestamp) -> Result<Option<Batch>> {
    let Some(bulletin) = read.bulletin(listed.value.id)?.filter(|it| !it.value.is_complete) else {
        return Ok(None);
    };
    let bulletin = bulletin.value;
    let Some(page) = read.page(bulletin.page)? else { return Ok(None) };
    let mut batch = Batch::new();
    batch.expect(Expect::Page(page.value.id, Presence::At(page.revision)));
    if page.value.account == NO_ACCOUNT || page.value.private {
        batch.write(Bulletin { is_complete: true, ..bulletin });
        return Ok(Some(batch));
    }
    let subscribers = read.subscribers_of(bulletin.page, bulletin.last_reached, SLICE_SIZE)?;
    for subscriber in &subscribers {
        if receives_bulletin(&subscriber.value, &bulletin) {
            // A subscriber who leaves before this is committed gets nothing.
            batch.expect(Expect::Subscriber(subscriber.value.id, Presence::Present));
            batch.write(bulletin_delivery(&bulletin, subscriber.value.id, now));
        }
    }
    let last_reached = subscribers.last().map(|last| last.value.id).or(bulletin.last_reached);
    batch.write(Bulletin { last_reached, is_complete: subscribers.len() < SLICE_SIZE, ..bulletin });
    Ok(Some(batch))
}

/// Returns true if a subscriber receives the bulletin: those who confirmed after it was created don't.
fn receives_bulletin(subscriber: &Subscriber, bulletin: &Bulletin) -> bool {
    subscriber.receives(&bulletin.affected) && subscriber.confirmed_at.is_some_and(|at| at <= bulletin.created_at)
}

fn bulletin_delivery(bulletin: &Bulletin, to: SubscriberId, now: Timestamp) -> Delivery {
    let (id, message) =
        (bulletin_delivery_id(bulletin.id, bulletin.created_at, to), DeliveryMessage::Bulletin(bulletin.id));
    Delivery {
        page: Some(bulletin.page),
        incident: Some(bulletin.incident),
        seq: bulletin.seq,
        ..Delivery::waiting(id, Recipient::Subscriber(to), &bulletin.event, message, now)
    }
}

/// Derives the id of a subscriber's delivery from bulletin and subscriber, so that each pair has exactly one.
fn bulletin_delivery_id(bulletin: BulletinId, at: Timestamp, to: SubscriberId) -> DeliveryId {
    let digest = Sha256::digest([bulletin.to_u128().to_be_bytes(), to.to_u128().to_be_bytes()].concat());
    DeliveryId::new(at, id_bytes(&digest))
}
