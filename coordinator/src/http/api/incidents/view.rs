//! An incident or a window as the API shows it, and as the status document does.

use parallax_core::incident::Update;
use parallax_core::time::Timestamp;
use serde_json::{Value, json};

use crate::service::incidents::Shown;

/// With times in ISO 8601.
pub(in crate::http::api) fn document(shown: &Shown) -> Value {
    written(shown, &|at| Value::from(at.to_string()))
}

/// With times in milliseconds since the epoch, and nothing that is for the owner alone.
pub(in crate::http::api) fn public(shown: &Shown) -> Value {
    let mut value = written(shown, &|at| Value::from(at.as_millis()));
    if let Some(object) = value.as_object_mut() {
        object.remove("remind");
        object.remove("automatic");
    }
    value
}

fn written(shown: &Shown, time: &dyn Fn(Timestamp) -> Value) -> Value {
    let incident = &shown.incident;
    let remind: Vec<String> = incident.remind.iter().map(ToString::to_string).collect();
    let repeat = shown.series.as_ref().map(|series| {
        json!({
            "every": series.recurrence.every.name(),
            "timezone": series.recurrence.zone.name(),
            "seriesId": series.id.to_string(),
            "stoppedAt": series.stopped_at.map(time),
        })
    });
    let monitors = shown.monitors.iter().map(|(id, name, impact)| {
        let mut monitor = json!({ "id": id.to_string(), "name": name });
        if let (Some(object), Some(impact)) = (monitor.as_object_mut(), impact) {
            object.insert("impact".to_owned(), Value::from(impact.name()));
        }
        monitor
    });
    json!({
        "id": incident.id.to_string(),
        "kind": incident.kind.name(),
        "title": incident.title,
        "status": incident.status.name(),
        "impact": incident.impact.name(),
        "startedAt": time(incident.started_at),
        "endsAt": incident.ends_at.map(time),
        "resolvedAt": incident.resolved_at.map(time),
        "automatic": incident.automatic,
        "remind": (!remind.is_empty()).then_some(remind),
        "repeat": repeat,
        "postmortem": incident.postmortem,
        "monitors": monitors.collect::<Vec<_>>(),
        "updates": incident.updates.iter().rev().map(|it| update(it, time)).collect::<Vec<_>>(),
    })
}

fn update(update: &Update, time: &dyn Fn(Timestamp) -> Value) -> Value {
    json!({
        "id": update.id.to_string(),
        "status": update.status,
        "body": update.body,
        "createdAt": time(update.created_at),
    })
}
