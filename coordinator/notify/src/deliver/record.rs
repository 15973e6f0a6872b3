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
    pub(super) log_entry: DeliveryAttempt,
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
    /// True if the receiver was changed or deleted since the listing.
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

/// Records an attempt, retrying until the record is stored: an unrecorded attempt would be repeated.
pub(super) async fn record_attempt(context: &DeliveryContext, id: DeliveryId, attempt: FinishedAttempt) -> TurnResult {
    loop {
        match try_record(context, id, &attempt).await {
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

async fn try_record(context: &DeliveryContext, id: DeliveryId, attempt: &FinishedAttempt) -> Stored<TurnResult> {
    let (read, now) = (context.store.reader().as_ref(), context.clock.now());
    let Some(stored) = read.delivery(id)? else { return Ok(TurnResult::finished()) };
    let mut delivery = stored.value;
    delivery.record_attempt(attempt.log_entry.clone(), attempt.outcome, now, jitter());
    let (state, to) = (delivery.state, delivery.to);
    let log_fields = DeliveryLogFields::of(&delivery);
    let mut batch = Batch::new();
    batch.expect(Expect::Delivery(id, Presence::At(stored.revision)));
    batch.write(delivery);
    let recheck_waiting = update_health(read, to, attempt, now, &mut batch)?;
    context.store.commit(batch).await?;
    let (next_step, result) = match state {
        DeliveryState::Waiting(due) => (NextStep::WaitUntil(due), AttemptResultKind::Retried),
        DeliveryState::Delivered(_) => (NextStep::Finished, AttemptResultKind::Delivered),
        DeliveryState::Failed(_) | DeliveryState::Dropped(_) => (NextStep::Finished, AttemptResultKind::Failed),
    };
    context.counters.count(attempt.channel, result);
    log_result(&log_fields, attempt, state);
    let is_accepted = attempt.outcome == AttemptOutcome::Accepted;
    Ok(TurnResult {
        next_step,
        succeeded: (is_accepted || attempt.counts_against_receiver).then_some(is_accepted),
        is_receiver_stale: false,
        recheck_waiting,
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
fn log_result(log_fields: &Option<DeliveryLogFields>, attempt: &FinishedAttempt, state: DeliveryState) {
    let Some(log_fields) = log_fields else { return };
    let DeliveryLogFields { id, event, .. } = log_fields;
    let page = log_fields.page.map(tracing::field::display);
    let monitor = log_fields.monitor.map(tracing::field::display);
    let incident = log_fields.incident.map(tracing::field::display);
    let destination = log_fields.destination.map(tracing::field::display);
    let (kind, status) = (attempt.channel.name(), attempt.log_entry.status);
    match state {
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
    attempt: &FinishedAttempt,
    now: Timestamp,
    batch: &mut Batch,
) -> Stored<bool> {
    let health_after = |before: &DeliveryHealth| {
        let health = receiver_health::after_attempt(before, attempt.outcome, attempt.counts_against_receiver, now)?;
        let has_recovered = before.failing_since.is_some() && health.failing_since.is_none();
        let disable_reason = health.disabled.filter(|_| before.disabled.is_none()).map(|(_, reason)| reason);
        Some((health, has_recovered, disable_reason))
    };
    match to {
        Recipient::Destination(id) => {
            let Some(stored) = read.destination(id)? else { return Ok(false) };
            let Some((health, has_recovered, disable_reason)) = health_after(&stored.value.health) else {
                return Ok(false);
            };
            let destination = Destination { health, ..stored.value };
            if let Some(reason) = disable_reason {
                tracing::info!(%id, reason = reason.name(), "destination switched off");
                if let Some(notification) = switched_off_delivery(read, &destination, reason, now)? {
                    batch.write(notification);
                }
            }
            batch.expect(Expect::Destination(id, Presence::At(stored.revision))).write(destination);
            Ok(has_recovered || disable_reason.is_some())
        }
        Recipient::Subscriber(id) => {
            let Some(stored) = read.subscriber(id)? else { return Ok(false) };
            let Some((health, has_recovered, disable_reason)) = health_after(&stored.value.health) else {
                return Ok(false);
            };
            let subscriber = Subscriber { health, ..stored.value };
            batch.expect(Expect::Subscriber(id, Presence::At(stored.revision))).write(subscriber);
            Ok(has_recovered || disable_reason.is_some())
        }
        Recipient::Owner(_)
        | Recipient::OperatorMail
        | Recipient::OperatorWebhook
        | Recipient::UnconfirmedDestination(_)
        | Recipient::Visitor(_) => Ok(false),
    }
}

/// Mail to the owner of a destination that was switched off; `None` if the page no longer exists.
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
