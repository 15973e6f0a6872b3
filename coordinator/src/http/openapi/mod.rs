//! The machine-readable description of the API (OpenAPI 3.1), generated from the body readers and the response
//! types.

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

/// `GET /api/v1/openapi.json`: needs no key and can be read cross-origin.
pub(super) async fn show(context: Arc<Context>, call: Call<()>) -> Answer {
    let (written, tag) = context.description();
    let reply = Reply::written(StatusCode::OK, written.clone()).lasting();
    Ok(reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")).tagged_as(tag, &call.headers))
}

/// Returns the description for a service at that base URL.
pub(super) fn description(base_url: &str) -> Value {
    document::document(base_url, &operations())
}

/// Returns the description as bytes.
pub(super) fn written(base_url: &str) -> Vec<u8> {
    serde_json::to_vec(&description(base_url)).unwrap_or_default()
}

/// Returns the description of a path parameter.
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

/// Returns the resources, in display order.
fn tags() -> Value {
    json!([
        { "name": "Keys", "description": "The API key used for the request." },
        { "name": "Regions", "description": "Regions that checks run from." },
        { "name": "Pages", "description": "Status pages and their settings." },
        { "name": "Monitors", "description": "Monitors, their checks, state and statistics." },
        { "name": "Incidents", "description": "Incidents and maintenance windows, with their updates." },
        { "name": "Deploys", "description": "Deploy markers." },
        { "name": "Alerts", "description": "Alert destinations and deliveries." },
        { "name": "Subscribers", "description": "People and webhooks notified of incidents and maintenance." },
        { "name": "Webhooks", "description": "Requests sent to your endpoints." },
    ])
}

#[cfg(test)]
mod tests;
