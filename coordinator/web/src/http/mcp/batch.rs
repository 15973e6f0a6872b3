//! Processes the messages of one POST. Each gets its own response, independent of the others.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::super::error::REQUEST_LOGS;
use super::json_rpc::{self, RpcMessage};
use super::{ToolOutcome, ToolServer, protocol_version};

/// State shared by the messages of one POST.
pub(super) struct McpPost<'a, H> {
    pub(super) server: &'a H,
    pub(super) headers: &'a HeaderMap,
    /// True if the messages came as a list, even of one.
    pub(super) is_batch: bool,
    /// Deadline for all responses.
    deadline: Instant,
    /// Bytes of the responses so far.
    bytes: AtomicUsize,
    /// True once a tool was called that may change something.
    has_written: AtomicBool,
}

/// Size of the responses of a batch after which no further call is started, in bytes.
const MAX_BYTES: usize = 1 << 20;

impl<'a, H: ToolServer> McpPost<'a, H> {
    /// Creates the state of a POST with a time limit.
    pub(super) fn new(server: &'a H, headers: &'a HeaderMap, is_batch: bool, deadline: Duration) -> Self {
        let until = Instant::now() + deadline;
        Self {
            server,
            headers,
            is_batch,
            deadline: until,
            bytes: AtomicUsize::new(0),
            has_written: AtomicBool::new(false),
        }
    }

