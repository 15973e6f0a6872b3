//! MCP server (Model Context Protocol): the API's operations as tools, on one endpoint for four protocol versions.
//!
//! The server is stateless: no sessions, no event stream to the client. Clients of versions up to 2025-11-25 send
//! `initialize` and may send batches (defined in 2025-03-26, but accepted from all such clients). From 2026-07-28 on each
//! request is self-contained.
//!
//! The official SDK (`rmcp`) is not used. As of 3.11.0 it has the four versions, stateless HTTP and a limit of the body,
//! but no batches since 0.6.2, so there is nothing to count per message of a POST. A body that can't be parsed, is too
//! long or has another media type is refused with plain text instead of a JSON-RPC error; clients must accept both JSON
//! and event streams; and a handler can't set the HTTP status of an error or headers such as `ratelimit-remaining`.

mod api_tools;
mod batch;
mod event_stream;
mod instructions;
mod json_rpc;
mod key_tools;
mod origin;
mod page_tools;
mod protocol_version;
mod response_filter;
mod schema;
mod time_tool;
pub(super) use api_tools::McpTools;
pub(super) use page_tools::{post_public as public, preflight, public_tools};

use std::sync::Arc;
use std::time::Duration;

use ::http::header::RETRY_AFTER;
use ::http::{HeaderMap, HeaderValue, StatusCode};
use futures_util::future::BoxFuture;
use parallax_core::rate_limit::RateLimitStatus;
use parallax_core::validation::ValidationErrors;
use parallax_service::Caller;
use serde_json::{Map, Value, json};

use super::HttpContext;
use super::error::HandlerResult;
use super::json_body::{self, RequestBody};
use super::response::HttpResponse;
use super::route::RouteTable;
use super::routed_request::RoutedRequest;
use super::server::request_timeout;
use batch::McpPost;
use json_rpc::RpcError;
use key_tools::KeyToolServer;
use protocol_version::ProtocolEra;

/// Limit of messages in one POST.
const MAX_MESSAGES: usize = 20;
/// Time limit for the messages of a POST: longer than a check, and shorter than the limit of the whole request.
const PATIENCE: Duration = request_timeout::CHECK_TIMEOUT.saturating_sub(Duration::from_secs(1));
/// Time for which clients may cache the list of tools, in milliseconds.
const TOOL_LIST_TTL_MS: u32 = 3_600_000;

/// A set of tools: those of an API key, or those of a public page.
trait ToolServer: Send + Sync {
    /// Tool definitions, as listed to clients.
    fn tool_list(&self) -> Vec<&Value>;
    /// Returns true if all clients get the same results.
    fn is_public(&self) -> bool;
    /// Origins besides the base URL from which browsers may call this endpoint.
    fn own_addresses(&self) -> Vec<String>;
    /// Returns true if browsers may call this endpoint from any origin.
    fn allows_any_origin(&self) -> bool;
    /// Returns true if the tool waits for another party, such as agents.
    fn is_slow(&self, name: &str) -> bool;
    /// Returns true if the tool may change something.
    fn writes(&self, _name: &str) -> bool {
        false
    }
    /// Calls a tool; `None` if there is no tool of that name.
    fn call(&self, name: String, arguments: Map<String, Value>) -> BoxFuture<'_, Option<ToolOutcome>>;
    /// Counts messages against the rate limit.
    fn admit(&self, messages: u32) -> Result<RateLimitStatus, RateLimitStatus>;
}

/// Result of a tool call.
enum ToolOutcome {
    /// The call succeeded, with this result.
    Done(Value),
    /// The call failed, with a message that a model can act on.
    Failed(String),
}

/// `POST /api/v1/mcp`
pub(super) async fn post(
    context: Arc<HttpContext>,
    table: Arc<RouteTable>,
    mut call: RoutedRequest<Caller>,
) -> HandlerResult {
    let server = KeyToolServer::new(Arc::clone(&context), table, call.caller);
    Ok(handle_post(&context, &server, PATIENCE, (&call.headers, &mut call.body)).await)
}

