//! The HTTP server: accepts connections and serves them, with limits on connections and time, until shutdown.
//!
//! Three layers, each of which imports only those above it:
//!
//! 1. Protections of a connection or a request: `limits` with `connection_limit` and `idle_connections`, `listener`,
//!    `write_timeout`, `h2_guard`, `client_ip`, `login_throttle`, `drain_body`, `request_timeout`.
//! 2. State that handlers share in their context: `response_memory`, `session_streams`, and `response_index` with
//!    `simple_request`.
//! 3. Serving: `https_redirect` and `connection` for one request, `fast_path`, `http1` and `https` for one connection,
//!    and this file for the listener.

pub(super) mod client_ip;
mod connection;
mod connection_limit;
pub(super) mod drain_body;
mod fast_path;
mod h2_guard;
mod http1;
mod https;
mod https_redirect;
mod idle_connections;
mod limits;
mod listener;
pub(super) mod login_throttle;
pub(super) mod request_timeout;
pub(super) mod response_index;
pub(super) mod response_memory;
pub(super) mod session_streams;
mod simple_request;
mod write_timeout;

pub use limits::ConnectionSlots;
pub use listener::{ListenerMode, listener};

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use super::HttpContext;
use super::dispatch::filter;
use super::error::REQUEST_LOGS;
use client_ip::PeerAddress;
use connection::HttpConnection;
#[cfg(test)]
pub(super) use limits::ServerLimits;
#[cfg(test)]
pub(super) use simple_request::{SimpleRequest, look_up};
use write_timeout::WriteTimeoutStream;

/// Pause after a failed accept, so that a lack of file descriptors does not cause a busy loop.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// Time limit of requests in progress at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves HTTP on the listener until `shutdown` resolves, then waits for requests in progress to end.
///
/// Plain connections speak HTTP/1.1 only; HTTP/2 is left to a proxy in front. So there is no version to detect, and the
/// header timeout covers the first byte of a connection too.
///
/// Boxed, so that the code of all connections is generated and optimized here and not in the crate that polls it (decision
/// 107).
pub fn serve(
    listener: TcpListener,
    mode: ListenerMode,
    slots: ConnectionSlots,
    context: Arc<HttpContext>,
    shutdown: BoxFuture<'static, ()>,
) -> BoxFuture<'static, ()> {
    Box::pin(accept_connections(listener, mode, slots, context, shutdown))
}

async fn accept_connections(
    listener: TcpListener,
    mode: ListenerMode,
    slots: ConnectionSlots,
    context: Arc<HttpContext>,
    mut shutdown: BoxFuture<'static, ()>,
) {
    let service = TowerToHyperService::new(warp::service(filter(Arc::clone(&context))));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept_next(&listener, &slots) => accepted,
        };
        let Some((stream, peer, permits)) = accepted else { continue };
        let (limits, activity, watcher) = (slots.limits, slots.idle.register(), graceful.watcher());
        let client = Arc::new(HttpConnection {
            service: service.clone(),
            context: Arc::clone(&context),
            peer: PeerAddress(peer),
            activity: activity.clone(),
            mode: mode.clone(),
        });
        let mode = mode.clone();
        let connection = async move {
            match &mode {
                // Boxed, so that a plain connection does not reserve memory for a handshake.
                ListenerMode::Tls(resolver, config) => {
                    Box::pin(https::serve(stream, (resolver, config), limits, client, watcher)).await;
                }
                ListenerMode::Plain | ListenerMode::PlainWithTls { .. } => {
                    let stream = WriteTimeoutStream::new(stream, limits.write_timeout, client.activity.clone());
                    http1::serve(stream, limits, client, watcher).await;
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = connection => {}
                () = activity.evicted() => tracing::debug!("an idle connection was closed to free its slot"),
            }
            drop(permits);
        });
    }
    drop(listener);
    context.shut_down();
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("the server stopped before all requests had ended");
    }
}

/// Accepts the next connection and waits for a slot; `None` if it failed or was refused.
async fn accept_next(
    listener: &TcpListener,
    slots: &ConnectionSlots,
) -> Option<(TcpStream, IpAddr, impl Send + 'static)> {
    let ConnectionSlots { per_address, slots, idle, .. } = slots;
    let (stream, peer) = match listener.accept().await {
        Ok((stream, peer)) => (stream, peer.ip()),
        Err(error) => {
            if let Some(omitted) = REQUEST_LOGS.admit("accept") {
                tracing::warn!(%error, omitted, "a connection could not be accepted");
            }
            tokio::time::sleep(ACCEPT_RETRY).await;
            return None;
        }
    };
    let Some(permit) = per_address.admit(peer) else {
        tracing::debug!(%peer, "a connection was refused: its address has too many");
        return None;
    };
    let evicted = async {
        loop {
            idle.evict_one().await;
            tokio::select! {
                biased;
                slot = Arc::clone(slots).acquire_owned() => break slot,
                () = idle.eviction_declined() => {}
            }
        }
    };
    let slot = tokio::select! {
        biased;
        slot = Arc::clone(slots).acquire_owned() => slot,
        slot = evicted => slot,
    };
    Some((stream, peer, (permit, slot.ok()?)))
}
