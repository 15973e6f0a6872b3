//! Heartbeat pings, in the formats that cron jobs, wrappers and backup tools already use.

mod ping_format;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, REFERRER_POLICY, USER_AGENT};
use ::http::{HeaderValue, Method};
use futures_util::StreamExt;
use parallax_core::heartbeat::MAX_STORED_BODY;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::monitors::pings::PingRequest;
use tokio::time::timeout;

use super::HttpContext;
use super::error::HandlerResult;
use super::json_body::RequestBody;
use super::response::HttpResponse;
use super::routed_request::RoutedRequest;
use super::server::client_ip;

/// Time limit for receiving the body; what arrived by then is used.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// `GET /ping/{token}`, `POST /ping/{token}`, and the same with `/start`, `/fail`, `/log` or an exit code
pub(super) async fn ping(context: Arc<HttpContext>, mut call: RoutedRequest<()>) -> HandlerResult {
    let (token, path_report) = ping_format::path(call.path_param("address")?).ok_or(ServiceError::UnknownPing)?;
    let heartbeat = context.service.pings.admit(token)?;
    let query = ping_format::query(&call.query)?;
    let kind = ping_format::combine_reports(path_report, query.report)?;
    let mut body = if call.method == Method::POST { read_prefix(&mut call.body).await? } else { Vec::new() };
    if body.is_empty() {
        body = query.message.into_bytes();
    }
    let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    // Behind a proxy on this host, the job's address is the one the proxy reports. A job on this host connects
    // directly.
    let client_ip = client_ip::client_ip(call.peer, &call.headers).map(|visitor| visitor.address);
    let ping_request = PingRequest {
        kind,
        run: query.run_id,
        run_ms: query.run_ms,
        method: call.method.to_string(),
        client_ip: client_ip.or_else(|| call.peer.map(|peer| peer.0)),
        user_agent: agent.to_owned(),
        body,
    };
    context.service.pings.record(heartbeat, ping_request).await?;
    Ok(HttpResponse::text("OK")
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
        .with(HeaderName::from_static("ping-body-limit"), HeaderValue::from(MAX_STORED_BODY))
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
}

/// Reads the first bytes of the body. The rest is not waited for.
async fn read_prefix(body: &mut RequestBody) -> Result<Vec<u8>, ValidationErrors> {
    let mut head = Vec::new();
    let reading = async {
        while head.len() < MAX_STORED_BODY {
            let Some(chunk) = body.next().await else { break };
            let chunk = chunk.map_err(|()| ValidationErrors::single("body", "could not be read"))?;
            let space = MAX_STORED_BODY - head.len();
            head.extend_from_slice(chunk.get(..space).unwrap_or(&chunk));
        }
        Ok(())
    };
    // A stalled body does not invalidate the ping.
    timeout(BODY_TIMEOUT, reading).await.unwrap_or(Ok(()))?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_stored_part_of_a_body_is_read() {
        let chunk = || Ok(bytes::Bytes::from(vec![b'x'; 4000]));
        let endless = futures_util::stream::iter((0..3).map(move |_| chunk()));
        let mut body = endless.chain(futures_util::stream::pending()).boxed();
        assert_eq!(read_prefix(&mut body).await.unwrap().len(), MAX_STORED_BODY);
    }
}
