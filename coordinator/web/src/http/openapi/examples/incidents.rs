//! Examples of incidents and maintenance windows.

use serde_json::{Value, json};

use crate::http::openapi::sample_shop::{INCIDENT, MONITOR, SERIES, UPDATE};

/// Returns the example incident.
pub(in crate::http::openapi) fn incident() -> Value {
    json!({
        "id": INCIDENT.to_string(), "kind": "incident", "title": "Checkout is down", "status": "identified",
        "impact": "partial", "startedAt": "2026-03-01T09:30:00.000Z", "endsAt": null, "resolvedAt": null,
        "automatic": false, "remind": ["1h"], "repeat": null, "postmortem": null, "monitors": [affected()],
        "updates": [update(&json!("2026-03-01T09:32:20.000Z"))],
    })
}

/// Returns an example maintenance window.
pub(super) fn window() -> Value {
    let mut window = incident();
    for (name, value) in [
        ("kind", json!("maintenance")),
        ("title", json!("Database upgrade")),
        ("status", json!("scheduled")),
        ("impact", json!("none")),
        ("startedAt", json!("2026-12-08T02:00:00.000Z")),
        ("endsAt", json!("2026-12-08T03:00:00.000Z")),
        ("remind", json!(["1d", "1h"])),
        ("repeat", repeat(&Value::Null)),
        ("updates", json!([])),
    ] {
        window[name] = value;
    }
    window
}

/// Returns the incident as public pages have it.
pub(super) fn public_entry() -> Value {
    json!({
        "id": INCIDENT.to_string(), "kind": "incident", "title": "Checkout is down", "status": "identified",
        "impact": "partial", "startedAt": 1_772_357_400_000_i64, "endsAt": null, "resolvedAt": null, "repeat": null,
        "postmortem": null, "monitors": [affected()], "updates": [update(&json!(1_772_357_540_000_i64))],
    })
}

/// Returns a monitor that the incident affects.
pub(super) fn affected() -> Value {
    json!({ "id": MONITOR.to_string(), "name": "Checkout", "impact": "partial" })
}

/// Returns the update of the incident, with its time in the format of the document.
pub(super) fn update(at: &Value) -> Value {
    json!({ "id": UPDATE.to_string(), "status": "identified", "body": "A disk is full.", "createdAt": at })
}

/// Returns the repetition of the window.
pub(super) fn repeat(stopped_at: &Value) -> Value {
    json!({
        "every": "monthly-weekday", "timezone": "Europe/Berlin", "seriesId": SERIES.to_string(),
        "stoppedAt": stopped_at,
    })
}
