//! The machine-readable description of the API (OpenAPI 3.1), generated from the body readers and the response
//! types.

mod component_names;
mod errors;
mod examples;
mod openapi_document;
pub(in crate::http) mod operation;
mod operations;
mod sample_shop;
pub(in crate::http) mod value_schemas;
mod webhooks;

#[cfg(test)]
pub(in crate::http) use openapi_document::standalone_schema;
pub(in crate::http) use operations::operations;
#[cfg(test)]
pub(in crate::http) use sample_shop::EXAMPLE_SECRET;

use std::sync::Arc;

use ::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use ::http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::HttpContext;
use super::error::HandlerResult;
use super::response::{HttpResponse, etag_of_body};
use super::routed_request::RoutedRequest;

/// `GET /api/v1/openapi.json`: needs no key and can be read cross-origin.
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    // All responses share one copy.
    let (bytes, tag) = context.openapi_document.get_or_init(|| {
        let bytes = to_bytes(context.service.base_url());
        let tag = etag_of_body(&bytes);
        (bytes.into(), tag)
    });
    let reply = HttpResponse::json_bytes(StatusCode::OK, bytes.clone()).permanent();
    Ok(reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")).with_known_etag(tag, &call.headers))
}

/// Returns the description for a service at that base URL.
pub(super) fn description(base_url: &str) -> Value {
    openapi_document::document(base_url, &operations())
}

/// Returns the description as bytes.
fn to_bytes(base_url: &str) -> Vec<u8> {
    serde_json::to_vec(&description(base_url)).unwrap_or_default()
}

/// Returns the description of a path parameter.
pub(in crate::http) fn parameter_description(name: &str) -> &'static str {
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
