//! HTTPS connections: the TLS handshake, then HTTP/2 or HTTP/1.1, with the same limits as plain HTTP.

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

use super::connection::HttpConnection;
use super::h2_guard::{H2CloseReason, H2Guard};
use super::http1;
use super::limits::ServerLimits;
use super::write_timeout::WriteTimeoutStream;
use crate::tls::CertificateResolver;

/// Concurrent streams of one connection.
const MAX_STREAMS: u32 = 64;
/// Limit of a request's header list, in bytes, with 32 for each field (RFC 9113, section 6.5.2).
const MAX_HEADER_LIST: u32 = 16 * 1024;
/// Flow control windows for request bodies, of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// Buffer of response data that waits for the client's window, in bytes.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Limits of streams that the client reset before they were accepted, and of streams that the server reset.
const MAX_PENDING_RESETS: usize = 20;
const MAX_LOCAL_RESETS: usize = 64;
/// Keep-alive: a silent connection is pinged, and closed if no reply comes within the timeout.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a connection without a request; long, since a browser sends its next request on the same one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of the guard's checks of a connection.
const GUARD_INTERVAL: Duration = Duration::from_secs(1);
/// Fatal TLS alert `unrecognized_name` (RFC 8446, section 6), for a host without a certificate.
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70];

/// Serves a connection until it ends. Errors are only logged.
pub(super) async fn serve<S>(
    stream: TcpStream,
    tls: (&CertificateResolver, &Arc<ServerConfig>),
    limits: ServerLimits,
    client: Arc<HttpConnection<S>>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send,
{
    let stream = match timeout(limits.header_timeout, handshake(stream, tls)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("a TLS handshake timed out");
            return;
        }
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(serve_http2(stream, limits, client)).await;
        drop(watcher);
    } else {
        let io = WriteTimeoutStream::new(stream, limits.write_timeout, client.activity.clone());
        http1::serve(io, limits, client, watcher).await;
    }
}

async fn handshake(
    stream: TcpStream,
    (resolver, config): (&CertificateResolver, &Arc<ServerConfig>),
) -> io::Result<TlsStream<TcpStream>> {
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    if resolver.certificate_for(start.accepted.client_hello().server_name()).is_none() {
        // rustls would send `access_denied`, which hides the cause.
        start.io.write_all(&UNRECOGNIZED_NAME).await?;
        start.io.shutdown().await?;
        return Err(io::Error::other("no certificate for the requested host"));
    }
    start.into_stream(Arc::clone(config)).await
}

/// Serves HTTP/2 (RFC 9113) on a connection until it ends.
async fn serve_http2<S>(stream: TlsStream<TcpStream>, limits: ServerLimits, client: Arc<HttpConnection<S>>)
where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send,
{
    let io = TokioIo::new(WriteTimeoutStream::new(stream, limits.write_timeout, client.activity.clone()));
    let streams = H2Guard::new();
    let (mut stopping, request_streams, visitor) = (client.context.shutdown_signal(), streams.clone(), client);
    let service = service_fn(move |request| {
        let (client, stream) = (Arc::clone(&visitor), request_streams.open_stream());
        async move {
            let answer = client.handle(request).await?;
            Ok::<_, Infallible>(answer.map(|body| stream.guard_body(body)))
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_LOCAL_RESETS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let stop = async move {
        // An error means that the sender was dropped, which is a shutdown too.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    tokio::pin!(stop);
    let mut ticks = interval(GUARD_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = stop.as_mut(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = ticks.tick() => match streams.close_reason(Instant::now(), limits.write_timeout, limits.header_timeout, IDLE_TIMEOUT) {
                None => {}
                // After GOAWAY the client may still send what was in flight; the next check closes the connection.
                Some(H2CloseReason::Idle) if !is_ending => {
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                Some(verdict) => {
                    tracing::debug!(?verdict, "an HTTP/2 connection was closed");
                    return;
                }
            }
        }
    }
}
