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

use super::guest::{Guest, HALF_A_YEAR};
use super::overdue;
use super::reply::Reply;
use super::server::{Limits, Way};
use super::stall::Stalling;

/// Size of one read, in bytes; the header section of a browser has 500 to 1,500.
const HEAD_BYTES: usize = 2048;
/// Limit of header fields on the fast path.
const HEAD_LINES: usize = 32;
/// Limit of waits of one request for its document to be rendered; it may be outdated again after each.
const WAITS: u32 = 3;
/// Headers that exclude a request from the fast path.
const MORE: [&str; 6] = ["content-length", "transfer-encoding", "expect", "upgrade", "te", "http2-settings"];

/// A rendered response, complete except for its date.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) status: StatusCode,
    /// Status line and headers, each with its line ending.
    pub(super) head: Bytes,
    pub(super) body: Bytes,
}

impl From<&Reply> for Written {
    fn from(reply: &Reply) -> Self {
        Self { status: reply.status(), head: reply.head(), body: Bytes::copy_from_slice(reply.body()) }
    }
}

/// Result of a look-up in the cache of responses.
pub(super) enum Found {
    /// The response is cached.
    Written(Written),
    /// The document must be rendered first. If the future returns true, another look-up may find it.
    Drawing(BoxFuture<'static, bool>),
}

/// A request that the fast path may serve: a `GET` without a body.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Path and query.
    pub(super) path: &'a str,
    headers: &'a [Header<'a>],
}

impl Question<'_> {
    /// Values of all headers of a name (lowercase), skipping those that are not ASCII text.
    pub(super) fn values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let of_name = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        of_name.filter_map(|header| std::str::from_utf8(header.value).ok().filter(|value| value.is_ascii()))
    }

    /// Number of headers of a name.
    fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count()
    }

    /// Returns whether the client asks to close the connection; `None` if the fast path does not handle the header.
    fn closes(&self) -> Option<bool> {
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
pub(super) fn known<T>(
    held: &[u8],
    look: impl FnOnce(&Question<'_>) -> Option<T>,
) -> Option<(T, usize, bool)> {
    let mut headers = [const { MaybeUninit::uninit() }; HEAD_LINES];
    let mut request = httparse::Request::new(&mut []);
    let Ok(Status::Complete(length)) = request.parse_with_uninit_headers(held, &mut headers) else {
        return None;
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return None;
    }
    let path = request.path.filter(|path| path.starts_with('/'))?;
    let question = Question { path, headers: request.headers };
    if question.count("host") != 1 || MORE.iter().any(|name| question.count(name) > 0) {
        return None;
    }
    let closes = question.closes()?;
    Some((look(&question)?, length, closes))
}

/// Serves requests from the cache. Returns true, with all unserved bytes put back, at the first request that it can't
/// serve; false once the connection has ended.
pub(super) async fn answer<S, I>(io: &mut Stalling<I>, limits: Limits, guest: &Guest<S>) -> bool
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let is_tls = match guest.way {
        Way::Led { .. } => return true,
        Way::Plain => false,
        Way::Tls(..) => true,
    };
    let mut stopping = guest.context.stopping();
    let told = stopping.clone();
    // An error means that the sender is gone, which is a shutdown too.
    let mut stop = pin!(async move { drop(stopping.wait_for(|stop| *stop).await) });
    let mut silence = pin!(sleep(limits.head));
    let mut answered = Instant::now();
    let mut held = BytesMut::new();
    loop {
        held.reserve(HEAD_BYTES);
        let read = tokio::select! {
            biased;
            read = io.read_buf(&mut held) => read,
            () = stop.as_mut() => return false,
            () = silence.as_mut() => {
                // The timer is not reset with each response, which would cost more than some responses do.
                let until = answered + limits.head;
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
            let look = |question: &Question<'_>| guest.context.front.written(&guest.context, question);
            let (written, length, closes) = match known(&held, look) {
                Some((Found::Written(written), length, closes)) => (written, length, closes),
                Some((Found::Drawing(drawing), ..)) => {
                    waits += 1;
                    match awaited(guest, drawing).await {
                        Ok(true) if waits < WAITS => continue,
                        Ok(_) => {
                            io.put_back(held.freeze());
                            return true;
                        }
                        Err(late) => (late, held.len(), true),
                    }
                }
                None => {
                    io.put_back(held.freeze());
                    return true;
                }
            };
            held.advance(length);
            waits = 0;
            guest.context.count(written.status);
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
async fn awaited<S>(guest: &Guest<S>, drawing: BoxFuture<'static, bool>) -> Result<bool, Written> {
    let _asked = guest.seat.asked();
    timeout(overdue::LIMIT, drawing).await.map_err(|_| Written::from(&overdue::fault().reply()))
}

/// Sends a response with the current date, header and body in one write.
async fn send<I>(io: &mut I, written: Written, now: Timestamp, closes: bool, is_tls: bool) -> io::Result<()>
where
    I: AsyncWrite + Unpin,
{
    let mut head = BytesMut::with_capacity(written.head.len() + 160);
    head.extend_from_slice(&written.head);
    if is_tls {
        head.extend_from_slice(STRICT_TRANSPORT_SECURITY.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(HALF_A_YEAR.as_bytes());
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
