//! Parses request bodies as JSON, with limits on size, time and depth. Duplicate keys are rejected.

use std::fmt;
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parallax_core::subscriber::import::MAX_IMPORT_BYTES;
use parallax_core::validation::ValidationErrors;
use parallax_service::idempotency;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::legacy;

/// Stream of a request body.
pub(super) type RequestBody = BoxStream<'static, Result<Bytes, ()>>;
/// A JSON object.
pub(super) type JsonObject = Map<String, Value>;

/// Size limit of a body, in bytes: the largest valid field with every character escaped, and some more.
const MAX_BYTES: usize = 256 * 1024;
/// Size limit of an import, which is one long text with the characters that JSON and forms escape.
const MAX_IMPORT_BODY: usize = 2 * MAX_IMPORT_BYTES + MAX_BYTES;
/// End of the paths of imports.
const IMPORT: &str = "/subscribers/import";
/// Maximum nesting depth of JSON.
const MAX_DEPTH: usize = 32;
/// Time limit for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of an idempotency key, in characters.
const MAX_IDEMPOTENCY_KEY: usize = 255;

/// Reads the whole body. A body whose `Content-Length` is too large is rejected at once.
pub(super) async fn read_bytes(headers: &HeaderMap, body: &mut RequestBody) -> Result<Vec<u8>, ValidationErrors> {
    read_limited(MAX_BYTES, headers, body).await
}

/// The same for a request to that path: an import may be longer.
pub(super) async fn read_bytes_to(
    path: &str,
    headers: &HeaderMap,
    body: &mut RequestBody,
) -> Result<Vec<u8>, ValidationErrors> {
    let limit = if path.ends_with(IMPORT) { MAX_IMPORT_BODY } else { MAX_BYTES };
    read_limited(limit, headers, body).await
}

