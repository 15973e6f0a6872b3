//! A connection over TLS: its handshake, and HTTP/2 or HTTP/1.1 behind it, each within the same bounds as in the clear.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::guest::Guest;
use super::server::{self, Limits};
use super::stall::Stalling;
use super::streams::{Streams, Verdict};
use crate::tls::Shown;

/// Requests that one connection may have under way.
const STREAMS: u32 = 64;
/// Bytes of a request's header fields, with 32 for each (RFC 9113, section 6.5.2).
const HEADERS: u32 = 16 * 1024;
/// Bytes of a body that may be on their way unread, of a request and of all of a connection.
const WINDOW: u32 = 64 * 1024;
const WINDOW_OF_ALL: u32 = 256 * 1024;
/// Bytes of an answer that wait for the reader's window.
const UNSENT: usize = 64 * 1024;
/// Requests cancelled before they were looked at, and answers given up by us, that a connection may have waiting.
const RESETS: usize = 20;
const OWN_RESETS: usize = 64;
/// A silent connection is asked whether anybody is there, and ends where nobody answers.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const NO_ANSWER: Duration = Duration::from_secs(10);
/// How long a connection may be without a request: a browser that reads comes back on the same one.
const QUIET: Duration = Duration::from_secs(60);
/// Pause between two looks at a connection's requests.
const LOOK: Duration = Duration::from_secs(1);
/// A fatal alert, `unrecognized_name` (RFC 8446, section 6): for a name that is nobody's here.
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70];

/// Serves a connection to its end. How it ended is told to the log alone.
pub(super) async fn serve<S>(
    stream: TcpStream,
    tls: (&Shown, &Arc<ServerConfig>),
    limits: Limits,
    guest: Arc<Guest<S>>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    let stream = match timeout(limits.head, handshake(stream, tls)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            return;
        }
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(many(stream, limits, guest)).await;
        drop(watcher);
    } else {
        let io = Stalling::new(stream, limits.stall, guest.seat.clone());
        server::one(io, limits, guest, watcher).await;
    }
}

async fn handshake(
    stream: TcpStream,
    (shown, config): (&Shown, &Arc<ServerConfig>),
) -> io::Result<TlsStream<TcpStream>> {
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    if shown.pair(start.accepted.client_hello().server_name()).is_none() {
        // rustls would call it a lack of access; whoever asked learns what is so.
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        start.io.shutdown().await?;
        return Err(io::Error::other("nobody here has that name"));
    }
    start.into_stream(Arc::clone(config)).await
}

/// HTTP/2 (RFC 9113).
async fn many<S>(stream: TlsStream<TcpStream>, limits: Limits, guest: Arc<Guest<S>>)
where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    let io = TokioIo::new(Stalling::new(stream, limits.stall, guest.seat.clone()));
    let streams = Streams::new();
    let (mut stopping, begun, visitor) = (guest.context.stopping(), streams.clone(), guest);
    let served = service_fn(move |request| {
        let (guest, stream) = (Arc::clone(&visitor), begun.begin());
        async move {
            let answer = guest.answer(request).await?;
            Ok::<_, Infallible>(answer.map(|body| stream.answered(body)))
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW_OF_ALL)
        .max_send_buf_size(UNSENT)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(OWN_RESETS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(NO_ANSWER)
        .serve_connection(io, served);
    tokio::pin!(connection);
    let stop = async move {
        // Who would tell is gone: that too is a reason to stop.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    tokio::pin!(stop);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = stop.as_mut(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => match streams.verdict(Instant::now(), limits.stall, limits.head, QUIET) {
                None => {}
                // Told that it ends, it may still send what was on its way; by the next look it had the time.
                Some(Verdict::Quiet) if !is_ending => {
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                Some(verdict) => {
                    tracing::debug!(?verdict, "a connection was ended");
                    return;
                }
            }
        }
    }
}
