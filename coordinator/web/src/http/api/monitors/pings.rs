//! Latest pings of a heartbeat monitor, with the reports of their jobs.

use std::net::IpAddr;
use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::heartbeat::{PingKind, StoredPing};
use parallax_core::role::Permission;
use parallax_service::Caller;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::HttpContext;
use crate::http::api::enveloped;
use crate::http::error::HandlerResult;
use crate::http::openapi::value_schemas;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// `GET /api/v1/pages/{page}/monitors/{monitor}/pings`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let pings = context.service.pings.list(&call.caller, call.page_id()?, call.monitor_id()?).await?;
    let shows_body = call.caller.allows(Permission::Edit);
    let documents: Vec<_> = pings.iter().map(|ping| document(ping, shows_body)).collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("pings", &documents)))
}

/// A ping of a heartbeat monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Ping")]
pub(in crate::http) struct PingDocument {
    /// Sequence number, from 1.
    number: u64,
    /// Arrival time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    /// success, start, fail or log.
    kind: &'static str,
    /// Exit code that the job sent.
    exit_code: Option<u8>,
    /// Id of the run, as the job named it.
    run_id: Option<String>,
    /// Milliseconds since the run began.
    duration_ms: Option<u64>,
    /// HTTP method of the request.
    method: String,
    /// Source address.
    #[schemars(with = "Option<String>")]
    address: Option<IpAddr>,
    /// User agent of the client.
    user_agent: String,
    /// Text that the job sent, at most 10,000 bytes; null for a read key.
    body: Option<String>,
}

fn document(ping: &StoredPing, shows_body: bool) -> PingDocument {
    let (kind, exit_code) = match ping.kind {
        PingKind::Succeeded => ("success", None),
        PingKind::Started => ("start", None),
        PingKind::Failed(code) => ("fail", code),
        PingKind::Log => ("log", None),
    };
    PingDocument {
        number: ping.number,
        at: ping.at.to_string(),
        kind,
        exit_code,
        run_id: ping.run.map(uuid),
        duration_ms: ping.run_ms,
        method: ping.method.clone(),
        address: ping.client_ip,
        user_agent: ping.user_agent.clone(),
        body: shows_body.then(|| String::from_utf8_lossy(&ping.body).into_owned()),
    }
}

fn uuid(run: u128) -> String {
    let digits = format!("{run:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
    parts.join("-")
}
