//! Bulletins on their way: each goes out to its page's subscribers in slices, by their ids.
//!
//! A slice is one batch: its deliveries and how far the bulletin has come. So a crash makes none twice and leaves none
//! out; what was under way goes on at the next start. The next slice is made when most of those before it are sent, so that
//! news of thousands neither fills the queue of what is to be sent nor holds up other news.

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

/// Subscribers that one slice looks at.
pub const SLICE: usize = 50;
/// Deliveries of a bulletin that are due and unsent before no further slice is made.
pub const AHEAD: usize = 100;
/// How often it is looked at whether there is room for more.
const PAUSE: Duration = Duration::from_millis(200);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// What one turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Slices were made.
    Wrote,
    /// There is more to do once some of it is sent.
    Waits,
    /// Every bulletin has reached everybody.
    Rests,
}

/// Sends bulletins out as long as the coordinator does. It is woken by `woken` whenever there may be a new one, and tells
/// `wake` that there is something to send.
pub async fn run(store: Store, clock: Clock, woken: Arc<Notify>, wake: Arc<Notify>) {
    loop {
        match turn(&store, &clock).await {
            Ok(Turn::Wrote) => wake.notify_one(),
            Ok(Turn::Waits) => {
                // That nothing new came is no fault.
                if timeout(PAUSE, woken.notified()).await.is_ok() {
                    wake.notify_one();
                }
            }
            Ok(Turn::Rests) => {
                woken.notified().await;
                // Who wrote a bulletin may have written a letter to somebody else beside it.
                wake.notify_one();
            }
            Err(StoreError::Conflict(_)) => {}
            Err(StoreError::Closed) => return,
            Err(error) => {
                error.log_retry("news can't be sent out");
                sleep(RETRY).await;
            }
        }
    }
}

/// Makes the next slice of each bulletin that has room for one. Of one incident's news only the oldest goes out, so that
/// nobody gets it in another order.
///
/// # Errors
/// [`StoreError::Conflict`] where somebody left, or the page was changed, at the same moment: the next turn sees it.
/// Others when the store can't be read or written.
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

/// How many deliveries to subscribers are due and unsent, by incident and number of the event. One that is tried again
/// later does not count: its receiver holds up nobody else's news.
fn unsent(read: &dyn Read, now: Timestamp) -> Result<BTreeMap<(u128, u64), usize>> {
    let mut counts = BTreeMap::new();
    for waiting in read.waiting()? {
        if waiting.due <= now && matches!(waiting.lane.to, Recipient::Subscriber(_)) {
            *counts.entry((waiting.lane.subject, waiting.seq)).or_insert(0) += 1;
        }
    }
    Ok(counts)
}

/// The batch of a bulletin's next slice; none where the bulletin is gone.
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
            // Who leaves before this is written gets nothing.
            batch.expect(Expect::Subscriber(subscriber.value.id, Is::Present));
            batch.write(delivery(&bulletin, subscriber.value.id, now));
        }
    }
    let reached = found.last().map(|last| last.value.id).or(bulletin.reached);
    batch.write(Bulletin { reached, done: found.len() < SLICE, ..bulletin });
    Ok(Some(batch))
}

/// Whether a subscriber hears of it: one who confirmed since it was made has not asked for old news.
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

/// The id of the delivery by which a subscriber gets a bulletin: made of both, so that nothing can have two.
fn delivery_id(bulletin: BulletinId, at: Timestamp, to: SubscriberId) -> DeliveryId {
    let digest = Sha256::digest([bulletin.to_u128().to_be_bytes(), to.to_u128().to_be_bytes()].concat());
    DeliveryId::new(at, start_of(&digest))
}
