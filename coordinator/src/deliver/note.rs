//! Noting what came of a try: delivery, the receiver's health and what its owner is told of it, in one batch.

use parallax_core::delivery::{Delivery, Letter, Outcome, Recipient, Stage, Try};
use parallax_core::destination::{ChannelKind, Destination, Health, OffReason};
use parallax_core::id::DeliveryId;
use parallax_core::subscriber::Subscriber;
use parallax_core::time::{SECOND, Timestamp};
use tokio::time::sleep;

use super::counters::Verdict;
use super::queue::Left;
use super::{House, RETRY, fresh_id, health, jitter};
use crate::letters;
use crate::storage::{Batch, Expect, Is, Read, Result as Stored, StoreError};

/// Milliseconds until one whose attempt broke off is tried again.
pub(super) const BROKEN: i64 = 30 * SECOND;
/// What a delivery is called that tells an owner of a destination that was switched off.
const OFF: &str = "destination.off";

/// A try that is over.
#[derive(Debug, Clone)]
pub(super) struct Result {
    pub(super) log: Try,
    pub(super) outcome: Outcome,
    /// Whether a failure says something of the receiver.
    pub(super) counts: bool,
    pub(super) kind: ChannelKind,
}

/// What became of a delivery whose turn it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    /// Whether it still waits.
    pub(super) left: Left,
    /// How its try went; none where there was none, or where the trouble is ours.
    pub(super) went: Option<bool>,
    /// Whether its receiver is not what it was taken for.
    pub(super) is_gone: bool,
    /// Whether its receiver fares so differently that what else waits for it is to be looked at.
    pub(super) is_turn: bool,
}

impl Came {
    /// It does not wait any more.
    pub(super) const fn done() -> Self {
        Self { left: Left::Done, went: None, is_gone: false, is_turn: false }
    }

    /// It waits until then.
    pub(super) const fn later(due: Timestamp) -> Self {
        Self { left: Left::Until(due), ..Self::done() }
    }
}

/// Notes a try, however long that takes: it was made, and nobody may make it again for want of a note.
pub(super) async fn note(house: &House, id: DeliveryId, tried: Result) -> Came {
    loop {
        match noted(house, id, &tried).await {
            Ok(came) => {
                return came;
            }
            Err(StoreError::Conflict(_)) => {}
            // The process ends.
            Err(StoreError::Closed) => return Came::later(house.clock.now()),
            Err(error) => {
                error.log_retry("a delivery was tried and can't be noted");
                sleep(RETRY).await;
            }
        }
    }
}

async fn noted(house: &House, id: DeliveryId, tried: &Result) -> Stored<Came> {
    let (read, now) = (house.store.reader().as_ref(), house.clock.now());
    let Some(found) = read.delivery(id)? else { return Ok(Came::done()) };
    let mut delivery = found.value;
    delivery.note(tried.log.clone(), tried.outcome, now, jitter());
    let (stage, to) = (delivery.stage, delivery.to);
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(id, Is::At(found.revision)));
    batch.write(delivery);
    let is_turn = fare(read, to, tried, now, &mut batch)?;
    house.store.commit(batch).await?;
    let (left, verdict) = match stage {
        Stage::Waiting(due) => (Left::Until(due), Verdict::Retried),
        Stage::Delivered(_) => (Left::Done, Verdict::Delivered),
        Stage::Failed(_) | Stage::Dropped(_) => (Left::Done, Verdict::Failed),
    };
    house.counters.count(tried.kind, verdict);
    let is_taken = tried.outcome == Outcome::Taken;
    Ok(Came { left, went: (is_taken || tried.counts).then_some(is_taken), is_gone: false, is_turn })
}

/// Adds how the receiver fares from now on, where that changes; true where what else waits for it is to be looked at.
fn fare(read: &dyn Read, to: Recipient, tried: &Result, now: Timestamp, batch: &mut Batch) -> Stored<bool> {
    let after = |before: &Health| {
        let health = health::after(before, tried.outcome, tried.counts, now)?;
        let is_turn = before.failing_since.is_some() && health.failing_since.is_none();
        let off = health.off.filter(|_| before.off.is_none()).map(|(_, reason)| reason);
        Some((health, is_turn, off))
    };
    match to {
        Recipient::Destination(id) => {
            let Some(found) = read.destination(id)? else { return Ok(false) };
            let Some((health, is_turn, off)) = after(&found.value.health) else { return Ok(false) };
            let destination = Destination { health, ..found.value };
            if let Some(reason) = off {
                tracing::info!(%id, reason = reason.name(), "a destination is switched off");
                if let Some(told) = told(read, &destination, reason, now)? {
                    batch.write(told);
                }
            }
            batch.expect(Expect::Destination(id, Is::At(found.revision))).write(destination);
            Ok(is_turn || off.is_some())
        }
        Recipient::Subscriber(id) => {
            let Some(found) = read.subscriber(id)? else { return Ok(false) };
            let Some((health, is_turn, off)) = after(&found.value.health) else { return Ok(false) };
            let subscriber = Subscriber { health, ..found.value };
            batch.expect(Expect::Subscriber(id, Is::At(found.revision))).write(subscriber);
            Ok(is_turn || off.is_some())
        }
        Recipient::Owner(_)
        | Recipient::OperatorMail
        | Recipient::OperatorHook
        | Recipient::Asked(_)
        | Recipient::Visitor(_) => Ok(false),
    }
}

/// What the owner of a destination is told of its being switched off; nothing where the page is gone.
fn told(
    read: &dyn Read,
    destination: &Destination,
    reason: OffReason,
    now: Timestamp,
) -> Stored<Option<Delivery>> {
    let Some(page) = read.page(destination.page)? else { return Ok(None) };
    let page = page.value;
    Ok(Some(Delivery {
        id: fresh_id(now),
        page: Some(page.id),
        to: Recipient::Owner(page.account),
        event: OFF.to_owned(),
        monitor: None,
        incident: None,
        seq: read.last_event()?,
        letter: Letter::Mail(letters::switched_off(
            &destination.name,
            &page.name,
            reason,
            now,
            page.timezone,
        )),
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: None,
    }))
}
