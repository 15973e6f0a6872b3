//! The HTTP server: accepts connections and serves them, with limits on connections and time, until shutdown.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connection::HttpConnection;
use super::connection_limit::ConnectionLimit;
use super::error::REQUEST_LOGS;
use super::idle_connections::IdleConnections;
use super::write_timeout::WriteTimeoutStream;
use super::{HttpContext, PeerAddress, fast_path, filter, https};
use crate::tls::{AcmeChallenges, CertificateResolver};

/// Limit of a request's header section, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Limit of header fields of a request.
const MAX_HEADERS: usize = 64;
/// Listen backlog; the operating system may allow fewer.
const LISTEN_BACKLOG: i32 = 4096;
/// Socket send buffer, in bytes (Linux doubles it, see socket(7)). The default grows up to 4 MiB, for each of thousands
/// of connections.
const SEND_BUFFER_BYTES: usize = 128 << 10;
/// Unsent bytes in that buffer (`TCP_NOTSENT_LOWAT`), which is all that a reader that reads nothing costs. A reader
/// that keeps up may have the whole buffer in flight.
const NOTSENT_LOWAT_BYTES: u32 = 16 << 10;
/// File descriptors that suffice for the rest of the process: store and mesh use some dozens, and outgoing connections
/// to mail servers, webhook receivers and vendors are limited to some hundreds.
const RESERVED_DESCRIPTORS: usize = 4096;
/// Pause after a failed accept, so that a lack of file descriptors does not cause a busy loop.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// Time for which a new or just served connection is not evicted: a legitimate client on a busy machine may need a
/// while to send its request, and even 4,096 slots with this time allow 20,000 new connections a second.
const MIN_IDLE: Duration = Duration::from_millis(200);
/// Time limit of requests in progress at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerLimits {
    /// Concurrent connections. A new one over the limit closes the one idle for longest, or waits if none is idle.
    pub(super) connections: usize,
    /// Concurrent connections of one address; more are closed at once. Loopback is exempt, since a proxy may run there.
    pub(super) per_address: usize,
    /// Time limit for a request's header section, from the start of the connection or the last response; so it also
    /// limits how long a connection may be silent. A header section that arrives in parts may take as long again from
    /// its first part on, since the fast path hands over to hyper, which starts its own timer.
    pub(super) header_timeout: Duration,
    /// Time limit for a write of a response to make progress.
    pub(super) write_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 1024,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
        }
    }
}

impl ServerLimits {
    /// Lowers the connection limit so that half of the file descriptors, at most [`RESERVED_DESCRIPTORS`], are left for other uses.
    fn with_descriptors(mut self, descriptors: usize) -> Self {
        let most = descriptors - (descriptors / 2).min(RESERVED_DESCRIPTORS);
        self.connections = self.connections.min(most).max(1);
        self
    }
}

/// Binds a listener with a long backlog: a connection that finds the backlog full is dropped silently, and the client
/// believes it is connected.
///
/// # Errors
/// If the address can't be bound.
pub async fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    // Accepted connections inherit these options.
    let socket = socket2::SockRef::from(&listener);
    // Small responses must not be delayed.
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_tcp_notsent_lowat(NOTSENT_LOWAT_BYTES)?;
    // The default of 128 is too small; on a socket that listens already, this changes only the backlog (listen(2)).
    rustix::net::listen(&listener, LISTEN_BACKLOG)?;
    Ok(listener)
}

/// Mode of a listener.
#[derive(Debug, Clone)]
pub enum ListenerMode {
    /// Plain HTTP.
    Plain,
    /// Plain HTTP next to a TLS listener; redirects to HTTPS if `redirect` is set.
    PlainWithTls {
        /// ACME challenges to serve.
        challenges: AcmeChallenges,
        /// Redirect all other requests to HTTPS.
        redirect: bool,
    },
    /// Over TLS.
    Tls(CertificateResolver, Arc<ServerConfig>),
}

/// Connection slots shared by all listeners.
#[derive(Debug, Clone)]
pub struct ConnectionSlots {
    limits: ServerLimits,
    per_address: ConnectionLimit,
    slots: Arc<Semaphore>,
    idle: IdleConnections,
}

impl ConnectionSlots {
    /// Creates as many slots as the file descriptor limit of this process allows.
    pub fn for_process() -> Self {
        Self::with_limits(match max_open_files() {
            Some(descriptors) => ServerLimits::default().with_descriptors(descriptors),
            None => ServerLimits::default(),
        })
    }

