//! What is refused, as the description tells of it: shared responses, their schema, and the headers of a key's minute.

use serde_json::{Value, json};

use super::operation::Operation;
use crate::http::error::OVERLOADED;

/// What a tag of an answer looks like.
pub(super) const TAG: &str = "\"5d1f0c3a9b7e2486d0c4f1a85b3e9726\"";

/// Refusals that an operation may answer, by status, each with the name of its shared response.
pub(super) fn of(operation: &Operation) -> Vec<(&'static str, &'static str)> {
    let mut refusals = Vec::new();
    if !operation.writes() {
        refusals.push(("304", "NotModified"));
    }
    if operation.body.is_some() || !operation.query.is_empty() || operation.writes() {
        refusals.push(("400", "BadRequest"));
    }
    refusals.push(("401", "Unauthenticated"));
    if operation.writes() {
        refusals.push(("403", "ReadOnly"));
    }
    if operation.parts().next().is_some() {
        refusals.push(("404", "NotFound"));
    }
    if operation.writes() {
        refusals.push(("422", "PlanLimit"));
    }
    refusals.extend([("429", "RateLimited"), ("500", "Internal"), ("503", "Overloaded")]);
    refusals
}

/// The shared responses.
pub(super) fn responses() -> Value {
    let refusal = |about: &str, code: &str, message: &str| {
        json!({
            "description": about,
            "headers": allowance(),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/ApiError" },
                "example": refused(code, message),
            } },
        })
    };
    let both = |first: (&str, &str, &str), second: (&str, &str, &str)| {
        let mut response = refusal(first.0, first.1, first.2);
        response["description"] = json!(format!("{} {}", first.0, second.0));
        let one = |(about, code, message): (&str, &str, &str)| json!({ "summary": about, "value": refused(code, message) });
        let examples = json!({ (first.1): one(first), (second.1): one(second) });
        response["content"]["application/json"] =
            json!({ "schema": { "$ref": "#/components/schemas/ApiError" }, "examples": examples });
        response
    };
    let mut responses = json!({
        "BadRequest": refusal("What was sent breaks rules; `fields` lists all of them.", "bad_request", "name is required"),
        "Unauthenticated": refusal("No key, or none that is good.", "unauthenticated",
            "the key is cut off: it has 53 characters, and 41 were sent",
        ),
        "ReadOnly": both(
            ("The key may only read.", "read_only", "this key may only read"),
            ("It reaches one page only.", "one_page", "this key reaches one page only"),
        ),
        "NotFound": refusal(
            "Nothing by that id that the key reaches.", "not_found", "not found, or not accessible with this key",
        ),
        "PlanLimit": both(
            ("The plan does not allow it.", "plan_limit", "the plan allows 10 monitors"),
            (
                "The `Idempotency-Key` came with another request before.", "idempotency_key_reused",
                "this Idempotency-Key was used for another request",
            ),
        ),
        "RateLimited": refusal(
            "More requests than a minute allows, or more of what this route sends than its page or account may; the \
             message names the rule.",
            "rate_limited",
            "more than 120 requests in a minute; the minute is up in 12 seconds",
        ),
        "Internal": refusal("A fault on our side.", "internal", "something went wrong on our side"),
        "Overloaded": refusal(
            "Long answers of this account are under way that nobody takes.", "overloaded", OVERLOADED,
        ),
    });
    responses["BadRequest"]["content"]["application/json"]["example"]["error"]["fields"] =
        json!([{ "field": "name", "rule": "is required" }]);
    responses["NotModified"] =
        json!({ "description": "The same as before; no body.", "headers": with(allowance(), "ETag") });
    for name in ["RateLimited", "Overloaded"] {
        responses[name]["headers"]["Retry-After"] = json!({ "$ref": "#/components/headers/Retry-After" });
    }
    responses["Unauthenticated"]["headers"] = json!({});
    responses
}

/// A refusal's body.
fn refused(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

/// References to the headers that an operation's answer has.
pub(super) fn headers_of(operation: &Operation) -> Value {
    if !operation.writes() {
        return with(allowance(), "ETag");
    }
    let headers = with(allowance(), "Idempotency-Replayed");
    if operation.answer.status == 201 { with(headers, "Location") } else { headers }
}

/// The same with a reference to one more.
fn with(mut headers: Value, name: &str) -> Value {
    headers[name] = json!({ "$ref": format!("#/components/headers/{name}") });
    headers
}

/// References to the headers of a key's minute.
pub(super) fn allowance() -> Value {
    let names = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    let reference = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    Value::Object(names.into_iter().map(|name| (name.to_owned(), reference(name))).collect())
}

/// The headers of a key's minute.
pub(super) fn headers() -> Value {
    let number = |about: &str, example: u32| json!({ "description": about, "schema": { "type": "integer", "minimum": 0 }, "example": example });
    let text = |about: &str, example: &str| json!({ "description": about, "schema": { "type": "string" }, "example": example });
    json!({
        "RateLimit-Limit": number("Requests that the key may make in a minute.", 120),
        "RateLimit-Remaining": number("Requests that are left of this minute.", 117),
        "RateLimit-Reset": number("Seconds until the minute is up.", 42),
        "Retry-After": number("Seconds to wait before the next request.", 12),
        "ETag": text("Names this answer; send it as `If-None-Match`.", TAG),
        "Location": text("Path of what was made.", "/api/v1/pages/pg_1/monitors/mon_1"),
        "Idempotency-Replayed": text("`true` where this is the first answer to the same `Idempotency-Key`.", "true"),
    })
}

/// The schema of a refusal.
pub(super) fn schemas() -> [(String, Value); 3] {
    let field = json!({
        "type": "object",
        "required": ["field", "rule"],
        "properties": {
            "field": {
                "type": "string", "description": "The field's name, as it was to be sent; `$` is the body as a whole.",
            },
            "rule": { "type": "string", "description": "What it breaks, in words." },
        },
        "examples": [{ "field": "port", "rule": "must be a whole number from 1 to 65535" }],
    });
    let detail = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "description": "The reason, for programs." },
            "message": { "type": "string", "description": "The reason, in words." },
            "fields": {
                "type": "array", "items": { "$ref": "#/components/schemas/ApiErrorField" },
                "description": "All that is wrong with what was sent, in a refusal of code `bad_request`.",
            },
        },
        "examples": [{ "code": "not_found", "message": "not found, or not accessible with this key" }],
    });
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": { "$ref": "#/components/schemas/ApiErrorDetail" } },
        "examples": [{ "error": {
            "code": "bad_request", "message": "port must be a whole number from 1 to 65535",
            "fields": [{ "field": "port", "rule": "must be a whole number from 1 to 65535" }],
        } }],
    });
    [
        ("ApiError".to_owned(), error),
        ("ApiErrorDetail".to_owned(), detail),
        ("ApiErrorField".to_owned(), field),
    ]
}