async fn read_limited(limit: usize, headers: &HeaderMap, body: &mut RequestBody) -> Result<Vec<u8>, ValidationErrors> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_long(limit));
    }
    let reading = async {
        let mut bytes = Vec::new();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|()| invalid_body("could not be read"))?;
            if bytes.len() + chunk.len() > limit {
                return Err(too_long(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    timeout(BODY_TIMEOUT, reading).await.unwrap_or_else(|_| Err(invalid_body("must arrive within 20 seconds")))
}

/// Makes a body of bytes in memory.
pub(super) fn from_bytes(bytes: Vec<u8>) -> RequestBody {
    futures_util::stream::once(std::future::ready(Ok(Bytes::from(bytes)))).boxed()
}

/// Parses a body as any JSON value.
pub(super) fn parse_document(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, ValidationErrors> {
    if !is_json(headers) {
        return Err(ValidationErrors::single("Content-Type", "must be application/json"));
    }
    parse_value(bytes).map_err(|error| invalid_body(&format!("is not valid JSON: {error}")))
}

/// Parses a body as a JSON object, with old field names read as new ones.
pub(super) fn parse_object(headers: &HeaderMap, bytes: &[u8]) -> Result<JsonObject, ValidationErrors> {
    if bytes.is_empty() {
        return Err(invalid_body("must be a JSON object"));
    }
    if !is_json(headers) {
        return Err(ValidationErrors::single("Content-Type", "must be application/json"));
    }
    match parse_value(bytes) {
        Ok(Value::Object(mut object)) => {
            legacy::read_old_names(&mut object);
            Ok(object)
        }
        Ok(_) => Err(invalid_body("must be a JSON object")),
        Err(error) => Err(invalid_body(&format!("is not valid JSON: {error}"))),
    }
}

/// Returns the idempotency key of a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ValidationErrors> {
    let rule = || {
        ValidationErrors::single(idempotency::HEADER, format!("must be 1 to {MAX_IDEMPOTENCY_KEY} visible characters"))
    };
    let mut values = headers.get_all(idempotency::HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let value = value.to_str().map_err(|_| rule())?.trim();
    if values.next().is_some() || value.is_empty() || value.len() > MAX_IDEMPOTENCY_KEY {
        return Err(rule());
    }
    Ok(Some(value))
}

fn too_long(limit: usize) -> ValidationErrors {
    invalid_body(&format!("must be at most {} KiB", limit / 1024))
}

fn invalid_body(rule: &str) -> ValidationErrors {
    ValidationErrors::whole_request(format!("the body {rule}"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Parses one JSON value. A leading byte order mark, which some editors and shells write, is skipped (RFC 8259, section
/// 8.1).
fn parse_value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = NestingDepth(0).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Deserializes a value at a nesting depth.
#[derive(Clone, Copy)]
struct NestingDepth(usize);

impl NestingDepth {
    fn descend<E: Error>(self) -> Result<Self, E> {
        if self.0 < MAX_DEPTH { Ok(Self(self.0 + 1)) } else { Err(E::custom("nested too deeply")) }
    }
}

impl<'de> DeserializeSeed<'de> for NestingDepth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestingDepth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let level = self.descend()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(level)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let level = self.descend()?;
        let mut object = JsonObject::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(level)?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate name {name:.60}")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_survive_parsing() {
        let text = br#"{"a": [1, -2, 2.5, true, null, "x\u00e9"], "b": {"c": 18446744073709551615}}"#;
        let expected = json!({ "a": [1, -2, 2.5, true, null, "xé"], "b": { "c": u64::MAX } });
        assert_eq!(parse_value(text).unwrap(), expected);
        let marked = [b"\xef\xbb\xbf", &text[..]].concat();
        assert_eq!(parse_value(&marked).unwrap(), expected, "with a byte order mark");
        assert!(parse_value(b"\xef\xbb\xbf\xef\xbb\xbf{}").is_err() && parse_value(b"{}\xef\xbb\xbf").is_err());
    }

    #[test]
    fn a_duplicate_name_is_refused() {
        assert!(parse_value(br#"{"a": 1, "a": 1}"#).is_err());
        assert!(parse_value(br#"[{"b": {"a": 1, "a": 2}}]"#).is_err());
    }

    #[test]
    fn nesting_is_limited_to_thirty_two() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse_value(deep(32).as_bytes()).is_ok() && parse_value(deep(33).as_bytes()).is_err());
        assert!(parse_value(b"{} {}").is_err() && parse_value(b"{").is_err() && parse_value(b"\xff").is_err());
    }

    #[tokio::test]
    async fn a_body_of_256_kib_is_the_largest() {
        let stream = |parts: usize| -> RequestBody {
            futures_util::stream::iter((0..parts).map(|_| Ok(Bytes::from(vec![b' '; 1024])))).boxed()
        };
        let none = HeaderMap::new();
        assert_eq!(read_bytes(&none, &mut stream(256)).await.map(|bytes| bytes.len()), Ok(256 * 1024));
        assert!(read_bytes(&none, &mut stream(257)).await.is_err());
        let path = "/app/pages/pg_1/subscribers/import";
        let import = read_bytes_to(path, &none, &mut stream(1_280)).await;
        assert_eq!(import.map(|bytes| bytes.len()), Ok(1_280 * 1024));
        assert!(read_bytes_to(path, &none, &mut stream(1_281)).await.is_err());
        assert!(read_bytes_to("/app/pages", &none, &mut stream(257)).await.is_err());
        let mut torn: RequestBody = futures_util::stream::iter([Ok(Bytes::from_static(b"{")), Err(())]).boxed();
        assert!(read_bytes(&none, &mut torn).await.is_err());
    }

    #[test]
    fn a_declared_length_over_the_limit_is_refused_at_once() {
        let announced = |length: usize| HeaderMap::from_iter([(CONTENT_LENGTH, length.into())]);
        let mut pending: RequestBody = futures_util::stream::pending().boxed();
        assert!(matches!(read_bytes(&announced(256 * 1024 + 1), &mut pending).now_or_never(), Some(Err(_))));
    }

    #[test]
    fn only_json_objects_are_bodies() {
        let headers = |kind: &str| HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
        assert!(parse_object(&headers("application/json"), b"{}").is_ok());
        assert!(parse_object(&headers("Application/JSON; charset=utf-8"), b"{}").is_ok());
        assert!(parse_object(&headers("text/plain"), b"{}").is_err());
        assert!(parse_object(&HeaderMap::new(), b"{}").is_err());
        for body in [&b""[..], b"[]", b"null", b"1", b"{"] {
            assert!(parse_object(&headers("application/json"), body).is_err(), "{body:?}");
        }
    }
}
