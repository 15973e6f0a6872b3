//! Fast path of HTTP/1.1 connections: serves cached public documents as rendered bytes, headers included, without
//! hyper. The first request that it can't serve hands the connection over to hyper, with all bytes already read.

use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use ::http::StatusCode;
use ::http::header::STRICT_TRANSPORT_SECURITY;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use httparse::{Header, Status};
use parallax_core::time::{SECOND, Timestamp};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::connection::{HSTS, HttpConnection};
use super::request_timeout;
use super::response::HttpResponse;
use super::server::{ListenerMode, ServerLimits};
use super::write_timeout::WriteTimeoutStream;

/// Size of one read, in bytes; the header section of a browser has 500 to 1,500.
const READ_BYTES: usize = 2048;
/// Limit of header fields on the fast path.
const MAX_HEADERS: usize = 32;
/// Limit of waits of one request for its document to be rendered; it may be outdated again after each.
const MAX_RENDER_WAITS: u32 = 3;
/// Headers that exclude a request from the fast path.
const EXCLUDED_HEADERS: [&str; 6] =
    ["content-length", "transfer-encoding", "expect", "upgrade", "te", "http2-settings"];

/// A rendered response, complete except for its date.
#[derive(Debug)]
pub(super) struct RenderedResponse {
    pub(super) status: StatusCode,
    /// Status line and headers, each with its line ending.
    pub(super) head: Bytes,
    pub(super) body: Bytes,
}

impl From<&HttpResponse> for RenderedResponse {
    fn from(reply: &HttpResponse) -> Self {
        Self { status: reply.status(), head: reply.head(), body: Bytes::copy_from_slice(reply.body()) }
    }
}

/// Result of a look-up in the cache of responses.
pub(super) enum FastPathLookup {
    /// The response is cached.
    Ready(RenderedResponse),
    /// The document must be rendered first. If the future returns true, another look-up may find it.
    Rendering(BoxFuture<'static, bool>),
}

/// A request that the fast path may serve: a `GET` without a body.
#[derive(Debug)]
pub(super) struct SimpleRequest<'a> {
    /// Path and query.
    pub(super) path: &'a str,
    headers: &'a [Header<'a>],
}

impl SimpleRequest<'_> {
    /// Values of all headers of a name (lowercase), skipping those that are not ASCII text.
    pub(super) fn header_values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let of_name = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        of_name.filter_map(|header| std::str::from_utf8(header.value).ok().filter(|value| value.is_ascii()))
    }

    /// Number of headers of a name.
    fn header_count(&self, name: &str) -> usize {
        self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count()
    }

    /// Returns whether the client asks to close the connection; `None` if the fast path does not handle the header.
    fn closes_connection(&self) -> Option<bool> {
        let mut said = self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
        match (said.next(), said.next()) {
            (None, _) => Some(false),
            (Some(one), None) if one.value.eq_ignore_ascii_case(b"keep-alive") => Some(false),
            (Some(one), None) if one.value.eq_ignore_ascii_case(b"close") => Some(true),
            _ => None,
        }
    }
}

/// Parses the buffered bytes as a request and looks it up. Returns the result, the length of its header section, and
/// whether the connection closes after it; `None` if the fast path can't serve it.
pub(super) fn look_up<T>(held: &[u8], look: impl FnOnce(&SimpleRequest<'_>) -> Option<T>) -> Option<(T, usize, bool)> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(length)) = request.parse_with_uninit_headers(held, &mut headers) else {
        return None;
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return None;
    }
    let path = request.path.filter(|path| path.starts_with('/'))?;
    let question = SimpleRequest { path, headers: request.headers };
    if question.header_count("host") != 1 || EXCLUDED_HEADERS.iter().any(|name| question.header_count(name) > 0) {
        return None;
    }
    let closes = question.closes_connection()?;
    Some((look(&question)?, length, closes))
}