    /// Returns true if a tool was called that may change something.
    pub(super) fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Relaxed)
    }

    /// Processes the messages and returns the responses in the same order; notifications have none. Messages run one
    /// after the other, except for calls that wait for another party, such as agents: they start in order and then run
    /// concurrently.
    pub(super) async fn responses(&self, members: Vec<Value>) -> Vec<(StatusCode, Value)> {
        let mut responses = Vec::with_capacity(members.len());
        let mut waiting = FuturesUnordered::new();
        for (at, member) in members.into_iter().enumerate() {
            let waits = self.is_slow(&member);
            let answer = self.respond(member).map(move |answer| (at, answer));
            if waits {
                waiting.push(answer);
                continue;
            }
            let mut answer = pin!(answer);
            loop {
                tokio::select! {
                    biased;
                    // Polled first, so that earlier calls have started.
                    Some(answer) = waiting.next() => responses.push(answer),
                    answer = &mut answer => {
                        responses.push(answer);
                        break;
                    }
                }
            }
        }
        responses.extend(waiting.collect::<Vec<_>>().await);
        responses.sort_unstable_by_key(|(at, _)| *at);
        responses.into_iter().filter_map(|(_, answer)| answer).collect()
    }

    /// Processes one message. Returns the response and its HTTP status if it is the only one.
    async fn respond(&self, member: Value) -> Option<(StatusCode, Value)> {
        let outcome = match json_rpc::parse_message(member) {
            Ok(RpcMessage::NoResponse) if self.is_batch => return None,
            Ok(RpcMessage::NoResponse) => match protocol_version::check_version(self.headers) {
                Ok(()) => return None,
                Err(fault) => Err((Value::Null, fault)),
            },
            Ok(RpcMessage::Request { id, method, params }) => {
                let result = self.handle_request(&method, params).await;
                result.map(|result| json_rpc::result_response(&id, result)).map_err(|fault| (id, fault))
            }
            Err(response) => Err(response),
        };
        Some(match outcome {
            Ok(answer) => (StatusCode::OK, answer),
            Err((id, fault)) => (fault.status, fault.to_response(&id)),
        })
    }

    /// Calls a tool within the deadline; `None` if there is no tool of that name.
    pub(super) async fn call_with_deadline(&self, name: String, arguments: Map<String, Value>) -> Option<ToolOutcome> {
        // Otherwise the call would start, and its result would be lost.
        if Instant::now() >= self.deadline {
            return Some(ToolOutcome::Failed("internal: not started, since the time limit was reached".to_owned()));
        }
        if self.bytes.load(Ordering::Relaxed) >= MAX_BYTES {
            let message = "not started, since the earlier results of this batch are too long; call it separately";
            return Some(ToolOutcome::Failed(message.to_owned()));
        }
        if self.server.writes(&name) {
            self.has_written.store(true, Ordering::Relaxed);
        }
        match timeout_at(self.deadline, self.server.call(name, arguments)).await {
            Ok(called) => called,
            Err(_) => {
                if let Some(omitted) = REQUEST_LOGS.admit("tool call") {
                    tracing::error!(omitted, "an MCP tool call timed out; the store may be stalled");
                }
                Some(ToolOutcome::Failed("internal: timed out, and may still complete".to_owned()))
            }
        }
    }

    /// Adds to the bytes of the responses.
    pub(super) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_slow(&self, member: &Value) -> bool {
        member.get("method").is_some_and(|method| method == "tools/call")
            && member.pointer("/params/name").and_then(Value::as_str).is_some_and(|name| self.server.is_slow(name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::BoxFuture;
    use parallax_core::rate_limit::RateLimitStatus;
    use serde_json::json;
    use tokio::sync::Barrier;

    use super::*;

    /// Time limit that no passing test reaches.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Tools whose slow calls end once the expected number of them has started.
    struct Slow {
        done: Mutex<Vec<String>>,
        started: Barrier,
    }

    impl Slow {
        fn waiting_for(calls: usize) -> Self {
            Self { done: Mutex::default(), started: Barrier::new(calls) }
        }
    }

    impl ToolServer for Slow {
        fn tool_list(&self) -> Vec<&Value> {
            Vec::new()
        }

        fn is_public(&self) -> bool {
            false
        }

        fn own_addresses(&self) -> Vec<String> {
            Vec::new()
        }

        fn allows_any_origin(&self) -> bool {
            false
        }

        fn is_slow(&self, name: &str) -> bool {
            name == "look"
        }

        fn call(&self, name: String, arguments: Map<String, Value>) -> BoxFuture<'_, Option<ToolOutcome>> {
            Box::pin(async move {
                let number = arguments.get("number").cloned().unwrap_or_default();
                match name.as_str() {
                    "look" => {
                        self.started.wait().await;
                    }
                    "write" => tokio::task::yield_now().await,
                    "last" => {
                        self.done.lock().unwrap().push(format!("{name} {number}"));
                        self.started.wait().await;
                        return Some(ToolOutcome::Done(number));
                    }
                    "stall" => std::future::pending().await,
                    _ => return None,
                }
                self.done.lock().unwrap().push(format!("{name} {number}"));
                Some(ToolOutcome::Done(number))
            })
        }

        fn admit(&self, _: u32) -> Result<RateLimitStatus, RateLimitStatus> {
            unreachable!("messages are counted before")
        }
    }

    async fn send_batch(server: &Slow, deadline: Duration, names: &[&str]) -> Vec<Value> {
        let headers = HeaderMap::new();
        let members = names.iter().enumerate().map(|(number, name)| {
            json!({
                "jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": { "name": name, "arguments": { "number": number } },
            })
        });
        let responses = McpPost::new(server, &headers, true, deadline).responses(members.collect()).await;
        let ids: Vec<_> = responses.iter().map(|(_, answer)| answer["id"].clone()).collect();
        assert_eq!(ids, (0..names.len()).map(Value::from).collect::<Vec<_>>(), "in the order of the messages");
        assert!(responses.iter().all(|(status, _)| !status.is_server_error()), "{responses:?}");
        responses.into_iter().map(|(_, answer)| answer).collect()
    }

    #[tokio::test]
    async fn twenty_slow_calls_run_concurrently() {
        let responses = send_batch(&Slow::waiting_for(20), PATIENCE, &["look"; 20]).await;
        for (number, answer) in responses.iter().enumerate() {
            assert_eq!(answer["result"]["structuredContent"], number, "{answer}");
        }
    }

    #[tokio::test]
    async fn writes_keep_their_order_and_do_not_wait_for_slow_calls() {
        // No slow call ends before the last write has started.
        let server = Slow::waiting_for(3);
        let responses = send_batch(&server, PATIENCE, &["write", "look", "write", "none", "look", "last"]).await;
        let done = server.done.lock().unwrap().clone();
        assert_eq!(done[..3], ["write 0", "write 2", "last 5"], "{done:?}");
        assert_eq!(done.len(), 5);
        assert_eq!(responses[3]["error"]["code"], json_rpc::INVALID_PARAMS);
    }

    #[tokio::test]
    async fn each_call_that_times_out_is_reported_on_its_own() {
        let server = Slow::waiting_for(2);
        let responses = send_batch(&server, Duration::from_millis(50), &["write", "look", "stall"]).await;
        let is_error: Vec<_> = responses.iter().map(|answer| answer["result"]["isError"].clone()).collect();
        assert_eq!(is_error, [false, true, true], "{responses:?}");
        for answer in &responses[1..] {
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(text, "internal: timed out, and may still complete");
        }
    }
}
