//! MCP server (Model Context Protocol): the API's operations as tools, on one endpoint for four protocol versions.
//!
//! The server is stateless: no sessions, no event stream to the client. Clients of versions up to 2025-11-25 send
//! `initialize` and may send batches (defined in 2025-03-26, but accepted from all such clients). From 2026-07-28 on each
//! request is self-contained.

mod batch;
mod brief;
mod instructions;
mod keyed;
mod origin;
mod public;
mod revision;
mod rpc;
mod schema;
mod stream;
mod time;
mod tools;

pub(super) use public::{listed as public_tools, post as public, preflight};
pub(super) use tools::Tools;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::RETRY_AFTER;
use ::http::{HeaderMap, HeaderValue, StatusCode};
use futures_util::future::BoxFuture;
use parallax_core::quota::Allowance;
use parallax_core::refusal::Refusals;
use serde_json::{Map, Value, json};

use super::json::{self, Body};
use super::reply::Reply;
use super::route::{Answer, Call, Table};
use super::{Context, overdue};
use crate::service::Caller;
use batch::Post;
use keyed::Keyed;
use revision::Era;
use rpc::Fault;

/// Limit of messages in one POST.
const MAX_MESSAGES: usize = 20;
/// Time limit for the messages of a POST: longer than a check, and shorter than the limit of the whole request.
const PATIENCE: Duration = overdue::LOOK.saturating_sub(Duration::from_secs(1));
/// Time for which clients may cache the list of tools, in milliseconds.
const KEEP_MS: u32 = 3_600_000;

/// A set of tools: those of an API key, or those of a public page.
trait House: Send + Sync {
    /// Tool definitions, as listed to clients.
    fn listed(&self) -> Vec<&Value>;
    /// Returns true if all clients get the same results.
    fn is_public(&self) -> bool;
    /// Origins besides the base URL from which browsers may call this endpoint.
    fn addresses(&self) -> Vec<String>;
    /// Returns true if browsers may call this endpoint from any origin.
    fn is_open(&self) -> bool;
    /// Returns true if the tool waits for another party, such as agents.
    fn waits(&self, name: &str) -> bool;
    /// Returns true if the tool may change something.
    fn writes(&self, _name: &str) -> bool {
        false
    }
    /// Calls a tool; `None` if there is no tool of that name.
    fn call(&self, name: String, arguments: Map<String, Value>) -> BoxFuture<'_, Option<Called>>;
    /// Counts messages against the rate limit.
    fn admit(&self, messages: u32) -> Result<Allowance, Allowance>;
}

/// Result of a tool call.
enum Called {
    /// The call succeeded, with this result.
    Done(Value),
    /// The call failed, with a message that a model can act on.
    Not(String),
}

/// `POST /api/v1/mcp`
pub(super) async fn post(context: Arc<Context>, table: Arc<Table>, mut call: Call<Caller>) -> Answer {
    let house = Keyed::new(Arc::clone(&context), table, call.caller);
    Ok(answer(&context, &house, PATIENCE, (&call.headers, &mut call.body)).await)
}

/// Handles a POST with one message or a batch.
///
/// Every POST counts as one message before it is parsed, so that invalid ones are not free; the other messages of a
/// batch are counted before any of them runs.
async fn answer(
    context: &Context,
    house: &impl House,
    patience: Duration,
    (headers, body): (&HeaderMap, &mut Body),
) -> Reply {
    let mut allowance = match house.admit(1) {
        Ok(allowance) => allowance,
        Err(allowance) => return too_many(&allowance),
    };
    let (members, is_batch) = match members(context, house, headers, body).await {
        Ok(sent) => sent,
        Err(fault) => return alone(&Value::Null, &fault).with_allowance(&allowance),
    };
    if let Some(more) =
        u32::try_from(members.len()).ok().and_then(|all| all.checked_sub(1)).filter(|more| *more > 0)
    {
        allowance = match house.admit(more) {
            Ok(allowance) => allowance,
            Err(allowance) => return too_many(&allowance),
        };
    }
    let post = Post::new(house, headers, is_batch, patience);
    let mut answers = post.answers(members).await;
    let is_well = answers.iter().all(|(status, _)| is_batch || status.is_success());
    let reply = if answers.is_empty() {
        Reply::empty(StatusCode::ACCEPTED)
    } else if is_well && stream::is_wanted(headers) {
        stream::events(answers.iter().map(|(_, answer)| answer))
    } else if is_batch {
        let answers: Vec<Value> = answers.into_iter().map(|(_, answer)| answer).collect();
        Reply::json(StatusCode::OK, &answers)
    } else {
        let (status, answer) = answers.swap_remove(0);
        Reply::json(status, &answer)
    };
    reply.of_write(post.wrote()).with_allowance(&allowance)
}

