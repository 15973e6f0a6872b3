//! Records the result of an attempt in one batch: the delivery, the receiver's health and the owner's
//! notification.

use parallax_core::delivery::{AttemptOutcome, Delivery, DeliveryAttempt, DeliveryMessage, DeliveryState, Recipient};
use parallax_core::destination::{ChannelKind, DeliveryHealth, Destination, DisableReason};
use parallax_core::id::{DeliveryId, DestinationId, IncidentId, MonitorId, PageId};
use parallax_core::subscriber::Subscriber;
use parallax_core::time::{SECOND, Timestamp};
use parallax_store::{Batch, Expect, Presence, Result as Stored, StoreError, StoreRead};
use tokio::time::sleep;
use tracing::info;

use super::counters::AttemptResultKind;
use super::queue::NextStep;
use super::{DeliveryContext, STORE_RETRY, jitter, new_delivery_id, receiver_health};
use crate::render;

/// Milliseconds until a delivery whose attempt panicked is retried.
pub(super) const PANIC_RETRY_MS: i64 = 30 * SECOND;
/// Event name of the mail to the owner of a destination that was switched off.
const DESTINATION_OFF_EVENT: &str = "destination.off";

/// A finished attempt.
#[derive(Debug, Clone)]
pub(super) struct FinishedAttempt {
    pub(super) attempt: DeliveryAttempt,
    pub(super) outcome: AttemptOutcome,
    /// True if a failure counts against the receiver.
    pub(super) counts_against_receiver: bool,
    pub(super) channel: ChannelKind,
}

/// State of a delivery after its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnResult {
    /// Next step.
    pub(super) next_step: NextStep,
    /// True if the attempt succeeded; `None` if there was none or the failure is on our side.
    pub(super) succeeded: Option<bool>,
    /// True if the receiver changed or is gone since the listing.
    pub(super) is_receiver_stale: bool,
    /// True if the receiver's health changed so that its other waiting deliveries must be checked.
    pub(super) recheck_waiting: bool,
}

impl TurnResult {
    /// The delivery no longer waits.
    pub(super) const fn finished() -> Self {
        Self { next_step: NextStep::Finished, succeeded: None, is_receiver_stale: false, recheck_waiting: false }
    }

    /// The delivery waits until `due`.
    pub(super) const fn waiting_until(due: Timestamp) -> Self {
        Self { next_step: NextStep::WaitUntil(due), ..Self::finished() }
    }
}

/// Records an attempt, retrying until it succeeds: an attempt that was made must not be repeated because it
/// wasn't recorded.
pub(super) async fn record_attempt(context: &DeliveryContext, id: DeliveryId, tried: FinishedAttempt) -> TurnResult {
    loop {
        match try_record(context, id, &tried).await {
            Ok(result) => {
                return result;
            }
            Err(StoreError::Conflict(_)) => {}
            // The process is shutting down.
            Err(StoreError::Closed) => return TurnResult::waiting_until(context.clock.now()),
            Err(error) => {
                error.log_retry("can't record the result of a delivery attempt");
                sleep(STORE_RETRY).await;
            }
        }
    }
}

async fn try_record(context: &DeliveryContext, id: DeliveryId, tried: &FinishedAttempt) -> Stored<TurnResult> {
    let (read, now) = (context.store.reader().as_ref(), context.clock.now());
    let Some(found) = read.delivery(id)? else { return Ok(TurnResult::finished()) };
    let mut delivery = found.value;
    delivery.record_attempt(tried.attempt.clone(), tried.outcome, now, jitter());
    let (stage, to) = (delivery.state, delivery.to);
    let line = DeliveryLogFields::of(&delivery);
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(id, Presence::At(found.revision)));
    batch.write(delivery);
    let is_turn = update_health(read, to, tried, now, &mut batch)?;
    context.store.commit(batch).await?;
    let (left, verdict) = match stage {
        DeliveryState::Waiting(due) => (NextStep::WaitUntil(due), AttemptResultKind::Retried),
        DeliveryState::Delivered(_) => (NextStep::Finished, AttemptResultKind::Delivered),
        DeliveryState::Failed(_) | DeliveryState::Dropped(_) => (NextStep::Finished, AttemptResultKind::Failed),
    };
    context.counters.count(tried.channel, verdict);
    log_result(&line, tried, stage);
    let is_taken = tried.outcome == AttemptOutcome::Accepted;
    Ok(TurnResult {
        next_step: left,
        succeeded: (is_taken || tried.counts_against_receiver).then_some(is_taken),
        is_receiver_stale: false,
        recheck_waiting: is_turn,
    })
}

