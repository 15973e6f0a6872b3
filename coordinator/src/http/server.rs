//! Accepts connections and serves them, within limits of number and time, until told to stop.

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

use super::crowd::Crowd;
use super::error::LOGS;
use super::guest::Guest;
use super::idle::Idle;
use super::stall::Stalling;
use super::{Context, Peer, filter, short, tls};
use crate::tls::{Challenges, Shown};

/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 * 1024;
/// Header lines of a request.
const HEAD_LINES: usize = 64;
/// Connections that may wait to be accepted; the host may allow fewer.
const WAITING: i32 = 4096;
/// Bytes that the host keeps of an answer until a reader has acknowledged them (twice that, by socket(7)). Left to itself
/// it would take up to 4 MiB for each of the thousands.
const UNACKNOWLEDGED: usize = 128 << 10;
/// Bytes of it that wait to be sent (`TCP_NOTSENT_LOWAT`): all that a reader who takes nothing costs. One who takes what
/// comes has up to the above on its way.
const UNSENT: u32 = 16 << 10;
/// Descriptors that the rest of the process has enough of: store and mesh take some dozens, and what goes out to mail
/// servers, receivers and vendors is bounded by the hundred.
const THE_REST: usize = 4096;
/// Pause after the host could not accept, so that a lack of descriptors is no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How long a new or just answered connection is safe from having to make room: an honest caller on a busy host may need
/// a while to come to its request, and 4,096 places in that time still take in 20,000 strangers a second.
const FRESH: Duration = Duration::from_millis(200);
/// How long requests under way may take once the server is to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once. For one more, the one that has been idle for longest makes room; where none is, it waits.
    pub(super) connections: usize,
    /// Of these, from one address; more are closed at once. This host's own addresses are free, for its proxy's sake.
    pub(super) of_one_peer: usize,
    /// How long a request's head may take to arrive, from the connection's start or the last answer: so also how long
    /// a connection may be silent. One that comes in parts has as long once more from its first part on, as another
    /// (`short`, then hyper) waits for the rest.
    pub(super) head: Duration,
    /// How long a connection may take nothing of an answer.
    pub(super) stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            of_one_peer: 1024,
            head: Duration::from_secs(10),
            stall: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// The same, but so that half of the process's descriptors stay for the rest of it, or as many as that ever needs.
    fn with_descriptors(mut self, descriptors: usize) -> Self {
        let most = descriptors - (descriptors / 2).min(THE_REST);
        self.connections = self.connections.min(most).max(1);
        self
    }
}

/// A listener in front of which a crowd may wait to be accepted. Of a connection that finds the queue full, the host
/// tells neither side, and the caller believes itself connected.
///
/// # Errors
/// Where the host does not let it listen there.
pub async fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    // Every connection that is accepted has it too.
    let socket = socket2::SockRef::from(&listener);
    // Small answers must not wait.
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(UNACKNOWLEDGED)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    // The usual 128 are too few; of one that listens already, this changes the number alone (listen(2)).
    rustix::net::listen(&listener, WAITING)?;
    Ok(listener)
}

/// How the connections of a listener are served.
#[derive(Debug, Clone)]
pub enum Way {
    /// In the clear.
    Plain,
    /// In the clear beside a listener with TLS, to which visitors are led where `redirect` says so.
    Led {
        /// What an authority may ask for.
        challenges: Challenges,
        /// Whether all else is led to https.
        redirect: bool,
    },
    /// Over TLS.
    Tls(Shown, Arc<ServerConfig>),
}

/// The places that all listeners share: what one takes, another has not.
#[derive(Debug, Clone)]
pub struct Places {
    limits: Limits,
    crowd: Crowd,
    slots: Arc<Semaphore>,
    idle: Idle,
}

impl Places {
    /// As many as this process's descriptors allow.
    pub fn of_this_process() -> Self {
        Self::within(match descriptors() {
            Some(descriptors) => Limits::default().with_descriptors(descriptors),
            None => Limits::default(),
        })
    }

    pub(super) fn within(limits: Limits) -> Self {
        let (crowd, idle) = (Crowd::new(limits.of_one_peer), Idle::new(FRESH));
        Self { limits, crowd, slots: Arc::new(Semaphore::new(limits.connections)), idle }
    }
}

/// Serves HTTP on the listener until `shutdown` resolves, then lets requests under way end.
///
/// In the clear it is HTTP/1.1 alone: HTTP/2 is for a proxy in front. Without it there is no version to sniff, so that
/// the head's time-out covers a connection's first byte too.
pub async fn serve(
    listener: TcpListener,
    way: Way,
    places: Places,
    context: Arc<Context>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let service = TowerToHyperService::new(warp::service(filter(Arc::clone(&context))));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = next(&listener, &places) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let (limits, seat, watcher) = (places.limits, places.idle.seat(), graceful.watcher());
        let guest = Arc::new(Guest {
            service: service.clone(),
            context: Arc::clone(&context),
            peer: Peer(peer),
            seat: seat.clone(),
            way: way.clone(),
        });
        let way = way.clone();
        let served = async move {
            match &way {
                // Apart, so that a connection in the clear has no room for a handshake.
                Way::Tls(shown, config) => {
                    Box::pin(tls::serve(stream, (shown, config), limits, guest, watcher)).await;
                }
                Way::Plain | Way::Led { .. } => {
                    let stream = Stalling::new(stream, limits.stall, guest.seat.clone());
                    one(stream, limits, guest, watcher).await;
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = served => {}
                () = seat.told_to_leave() => tracing::debug!("an idle connection made room"),
            }
            drop(place);
        });
    }
    drop(listener);
    context.stop();
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way when the server stopped");
    }
}

/// HTTP/1.1 over a connection (RFC 9112), to its end.
pub(super) async fn one<S, I>(mut io: Stalling<I>, limits: Limits, guest: Arc<Guest<S>>, watcher: Watcher)
where
    S: Service<Request<Incoming>, Response = warp::reply::Response, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if !short::answer(&mut io, limits, &guest).await {
        return;
    }
    let served = service_fn(move |request| {
        let guest = Arc::clone(&guest);
        async move { guest.answer(request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(io), served);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The next connection that has a place; nothing where one was not taken.
async fn next(listener: &TcpListener, places: &Places) -> Option<(TcpStream, IpAddr, impl Send + 'static)> {
    let Places { crowd, slots, idle, .. } = places;
    let (stream, peer) = match listener.accept().await {
        Ok((stream, peer)) => (stream, peer.ip()),
        Err(error) => {
            if let Some(omitted) = LOGS.admit("accept") {
                tracing::warn!(%error, omitted, "a connection was not accepted");
            }
            tokio::time::sleep(BACK_OFF).await;
            return None;
        }
    };
    let Some(place) = crowd.admit(peer) else {
        tracing::debug!(%peer, "an address has too many connections");
        return None;
    };
    let made = async {
        loop {
            idle.make_room().await;
            tokio::select! {
                biased;
                slot = Arc::clone(slots).acquire_owned() => break slot,
                () = idle.stayed() => {}
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

/// How many descriptors this process may have open; nothing where the host does not say or sets no limit.
fn descriptors() -> Option<usize> {
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
        assert_eq!(Limits::default().with_descriptors(256).connections, 128);
        assert_eq!(Limits::default().with_descriptors(20_000).connections, 15_904);
        assert_eq!(Limits::default().with_descriptors(1_000_000).connections, 16_384);
        assert_eq!(Limits::default().with_descriptors(0).connections, 1);
        assert!(descriptors().is_none_or(|found| found > 0));
    }
}
