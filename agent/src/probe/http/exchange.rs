//! One hop: judge, dial, shake hands, send, and read the head of the answer.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Version, response::Parts};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parallax_dial::Host;
use parallax_protocol::{
    check::HttpCheck,
    result::{Failure, Phase},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use tokio_rustls::client::TlsStream;

use super::{
    head::{self, Head},
    meter::{Allowance, Metered},
    opening::Opening,
    plan::Plan,
};
use crate::probe::{
    facts::{Facts, Trouble, micros},
    net::Net,
    tls,
};

/// The longest head of an answer: 64 KiB.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// The most bytes of HTTP/2 before the head of the answer, whatever frames they are: interim answers are kept until
/// somebody asks for them, and nobody does.
const MAX_BEFORE_HEAD: usize = 4 * MAX_HEAD;
/// The most interim answers (1xx) before the answer.
const MAX_INTERIM: usize = 100;
/// The most header lines of an answer.
pub(super) const MAX_HEADERS: usize = 256;
/// How long a connection that gave up may take to say why.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The head of an answer, and the body still to be read.
pub(super) struct Answer {
    pub(super) head: Parts,
    pub(super) body: Incoming,
    /// Reads and writes for as long as the answer is held.
    _driver: Driver,
}

/// Makes one request over a new connection, and notes address and phases.
///
/// # Errors
/// Whatever kept the head of an answer from coming by `deadline`.
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
        // Head and body may be two writes.
        connected.without_delay();
        return Ok(ask(plan, connected.stream, Version::HTTP_11, deadline, facts).await?);
    }
    let stream = shake(connected.stream, &plan.host, net, deadline, facts).await?;
    let version = version_of(&stream);
    Ok(ask(plan, stream, version, deadline, facts).await?)
}

/// Makes the first request of `check` over a new connection, and reads no more than the head of the answer.
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
    // On the heap: a check in the open need not be as large as one with TLS.
    let secret = async {
        let stream = shake(connected.stream, &opening.host, net, deadline, facts).await?;
        if version_of(&stream) == Version::HTTP_11 {
            return glance_at(opening, stream, deadline, facts).await;
        }
        let answer = ask(&Plan::first(check)?, stream, Version::HTTP_2, deadline, facts).await?;
        Ok(Head { status: answer.head.status, headers: answer.head.headers })
    };
    Ok(Box::pin(secret).await?)
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
    let asking = head::ask(&mut stream, &opening.request, opening.to_head);
    let head =
        timeout_at(deadline, asking).await.map_err(|_| Failure::Timeout { phase: Phase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    Ok(head)
}

/// Shakes hands for the web, and notes how long that took.
async fn shake(
    stream: TcpStream,
    host: &Host,
    net: &Net,
    deadline: Instant,
    facts: &mut Facts,
) -> Result<TlsStream<TcpStream>, Failure> {
    let started = Instant::now();
    let stream = tls::handshake(stream, net.web_tls(), host, deadline).await?;
    facts.phases.tls_us = Some(micros(started.elapsed()));
    Ok(stream)
}

fn version_of(stream: &TlsStream<TcpStream>) -> Version {
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Version::HTTP_2,
        Some(_) | None => Version::HTTP_11,
    }
}

/// The word for what hyper met.
pub(super) fn failure(error: &hyper::Error) -> Failure {
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
    // What is left is the end of an HTTP/2 stream or connection by either side.
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
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = plan.request(version)?;
    let started = Instant::now();
    let answering = async {
        if version == Version::HTTP_2 {
            ask_http2(stream, request).await
        } else {
            ask_http1(TokioIo::new(stream), request).await
        }
    };
    let (response, driver) =
        timeout_at(deadline, answering).await.map_err(|_| Failure::Timeout { phase: Phase::FirstByte })??;
    facts.phases.first_byte_us = Some(micros(started.elapsed()));
    let (head, body) = response.into_parts();
    Ok(Answer { head, body, _driver: driver })
}

type Sent = Result<(http::Response<Incoming>, Driver), Failure>;

async fn ask_http1<S>(io: TokioIo<S>, mut request: http::Request<Full<Bytes>>) -> Sent
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_header_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        // Of what is read at once too: a task takes up to 128 times this before others have their turn.
        .max_buf_size(MAX_HEAD)
        .handshake(io)
        .await
        .map_err(|error| failure(&error))?;
    let driver = Driver(tokio::spawn(connection));
    let (interim, enough) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let told = Arc::clone(&enough);
    hyper::ext::on_informational(&mut request, move |_| {
        if interim.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM {
            told.notify_one();
        }
    });
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer,
        () = enough.notified() => return Err(Failure::HeadTooLarge),
    };
    match answer {
        Ok(response) => Ok((response, driver)),
        Err(error) => Err(driver.reason(error).await),
    }
}

async fn ask_http2<S>(stream: S, request: http::Request<Full<Bytes>>) -> Sent
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let allowance = Allowance::new(MAX_BEFORE_HEAD);
    let io = TokioIo::new(Metered { inner: stream, allowance: allowance.clone() });
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        // The limit's own type is narrower than a length.
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .handshake(io)
        .await
        .map_err(|error| failure(&error))?;
    let driver = Driver(tokio::spawn(connection));
    match sender.send_request(request).await {
        Ok(response) => {
            allowance.lift();
            Ok((response, driver))
        }
        Err(_) if allowance.is_spent() => Err(Failure::HeadTooLarge),
        Err(error) => Err(driver.reason(error).await),
    }
}

/// The task that drives a connection; it ends with the check.
struct Driver(JoinHandle<hyper::Result<()>>);

impl Driver {
    /// Why a request failed. A connection that broke before it took the request knows more than the request does.
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
