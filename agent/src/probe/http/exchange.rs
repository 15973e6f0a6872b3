//! A single hop: admit the host, connect, handshake, send, and read the head of the response.

use std::{error::Error, io, time::Duration};

use bytes::Bytes;
use http::Version;
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parallax_dial::{Connected, Host};
use parallax_protocol::{
    check::HttpCheck,
    result::{Failure, Phase},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{
    head::{Head, MAX_HEAD},
    http1,
    meter::{Allowance, Metered},
    opening::Opening,
    plan::Plan,
};
use crate::probe::{
    facts::{Facts, Trouble, micros},
    net::Net,
    tls::{self, Secret},
};

/// Maximum number of HTTP/2 bytes before the head of the response, in any frames: the library buffers interim
/// responses that are never read.
const MAX_BEFORE_HEAD: usize = 4 * MAX_HEAD;
/// Time that a failed connection gets to report its reason.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The head of a response, and its unread body.
pub(super) struct Answer {
    pub(super) head: Head,
    body: Body,
}

enum Body {
    Http1(http1::Body),
    Http2 {
        body: Incoming,
        /// Drives the connection as long as the response is alive.
        _driver: Driver,
    },
}

impl Answer {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// The failure of a body that did not reach its end by `deadline`.
    pub(super) async fn piece(&mut self, deadline: Instant) -> Result<Option<Bytes>, Failure> {
        let piece = async {
            match &mut self.body {
                Body::Http1(body) => body.piece().await,
                Body::Http2 { body, .. } => loop {
                    match body.frame().await {
                        None => return Ok(None),
                        Some(Err(error)) => return Err(failure(&error)),
                        Some(Ok(frame)) => {
                            if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
                                return Ok(Some(data));
                            }
                        }
                    }
                },
            }
        };
        timeout_at(deadline, piece).await.map_err(|_| Failure::Timeout { phase: Phase::Transfer })?
    }
}

/// Sends one request over a new connection, and records address and phases.
///
/// # Errors
/// The reason why no head of a response came by `deadline`.
pub(super) async fn exchange(
    plan: &Plan,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Answer, Trouble> {
    let admitted = net.admit(&plan.host, plan.port, deadline).await?;
    facts.admitted(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.connected(&connected);
    if !plan.is_https() {
        return Ok(ask(plan, connected.stream, Version::HTTP_11, deadline, facts).await?);
    }
    let stream = shake(connected, &plan.host, net, deadline, facts).await?;
    let version = version_of(&stream);
    Ok(ask(plan, stream, version, deadline, facts).await?)
}

/// Sends the first request of `check` over a new connection, and reads only the head of the response.
///
/// # Errors
/// As [`exchange`].
pub(super) async fn glance(
    check: &HttpCheck,
    opening: &Opening,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Head, Trouble> {
    let admitted = net.admit(&opening.host, opening.port, deadline).await?;
    facts.admitted(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.connected(&connected);
    if !opening.is_https {
        return Ok(glance_at(opening, connected.stream, deadline, facts).await?);
    }
    // Boxed: a check without TLS need not be as large as one with TLS.
    let secret = async {
        let stream = shake(connected, &opening.host, net, deadline, facts).await?;
        if version_of(&stream) == Version::HTTP_11 {
            return Ok(glance_at(opening, stream, deadline, facts).await?);
        }
        Ok(ask(&Plan::first(check)?, stream, Version::HTTP_2, deadline, facts).await?.head)
    };
    Box::pin(secret).await
}

async fn glance_at<S>(
    opening: &Opening,
    mut stream: S,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Head, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let started = Instant::now();
    let asking = http1::glance(&mut stream, &opening.request, opening.to_head);
    let head =
        timeout_at(deadline, asking).await.map_err(|_| Failure::Timeout { phase: Phase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    Ok(head)
}

/// Performs the web's TLS handshake, and records its duration.
async fn shake(
    connected: Connected,
    host: &Host,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Secret, Trouble> {
    let started = Instant::now();
    let stream = tls::handshake(connected, net.web_tls(), host, deadline).await?;
    facts.phases.tls_us = Some(micros(started.elapsed()));
    Ok(stream)
}

fn version_of(stream: &Secret) -> Version {
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Version::HTTP_2,
        Some(_) | None => Version::HTTP_11,
    }
}

/// Converts an HTTP/2 error of hyper to a failure.
fn failure(error: &hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return Failure::HeadTooLarge;
    }
    if error.is_parse() {
        return Failure::HttpMalformed;
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(failure) = inner.downcast_ref::<io::Error>().and_then(tls::io_failure) {
            return failure;
        }
        cause = inner.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return Failure::ClosedEarly;
    }
    // The remaining errors are the end of an HTTP/2 stream or connection by either side.
    Failure::Reset
}

async fn ask<S>(
    plan: &Plan,
    stream: S,
    version: Version,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<Answer, Failure>
where
    S: http1::Stream + 'static,
{
    let started = Instant::now();
    let answering = async {
        if version == Version::HTTP_2 {
            return ask_http2(stream, plan).await;
        }
        let (head, body) = http1::ask(stream, &plan.request_bytes()?, plan.is_head()).await?;
        Ok(Answer { head, body: Body::Http1(body) })
    };
    let answer =
        timeout_at(deadline, answering).await.map_err(|_| Failure::Timeout { phase: Phase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    Ok(answer)
}

async fn ask_http2<S>(stream: S, plan: &Plan) -> Result<Answer, Failure>
where
    S: http1::Stream + 'static,
{
    let request = plan.request()?;
    let allowance = Allowance::new(MAX_BEFORE_HEAD);
    let io = TokioIo::new(Metered { inner: stream, allowance: allowance.clone() });
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        // The limit's own type is narrower than usize.
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .handshake(io)
        .await
        .map_err(|error| failure(&error))?;
    let driver = Driver(tokio::spawn(connection));
    match sender.send_request(request).await {
        Ok(response) => {
            allowance.lift();
            let (head, body) = response.into_parts();
            let head = Head { status: head.status, headers: head.headers };
            Ok(Answer { head, body: Body::Http2 { body, _driver: driver } })
        }
        Err(_) if allowance.is_spent() => Err(Failure::HeadTooLarge),
        Err(error) => Err(driver.reason(error).await),
    }
}

/// The task that drives a connection; aborted with the check.
struct Driver(JoinHandle<hyper::Result<()>>);

impl Driver {
    /// Returns why a request failed. A connection that broke before it took the request has the better
    /// reason.
    async fn reason(mut self, error: hyper::Error) -> Failure {
        if (error.is_canceled() || error.is_closed())
            && let Ok(Ok(Err(cause))) = timeout(LAST_WORDS, &mut self.0).await
        {
            return failure(&cause);
        }
        failure(&error)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