/// Parses a POST into its messages, and returns whether they are a batch.
async fn members(
    context: &Context,
    house: &impl House,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<(Vec<Value>, bool), Fault> {
    origin::judged(headers, context.service.base_url(), &house.addresses(), house.is_open())
        .map_err(|words| Fault::new(rpc::INVALID_REQUEST, words).with_status(StatusCode::FORBIDDEN))?;
    let unread = |faults: Refusals| Fault::new(rpc::PARSE_ERROR, faults.to_string());
    let bytes = json::bytes(headers, body).await.map_err(unread)?;
    match json::document(headers, &bytes).map_err(unread)? {
        Value::Array(members) => batch(headers, &members).map(|()| (members, true)),
        one => Ok((vec![one], false)),
    }
}

/// Checks that a batch is allowed and has a valid size.
fn batch(headers: &HeaderMap, members: &[Value]) -> Result<(), Fault> {
    let words = if revision::is_modern(headers, members) {
        "this protocol version does not support batches".to_owned()
    } else if members.is_empty() {
        "a batch must have at least one message".to_owned()
    } else if members.len() > MAX_MESSAGES {
        format!("a batch must have at most {MAX_MESSAGES} messages")
    } else {
        return revision::known(headers);
    };
    Err(Fault::new(rpc::INVALID_REQUEST, words))
}

impl<H: House> Post<'_, H> {
    async fn request(&self, method: &str, params: Map<String, Value>) -> Result<Value, Fault> {
        let house = self.house;
        let era = if self.is_batch { Era::Legacy } else { revision::era(self.headers, &params)? };
        match era {
            Era::Modern => {
                revision::agrees(self.headers, method, &params)?;
                // The tools and instructions of a key depend on its access.
                let scope = if house.is_public() { "public" } else { "private" };
                let mut done = match method {
                    "server/discover" => {
                        let mut supported = vec![revision::MODERN];
                        supported.extend(revision::LEGACY);
                        json!({
                            "supportedVersions": supported, "capabilities": capabilities(),
                            "instructions": self.instructions(), "ttlMs": KEEP_MS, "cacheScope": scope,
                        })
                    }
                    "tools/list" => {
                        json!({ "tools": listed(house, &params)?, "ttlMs": KEEP_MS, "cacheScope": scope })
                    }
                    "tools/call" => self.call(params).await?,
                    other => return Err(unknown(other).with_status(StatusCode::NOT_FOUND)),
                };
                done["resultType"] = json!("complete");
                done["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server() });
                Ok(done)
            }
            // In older versions the status is 200 for every JSON-RPC response.
            Era::Legacy => {
                self.legacy(method, params).await.map_err(|fault| fault.with_status(StatusCode::OK))
            }
        }
    }

    fn instructions(&self) -> String {
        instructions::instructions(&self.house.listed(), self.house.is_public())
    }

    async fn legacy(&self, method: &str, params: Map<String, Value>) -> Result<Value, Fault> {
        match method {
            "initialize" if self.is_batch => {
                Err(Fault::new(rpc::INVALID_REQUEST, "initialize must not be part of a batch"))
            }
            "initialize" => {
                let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                let [newest, ..] = revision::LEGACY;
                let version = revision::LEGACY.into_iter().find(|known| *known == wanted).unwrap_or(newest);
                Ok(json!({
                    "protocolVersion": version, "capabilities": capabilities(),
                    "serverInfo": server(), "instructions": self.instructions(),
                }))
            }
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": listed(self.house, &params)? })),
            "tools/call" => self.call(params).await,
            other => Err(unknown(other)),
        }
    }

    async fn call(&self, mut params: Map<String, Value>) -> Result<Value, Fault> {
        let refused = |words: String| Fault::new(rpc::INVALID_PARAMS, words);
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(refused("name is required and must be a string".to_owned()));
        };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(refused("arguments must be an object".to_owned())),
        };
        let unknown = refused(format!("there is no tool {name}"));
        match self.called(name, arguments).await.ok_or(unknown)? {
            Called::Done(document) => {
                let text = document.to_string();
                self.count(text.len());
                Ok(json!({
                    "content": [{ "type": "text", "text": text }], "structuredContent": document, "isError": false,
                }))
            }
            Called::Not(words) => {
                Ok(json!({ "content": [{ "type": "text", "text": words }], "isError": true }))
            }
        }
    }
}

/// Lists the tools. The list has one page, so any cursor is invalid.
fn listed<'a>(house: &'a impl House, params: &Map<String, Value>) -> Result<Vec<&'a Value>, Fault> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(house.listed()),
        Some(_) => {
            Err(Fault::new(rpc::INVALID_PARAMS, "cursor is not supported: the list has only one page"))
        }
    }
}

fn unknown(method: &str) -> Fault {
    let shown: String = method.chars().take(80).collect();
    Fault::new(rpc::METHOD_NOT_FOUND, format!("there is no method {shown}"))
}

fn too_many(allowance: &Allowance) -> Reply {
    let words = format!(
        "more than {} messages in a minute; retry in {} seconds",
        allowance.limit, allowance.reset_seconds
    );
    let fault = Fault::new(rpc::RATE_LIMITED, words).with_status(StatusCode::TOO_MANY_REQUESTS);
    alone(&Value::Null, &fault)
        .with(RETRY_AFTER, HeaderValue::from(allowance.reset_seconds))
        .with_allowance(allowance)
}

/// Builds the response for an error that concerns the whole POST.
fn alone(id: &Value, fault: &Fault) -> Reply {
    Reply::json(fault.status, &fault.answer(id))
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn server() -> Value {
    json!({ "name": "parallax", "title": "Parallax", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests;
