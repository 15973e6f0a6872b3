//! The API under `/api/v1`, by resource.

pub(super) mod alerts;
pub(super) mod deliveries;
pub(super) mod deploys;
pub(super) mod destinations;
pub(super) mod incidents;
mod mask;
pub(super) mod me;
pub(super) mod monitors;
pub(super) mod pages;
pub(super) mod query;
pub(super) mod regions;
mod sent;
pub(super) mod subscribers;

use ::http::StatusCode;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Context;
use super::error::Refused;
use super::json::Object;
use super::legacy;
use super::reply::Reply;
use super::route::Call;
use crate::service::once::{Done, Ticket};
use crate::service::{self, Caller};

/// Reads the idempotency key of a request without a body. An unreachable resource is reported before an error in
/// the header.
fn ticket(
    call: &Call<Caller>,
    reaches: impl FnOnce() -> service::Result<()>,
) -> Result<Option<Ticket>, Refused> {
    call.ticket(&[]).or_else(|fault| reaches().map_err(Refused::from).and(Err(fault)))
}

/// Reads the body and the idempotency key of a request that changes a resource. An unreachable resource is reported
/// before an error in the body. A repeated request is replayed even if the resource is gone by now.
async fn object_of(
    context: &Context,
    call: &mut Call<Caller>,
    reached: service::Result<()>,
) -> Result<(Object, Option<Ticket>), Refused> {
    let Err(unreached) = reached else { return call.object().await };
    let may_be_again =
        unreached == service::Error::NotFound && call.headers.contains_key(service::once::HEADER);
    if may_be_again
        && let Ok((object, Some(ticket))) = call.object().await
        && context.service.is_answered(&ticket)?
    {
        return Ok((object, Some(ticket)));
    }
    Err(unreached.into())
}

/// Serializes a document under its name, with the old names next to the new ones.
fn wrapped(name: &'static str, document: &impl Serialize) -> Vec<u8> {
    bare(&Wrapped { name, document, warnings: &[] })
}

/// Serializes a document under its name, with warnings if there are any.
fn warned(name: &'static str, document: &impl Serialize, warnings: &[String]) -> Vec<u8> {
    bare(&Wrapped { name, document, warnings })
}

/// Serializes a document with the old names next to the new ones.
fn bare(document: &impl Serialize) -> Vec<u8> {
    legacy::written(document)
}

struct Wrapped<'a, T> {
    name: &'static str,
    document: &'a T,
    warnings: &'a [String],
}

impl<T: Serialize> Serialize for Wrapped<'_, T> {
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
fn made<T>(path: &str, name: &str, made: Done<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> Reply {
    let is_again = matches!(made, Done::Again(_));
    let (document, is_replay) = match made {
        Done::Now(value) => (answer(&value), false),
        Done::Before(answer) => (answer, true),
        Done::Again(value) => (answer(&value), true),
    };
    // The id is read from the document, so that a replay has the same location.
    let id = serde_json::from_slice::<Value>(&document)
        .ok()
        .and_then(|whole| whole.get(name)?.get("id")?.as_str().map(str::to_owned));
    let reply = Reply::written(StatusCode::CREATED, document);
    let reply = if is_replay { reply.replayed() } else { reply };
    let reply = if is_again { reply.redrawn() } else { reply };
    match id {
        Some(id) => reply.at(&format!("{path}/{id}")),
        None => reply,
    }
}

/// Replies to a write: with the fresh response, or a replay of the first one; for a long one, with the current
/// resource.
fn done<T>(status: StatusCode, done: Done<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> Reply {
    match done {
        Done::Now(value) => Reply::written(status, answer(&value)),
        Done::Before(answer) => Reply::written(status, answer).replayed(),
        Done::Again(value) => Reply::written(status, answer(&value)).replayed().redrawn(),
    }
}