    pub(super) fn with_limits(limits: ServerLimits) -> Self {
        let (crowd, idle) = (ConnectionLimit::new(limits.per_address), IdleConnections::new(MIN_IDLE));
        Self { limits, per_address: crowd, slots: Arc::new(Semaphore::new(limits.connections)), idle }
    }
}

/// Serves HTTP on the listener until `shutdown` resolves, then waits for requests in progress to end.
///
/// Plain connections speak HTTP/1.1 only; HTTP/2 is left to a proxy in front. So there is no version to detect, and the
/// header timeout covers the first byte of a connection too.
pub async fn serve(
    listener: TcpListener,
    way: ListenerMode,
    places: ConnectionSlots,
    context: Arc<HttpContext>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let service = TowerToHyperService::new(warp::service(filter(Arc::clone(&context))));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept_next(&listener, &places) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let (limits, seat, watcher) = (places.limits, places.idle.register(), graceful.watcher());
        let guest = Arc::new(HttpConnection {
            service: service.clone(),
            context: Arc::clone(&context),
            peer: PeerAddress(peer),
            activity: seat.clone(),
            mode: way.clone(),
        });
        let way = way.clone();
        let served = async move {
            match &way {
                // Boxed, so that a plain connection does not reserve memory for a handshake.
                ListenerMode::Tls(shown, config) => {
                    Box::pin(https::serve(stream, (shown, config), limits, guest, watcher)).await;
                }
                ListenerMode::Plain | ListenerMode::PlainWithTls { .. } => {
                    let stream = WriteTimeoutStream::new(stream, limits.write_timeout, guest.activity.clone());
                    serve_http1(stream, limits, guest, watcher).await;
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = served => {}
                () = seat.evicted() => tracing::debug!("an idle connection was closed to free its slot"),
            }
            drop(place);
        });
    }
    drop(listener);
    context.shut_down();
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("the server stopped before all requests had ended");
    }
}

/// Serves HTTP/1.1 (RFC 9112) on a connection until it ends.
pub(super) async fn serve_http1<S, I>(
    mut io: WriteTimeoutStream<I>,
    limits: ServerLimits,
    guest: Arc<HttpConnection<S>>,
    watcher: Watcher,
) where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if !fast_path::serve(&mut io, limits, &guest).await {
        return;
    }
    let served = service_fn(move |request| {
        let guest = Arc::clone(&guest);
        async move { guest.handle(request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(io), served);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// Accepts the next connection and waits for a slot; `None` if it failed or was refused.
async fn accept_next(
    listener: &TcpListener,
    places: &ConnectionSlots,
) -> Option<(TcpStream, IpAddr, impl Send + 'static)> {
    let ConnectionSlots { per_address: crowd, slots, idle, .. } = places;
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
    let Some(place) = crowd.admit(peer) else {
        tracing::debug!(%peer, "a connection was refused: its address has too many");
        return None;
    };
    let made = async {
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
        slot = made => slot,
    };
    Some((stream, peer, (place, slot.ok()?)))
}

/// File descriptor limit of this process; `None` if it is unknown or unlimited.
fn max_open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    soft.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn a_reader_who_takes_nothing_costs_the_host_little_and_gets_all_once_he_does() {
        const LENGTH: usize = 1 << 20;
        let listener = listener("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut reader = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.nodelay().unwrap());
        let mut taken = 0;
        while let Ok(count) = stream.try_write(&[7; 4096]) {
            taken += count;
        }
        assert!(taken <= 64 << 10, "{taken} bytes wait to be sent");
        let rest = vec![7; LENGTH - taken];
        let mut got = vec![0; LENGTH];
        let (written, read) = tokio::join!(stream.write_all(&rest), reader.read_exact(&mut got));
        written.unwrap();
        read.unwrap();
    }

    #[test]
    fn the_rest_of_the_process_has_descriptors_enough() {
        assert_eq!(ServerLimits::default().with_descriptors(256).connections, 128);
        assert_eq!(ServerLimits::default().with_descriptors(20_000).connections, 15_904);
        assert_eq!(ServerLimits::default().with_descriptors(1_000_000).connections, 16_384);
        assert_eq!(ServerLimits::default().with_descriptors(0).connections, 1);
        assert!(max_open_files().is_none_or(|found| found > 0));
    }
}
