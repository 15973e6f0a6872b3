//! JSON-RPC 2.0 as used by the Model Context Protocol: parses messages, and builds results and errors.

use ::http::StatusCode;
use serde_json::{Map, Value, json};

/// The text is not valid JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// The message is not a valid request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid for the method.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// A header does not match the message (MCP 2026-07-28, "Transports").
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// The protocol version is not supported (MCP 2026-07-28, "Versioning").
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;
/// The rate limit is exceeded; not a standard code.
pub(super) const RATE_LIMITED: i64 = 429;

/// Message from a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RpcMessage {
    /// A request, which gets a response.
    Request {
        /// Id that the response repeats.
        id: Value,
        /// Method name.
        method: String,
        /// Parameters.
        params: Map<String, Value>,
    },
    /// A message without a response: a notification, or a response, although the server sends no requests.
    NoResponse,
}

/// JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    /// HTTP status if this is the only response.
    pub(super) status: StatusCode,
    /// JSON-RPC error code.
    pub(super) code: i64,
    /// Message for people.
    pub(super) message: String,
    /// Details for programs.
    pub(super) data: Option<Box<Value>>,
}

impl RpcError {
    /// Creates an error with HTTP status 400.
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, message: message.into(), data: None }
    }

    /// Sets the HTTP status.
    pub(super) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Builds the error response.
    pub(super) fn to_response(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = Value::clone(data);
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// Builds the response with a result.
pub(super) fn result_response(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Parses one message. The error comes with the id for its response, or null if there is no valid one.
pub(super) fn parse_message(value: Value) -> Result<RpcMessage, (Value, RpcError)> {
    let Value::Object(mut object) = value else {
        return Err((Value::Null, RpcError::new(INVALID_REQUEST, "a message must be an object")));
    };
    let id = object.remove("id");
    let id_or_null = id.clone().filter(is_id).unwrap_or(Value::Null);
    let invalid = |message: &str| Err((id_or_null.clone(), RpcError::new(INVALID_REQUEST, message)));
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("jsonrpc must be \"2.0\"");
    }
    let Some(method) = object.remove("method") else {
        let is_answer = id.is_some() && (object.contains_key("result") || object.contains_key("error"));
        return if is_answer { Ok(RpcMessage::NoResponse) } else { invalid("method is required") };
    };
    let Value::String(method) = method else { return invalid("method must be a string") };
    let params = match object.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => {
            return Err((id_or_null, RpcError::new(INVALID_PARAMS, "params must be an object")));
        }
    };
    match id {
        None => Ok(RpcMessage::NoResponse),
        Some(id) if is_id(&id) => Ok(RpcMessage::Request { id, method, params }),
        Some(_) => invalid("id must be a string or a whole number"),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": { "a": 1 } });
        let Ok(RpcMessage::Request { id, method, params }) = parse_message(request) else { panic!() };
        assert_eq!((id, method.as_str(), params.len()), (json!(7), "ping", 1));
        for notification in [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": 1, "message": "" } }),
        ] {
            assert_eq!(parse_message(notification), Ok(RpcMessage::NoResponse));
        }
    }

    #[test]
    fn an_invalid_message_is_refused_with_its_id() {
        for (value, id, code) in [
            (json!(1), Value::Null, INVALID_REQUEST),
            (json!({ "id": 5, "method": "ping" }), json!(5), INVALID_REQUEST),
            (json!({ "jsonrpc": "1.0", "id": "x", "method": "ping" }), json!("x"), INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 5 }), json!(5), INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 5, "method": 1 }), json!(5), INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), Value::Null, INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }), Value::Null, INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 5, "method": "ping", "params": [] }), json!(5), INVALID_PARAMS),
        ] {
            let (response_id, fault) = parse_message(value.clone()).unwrap_err();
            assert_eq!((response_id, fault.code), (id, code), "{value}");
        }
    }
}