/// Handles a POST with one message or a batch.
///
/// Every POST counts as one message before it is parsed, so that invalid ones are not free; the other messages of a
/// batch are counted before any of them runs.
async fn handle_post(
    context: &HttpContext,
    server: &impl ToolServer,
    deadline: Duration,
    (headers, body): (&HeaderMap, &mut RequestBody),
) -> HttpResponse {
    let mut allowance = match server.admit(1) {
        Ok(allowance) => allowance,
        Err(allowance) => return rate_limited(&allowance),
    };
    let (members, is_batch) = match parse_messages(context, server, headers, body).await {
        Ok(messages) => messages,
        Err(fault) => return error_response(&Value::Null, &fault).with_allowance(&allowance),
    };
    if let Some(extra) = u32::try_from(members.len()).ok().and_then(|all| all.checked_sub(1)).filter(|extra| *extra > 0)
    {
        allowance = match server.admit(extra) {
            Ok(allowance) => allowance,
            Err(allowance) => return rate_limited(&allowance),
        };
    }
    let post = McpPost::new(server, headers, is_batch, deadline);
    let mut responses = post.responses(members).await;
    let is_well = responses.iter().all(|(status, _)| is_batch || status.is_success());
    let reply = if responses.is_empty() {
        HttpResponse::empty(StatusCode::ACCEPTED)
    } else if is_well && event_stream::accepts_only_events(headers) {
        event_stream::event_response(responses.iter().map(|(_, answer)| answer))
    } else if is_batch {
        let responses: Vec<Value> = responses.into_iter().map(|(_, answer)| answer).collect();
        HttpResponse::json(StatusCode::OK, &responses)
    } else {
        let (status, answer) = responses.swap_remove(0);
        HttpResponse::json(status, &answer)
    };
    reply.with_has_written(post.has_written()).with_allowance(&allowance)
}

/// Parses a POST into its messages, and returns whether they are a batch.
async fn parse_messages(
    context: &HttpContext,
    server: &impl ToolServer,
    headers: &HeaderMap,
    body: &mut RequestBody,
) -> Result<(Vec<Value>, bool), RpcError> {
    origin::check_origin(headers, context.service.base_url(), &server.own_addresses(), server.allows_any_origin())
        .map_err(|message| RpcError::new(json_rpc::INVALID_REQUEST, message).with_status(StatusCode::FORBIDDEN))?;
    let unread = |faults: ValidationErrors| RpcError::new(json_rpc::PARSE_ERROR, faults.to_string());
    let bytes = json_body::read_bytes(headers, body).await.map_err(unread)?;
    match json_body::parse_document(headers, &bytes).map_err(unread)? {
        Value::Array(members) => check_batch(headers, &members).map(|()| (members, true)),
        one => Ok((vec![one], false)),
    }
}

/// Checks that a batch is allowed and has a valid size.
fn check_batch(headers: &HeaderMap, members: &[Value]) -> Result<(), RpcError> {
    let message = if protocol_version::is_modern(headers, members) {
        "this protocol version does not support batches".to_owned()
    } else if members.is_empty() {
        "a batch must have at least one message".to_owned()
    } else if members.len() > MAX_MESSAGES {
        format!("a batch must have at most {MAX_MESSAGES} messages")
    } else {
        return protocol_version::check_version(headers);
    };
    Err(RpcError::new(json_rpc::INVALID_REQUEST, message))
}

