//! HTTP/1.1 connections: the fast path first, then hyper.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::HttpConnection;
use super::fast_path;
use super::limits::ServerLimits;
use super::write_timeout::WriteTimeoutStream;

/// Limit of a request's header section, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Limit of header fields of a request.
const MAX_HEADERS: usize = 64;

/// Serves HTTP/1.1 (RFC 9112) on a connection until it ends.
pub(super) async fn serve<S, I>(
    mut io: WriteTimeoutStream<I>,
    limits: ServerLimits,
    client: Arc<HttpConnection<S>>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if fast_path::serve(&mut io, limits, &client).await {
        serve_with_hyper(io, limits, client, watcher).await;
    }
}

/// Serves a connection without the fast path.
pub(super) async fn serve_with_hyper<S, I>(
    io: WriteTimeoutStream<I>,
    limits: ServerLimits,
    client: Arc<HttpConnection<S>>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let client = Arc::clone(&client);
        async move { client.handle(request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        // Exact, while the limit of the buffer depends on the parts in which a header section arrives.
        .max_header_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(io), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