/// Serves requests from the cache. Returns true, with all unserved bytes put back, at the first request that it can't
/// serve; false once the connection has ended.
pub(super) async fn serve<S, I>(io: &mut WriteTimeoutStream<I>, limits: ServerLimits, guest: &HttpConnection<S>) -> bool
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let is_tls = match guest.mode {
        ListenerMode::PlainWithTls { .. } => return true,
        ListenerMode::Plain => false,
        ListenerMode::Tls(..) => true,
    };
    let mut stopping = guest.context.shutdown_signal();
    let told = stopping.clone();
    // An error means that the sender is gone, which is a shutdown too.
    let mut stop = pin!(async move { drop(stopping.wait_for(|stop| *stop).await) });
    let mut silence = pin!(sleep(limits.header_timeout));
    let mut answered = Instant::now();
    let mut held = BytesMut::new();
    loop {
        held.reserve(READ_BYTES);
        let read = tokio::select! {
            biased;
            read = io.read_buf(&mut held) => read,
            () = stop.as_mut() => return false,
            () = silence.as_mut() => {
                // The timer is not reset with each response, which would cost more than some responses do.
                let until = answered + limits.header_timeout;
                if until <= Instant::now() {
                    return false;
                }
                silence.as_mut().reset(until);
                continue;
            }
        };
        if !read.is_ok_and(|count| count > 0) {
            return false;
        }
        let mut waits = 0;
        while !held.is_empty() {
            let look =
                |question: &SimpleRequest<'_>| guest.context.response_index.respond_raw(&guest.context, question);
            let (written, length, closes) = match look_up(&held, look) {
                Some((FastPathLookup::Ready(written), length, closes)) => (written, length, closes),
                Some((FastPathLookup::Rendering(drawing), ..)) => {
                    waits += 1;
                    match await_rendering(guest, drawing).await {
                        Ok(true) if waits < MAX_RENDER_WAITS => continue,
                        Ok(_) => {
                            io.unread(held.freeze());
                            return true;
                        }
                        Err(late) => (late, held.len(), true),
                    }
                }
                None => {
                    io.unread(held.freeze());
                    return true;
                }
            };
            held.advance(length);
            waits = 0;
            guest.context.count_response(written.status);
            let now = guest.context.service.now();
            if send(io, written, now, closes, is_tls).await.is_err() {
                return false;
            }
            if closes {
                // TLS needs a close notification, or the response looks truncated (RFC 8446, section 6.1).
                if is_tls {
                    let _ = io.shutdown().await;
                }
                return false;
            }
        }
        answered = Instant::now();
        // Checked here too: while a client keeps sending requests, the select above never sees the shutdown.
        if *told.borrow() {
            let _ = io.shutdown().await;
            return false;
        }
    }
}

/// Waits for a document to be rendered; the connection counts as busy meanwhile. Returns the timeout error as a
/// response if it takes too long.
async fn await_rendering<S>(
    guest: &HttpConnection<S>,
    drawing: BoxFuture<'static, bool>,
) -> Result<bool, RenderedResponse> {
    let _asked = guest.activity.begin_request();
    timeout(request_timeout::REQUEST_TIMEOUT, drawing)
        .await
        .map_err(|_| RenderedResponse::from(&request_timeout::timeout_error().into_response()))
}

/// Sends a response with the current date, header and body in one write.
async fn send<I>(io: &mut I, written: RenderedResponse, now: Timestamp, closes: bool, is_tls: bool) -> io::Result<()>
where
    I: AsyncWrite + Unpin,
{
    let mut head = BytesMut::with_capacity(written.head.len() + 160);
    head.extend_from_slice(&written.head);
    if is_tls {
        head.extend_from_slice(STRICT_TRANSPORT_SECURITY.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(HSTS.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if closes {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"date: ");
    put_date(&mut head, now);
    head.extend_from_slice(b"\r\n\r\n");
    io.write_all_buf(&mut head.chain(written.body)).await?;
    io.flush().await
}

/// Appends the date (RFC 9110, section 6.6.1), which each thread formats once a second.
fn put_date(head: &mut BytesMut, now: Timestamp) {
    thread_local! {
        static MADE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let second = u64::try_from(now.as_millis() / SECOND).unwrap_or_default();
    MADE.with_borrow_mut(|(made, date)| {
        if *made != second || date.is_empty() {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            (*made, *date) = (second, httpdate::fmt_http_date(at));
        }
        head.extend_from_slice(date.as_bytes());
    });
}

#[cfg(test)]
mod tests;