impl<H: ToolServer> McpPost<'_, H> {
    async fn handle_request(&self, method: &str, params: Map<String, Value>) -> Result<Value, RpcError> {
        let server = self.server;
        let era =
            if self.is_batch { ProtocolEra::Legacy } else { protocol_version::protocol_era(self.headers, &params)? };
        match era {
            ProtocolEra::Modern => {
                protocol_version::check_headers(self.headers, method, &params)?;
                // The tools and instructions of a key depend on its access.
                let scope = if server.is_public() { "public" } else { "private" };
                let mut result = match method {
                    "server/discover" => {
                        let mut supported = vec![protocol_version::MODERN_VERSION];
                        supported.extend(protocol_version::LEGACY_VERSIONS);
                        json!({
                            "supportedVersions": supported, "capabilities": capabilities(),
                            "instructions": self.instructions(), "ttlMs": TOOL_LIST_TTL_MS, "cacheScope": scope,
                        })
                    }
                    "tools/list" => {
                        json!({ "tools": tools_for(server, &params)?, "ttlMs": TOOL_LIST_TTL_MS, "cacheScope": scope })
                    }
                    "tools/call" => self.call_tool(params).await?,
                    other => return Err(unknown_method(other).with_status(StatusCode::NOT_FOUND)),
                };
                result["resultType"] = json!("complete");
                result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info() });
                Ok(result)
            }
            // In older versions the status is 200 for every JSON-RPC response.
            ProtocolEra::Legacy => {
                self.handle_legacy(method, params).await.map_err(|fault| fault.with_status(StatusCode::OK))
            }
        }
    }

    fn instructions(&self) -> String {
        instructions::instructions(&self.server.tool_list(), self.server.is_public())
    }

    async fn handle_legacy(&self, method: &str, params: Map<String, Value>) -> Result<Value, RpcError> {
        match method {
            "initialize" if self.is_batch => {
                Err(RpcError::new(json_rpc::INVALID_REQUEST, "initialize must not be part of a batch"))
            }
            "initialize" => {
                let requested = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                let [newest, ..] = protocol_version::LEGACY_VERSIONS;
                let version = protocol_version::LEGACY_VERSIONS
                    .into_iter()
                    .find(|supported| *supported == requested)
                    .unwrap_or(newest);
                Ok(json!({
                    "protocolVersion": version, "capabilities": capabilities(),
                    "serverInfo": server_info(), "instructions": self.instructions(),
                }))
            }
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": tools_for(self.server, &params)? })),
            "tools/call" => self.call_tool(params).await,
            other => Err(unknown_method(other)),
        }
    }

    async fn call_tool(&self, mut params: Map<String, Value>) -> Result<Value, RpcError> {
        let invalid_params = |message: String| RpcError::new(json_rpc::INVALID_PARAMS, message);
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(invalid_params("name is required and must be a string".to_owned()));
        };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid_params("arguments must be an object".to_owned())),
        };
        let unknown = invalid_params(format!("there is no tool {name}"));
        match self.call_with_deadline(name, arguments).await.ok_or(unknown)? {
            ToolOutcome::Done(document) => {
                let text = document.to_string();
                self.count_bytes(text.len());
                Ok(json!({
                    "content": [{ "type": "text", "text": text }], "structuredContent": document, "isError": false,
                }))
            }
            ToolOutcome::Failed(message) => {
                Ok(json!({ "content": [{ "type": "text", "text": message }], "isError": true }))
            }
        }
    }
}

/// Lists the tools. The list has one page, so any cursor is invalid.
fn tools_for<'a>(server: &'a impl ToolServer, params: &Map<String, Value>) -> Result<Vec<&'a Value>, RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(server.tool_list()),
        Some(_) => Err(RpcError::new(json_rpc::INVALID_PARAMS, "cursor is not supported: the list has only one page")),
    }
}

fn unknown_method(method: &str) -> RpcError {
    let name: String = method.chars().take(80).collect();
    RpcError::new(json_rpc::METHOD_NOT_FOUND, format!("there is no method {name}"))
}

fn rate_limited(allowance: &RateLimitStatus) -> HttpResponse {
    let message =
        format!("more than {} messages in a minute; retry in {} seconds", allowance.limit, allowance.reset_seconds);
    let fault = RpcError::new(json_rpc::RATE_LIMITED, message).with_status(StatusCode::TOO_MANY_REQUESTS);
    error_response(&Value::Null, &fault)
        .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
        .with_allowance(allowance)
}

/// Builds the response for an error that concerns the whole POST.
fn error_response(id: &Value, fault: &RpcError) -> HttpResponse {
    HttpResponse::json(fault.status, &fault.to_response(id))
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn server_info() -> Value {
    json!({ "name": "parallax", "title": "Parallax", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests;
