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

use super::{Context, Peer, filter};

/// Connections at once; more wait in the host's queue.
const CONNECTIONS: usize = 4096;
/// How long a request's head may take to arrive, from the connection's start or the last answer: so also how long a
/// connection may be silent.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 * 1024;
/// Header lines of a request.
const HEAD_LINES: usize = 64;
/// Pause after the host could not accept, so that a lack of descriptors is no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How long requests under way may take once the server is to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves HTTP/1.1 on the listener until `shutdown` resolves, then lets requests under way end.
///
/// HTTP/2 is for a proxy in front: without it there is no version to sniff, so that the head's time-out covers a
/// connection's first byte too.
pub async fn serve(listener: TcpListener, context: Arc<Context>, shutdown: impl Future<Output = ()> + Send) {
    let service = TowerToHyperService::new(warp::service(filter(context)));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
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
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEAD_LINES)
            .serve_connection(TokioIo::new(stream), served);
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
