//! The API under `/api/v1`, by resource.

pub(super) mod deploys;
pub(super) mod incidents;
pub(super) mod me;
pub(super) mod monitors;
pub(super) mod pages;
pub(super) mod query;
pub(super) mod regions;

use ::http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::error::Refused;
use super::legacy;
use super::reply::Reply;
use super::route::Call;
use crate::service::once::{Done, Ticket};
use crate::service::{self, Caller};

/// The ticket of a request that has no body. Whoever does not reach what it is about is told that, and not of a fault in
/// the header.
fn ticket(
    call: &Call<Caller>,
    reaches: impl FnOnce() -> service::Result<()>,
) -> Result<Option<Ticket>, Refused> {
    call.ticket(&[]).or_else(|fault| reaches().map_err(Refused::from).and(Err(fault)))
}

/// A document under its name, with the old names beside the new ones, as bytes.
fn wrapped(name: &str, document: &impl Serialize) -> Vec<u8> {
    bare(&serde_json::json!({ name: document }))
}

/// The same, with warnings beside it where there are any.
fn warned(name: &str, document: &impl Serialize, warnings: &[String]) -> Vec<u8> {
    if warnings.is_empty() {
        return wrapped(name, document);
    }
    bare(&serde_json::json!({ name: document, "warnings": warnings }))
}

/// A document with the old names beside the new ones, as bytes.
fn bare(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&with_old_names(document)).unwrap_or_default()
}

/// A document with the old names beside the new ones.
fn with_old_names(document: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or(Value::Null);
    legacy::add_old_names(&mut value);
    value
}

/// What came of a write that makes something in the list at `path`: done, with where it is to be found.
fn made<T>(path: &str, name: &str, made: Done<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> Reply {
    let (document, is_replay) = match made {
        Done::Now(value) => (answer(&value), false),
        Done::Before(answer) => (answer, true),
    };
    // The first answer is read for the id, so that a repetition has the same address.
    let id = serde_json::from_slice::<Value>(&document)
        .ok()
        .and_then(|whole| whole.get(name)?.get("id")?.as_str().map(str::to_owned));
    let reply = Reply::written(StatusCode::CREATED, document);
    let reply = if is_replay { reply.replayed() } else { reply };
    match id {
        Some(id) => reply.at(&format!("{path}/{id}")),
        None => reply,
    }
}

/// What came of a write: the answer of now, or of its first sending.
fn done<T>(status: StatusCode, done: Done<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> Reply {
    match done {
        Done::Now(value) => Reply::written(status, answer(&value)),
        Done::Before(answer) => Reply::written(status, answer).replayed(),
    }
}
