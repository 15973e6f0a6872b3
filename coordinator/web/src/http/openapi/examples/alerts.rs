//! Examples of destinations, deliveries and alert settings, and of the bodies that create and change them.

use serde_json::{Value, json};

use crate::http::openapi::sample_shop::{DELIVERY, DESTINATION, EXAMPLE_SECRET, MONITOR, PAGE, SUBSCRIBER};
use crate::http::openapi::webhooks;

/// Returns the examples written by hand.
pub(super) fn examples_of(name: &str) -> Vec<Value> {
    match name {
        "Destination" => vec![destination()],
        "Delivery" => vec![delivery()],
        "DeliveryDetail" => vec![delivery_detail()],
        "DeliveryTry" => vec![delivery_attempt()],
        "DeliveryListResponse" => vec![json!({ "deliveries": [delivery()], "nextBefore": null })],
        "AlertSettings" => vec![json!({ "repeatMinutes": 30, "automaticIncidents": true })],
        "Subscriber" => vec![subscriber()],
        "SubscriberListResponse" => vec![json!({ "subscribers": [subscriber()], "nextCursor": null })],
        "SubscriberImport" => {
            vec![json!({ "csv": "email,monitors\nann@example.com,Checkout\nbob@example.com,\n", "dryRun": true })]
        }
        "SubscriberImportResult" => vec![imported()],
        "SubscriberImportResponse" => vec![json!({ "import": imported() })],
        "RefusedLine" => vec![json!({ "line": 7, "rule": "must be an email address" })],
        "SubscriberExport" => vec![json!(
            "address,type,state,since,monitors\r\n\
             reader@example.com,email,confirmed,2026-03-01T09:04:51.770Z,Checkout\r\n"
        )],
        "SubscriberCreate" => {
            vec![json!({ "email": "reader@example.com", "monitorIds": [MONITOR.to_string()] })]
        }
        "DestinationCreate" => vec![
            json!({
                "type": "webhook", "name": "On call", "url": "https://hooks.shop.example/alerts",
                "events": ["went-down", "still-down", "recovered"], "monitorIds": [MONITOR.to_string()],
            }),
            json!({ "type": "email", "name": "Ops", "to": "ops@shop.example" }),
            json!({ "type": "slack", "name": "Team", "url": "https://hooks.slack.com/services/T000/B000/XXXX" }),
            json!({ "type": "telegram", "name": "Group", "token": "123456:ABC-def", "chat": "@shop_alerts" }),
            json!({ "type": "ntfy", "name": "Phone", "url": "https://ntfy.sh/shop-alerts" }),
            json!({ "type": "pagerduty", "name": "Pager", "key": "0123456789abcdef0123456789abcdef" }),
        ],
        "DestinationUpdate" => vec![json!({ "name": "Ops", "events": null, "enabled": true })],
        "AlertsUpdate" => vec![json!({ "repeatMinutes": 30, "automaticIncidents": true })],
        _ => Vec::new(),
    }
}

fn destination() -> Value {
    json!({
        "id": DESTINATION.to_string(), "pageId": PAGE.to_string(), "name": "On call", "type": "webhook",
        "url": "https://hooks.shop.example/alerts", "to": null, "token": null, "chat": null, "key": null,
        "secret": EXAMPLE_SECRET, "secretPending": false, "secretRotatedAt": null, "oldSecretUntil": null, "evidenceLink": false,
        "events": ["went-down", "still-down", "recovered"],
        "monitorIds": [MONITOR.to_string()], "enabled": true, "status": "active", "failingSince": null, "offSince": null,
        "offReason": null, "createdAt": "2026-03-01T08:59:02.118Z",
    })
}

fn subscriber() -> Value {
    json!({
        "id": SUBSCRIBER.to_string(), "pageId": PAGE.to_string(), "type": "email", "email": "reader@example.com",
        "url": null, "monitorIds": [MONITOR.to_string()], "confirmedAt": "2026-03-01T09:04:51.770Z",
        "queuedAt": null, "offSince": null, "offReason": null, "createdAt": "2026-03-01T09:02:17.306Z",
    })
}

fn imported() -> Value {
    json!({
        "dryRun": true, "added": 180, "known": 12, "repeated": 0, "optedOut": 1, "refused": 1,
        "refusedLines": [{ "line": 7, "rule": "must be an email address" }],
    })
}

fn delivery() -> Value {
    json!({
        "id": DELIVERY.to_string(), "pageId": PAGE.to_string(), "destinationId": DESTINATION.to_string(),
        "subscriberId": null, "event": "went-down", "test": false, "monitorId": MONITOR.to_string(),
        "incidentId": null, "status": "waiting", "statusAt": "2026-03-01T09:30:36.411Z", "tries": 2,
        "lastStatus": 503, "lastError": "the receiver answered 503", "createdAt": "2026-03-01T09:30:05.620Z",
    })
}

fn delivery_detail() -> Value {
    let mut detail = delivery();
    detail["subject"] = Value::Null;
    detail["body"] = json!(webhooks::example().to_string());
    detail["log"] = json!([delivery_attempt()]);
    detail
}

fn delivery_attempt() -> Value {
    json!({
        "at": "2026-03-01T09:30:05.700Z", "durationMs": 84, "status": 503, "error": "the receiver answered 503",
        "answer": "try later",
    })
}
