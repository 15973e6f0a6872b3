//! The API under `/api/v1`, by resource.

pub(super) mod alerts;
mod body_check;
pub(super) mod current_key;
pub(super) mod deliveries;
pub(super) mod deploys;
pub(super) mod destinations;
pub(super) mod incidents;
pub(super) mod mask;
pub(super) mod monitors;
pub(super) mod pages;
pub(super) mod query_params;
pub(super) mod regions;
pub(super) mod subscriber_transfer;
pub(super) mod subscribers;

use ::http::StatusCode;
use parallax_service::idempotency::{IdempotencyKey, RequestOutcome};
use parallax_service::{self as service, Caller};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::HttpContext;
use super::error::ApiError;
use super::json_body::JsonObject;
use super::legacy;
use super::response::HttpResponse;
use super::routed_request::RoutedRequest;

/// Reads the idempotency key of a request without a body. An unreachable resource is reported before an error in
/// the header.
fn idempotency_key(
    call: &RoutedRequest<Caller>,
    reaches: impl FnOnce() -> service::ServiceResult<()>,
) -> Result<Option<IdempotencyKey>, ApiError> {
    call.idempotency_key(&[]).or_else(|fault| reaches().map_err(ApiError::from).and(Err(fault)))
}

/// Reads the body and the idempotency key of a request that changes a resource. An unreachable resource is reported
/// before an error in the body. A repeated request is replayed even if the resource was deleted since.
async fn read_object(
    context: &HttpContext,
    call: &mut RoutedRequest<Caller>,
    reached: service::ServiceResult<()>,
) -> Result<(JsonObject, Option<IdempotencyKey>), ApiError> {
    let Err(unreached) = reached else { return call.json_object().await };
    let may_be_again =
        unreached == service::ServiceError::NotFound && call.headers.contains_key(service::idempotency::HEADER);
    if may_be_again
        && let Ok((object, Some(idempotency_key))) = call.json_object().await
        && context.service.is_replay(&idempotency_key)?
    {
        return Ok((object, Some(idempotency_key)));
    }
    Err(unreached.into())
}

/// Serializes a document under its name, with the old names next to the new ones.
fn enveloped(name: &'static str, document: &impl Serialize) -> Vec<u8> {
    to_json(&ResponseEnvelope { name, document, warnings: &[] })
}

/// Serializes a document under its name, with warnings if there are any.
fn enveloped_with_warnings(name: &'static str, document: &impl Serialize, warnings: &[String]) -> Vec<u8> {
    to_json(&ResponseEnvelope { name, document, warnings })
}

/// Serializes a document with the old names next to the new ones.
fn to_json(document: &impl Serialize) -> Vec<u8> {
    legacy::to_json(document)
}

struct ResponseEnvelope<'a, T> {
    name: &'static str,
    document: &'a T,
    warnings: &'a [String],
}

impl<T: Serialize> Serialize for ResponseEnvelope<'_, T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let mut object = writer.serialize_map(None)?;
        object.serialize_entry(self.name, self.document)?;
        if !self.warnings.is_empty() {
            object.serialize_entry("warnings", self.warnings)?;
        }
        object.end()
    }
}

/// Replies to a write that creates a resource in the list at `path`: the document and its location.
fn created_reply<T>(
    path: &str,
    name: &str,
    outcome: RequestOutcome<T>,
    answer: impl FnOnce(&T) -> Vec<u8>,
) -> HttpResponse {
    let is_again = matches!(outcome, RequestOutcome::Reread(_));
    let (document, is_replay) = match outcome {
        RequestOutcome::Fresh(value) => (answer(&value), false),
        RequestOutcome::Replayed(answer) => (answer, true),
        RequestOutcome::Reread(value) => (answer(&value), true),
    };
    // The id is read from the document, so that a replay has the same location.
    let id = serde_json::from_slice::<Value>(&document)
        .ok()
        .and_then(|response| response.get(name)?.get("id")?.as_str().map(str::to_owned));
    let reply = HttpResponse::json_bytes(StatusCode::CREATED, document);
    let reply = if is_replay { reply.replayed() } else { reply };
    let reply = if is_again { reply.replayed_current() } else { reply };
    match id {
        Some(id) => reply.with_location(&format!("{path}/{id}")),
        None => reply,
    }
}

/// Replies to a write: with the fresh response, or a replay of the first one; for a long one, with the current
/// resource.
fn write_reply<T>(status: StatusCode, outcome: RequestOutcome<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> HttpResponse {
    match outcome {
        RequestOutcome::Fresh(value) => HttpResponse::json_bytes(status, answer(&value)),
        RequestOutcome::Replayed(answer) => HttpResponse::json_bytes(status, answer).replayed(),
        RequestOutcome::Reread(value) => HttpResponse::json_bytes(status, answer(&value)).replayed().replayed_current(),
    }
}
