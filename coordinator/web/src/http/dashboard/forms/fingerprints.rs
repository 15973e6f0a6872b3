//! Fingerprints of a record's values: what a form that changes it was drawn with.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::http::json_body::JsonObject;

/// Bytes of a value's fingerprint.
const FINGERPRINT: usize = 8;
/// End of the names of fields that are lists of ids.
const ID_LIST: &str = "Ids";
/// Other lists whose order means nothing.
const SETS: [&str; 2] = ["events", "remind"];

/// Returns the fingerprints of a record's values, for the hidden field of a form.
pub(in crate::http) fn loaded(current: &JsonObject) -> String {
    let fields = current.iter().map(|(name, value)| format!("{name}={}", fingerprint(name, value)));
    fields.collect::<Vec<_>>().join(" ")
}

/// Reads the fingerprints that a form was drawn with, by field.
pub(super) fn parse_loaded(text: &str) -> BTreeMap<&str, &str> {
    text.split(' ').filter_map(|field| field.split_once('=')).collect()
}

/// Returns the value as it is compared. A list whose order means nothing is sorted: a form has it in the order in which
/// it draws it.
pub(super) fn comparable<'a>(name: &str, value: &'a Value) -> Cow<'a, Value> {
    match value {
        Value::Array(entries) if name.ends_with(ID_LIST) || SETS.contains(&name) => {
            let mut entries = entries.clone();
            entries.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            Cow::Owned(Value::Array(entries))
        }
        value => Cow::Borrowed(value),
    }
}

/// Returns the fingerprint of a field's value.
pub(super) fn fingerprint(name: &str, value: &Value) -> String {
    let digest = Sha256::digest(comparable(name, value).to_string().as_bytes());
    hex::encode(digest.iter().copied().take(FINGERPRINT).collect::<Vec<u8>>())
}
