//! The API under `/api/v1`, by resource.

pub(super) mod deploys;
pub(super) mod incidents;
pub(super) mod me;
pub(super) mod monitors;
pub(super) mod pages;

use ::http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::legacy;
use super::reply::Reply;
use crate::service::once::Done;

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
    let mut value = serde_json::to_value(document).unwrap_or(Value::Null);
    legacy::add_old_names(&mut value);
    serde_json::to_vec(&value).unwrap_or_default()
}

/// What came of a write: the answer of now, or of its first sending.
fn done<T>(status: StatusCode, done: Done<T>, answer: impl FnOnce(&T) -> Vec<u8>) -> Reply {
    match done {
        Done::Now(value) => Reply::written(status, answer(&value)),
        Done::Before(answer) => Reply::written(status, answer),
    }
}
