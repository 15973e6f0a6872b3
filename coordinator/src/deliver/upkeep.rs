//! Maintenance of deliveries: listing, bringing forward, dropping, and deleting old ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parallax_core::delivery::{Delivery, KEPT, Recipient, Stage};
use parallax_core::event::AlertKind;
use parallax_core::id::DeliveryId;
use parallax_core::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{House, attempt, queue};
use crate::storage::{Batch, Expect, Is, Op, Result, Store, StoreError, Waiting};

/// Pause between two maintenance rounds.
const ROUND: Duration = Duration::from_secs(60);
/// Deliveries changed in one batch.
const AT_ONCE: usize = 64;
/// Number of attempts to commit a batch after conflicts; the next listing finds the rest.
const TURNS: usize = 8;

/// A listing of the waiting deliveries.
#[derive(Debug)]
pub(super) struct Listed {
    /// All waiting deliveries.
    pub(super) waiting: Vec<Waiting>,
    /// Outdated ones: `still-down` reminders behind another delivery of their ordering key.
    pub(super) stale: Vec<Waiting>,
    /// Others that are behind another delivery.
    pub(super) ordinary: BTreeSet<DeliveryId>,
    /// Time that the listing took.
    pub(super) took: Duration,
}

/// Lists the waiting deliveries. `ordinary` are deliveries behind another one that are known not to be
/// `still-down`.
pub(super) async fn list(store: &Store, ordinary: BTreeSet<DeliveryId>) -> Result<Listed> {
    let reading = store.read(move |read| {
        let began = Instant::now();
        let waiting = read.waiting()?;
        let (mut stale, mut known) = (Vec::new(), BTreeSet::new());
        for it in queue::behind(&waiting) {
            let is_stale = !ordinary.contains(&it.id)
                && read.delivery(it.id)?.is_some_and(|it| it.value.event == AlertKind::StillDown.name());
            if is_stale {
                stale.push(it);
            } else {
                known.insert(it.id);
            }
        }
        Ok(Listed { waiting, stale, ordinary: known, took: began.elapsed() })
    });
    reading.await
}

/// Drops the given deliveries if they still wait.
pub(super) async fn drop_all(house: &House, ids: BTreeSet<DeliveryId>) {
    let dropped = change(house, ids, |delivery, now| {
        let waits = matches!(delivery.stage, Stage::Waiting(_));
        if waits {
            delivery.stage = Stage::Dropped(now);
        }
        waits
    });
    let dropped = dropped.await;
    house.counters.dropped.fetch_add(dropped, Relaxed);
}

/// Makes all waiting deliveries to these receivers due now.
pub(super) async fn bring_forward(house: &House, receivers: BTreeSet<Recipient>) {
    let now = house.clock.now();
    let finding = house.store.read(move |read| {
        let waiting = read.waiting()?.into_iter();
        let found = waiting.filter(|it| it.due > now && receivers.contains(&it.lane.to));
        Ok(found.map(|it| it.id).collect::<BTreeSet<_>>())
    });
    match finding.await {
        Ok(ids) => {
            change(house, ids, |delivery, now| {
                let is_later = matches!(delivery.stage, Stage::Waiting(due) if due > now);
                if is_later {
                    delivery.stage = Stage::Waiting(now);
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
pub(super) async fn keep(house: Arc<House>, wake: Arc<Notify>) {
    loop {
        sleep(ROUND).await;
        match round(&house).await {
            Ok(true) => wake.notify_one(),
            Ok(false) => {}
            Err(StoreError::Closed) => return,
            Err(error) => error.log_retry("can't run the maintenance of deliveries"),
        }
    }
}

/// Runs one round: brings deliveries to unreachable receivers forward, so that they are dropped, and deletes old
/// ones.
async fn round(house: &Arc<House>) -> Result<bool> {
    let looking = Arc::clone(house);
    let gone = house.store.read(move |read| {
        let receivers: BTreeSet<Recipient> = read.waiting()?.iter().map(|it| it.lane.to).collect();
        let mut gone = BTreeSet::new();
        for to in receivers {
            if !attempt::is_reachable(&looking, read, to)? {
                gone.insert(to);
            }
        }
        Ok(gone)
    });
    let gone = gone.await?;
    let is_some = !gone.is_empty();
    if is_some {
        bring_forward(house, gone).await;
    }
    let mut batch = Batch::new();
    batch.write(Op::DropDeliveries(house.clock.now() - KEPT));
    house.store.commit(batch).await?;
    Ok(is_some)
}

/// Applies a change to deliveries that still need it, and returns how many were changed.
async fn change(
    house: &House,
    ids: BTreeSet<DeliveryId>,
    alter: impl Fn(&mut Delivery, Timestamp) -> bool,
) -> u64 {
    let ids: Vec<DeliveryId> = ids.into_iter().collect();
    let mut changed = 0;
    for some in ids.chunks(AT_ONCE) {
        for _ in 0..TURNS {
            match change_some(house, some, &alter).await {
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

async fn change_some(
    house: &House,
    ids: &[DeliveryId],
    alter: &impl Fn(&mut Delivery, Timestamp) -> bool,
) -> Result<u64> {
    let (read, now) = (house.store.reader(), house.clock.now());
    let (mut batch, mut count) = (Batch::new(), 0);
    for id in ids {
        let Some(found) = read.delivery(*id)? else { continue };
        let mut delivery = found.value;
        if alter(&mut delivery, now) {
            batch.expect(Expect::Delivery(*id, Is::At(found.revision))).write(delivery);
            count += 1;
        }
    }
    if count > 0 {
        house.store.commit(batch).await?;
    }
    Ok(count)
}
