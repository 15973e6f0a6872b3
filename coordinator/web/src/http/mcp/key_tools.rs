//! MCP tools of an API key: each call runs as the matching API request, with the access of the key.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderValue};
use futures_util::future::BoxFuture;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::rate_limit::RateLimitStatus;
use parallax_core::role::Permission;
use parallax_service::Caller;
use serde_json::{Map, Value, json};

use super::api_tools::{McpTools, ToolRequest};
use super::{ToolOutcome, ToolServer, time_tool};
use crate::http::api::monitors::view::down_reason;
use crate::http::auth::run_authenticated;
use crate::http::csv::CSV;
use crate::http::error::ApiError;
use crate::http::route::RouteTable;
use crate::http::routed_request::{NoStoreFlag, RoutedRequest};
use crate::http::{HttpContext, json_body, legacy};

/// Tool whose result is the public status document, extended by the reasons of failures.
const STATUS: &str = "get_status";

/// The tools of an API key.
pub(super) struct KeyToolServer {
    context: Arc<HttpContext>,
    table: Arc<RouteTable>,
    caller: Caller,
}

impl KeyToolServer {
    /// Creates the tools of the caller's key, which run requests through the route table.
    pub(super) fn new(context: Arc<HttpContext>, table: Arc<RouteTable>, caller: Caller) -> Self {
        Self { context, table, caller }
    }

    /// Runs the API request of a tool call.
    async fn send_request(&self, request: ToolRequest) -> ToolOutcome {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let ToolRequest { method, path, query, body, .. } = request;
        let body = json_body::from_bytes(body.unwrap_or_default());
        let caller = self.caller.clone();
        let response = match self.table.find(&method, &path) {
            Ok((route, params)) => {
                let no_store = NoStoreFlag::default();
                let call = RoutedRequest {
                    caller,
                    method,
                    path,
                    query,
                    peer: None,
                    params,
                    headers,
                    body,
                    form: None,
                    no_store,
                };
                run_authenticated(&self.context, route, call).await
            }
            Err(error) => Err(error),
        };
        let reply = response.unwrap_or_else(ApiError::into_response);
        if reply.has_stream() {
            return ToolOutcome::Failed(
                "the result is too long for a tool: read it in parts, or by the API".to_owned(),
            );
        }
        let document = match reply.header(&CONTENT_TYPE).is_some_and(|media| media == CSV) {
            true => json!({ "csv": String::from_utf8_lossy(reply.body()) }),
            false => serde_json::from_slice::<Value>(reply.body()).unwrap_or_else(|_| json!({ "done": true })),
        };
        if reply.status().is_success() {
            ToolOutcome::Done(document)
        } else {
            ToolOutcome::Failed(error_text(&document))
        }
    }

    /// Adds `downReason` to each monitor of a status document, which keys may read and visitors may not.
    async fn add_reasons(&self, page: PageId, document: &mut Value) {
        let Ok(monitors) = self.context.service.monitors.list(&self.caller, page).await else { return };
        let reasons = monitors.iter().filter_map(|current| Some((current.monitor.id, down_reason(current)?)));
        add_reasons(document, reasons);
    }

    /// Returns the current time, in the timezone of a page if one is given.
    fn current_time(&self, mut arguments: Map<String, Value>) -> ToolOutcome {
        let service = &self.context.service;
        let zone = match arguments.shift_remove("pageId") {
            None | Some(Value::Null) => Ok(chrono_tz::UTC),
            Some(id) => {
                let id = id.as_str().and_then(|id| id.parse().ok());
                let page = id.and_then(|id| service.pages.get(&self.caller, id).ok());
                page.map(|page| page.timezone).ok_or_else(|| "not found, or not accessible with this key".to_owned())
            }
        };
        let zone = zone.and_then(|zone| time_tool::take_timezone(&mut arguments, zone));
        match zone {
            Ok(zone) => ToolOutcome::Done(time_tool::current_time(service.now(), zone)),
            Err(message) => ToolOutcome::Failed(message),
        }
    }
}

impl ToolServer for KeyToolServer {
    fn tool_list(&self) -> Vec<&Value> {
        McpTools::shared().tool_list(self.caller.allows(Permission::Edit))
    }

    fn is_public(&self) -> bool {
        false
    }

    fn own_addresses(&self) -> Vec<String> {
        Vec::new()
    }

    /// Always false: any script on a page could read a key in the browser, and no setting lists trusted origins.
    fn allows_any_origin(&self) -> bool {
        false
    }

    fn is_slow(&self, name: &str) -> bool {
        McpTools::shared().is_slow(name)
    }

    fn writes(&self, name: &str) -> bool {
        McpTools::shared().writes(name).unwrap_or(false)
    }

    fn call(&self, name: String, arguments: Map<String, Value>) -> BoxFuture<'_, Option<ToolOutcome>> {
        Box::pin(async move {
            if name == time_tool::NAME {
                return Some(self.current_time(arguments));
            }
            let tools = McpTools::shared();
            if tools.writes(&name)? && !self.caller.allows(Permission::Edit) {
                return Some(ToolOutcome::Failed("this key may only read; use a key with write access".to_owned()));
            }
            let page = arguments.get("pageId").filter(|_| name == STATUS).and_then(Value::as_str);
            let page = page.and_then(|id| id.parse().ok());
            let request = match tools.request_for(&name, arguments) {
                Ok(request) => request,
                Err(message) => return Some(ToolOutcome::Failed(message)),
            };
            let filter = request.filter.clone();
            Some(match self.send_request(request).await {
                ToolOutcome::Done(mut document) => {
                    if let Some(page) = page {
                        self.add_reasons(page, &mut document).await;
                    }
                    ToolOutcome::Done(filter.apply(document))
                }
                not => not,
            })
        })
    }

    fn admit(&self, messages: u32) -> Result<RateLimitStatus, RateLimitStatus> {
        self.context.key_limit.admit_many(self.caller.limit_id(), messages, self.context.service.now())
    }
}

/// Sets `downReason` of each monitor of a status document to its reason or null.
fn add_reasons(document: &mut Value, reasons: impl Iterator<Item = (MonitorId, String)>) {
    let reasons: BTreeMap<MonitorId, String> = reasons.collect();
    for name in ["monitors", legacy::OLD_MONITORS] {
        let monitors = document.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for monitor in monitors {
            let id = monitor.get("id").and_then(Value::as_str).and_then(|id| id.parse::<MonitorId>().ok());
            monitor["downReason"] = id.and_then(|id| reasons.get(&id)).cloned().into();
        }
    }
}

/// Formats an API error as text.
fn error_text(document: &Value) -> String {
    let text_at = |name: &str| document.pointer(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}: {}", text_at("/error/code"), text_at("/error/message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_computed_once_for_both_lists() {
        let ids = [1, 2, 3].map(MonitorId::from_u128);
        let monitors = ids.map(|id| json!({ "id": id.to_string() }));
        let mut document = json!({ "monitors": monitors, legacy::OLD_MONITORS: monitors });
        let mut read = 0;
        let reasons = ids.iter().skip(1).inspect(|_| read += 1);
        add_reasons(&mut document, reasons.map(|id| (*id, format!("down: {id}"))));
        assert_eq!(read, 2);
        let down = |id: MonitorId| json!({ "id": id.to_string(), "downReason": format!("down: {id}") });
        let expected = json!([{ "id": ids[0].to_string(), "downReason": null }, down(ids[1]), down(ids[2])]);
        assert_eq!((&document["monitors"], &document[legacy::OLD_MONITORS]), (&expected, &expected));
    }
}
