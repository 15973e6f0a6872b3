//! Fast path of HTTP/1.1 connections: serves cached public documents as rendered bytes, headers included, without
//! hyper. The first request that it can't serve hands the connection over to hyper, with all bytes already read.
//!
//! It exists for its measured gain (tests/FIGURES.md): on 64 connections, a page took 8.6 to 10.2 µs of CPU instead of
//! hyper's 12.7, and a 304 took 8.0 instead of 14.6; a page costs about as much as a file served by nginx. A client can't
//! tell both paths apart: `comparison` sends the same bytes to both, and whatever differs is left to hyper. Except for time:
//! silence before a request doesn't count for hyper's header timeout, so an incomplete head may take twice that.

use std::cell::RefCell;
use std::fmt::Write;
use std::io;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use ::http::StatusCode;
use ::http::header::STRICT_TRANSPORT_SECURITY;
use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use parallax_core::time::{SECOND, Timestamp};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::connection::{HSTS, HttpConnection};
use super::limits::ServerLimits;
use super::listener::ListenerMode;
use super::request_timeout;
use super::response_index::{FastPathLookup, RenderedResponse};
use super::simple_request::{SimpleRequest, look_up};
use super::write_timeout::WriteTimeoutStream;

/// Size of one read, in bytes; the header section of a browser has 500 to 1,500.
const READ_BYTES: usize = 2048;
/// Limit of waits of one request for its document to be rendered; it may be outdated again after each.
const MAX_RENDER_WAITS: u32 = 3;

/// Serves requests from the cache. Returns true, with all unserved bytes put back, at the first request that it can't
/// serve; false once the connection has ended.
pub(super) async fn serve<S, I>(
    io: &mut WriteTimeoutStream<I>,
    limits: ServerLimits,
    client: &HttpConnection<S>,
) -> bool
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let is_tls = match client.mode {
        ListenerMode::PlainWithTls { .. } => return true,
        ListenerMode::Plain => false,
        ListenerMode::Tls(..) => true,
    };
    let mut stopping = client.context.shutdown_signal();
    let is_stopping = stopping.clone();
    // An error means that the sender was dropped, which is a shutdown too.
    let mut stop = pin!(async move { drop(stopping.wait_for(|stop| *stop).await) });
    let mut silence = pin!(sleep(limits.header_timeout));
    let mut last_response = Instant::now();
    let mut unread = BytesMut::new();
    loop {
        unread.reserve(READ_BYTES);
        let read = tokio::select! {
            biased;
            read = io.read_buf(&mut unread) => read,
            () = stop.as_mut() => return false,
            () = silence.as_mut() => {
                // The timer is not reset with each response, which would cost more than some responses do.
                let until = last_response + limits.header_timeout;
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
        while !unread.is_empty() {
            let answer = |request: &SimpleRequest<'_>| client.context.response_index.respond_raw(request);
            let (response, length, closes) = match look_up(&unread, answer) {
                Some((FastPathLookup::Ready(response), length, closes)) => (response, length, closes),
                Some((FastPathLookup::Rendering(rendering), ..)) => {
                    waits += 1;
                    match await_rendering(client, rendering).await {
                        Ok(true) if waits < MAX_RENDER_WAITS => continue,
                        Ok(_) => {
                            io.unread(unread.freeze());
                            return true;
                        }
                        Err(rejection) => (rejection, unread.len(), true),
                    }
                }
                None => {
                    io.unread(unread.freeze());
                    return true;
                }
            };
            unread.advance(length);
            waits = 0;
            client.context.count_response(response.status);
            let now = client.context.service.now();
            if send(io, response, now, closes, is_tls).await.is_err() {
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
        last_response = Instant::now();
        // Checked here too: while a client keeps sending requests, the select above never sees the shutdown.
        if *is_stopping.borrow() {
            let _ = io.shutdown().await;
            return false;
        }
    }
}

/// Waits for a document to be rendered; the connection counts as busy meanwhile. Returns the timeout error as a
/// response if it takes too long.
async fn await_rendering<S>(
    client: &HttpConnection<S>,
    rendering: BoxFuture<'static, bool>,
) -> Result<bool, RenderedResponse> {
    let _request = client.activity.begin_request();
    timeout(request_timeout::REQUEST_TIMEOUT, rendering)
        .await
        .map_err(|_| RenderedResponse::from(&request_timeout::timeout_error().into_response()))
}

/// Sends a response with its length and the current date, header and body in one write. The order of headers is
/// hyper's.
async fn send<I>(io: &mut I, response: RenderedResponse, now: Timestamp, closes: bool, is_tls: bool) -> io::Result<()>
where
    I: AsyncWrite + Unpin,
{
    let mut head = BytesMut::with_capacity(response.head.len() + 160);
    head.extend_from_slice(&response.head);
    if is_tls {
        head.extend_from_slice(STRICT_TRANSPORT_SECURITY.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(HSTS.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if closes {
        head.extend_from_slice(b"connection: close\r\n");
    }
    if response.status != StatusCode::NOT_MODIFIED {
        head.extend_from_slice(b"content-length: ");
        // Writing to memory does not fail.
        let _ = write!(head, "{}", response.body.len());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"date: ");
    put_date(&mut head, now);
    head.extend_from_slice(b"\r\n\r\n");
    io.write_all_buf(&mut head.chain(response.body)).await?;
    io.flush().await
}

/// Appends the date (RFC 9110, section 6.6.1), which each thread formats once a second.
fn put_date(head: &mut BytesMut, now: Timestamp) {
    thread_local! {
        static MADE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let second = u64::try_from(now.as_millis() / SECOND).unwrap_or_default();
    MADE.with_borrow_mut(|(made_at, date)| {
        if *made_at != second || date.is_empty() {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            (*made_at, *date) = (second, httpdate::fmt_http_date(at));
        }
        head.extend_from_slice(date.as_bytes());
    });
}

#[cfg(test)]
mod comparison;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_header_changes_every_second() {
        let response = |millis: i64| {
            let mut head = BytesMut::new();
            put_date(&mut head, Timestamp::from_millis(millis));
            String::from_utf8(head.to_vec()).unwrap()
        };
        assert_eq!(response(784_111_777_999), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(response(784_111_777_000), response(784_111_777_999));
        assert_eq!(response(784_111_778_000), "Sun, 06 Nov 1994 08:49:38 GMT");
    }
}