/// Log fields of a delivery: ids and kinds, never the receiver's address.
struct DeliveryLogFields {
    id: DeliveryId,
    event: String,
    page: Option<PageId>,
    monitor: Option<MonitorId>,
    incident: Option<IncidentId>,
    destination: Option<DestinationId>,
}

impl DeliveryLogFields {
    /// Returns the log fields of an alert or an operator alert; `None` for subscribers, of whom there may be
    /// thousands.
    fn of(delivery: &Delivery) -> Option<Self> {
        let destination = match delivery.to {
            Recipient::Destination(id) => Some(id),
            Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorWebhook => None,
            Recipient::Subscriber(_) | Recipient::UnconfirmedDestination(_) | Recipient::Visitor(_) => {
                return None;
            }
        };
        let Delivery { id, page, monitor, incident, .. } = *delivery;
        Some(Self { id, event: delivery.event.clone(), page, monitor, incident, destination })
    }
}

/// Logs the result of an attempt.
fn log_result(line: &Option<DeliveryLogFields>, tried: &FinishedAttempt, stage: DeliveryState) {
    let Some(line) = line else { return };
    let DeliveryLogFields { id, event, .. } = line;
    let page = line.page.map(tracing::field::display);
    let monitor = line.monitor.map(tracing::field::display);
    let incident = line.incident.map(tracing::field::display);
    let destination = line.destination.map(tracing::field::display);
    let (kind, status) = (tried.channel.name(), tried.attempt.status);
    match stage {
        DeliveryState::Delivered(_) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, "alert sent");
        }
        DeliveryState::Waiting(due) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, again_at = %due, "alert failed; retrying");
        }
        DeliveryState::Failed(_) | DeliveryState::Dropped(_) => {
            info!(page, monitor, incident, destination, kind, event, delivery = %id, status, "alert failed");
        }
    }
}

/// Adds the receiver's new health to the batch if it changed; true if its other waiting deliveries must be
/// checked.
fn update_health(
    read: &dyn StoreRead,
    to: Recipient,
    tried: &FinishedAttempt,
    now: Timestamp,
    batch: &mut Batch,
) -> Stored<bool> {
    let after = |before: &DeliveryHealth| {
        let health = receiver_health::after_attempt(before, tried.outcome, tried.counts_against_receiver, now)?;
        let is_turn = before.failing_since.is_some() && health.failing_since.is_none();
        let off = health.disabled.filter(|_| before.disabled.is_none()).map(|(_, reason)| reason);
        Some((health, is_turn, off))
    };
    match to {
        Recipient::Destination(id) => {
            let Some(found) = read.destination(id)? else { return Ok(false) };
            let Some((health, is_turn, off)) = after(&found.value.health) else { return Ok(false) };
            let destination = Destination { health, ..found.value };
            if let Some(reason) = off {
                tracing::info!(%id, reason = reason.name(), "destination switched off");
                if let Some(told) = switched_off_delivery(read, &destination, reason, now)? {
                    batch.write(told);
                }
            }
            batch.expect(Expect::Destination(id, Presence::At(found.revision))).write(destination);
            Ok(is_turn || off.is_some())
        }
        Recipient::Subscriber(id) => {
            let Some(found) = read.subscriber(id)? else { return Ok(false) };
            let Some((health, is_turn, off)) = after(&found.value.health) else { return Ok(false) };
            let subscriber = Subscriber { health, ..found.value };
            batch.expect(Expect::Subscriber(id, Presence::At(found.revision))).write(subscriber);
            Ok(is_turn || off.is_some())
        }
        Recipient::Owner(_)
        | Recipient::OperatorMail
        | Recipient::OperatorWebhook
        | Recipient::UnconfirmedDestination(_)
        | Recipient::Visitor(_) => Ok(false),
    }
}

/// Mail to the owner of a destination that was switched off; `None` if the page is gone.
fn switched_off_delivery(
    read: &dyn StoreRead,
    destination: &Destination,
    reason: DisableReason,
    now: Timestamp,
) -> Stored<Option<Delivery>> {
    let Some(page) = read.page(destination.page)? else { return Ok(None) };
    let page = page.value;
    let mail = render::destination_switched_off(&destination.name, &page.name, reason, now, page.timezone);
    let (to, mail) = (Recipient::Owner(page.account), DeliveryMessage::Mail(mail));
    Ok(Some(Delivery {
        page: Some(page.id),
        seq: read.last_event()?,
        ..Delivery::waiting(new_delivery_id(now), to, DESTINATION_OFF_EVENT, mail, now)
    }))
}
