//! Heartbeat pings, in the formats that cron jobs, wrappers and backup tools already use.

mod grammar;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, REFERRER_POLICY, USER_AGENT};
use ::http::{HeaderValue, Method};
use futures_util::StreamExt;
use parallax_core::heartbeat::BODY_KEPT;
use parallax_core::refusal::Refusals;
use tokio::time::timeout;

use super::json::Body;
use super::reply::Reply;
use super::route::{Answer, Call};
use super::{Context, visitor};
use crate::service::Error;
use crate::service::beats::Said;

/// Time limit for receiving the body; what arrived by then is used.
const PATIENCE: Duration = Duration::from_secs(5);

/// `GET /ping/{token}`, `POST /ping/{token}`, and the same with `/start`, `/fail`, `/log` or an exit code
pub(super) async fn ping(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let (token, told) = grammar::path(call.param("address")?).ok_or(Error::UnknownPing)?;
    let listed = context.service.admit_ping(token)?;
    let query = grammar::query(&call.query)?;
    let beat = grammar::beat(told, query.beat)?;
    let mut body = if call.method == Method::POST { head_of(&mut call.body).await? } else { Vec::new() };
    if body.is_empty() {
        body = query.message.into_bytes();
    }
    let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    // Behind a proxy on this host, the job's address is the one the proxy reports. A job on this host connects
    // directly.
    let seen = visitor::of(call.peer, &call.headers).map(|visitor| visitor.address);
    let said = Said {
        beat,
        run: query.run,
        run_ms: query.run_ms,
        method: call.method.to_string(),
        from: seen.or_else(|| call.peer.map(|peer| peer.0)),
        agent: agent.to_owned(),
        body,
    };
    context.service.ping(listed, said).await?;
    Ok(Reply::text("OK")
        .with(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
        .with(HeaderName::from_static("ping-body-limit"), HeaderValue::from(BODY_KEPT))
        .with(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
}

/// Reads the first bytes of the body. The rest is not waited for.
async fn head_of(body: &mut Body) -> Result<Vec<u8>, Refusals> {
    let mut head = Vec::new();
    let reading = async {
        while head.len() < BODY_KEPT {
            let Some(part) = body.next().await else { break };
            let part = part.map_err(|()| Refusals::one("body", "could not be read"))?;
            let room = BODY_KEPT - head.len();
            head.extend_from_slice(part.get(..room).unwrap_or(&part));
        }
        Ok(())
    };
    // A stalled body does not invalidate the ping.
    timeout(PATIENCE, reading).await.unwrap_or(Ok(()))?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_of_a_body_is_read_than_is_kept() {
        let part = || Ok(bytes::Bytes::from(vec![b'x'; 4000]));
        let endless = futures_util::stream::iter((0..3).map(move |_| part()));
        let mut body = endless.chain(futures_util::stream::pending()).boxed();
        assert_eq!(head_of(&mut body).await.unwrap().len(), BODY_KEPT);
    }
}
