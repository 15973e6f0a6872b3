//! Pings of heartbeats, in the grammar that cron jobs, wrappers and backup tools already speak.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, REFERRER_POLICY, USER_AGENT};
use ::http::{HeaderValue, Method};
use futures_util::StreamExt;
use parallax_core::heartbeat::{BODY_KEPT, Beat};
use parallax_core::refusal::Refusals;
use tokio::time::timeout;

use super::Context;
use super::error::Refused;
use super::json::Body;
use super::reply::Reply;
use super::route::{Answer, Call};
use crate::service::Error;
use crate::service::beats::Said;

/// How long a body may take to arrive; what has come by then is kept.
const PATIENCE: Duration = Duration::from_secs(5);

/// `GET /ping/{token}`, `POST /ping/{token}`, and the same with `/start`, `/fail`, `/log` or an exit code
pub(super) async fn ping(context: Arc<Context>, mut call: Call<()>) -> Answer {
    let beat = match call.params.iter().find(|(name, _)| name == "signal") {
        Some((_, signal)) => beat(signal).ok_or(Refused::Service(Error::NotFound))?,
        None => Beat::Ran,
    };
    let listed = context.service.admit_ping(call.param("token")?)?;
    let run = run(&call.query)?;
    let body = if call.method == Method::POST { head_of(&mut call.body).await? } else { Vec::new() };
    let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let said = Said {
        beat,
        run,
        method: call.method.to_string(),
        from: call.peer.map(|peer| peer.0),
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

/// What the last part of a ping's path says.
fn beat(signal: &str) -> Option<Beat> {
    match signal {
        "start" => Some(Beat::Started),
        "fail" => Some(Beat::Failed(None)),
        "log" => Some(Beat::Noted),
        code if code.bytes().all(|digit| digit.is_ascii_digit()) => match code.parse().ok()? {
            0 => Some(Beat::Ran),
            code => Some(Beat::Failed(Some(code))),
        },
        _ => None,
    }
}

/// The run that `rid` names.
fn run(query: &str) -> Result<Option<u128>, Refusals> {
    let Some(rid) = query.split('&').find_map(|pair| pair.strip_prefix("rid=")) else { return Ok(None) };
    uuid(rid).map(Some).ok_or_else(|| Refusals::one("rid", "must be a UUID"))
}

/// A UUID as RFC 9562 writes it.
fn uuid(text: &str) -> Option<u128> {
    let hyphens = [8, 13, 18, 23];
    let is_one = text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if hyphens.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() });
    is_one.then(|| u128::from_str_radix(&text.replace('-', ""), 16).ok()).flatten()
}

/// The body's first bytes. What follows is not waited for.
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
    // A body that stalls does not undo the ping.
    timeout(PATIENCE, reading).await.unwrap_or(Ok(()))?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_the_path_is_a_word_or_an_exit_code() {
        assert_eq!(beat("start"), Some(Beat::Started));
        assert_eq!(beat("fail"), Some(Beat::Failed(None)));
        assert_eq!(beat("log"), Some(Beat::Noted));
        assert_eq!((beat("0"), beat("000")), (Some(Beat::Ran), Some(Beat::Ran)));
        assert_eq!((beat("1"), beat("255")), (Some(Beat::Failed(Some(1))), Some(Beat::Failed(Some(255)))));
        for other in ["", "256", "-1", "+1", "Start", "1.0", "ok"] {
            assert_eq!(beat(other), None, "{other}");
        }
    }

    #[test]
    fn a_run_is_named_by_a_uuid() {
        let named = "create=1&rid=0123abcd-0000-4000-8000-0000000000ff";
        assert_eq!(run(named), Ok(Some(0x0123_abcd_0000_4000_8000_0000_0000_00ff)));
        assert_eq!((run(""), run("create=1")), (Ok(None), Ok(None)));
        for wrong in ["rid=", "rid=7", "rid=0123abcd-0000-4000-8000-0000000000fg", "rid=é"] {
            assert_eq!(run(wrong).unwrap_err().to_string(), "rid must be a UUID", "{wrong}");
        }
    }

    #[tokio::test]
    async fn no_more_of_a_body_is_read_than_is_kept() {
        let part = || Ok(bytes::Bytes::from(vec![b'x'; 4000]));
        let endless = futures_util::stream::iter((0..3).map(move |_| part()));
        let mut body = endless.chain(futures_util::stream::pending()).boxed();
        assert_eq!(head_of(&mut body).await.unwrap().len(), BODY_KEPT);
    }
}
