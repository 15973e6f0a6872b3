//! Error responses in the API description: shared responses, their schema, and the rate-limit headers.

use serde_json::{Value, json};

use super::operation::ApiOperation;
use crate::http::error::OVERLOADED_MESSAGE;

/// Example of an `ETag`.
pub(super) const TAG: &str = "\"5d1f0c3a9b7e2486d0c4f1a85b3e9726\"";

/// Returns the error responses of an operation, by status, each with the name of its shared response.
pub(super) fn error_responses(operation: &ApiOperation) -> Vec<(&'static str, &'static str)> {
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
    if operation.path_parameters().next().is_some() {
        refusals.push(("404", "NotFound"));
    }
    if operation.writes() {
        refusals.push(("422", "PlanLimit"));
    }
    refusals.extend([("429", "RateLimited"), ("500", "Internal"), ("503", "Overloaded")]);
    refusals
}

/// Returns the shared responses.
pub(super) fn responses() -> Value {
    let refusal = |summary: &str, code: &str, message: &str| {
        json!({
            "description": summary,
            "headers": rate_limit_headers(),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/ApiError" },
                "example": error_body(code, message),
            } },
        })
    };
    let two_examples = |first: (&str, &str, &str), second: (&str, &str, &str)| {
        let mut response = refusal(first.0, first.1, first.2);
        response["description"] = json!(format!("{} {}", first.0, second.0));
        let example = |(summary, code, message): (&str, &str, &str)| json!({ "summary": summary, "value": error_body(code, message) });
        let examples = json!({ (first.1): example(first), (second.1): example(second) });
        response["content"]["application/json"] =
            json!({ "schema": { "$ref": "#/components/schemas/ApiError" }, "examples": examples });
        response
    };
    let mut responses = json!({
        "BadRequest": refusal("Invalid request; `fields` lists every problem.", "bad_request", "name is required"),
        "Unauthenticated": refusal("The key is missing or invalid.", "unauthenticated",
            "the key is cut off: it has 53 characters, and 41 were sent",
        ),
        "ReadOnly": two_examples(
            ("The key is read-only.", "read_only", "this key may only read"),
            ("The key is limited to one page.", "one_page", "this key is limited to one page"),
        ),
        "NotFound": refusal(
            "Not found, or not accessible with this key.", "not_found", "not found, or not accessible with this key",
        ),
        "PlanLimit": two_examples(
            ("The plan does not allow it.", "plan_limit", "the plan allows 10 monitors"),
            (
                "The `Idempotency-Key` was already used for a different request.", "idempotency_key_reused",
                "this Idempotency-Key was already used for another request",
            ),
        ),
        "RateLimited": refusal(
            "Too many requests in a minute, or more sends through this route than its page or account may make; the \
             message names the limit.",
            "rate_limited",
            "more than 120 requests in a minute; retry in 12 seconds",
        ),
        "Internal": refusal("An error on our side.", "internal", "something went wrong on our side"),
        "Overloaded": refusal(
            "Too many long responses of this account are still being read.", "overloaded", OVERLOADED_MESSAGE,
        ),
    });
    responses["BadRequest"]["content"]["application/json"]["example"]["error"]["fields"] =
        json!([{ "field": "name", "rule": "is required" }]);
    responses["NotModified"] =
        json!({ "description": "Not modified; no body.", "headers": with_header(rate_limit_headers(), "ETag") });
    for name in ["RateLimited", "Overloaded"] {
        responses[name]["headers"]["Retry-After"] = json!({ "$ref": "#/components/headers/Retry-After" });
    }
    responses["Unauthenticated"]["headers"] = json!({});
    responses
}

/// Builds the body of an error response.
fn error_body(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

/// Returns references to the headers of an operation's response.
pub(super) fn response_headers(operation: &ApiOperation) -> Value {
    if !operation.writes() {
        return with_header(rate_limit_headers(), "ETag");
    }
    let headers = with_header(rate_limit_headers(), "Idempotency-Replayed");
    if operation.response.status == 201 { with_header(headers, "Location") } else { headers }
}

/// Adds a reference to one more header.
fn with_header(mut headers: Value, name: &str) -> Value {
    headers[name] = json!({ "$ref": format!("#/components/headers/{name}") });
    headers
}

/// Returns references to the rate-limit headers.
pub(super) fn rate_limit_headers() -> Value {
    let names = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    let reference = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    Value::Object(names.into_iter().map(|name| (name.to_owned(), reference(name))).collect())
}

/// Returns the shared headers.
pub(super) fn headers() -> Value {
    let number = |summary: &str, example: u32| json!({ "description": summary, "schema": { "type": "integer", "minimum": 0 }, "example": example });
    let text = |summary: &str, example: &str| json!({ "description": summary, "schema": { "type": "string" }, "example": example });
    json!({
        "RateLimit-Limit": number("Requests the key may make per minute.", 120),
        "RateLimit-Remaining": number("Requests left in the current minute.", 117),
        "RateLimit-Reset": number("Seconds until the current minute ends.", 42),
        "Retry-After": number("Seconds to wait before the next request.", 12),
        "ETag": text("Version of this response; send it as `If-None-Match`.", TAG),
        "Location": text("Path of the new resource.", "/api/v1/pages/pg_1/monitors/mon_1"),
        "Idempotency-Replayed": text("`true` if this repeats the first response to this `Idempotency-Key`.", "true"),
    })
}

/// Returns the schemas of an error response.
pub(super) fn schemas() -> [(String, Value); 3] {
    let field = json!({
        "type": "object",
        "required": ["field", "rule"],
        "properties": {
            "field": {
                "type": "string", "description": "Name of the field; `$` is the whole body.",
            },
            "rule": { "type": "string", "description": "The rule it breaks, in words." },
        },
        "examples": [{ "field": "port", "rule": "must be a whole number from 1 to 65535" }],
    });
    let detail = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "description": "Machine-readable reason." },
            "message": { "type": "string", "description": "Human-readable reason." },
            "fields": {
                "type": "array", "items": { "$ref": "#/components/schemas/ApiErrorField" },
                "description": "Every problem with the request, if the code is `bad_request`.",
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
    [("ApiError".to_owned(), error), ("ApiErrorDetail".to_owned(), detail), ("ApiErrorField".to_owned(), field)]
}
