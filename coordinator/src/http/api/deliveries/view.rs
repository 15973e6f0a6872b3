//! A delivery as the API shows it, in a list and by itself.

use parallax_core::delivery::{Delivery, Recipient, Stage, Try, excerpt};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::words;
use crate::service::deliveries::{Opened, Part, TEST};

/// A part of a page's deliveries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DeliveryList {
    /// Newest first.
    deliveries: Vec<DeliveryDocument>,
    /// What `before` has to be for the next part; null where there is none. A part may be short though more follow.
    next_before: Option<String>,
}

/// A delivery.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Delivery")]
pub(in crate::http) struct DeliveryDocument {
    /// Delivery id, which a receiver sees as `webhook-id`.
    id: String,
    /// The page that it is about.
    page_id: String,
    /// The destination that it is for; null where it is for another.
    destination_id: Option<String>,
    /// The subscriber that it is for; null where it is for another.
    subscriber_id: Option<String>,
    /// What it tells of: an alert, an incident's event such as `incident.created`, `test`, or `destination.confirmation`,
    /// which asks a mailbox whether it wants alerts. Of a monitor that changes to and fro a chat gets `flapping` once, in
    /// place of alerts, and `steady` once it has not changed for 30 minutes.
    event: String,
    /// Whether it only shows what an alert looks like.
    test: bool,
    /// The monitor that it is about.
    monitor_id: Option<String>,
    /// The incident that it is about.
    incident_id: Option<String>,
    /// Where it stands.
    #[schemars(with = "words::DeliveryStatus")]
    status: &'static str,
    /// Since when it stands so; while it waits, when it is due.
    #[schemars(with = "words::Moment")]
    status_at: String,
    /// Tries since it was made, or asked for anew.
    tries: u32,
    /// The status that the newest try was answered with, of HTTP or SMTP.
    last_status: Option<u16>,
    /// Why the newest try had no good answer.
    last_error: Option<String>,
    /// When it was made.
    #[schemars(with = "words::Moment")]
    created_at: String,
}

/// A delivery with what was sent and what came of each try.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeliveryDetail")]
pub(in crate::http) struct DetailDocument {
    #[serde(flatten)]
    delivery: DeliveryDocument,
    /// A mail's subject.
    subject: Option<String>,
    /// What was sent, without secrets: JSON, or a mail's text. Null where it is for one reader's eyes.
    body: Option<String>,
    /// The newest tries, oldest first.
    log: Vec<TryDocument>,
}

/// One try.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeliveryTry")]
pub(in crate::http) struct TryDocument {
    /// When it began.
    #[schemars(with = "words::Moment")]
    at: String,
    /// How long it took, in milliseconds.
    duration_ms: u32,
    /// The status that the receiver answered with, of HTTP or SMTP.
    status: Option<u16>,
    /// Why there was no good answer.
    error: Option<String>,
    /// The first 200 characters of the answer, where it is text.
    answer: String,
}

/// A part of a list.
pub(in crate::http) fn list(part: &Part) -> DeliveryList {
    DeliveryList {
        deliveries: part.deliveries.iter().map(document).collect(),
        next_before: part.next.map(|id| id.to_string()),
    }
}

/// A delivery by itself.
pub(in crate::http) fn opened(opened: &Opened) -> DetailDocument {
    DetailDocument {
        delivery: document(&opened.delivery),
        subject: opened.subject.clone(),
        body: opened.body.clone(),
        log: opened.delivery.log.iter().map(tried).collect(),
    }
}

fn document(delivery: &Delivery) -> DeliveryDocument {
    let last = delivery.log.last();
    let (destination, subscriber) = match delivery.to {
        Recipient::Destination(id) | Recipient::Asked(id) => (Some(id.to_string()), None),
        Recipient::Subscriber(id) => (None, Some(id.to_string())),
        Recipient::Owner(_) | Recipient::OperatorMail | Recipient::OperatorHook | Recipient::Visitor(_) => {
            (None, None)
        }
    };
    let (Stage::Waiting(at) | Stage::Delivered(at) | Stage::Failed(at) | Stage::Dropped(at)) = delivery.stage;
    DeliveryDocument {
        id: delivery.id.to_string(),
        page_id: delivery.page.map(|page| page.to_string()).unwrap_or_default(),
        destination_id: destination,
        subscriber_id: subscriber,
        event: delivery.event.clone(),
        test: delivery.event == TEST,
        monitor_id: delivery.monitor.map(|id| id.to_string()),
        incident_id: delivery.incident.map(|id| id.to_string()),
        status: delivery.stage.name(),
        status_at: at.to_string(),
        tries: delivery.tries.all(),
        last_status: last.and_then(|last| last.status),
        last_error: last.and_then(|last| last.error.clone()),
        created_at: delivery.created_at.to_string(),
    }
}

fn tried(one: &Try) -> TryDocument {
    TryDocument {
        at: one.at.to_string(),
        duration_ms: one.took_ms,
        status: one.status,
        error: one.error.clone(),
        answer: excerpt(&one.answer),
    }
}
