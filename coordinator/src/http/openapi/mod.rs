//! The machine-readable description of the API (OpenAPI 3.1), made of the readers of bodies and the types of answers.

mod document;
mod errors;
mod examples;
mod named;
pub(in crate::http) mod operation;
mod operations;
mod webhooks;
pub(in crate::http) mod words;

#[cfg(test)]
pub(in crate::http) use document::standalone;
pub(in crate::http) use operations::operations;
pub(in crate::http) use webhooks::SECRET as EXAMPLE_SECRET;

use std::sync::Arc;

use ::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use ::http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::Context;
use super::reply::Reply;
use super::route::{Answer, Call};

/// `GET /api/v1/openapi.json`: needs no key, and may be read from any site.
pub(super) async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let (written, tag) = context.description();
    let reply = Reply::written(StatusCode::OK, written.clone()).lasting();
    Ok(reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")).tagged_as(tag, &call.headers))
}

/// The description, for a service at that address.
pub(super) fn description(base_url: &str) -> Value {
    document::document(base_url, &operations())
}

/// The same, written.
pub(super) fn written(base_url: &str) -> Vec<u8> {
    serde_json::to_vec(&description(base_url)).unwrap_or_default()
}

/// What a part of a path names.
pub(in crate::http) fn part_about(name: &str) -> &'static str {
    match name {
        "pageId" => "The page's id.",
        "monitorId" => "The monitor's id.",
        "incidentId" => "The incident's id.",
        "deployId" => "The deploy marker's id.",
        "destinationId" => "The destination's id.",
        "subscriberId" => "The subscriber's id.",
        "deliveryId" => "The delivery's id.",
        _ => "",
    }
}

/// The resources, in their order.
fn tags() -> Value {
    json!([
        { "name": "Keys", "description": "The key that asks." },
        { "name": "Regions", "description": "Where checks come from." },
        { "name": "Pages", "description": "Status pages and what they show." },
        { "name": "Monitors", "description": "Checks, their state and their figures." },
        { "name": "Incidents", "description": "Incidents and maintenance, with their updates." },
        { "name": "Deploys", "description": "What was released when." },
        { "name": "Alerts", "description": "Where alerts go, what was sent, and what came of it." },
        { "name": "Subscribers", "description": "Who is told of incidents and maintenance." },
        { "name": "Webhooks", "description": "What is sent to you when a monitor changes state." },
    ])
}

#[cfg(test)]
mod tests;
