//! Maintenance of deliveries: listing, bringing forward, dropping, and deleting old ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parallax_core::delivery::{DELIVERY_RETENTION, Delivery, DeliveryState, Recipient};
use parallax_core::event::AlertKind;
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Op, Presence, Result, Store, StoreError, WaitingDelivery};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::receiver::is_reachable;
use super::{DeliveryContext, queue};

/// Pause between two maintenance rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(60);
/// Deliveries changed in one batch.
const BATCH_SIZE: usize = 64;
/// Number of attempts to commit a batch after conflicts; the next listing finds the rest.
const MAX_COMMIT_ATTEMPTS: usize = 8;

/// A listing of the waiting deliveries.
#[derive(Debug)]
pub(super) struct WaitingListing {
    /// All waiting deliveries.
    pub(super) waiting: Vec<WaitingDelivery>,
    /// Outdated ones: `still-down` reminders behind another delivery of their ordering key.
    pub(super) outdated: Vec<WaitingDelivery>,
    /// Others that are behind another delivery.
    pub(super) known_not_reminders: BTreeSet<DeliveryId>,
    /// Time that the listing took.
    pub(super) duration: Duration,
}

/// Lists the waiting deliveries. `known_not_reminders` are deliveries behind another one that are known not to be
/// `still-down`.
pub(super) async fn list_waiting(store: &Store, known_not_reminders: BTreeSet<DeliveryId>) -> Result<WaitingListing> {
    let listing = store.read(move |read| {
        let started = Instant::now();
        let waiting = read.waiting_deliveries()?;
        let (mut outdated, mut not_reminders) = (Vec::new(), BTreeSet::new());
        for it in queue::queued_behind(&waiting) {
            let is_outdated = !known_not_reminders.contains(&it.id)
                && read.delivery(it.id)?.is_some_and(|it| it.value.event == AlertKind::StillDown.name());
            if is_outdated {
                outdated.push(it);
            } else {
                not_reminders.insert(it.id);
            }
        }
        Ok(WaitingListing { waiting, outdated, known_not_reminders: not_reminders, duration: started.elapsed() })
    });
    listing.await
}

/// Drops the given deliveries if they still wait.
pub(super) async fn drop_waiting(context: &DeliveryContext, ids: BTreeSet<DeliveryId>) {
    let dropped = update_deliveries(context, ids, |delivery, now| {
        let waits = matches!(delivery.state, DeliveryState::Waiting(_));
        if waits {
            delivery.drop_unsent(now);
        }
        waits
    });
    let dropped = dropped.await;
    context.counters.dropped.fetch_add(dropped, Relaxed);
}

/// Makes all waiting deliveries to these receivers due now.
pub(super) async fn bring_forward(context: &DeliveryContext, receivers: BTreeSet<Recipient>) {
    let now = context.clock.now();
    let listing = context.store.read(move |read| {
        let waiting = read.waiting_deliveries()?.into_iter();
        let later = waiting.filter(|it| it.due > now && receivers.contains(&it.ordering_key.to));
        Ok(later.map(|it| it.id).collect::<BTreeSet<_>>())
    });
    match listing.await {
        Ok(ids) => {
            update_deliveries(context, ids, |delivery, now| {
                let is_later = matches!(delivery.state, DeliveryState::Waiting(due) if due > now);
                if is_later {
                    delivery.state = DeliveryState::Waiting(now);
                }
                is_later
            })
            .await;
        }
        Err(StoreError::Closed) => {}
        Err(error) => tracing::error!(%error, "can't bring waiting deliveries forward"),
    }
}

/// Runs the maintenance of deliveries until the store closes.
pub(super) async fn run_maintenance(context: Arc<DeliveryContext>, wake: Arc<Notify>) {
    loop {
        sleep(ROUND_INTERVAL).await;
        match run_round(&context).await {
            Ok(true) => wake.notify_one(),
            Ok(false) => {}
            Err(StoreError::Closed) => return,
            Err(error) => error.log_retry("can't run the maintenance of deliveries"),
        }
    }
}

/// Runs one round: brings deliveries to unreachable receivers forward, so that they are dropped, and deletes old
/// ones.
async fn run_round(context: &Arc<DeliveryContext>) -> Result<bool> {
    let shared = Arc::clone(context);
    let unreachable = context.store.read(move |read| {
        let receivers: BTreeSet<Recipient> = read.waiting_deliveries()?.iter().map(|it| it.ordering_key.to).collect();
        let mut unreachable = BTreeSet::new();
        for to in receivers {
            if !is_reachable(&shared, read, to)? {
                unreachable.insert(to);
            }
        }
        Ok(unreachable)
    });
    let unreachable = unreachable.await?;
    let found_unreachable = !unreachable.is_empty();
    if found_unreachable {
        bring_forward(context, unreachable).await;
    }
    let mut batch = Batch::new();
    batch.write(Op::DeleteOldDeliveries(context.clock.now() - DELIVERY_RETENTION));
    context.store.commit(batch).await?;
    Ok(found_unreachable)
}

/// Applies a change to deliveries that still need it, and returns how many were changed.
async fn update_deliveries(
    context: &DeliveryContext,
    ids: BTreeSet<DeliveryId>,
    change: impl Fn(&mut Delivery, Timestamp) -> bool,
) -> u64 {
    let ids: Vec<DeliveryId> = ids.into_iter().collect();
    let mut changed = 0;
    for chunk in ids.chunks(BATCH_SIZE) {
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            match update_chunk(context, chunk, &change).await {
                Ok(count) => {
                    changed += count;
                    break;
                }
                Err(StoreError::Conflict(_)) => {}
                Err(StoreError::Closed) => return changed,
                Err(error) => {
                    tracing::error!(%error, "can't change deliveries; retrying later");
                    return changed;
                }
            }
        }
    }
    changed
}

async fn update_chunk(
    context: &DeliveryContext,
    ids: &[DeliveryId],
    change: &impl Fn(&mut Delivery, Timestamp) -> bool,
) -> Result<u64> {
    let (read, now) = (context.store.reader(), context.clock.now());
    let (mut batch, mut count) = (Batch::new(), 0);
    for id in ids {
        let Some(stored) = read.delivery(*id)? else { continue };
        let mut delivery = stored.value;
        if change(&mut delivery, now) {
            batch.expect(Expect::Delivery(*id, Presence::At(stored.revision))).write(delivery);
            count += 1;
        }
    }
    if count > 0 {
        context.store.commit(batch).await?;
    }
    Ok(count)
}
