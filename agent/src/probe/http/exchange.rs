//! A single hop: admit the host, connect, handshake, send, and read the head of the response.
//!
//! Not by reqwest: each phase is timed at the socket, late addresses join the race of connections, and the bytes of a
//! response are counted and repaired before they are parsed. reqwest hides all three.

use std::{error::Error, io, time::Duration};

use bytes::Bytes;
use http::Version;
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parallax_dial::{DialedConnection, Host};
use parallax_protocol::{
    check::WireHttpCheck,
    result::{WireFailure, WirePhase},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{
    byte_limit::{ByteAllowance, LimitedStream},
    head::{MAX_HEAD, ResponseHead},
    http1,
    prepared_request::PreparedRequest,
    request_plan::RequestPlan,
};
use crate::probe::{
    facts::{CheckError, CheckFacts, micros},
    net::ProbeContext,
    tls::{self, WebTlsStream},
};

/// Maximum number of HTTP/2 bytes before the head of the response, in any frames: the library buffers interim
/// responses that are never read.
const MAX_BEFORE_HEAD: usize = 4 * MAX_HEAD;
/// Time that a failed connection gets to report its reason.
const CLOSE_REASON_TIMEOUT: Duration = Duration::from_millis(100);

/// The head of a response, and its unread body.
pub(super) struct HopResponse {
    pub(super) head: ResponseHead,
    body: HopBody,
}

enum HopBody {
    Http1(http1::Http1Body),
    Http2 {
        body: Incoming,
        /// Drives the connection as long as the response is alive.
        _driver: Driver,
    },
}

impl HopResponse {
    /// Returns the next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// The failure of a body that did not reach its end by `deadline`.
    pub(super) async fn next_piece(&mut self, deadline: Instant) -> Result<Option<Bytes>, WireFailure> {
        let piece = async {
            match &mut self.body {
                HopBody::Http1(body) => body.next_piece().await,
                HopBody::Http2 { body, .. } => loop {
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
        timeout_at(deadline, piece).await.map_err(|_| WireFailure::Timeout { phase: WirePhase::Transfer })?
    }
}

/// Sends one request over a new connection, and records address and phases.
///
/// # Errors
/// The reason why no head of a response came by `deadline`.
pub(super) async fn exchange(
    plan: &RequestPlan,
    net: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<HopResponse, CheckError> {
    let admitted = net.admit(&plan.host, plan.port, deadline).await?;
    facts.record_resolution(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.record_connection(&connected);
    if !plan.is_https() {
        return Ok(send_over(plan, connected.stream, Version::HTTP_11, deadline, facts).await?);
    }
    let stream = tls_handshake(connected, &plan.host, net, deadline, facts).await?;
    let version = version_of(&stream);
    Ok(send_over(plan, stream, version, deadline, facts).await?)
}

/// Sends the first request of `check` over a new connection, and reads only the head of the response.
///
/// # Errors
/// As [`exchange`].
pub(super) async fn fetch_head(
    check: &WireHttpCheck,
    opening: &PreparedRequest,
    net: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<ResponseHead, CheckError> {
    let admitted = net.admit(&opening.host, opening.port, deadline).await?;
    facts.record_resolution(&admitted);
    let connected = admitted.connect(deadline).await?;
    facts.record_connection(&connected);
    if !opening.is_https {
        return Ok(fetch_head_over(opening, connected.stream, deadline, facts).await?);
    }
    // Boxed: a check without TLS need not be as large as one with TLS.
    let secret = async {
        let stream = tls_handshake(connected, &opening.host, net, deadline, facts).await?;
        if version_of(&stream) == Version::HTTP_11 {
            return Ok(fetch_head_over(opening, stream, deadline, facts).await?);
        }
        Ok(send_over(&RequestPlan::from_check(check)?, stream, Version::HTTP_2, deadline, facts).await?.head)
    };
    Box::pin(secret).await
}

async fn fetch_head_over<S>(
    opening: &PreparedRequest,
    mut stream: S,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<ResponseHead, WireFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let started = Instant::now();
    let asking = http1::fetch_head(&mut stream, &opening.request, opening.to_head);
    let head =
        timeout_at(deadline, asking).await.map_err(|_| WireFailure::Timeout { phase: WirePhase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    Ok(head)
}

/// Performs the web's TLS handshake, and records its duration.
async fn tls_handshake(
    connected: DialedConnection,
    host: &Host,
    net: &ProbeContext,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<WebTlsStream, CheckError> {
    let started = Instant::now();
    let stream = tls::handshake(connected, net.web_tls(), host, deadline).await?;
    facts.phases.tls_us = Some(micros(started.elapsed()));
    Ok(stream)
}

fn version_of(stream: &WebTlsStream) -> Version {
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Version::HTTP_2,
        Some(_) | None => Version::HTTP_11,
    }
}

/// Converts an HTTP/2 error of hyper to a failure.
fn failure(error: &hyper::Error) -> WireFailure {
    if error.is_parse_too_large() {
        return WireFailure::HeadTooLarge;
    }
    if error.is_parse() {
        return WireFailure::HttpMalformed;
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(failure) = inner.downcast_ref::<io::Error>().and_then(tls::io_failure) {
            return failure;
        }
        cause = inner.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return WireFailure::ClosedEarly;
    }
    // The remaining errors are the end of an HTTP/2 stream or connection by either side.
    WireFailure::Reset
}

async fn send_over<S>(
    plan: &RequestPlan,
    stream: S,
    version: Version,
    deadline: Instant,
    facts: &mut CheckFacts,
) -> Result<HopResponse, WireFailure>
where
    S: http1::ByteStream + 'static,
{
    let started = Instant::now();
    let answering = async {
        if version == Version::HTTP_2 {
            return send_http2(stream, plan).await;
        }
        let (head, body) = http1::send(stream, &plan.request_bytes()?, plan.is_head()).await?;
        Ok(HopResponse { head, body: HopBody::Http1(body) })
    };
    let answer =
        timeout_at(deadline, answering).await.map_err(|_| WireFailure::Timeout { phase: WirePhase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    Ok(answer)
}

async fn send_http2<S>(stream: S, plan: &RequestPlan) -> Result<HopResponse, WireFailure>
where
    S: http1::ByteStream + 'static,
{
    let request = plan.request()?;
    let allowance = ByteAllowance::new(MAX_BEFORE_HEAD);
    let io = TokioIo::new(LimitedStream { inner: stream, allowance: allowance.clone() });
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        // The limit's own type is narrower than usize.
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .handshake(io)
        .await
        .map_err(|error| failure(&error))?;
    let driver = Driver(tokio::spawn(connection));
    match sender.send_request(request).await {
        Ok(response) => {
            allowance.remove_limit();
            let (head, body) = response.into_parts();
            let head = ResponseHead { status: head.status, headers: head.headers };
            Ok(HopResponse { head, body: HopBody::Http2 { body, _driver: driver } })
        }
        Err(_) if allowance.is_spent() => Err(WireFailure::HeadTooLarge),
        Err(error) => Err(driver.reason(error).await),
    }
}

/// The task that drives a connection; aborted with the check.
struct Driver(JoinHandle<hyper::Result<()>>);

impl Driver {
    /// Returns why a request failed. A connection that broke before it took the request has the better
    /// reason.
    async fn reason(mut self, error: hyper::Error) -> WireFailure {
        if (error.is_canceled() || error.is_closed())
            && let Ok(Ok(Err(cause))) = timeout(CLOSE_REASON_TIMEOUT, &mut self.0).await
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
