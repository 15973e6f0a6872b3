//! A delivery as the API returns it, in a list and on its own.

use parallax_core::delivery::{Delivery, DeliveryAttempt, DeliveryState, Recipient, excerpt};
use parallax_service::deliveries::{DeliveryContent, DeliverySlice, TEST_EVENT};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::value_schemas;

/// A page of a list of deliveries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DeliveryList {
    /// Newest first.
    deliveries: Vec<DeliveryDocument>,
    /// Value of `before` for the next page; null on the last page. A page may be short even if more follow.
    next_before: Option<String>,
}

/// A delivery.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Delivery")]
pub(in crate::http) struct DeliveryDocument {
    /// Delivery id; receivers see it as `webhook-id`.
    id: String,
    /// Page it is about.
    page_id: String,
    /// Destination it goes to; null for other receivers.
    destination_id: Option<String>,
    /// Subscriber it goes to; null for other receivers.
    subscriber_id: Option<String>,
    /// Its event: an alert, an incident event such as `incident.created`, `test`, or `destination.confirmation`,
    /// which asks a mailbox to confirm that it wants alerts. For a flapping monitor, a chat gets `flapping` once
    /// instead of alerts, and `steady` after 30 minutes without a change.
    event: String,
    /// True if it is a test alert.
    test: bool,
    /// Monitor it is about.
    monitor_id: Option<String>,
    /// Incident it is about.
    incident_id: Option<String>,
    /// Status.
    #[schemars(with = "value_schemas::DeliveryStatus")]
    status: &'static str,
    /// Time of the last status change; while waiting, the time of the next attempt.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    status_at: String,
    /// Attempts since it was created or redelivered.
    tries: u32,
    /// HTTP or SMTP status of the newest attempt.
    last_status: Option<u16>,
    /// Reason the newest attempt failed.
    last_error: Option<String>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

/// A delivery with its content and the result of each attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeliveryDetail")]
pub(in crate::http) struct DeliveryDetailDocument {
    #[serde(flatten)]
    delivery: DeliveryDocument,
    /// Subject of a mail.
    subject: Option<String>,
    /// Content without secrets: JSON, or the text of a mail. Null if it is private to one reader.
    body: Option<String>,
    /// The newest attempts, oldest first.
    log: Vec<DeliveryAttemptDocument>,
}

/// An attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeliveryTry")]
pub(in crate::http) struct DeliveryAttemptDocument {
    /// Start of the attempt.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    /// Duration, in milliseconds.
    duration_ms: u32,
    /// HTTP or SMTP status of the response.
    status: Option<u16>,
    /// Reason the attempt failed.
    error: Option<String>,
    /// First 200 characters of the response, if it is text.
    answer: String,
}

/// Builds one page of the list.
pub(in crate::http) fn list(slice: &DeliverySlice) -> DeliveryList {
    DeliveryList {
        deliveries: slice.deliveries.iter().map(document).collect(),
        next_before: slice.next.map(|id| id.to_string()),
    }
}

/// Builds a single delivery.
pub(in crate::http) fn detail(opened: &DeliveryContent) -> DeliveryDetailDocument {
    DeliveryDetailDocument {
        delivery: document(&opened.delivery),
        subject: opened.subject.clone(),
        body: opened.body.clone(),
        log: opened.delivery.attempt_log.iter().map(attempt).collect(),
    }
}

fn document(delivery: &Delivery) -> DeliveryDocument {
    let last = delivery.attempt_log.last();
    let (destination, subscriber) = match delivery.to {
        Recipient::Destination(id) | Recipient::UnconfirmedDestination(id) => (Some(id.to_string()), None),
        Recipient::Subscriber(id) => (None, Some(id.to_string())),
        Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorWebhook | Recipient::Visitor(_) => {
            (None, None)
        }
    };
    let (DeliveryState::Waiting(at)
    | DeliveryState::Delivered(at)
    | DeliveryState::Failed(at)
    | DeliveryState::Dropped(at)) = delivery.state;
    DeliveryDocument {
        id: delivery.id.to_string(),
        page_id: delivery.page.map(|page| page.to_string()).unwrap_or_default(),
        destination_id: destination,
        subscriber_id: subscriber,
        event: delivery.event.clone(),
        test: delivery.event == TEST_EVENT,
        monitor_id: delivery.monitor.map(|id| id.to_string()),
        incident_id: delivery.incident.map(|id| id.to_string()),
        status: delivery.state.name(),
        status_at: at.to_string(),
        tries: delivery.attempts.total(),
        last_status: last.and_then(|last| last.status),
        last_error: last.and_then(|last| last.error.clone()),
        created_at: delivery.created_at.to_string(),
    }
}

fn attempt(attempt: &DeliveryAttempt) -> DeliveryAttemptDocument {
    DeliveryAttemptDocument {
        at: attempt.at.to_string(),
        duration_ms: attempt.duration_ms,
        status: attempt.status,
        error: attempt.error.clone(),
        answer: excerpt(&attempt.response),
    }
}
