//! Noting what came of a try: delivery, the receiver's health and what its owner is told of it, in one batch.

use parallax_core::delivery::{Delivery, Letter, Outcome, Recipient, Stage, Try};
use parallax_core::destination::{ChannelKind, Destination, Health, OffReason};
use parallax_core::id::{DeliveryId, DestinationId, IncidentId, MonitorId, PageId};
use parallax_core::subscriber::Subscriber;
use parallax_core::time::{SECOND, Timestamp};
use tokio::time::sleep;
use tracing::info;

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
    let line = LogLine::of(&delivery);
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
    log(&line, tried, stage);
    let is_taken = tried.outcome == Outcome::Taken;
    Ok(Came { left, went: (is_taken || tried.counts).then_some(is_taken), is_gone: false, is_turn })
}

/// Fields of a log line about a delivery: ids and names of kinds, and nothing of its receiver's address.
struct LogLine {
    id: DeliveryId,
    event: String,
    page: Option<PageId>,
    monitor: Option<MonitorId>,
    incident: Option<IncidentId>,
    destination: Option<DestinationId>,
}

impl LogLine {
    /// The line of an alert or an operator's notice; none for subscribers, of whom there may be thousands.
    fn of(delivery: &Delivery) -> Option<Self> {
        let destination = match delivery.to {
            Recipient::Destination(id) => Some(id),
            Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorHook => None,
            Recipient::Subscriber(_) | Recipient::Asked(_) | Recipient::Visitor(_) => return None,
        };
        let Delivery { id, page, monitor, incident, .. } = *delivery;
        Some(Self { id, event: delivery.event.clone(), page, monitor, incident, destination })
    }
}

/// Logs how a try ended: sent, given up, or failed for now.
fn log(line: &Option<LogLine>, tried: &Result, stage: Stage) {
    let Some(line) = line else { return };
    let LogLine { id, event, .. } = line;
    let page = line.page.map(tracing::field::display);
    let monitor = line.monitor.map(tracing::field::display);
    let incident = line.incident.map(tracing::field::display);
    let destination = line.destination.map(tracing::field::display);
    let (kind, status) = (tried.kind.name(), tried.log.status);
    match stage {
        Stage::Delivered(_) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, "alert sent");
        }
        Stage::Waiting(due) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, again_at = %due, "alert failed, and is tried again");
        }
        Stage::Failed(_) | Stage::Dropped(_) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, "alert failed");
        }
    }
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
