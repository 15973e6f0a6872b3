//! Records the result of an attempt in one batch: the delivery, the receiver's health and the owner's
//! notification.

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

/// Milliseconds until a delivery whose attempt panicked is retried.
pub(super) const BROKEN: i64 = 30 * SECOND;
/// Event name of the mail to the owner of a destination that was switched off.
const OFF: &str = "destination.off";

/// A finished attempt.
#[derive(Debug, Clone)]
pub(super) struct Result {
    pub(super) log: Try,
    pub(super) outcome: Outcome,
    /// True if a failure counts against the receiver.
    pub(super) counts: bool,
    pub(super) kind: ChannelKind,
}

/// State of a delivery after its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    /// Next step.
    pub(super) left: Left,
    /// True if the attempt succeeded; `None` if there was none or the failure is on our side.
    pub(super) went: Option<bool>,
    /// True if the receiver changed or is gone since the listing.
    pub(super) is_gone: bool,
    /// True if the receiver's health changed so that its other waiting deliveries must be checked.
    pub(super) is_turn: bool,
}

impl Came {
    /// The delivery no longer waits.
    pub(super) const fn done() -> Self {
        Self { left: Left::Done, went: None, is_gone: false, is_turn: false }
    }

    /// The delivery waits until `due`.
    pub(super) const fn later(due: Timestamp) -> Self {
        Self { left: Left::Until(due), ..Self::done() }
    }
}

/// Records an attempt, retrying until it succeeds: an attempt that was made must not be repeated because it
/// wasn't recorded.
pub(super) async fn note(house: &House, id: DeliveryId, tried: Result) -> Came {
    loop {
        match noted(house, id, &tried).await {
            Ok(came) => {
                return came;
            }
            Err(StoreError::Conflict(_)) => {}
            // The process is shutting down.
            Err(StoreError::Closed) => return Came::later(house.clock.now()),
            Err(error) => {
                error.log_retry("can't record the result of a delivery attempt");
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

/// Log fields of a delivery: ids and kinds, never the receiver's address.
struct LogLine {
    id: DeliveryId,
    event: String,
    page: Option<PageId>,
    monitor: Option<MonitorId>,
    incident: Option<IncidentId>,
    destination: Option<DestinationId>,
}

impl LogLine {
    /// Returns the log fields of an alert or an operator alert; `None` for subscribers, of whom there may be
    /// thousands.
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

/// Logs the result of an attempt.
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
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, again_at = %due, "alert failed; retrying");
        }
        Stage::Failed(_) | Stage::Dropped(_) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, "alert failed");
        }
    }
}

/// Adds the receiver's new health to the batch if it changed; true if its other waiting deliveries must be
/// checked.
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
                tracing::info!(%id, reason = reason.name(), "destination switched off");
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

/// Mail to the owner of a destination that was switched off; `None` if the page is gone.
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
