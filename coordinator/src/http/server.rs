//! Accepts connections and serves them, within limits of number and time, until told to stop.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::stall::Stalling;
use super::{Context, Peer, filter};

/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 * 1024;
/// Header lines of a request.
const HEAD_LINES: usize = 64;
/// Pause after the host could not accept, so that a lack of descriptors is no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How long requests under way may take once the server is to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once; more wait in the host's queue.
    pub(super) connections: usize,
    /// How long a request's head may take to arrive, from the connection's start or the last answer: so also how long
    /// a connection may be silent.
    pub(super) head: Duration,
    /// How long a connection may take nothing of an answer.
    pub(super) stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, head: Duration::from_secs(10), stall: Duration::from_secs(30) }
    }
}

/// Serves HTTP/1.1 on the listener until `shutdown` resolves, then lets requests under way end.
///
/// HTTP/2 is for a proxy in front: without it there is no version to sniff, so that the head's time-out covers a
/// connection's first byte too.
pub async fn serve(listener: TcpListener, context: Arc<Context>, shutdown: impl Future<Output = ()> + Send) {
    serve_within(Limits::default(), listener, context, shutdown).await;
}

pub(super) async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    context: Arc<Context>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let service = TowerToHyperService::new(warp::service(filter(context)));
    let slots = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepting = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepting => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(BACK_OFF).await;
                continue;
            }
        };
        // Small answers must not wait; a socket that refuses this serves all the same.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        let peer = Peer(peer.ip());
        let served = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            service.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEAD_LINES)
            .serve_connection(TokioIo::new(Stalling::new(stream, limits.stall)), served);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way when the server stopped");
    }
}
