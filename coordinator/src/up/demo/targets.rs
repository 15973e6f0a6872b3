//! The demo's targets: HTTP sites that are healthy or not depending on where a check comes from, an open port, and
//! a TLS server.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::demo_agents::region_of;
use super::site_latency::response_ms;

/// Concurrent connections of one target.
const CONNECTIONS: usize = 256;
/// Time limit for a request's head, and lifetime of a connection to the open port.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Delay of a slow response.
const SLOW: Duration = Duration::from_millis(700);
/// Period of a flapping site, and the part at its end during which it fails.
const FLAP_PERIOD: Duration = Duration::from_secs(240);
const FAILING_TIME: Duration = Duration::from_secs(90);

/// Behaviour of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SiteBehaviour {
    /// Healthy from everywhere.
    Healthy,
    /// Slow for clients in that region.
    SlowFrom(Region),
    /// Failing for clients in that region.
    DownFrom(Region),
    /// Failing from everywhere.
    Down,
    /// Alternates between healthy and failing.
    Flapping,
}

/// Response of a site: its health and delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SiteResponse {
    is_healthy: bool,
    delay: Duration,
}

impl SiteBehaviour {
    /// Returns the response to a client, that long after the start.
    fn respond(self, from: Option<Region>, since_start: Duration) -> SiteResponse {
        let (is_well, delay) = match self {
            Self::Healthy => (true, Duration::ZERO),
            Self::SlowFrom(region) if from == Some(region) => (true, SLOW),
            Self::SlowFrom(_) => (true, Duration::ZERO),
            Self::DownFrom(region) => (from != Some(region), Duration::ZERO),
            Self::Down => (false, Duration::ZERO),
            Self::Flapping => {
                let in_turn = since_start.as_secs() % FLAP_PERIOD.as_secs();
                (in_turn < FLAP_PERIOD.as_secs() - FAILING_TIME.as_secs(), Duration::ZERO)
            }
        };
        SiteResponse { is_healthy: is_well, delay }
    }
}

/// Binds a target on loopback: on its previous port, or on a free one if that is taken or unknown.
pub(super) async fn bind(port: Option<u16>) -> io::Result<(TcpListener, u16)> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = match TcpListener::bind(at(port.unwrap_or(0))).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(at(0)).await?,
    };
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Start of the demo.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoStart {
    /// By the coordinator's clock.
    pub(super) at: Timestamp,
    pub(super) instant: Instant,
}

/// A site.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub(super) name: &'static str,
    pub(super) behaviour: SiteBehaviour,
    /// Response time from nearby, in milliseconds.
    pub(super) base_ms: u32,
    pub(super) started: DemoStart,
}

impl Site {
    /// Returns the response to a client now. A healthy one that isn't slow takes as long as its distance demands.
    fn respond(&self, from: Option<Region>) -> SiteResponse {
        let elapsed = self.started.instant.elapsed();
        let response = self.behaviour.respond(from, elapsed);
        match from {
            Some(region) if response.is_healthy && response.delay.is_zero() => {
                let at = self.started.at + i64::try_from(elapsed.as_millis()).unwrap_or(0);
                // The nanoseconds at which a request arrives are as good as random.
                let millis = response_ms(self.base_ms, region, at, u64::from(elapsed.subsec_nanos()));
                SiteResponse { delay: Duration::from_millis(millis.into()), ..response }
            }
            _ => response,
        }
    }
}

/// Serves a site until shutdown.
pub(super) async fn serve_site(listener: TcpListener, site: Site, stop: watch::Receiver<bool>) {
    let connection = move |stream: TcpStream, peer: SocketAddr| async move {
        let from = region_of(peer.ip());
        let service = service_fn(move |_| async move {
            let answer = site.respond(from);
            sleep(answer.delay).await;
            Ok::<_, Infallible>(response(site.name, answer, from))
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
        // Errors of a connection are its peer's.
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    };
    accept(listener, stop, connection).await;
}

/// Keeps a port open until shutdown: connections are accepted and last until the peer closes them.
pub(super) async fn serve_port(listener: TcpListener, stop: watch::Receiver<bool>) {
    let connection = |mut stream: TcpStream, _| async move {
        let mut read = [0; 1024];
        let listening = async { while matches!(stream.read(&mut read).await, Ok(1..)) {} };
        // A connection that stays open is closed after the limit.
        let _ = timeout(TIMEOUT, listening).await;
    };
    accept(listener, stop, connection).await;
}

/// Accepts TLS handshakes until shutdown.
pub(super) async fn serve_tls(listener: TcpListener, acceptor: TlsAcceptor, stop: watch::Receiver<bool>) {
    let connection = move |stream: TcpStream, _| {
        let acceptor = acceptor.clone();
        // Errors of a handshake are its peer's.
        async move { timeout(TIMEOUT, acceptor.accept(stream)).await.map(drop).unwrap_or_default() }
    };
    accept(listener, stop, connection).await;
}

/// Accepts connections until shutdown, with a limit on concurrent ones.
pub(super) async fn accept<F>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    connection: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepting = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accepting => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let serving = connection(stream, peer);
                connections.spawn(async move {
                    let _slot = slot;
                    serving.await;
                });
            }
            Err(_) => sleep(BACK_OFF).await,
        }
    }
    connections.shutdown().await;
}

fn response(name: &str, answer: SiteResponse, from: Option<Region>) -> Response<Full<Bytes>> {
    let from = from.map_or("elsewhere", Region::title);
    let (status, state) =
        if answer.is_healthy { (StatusCode::OK, "healthy") } else { (StatusCode::SERVICE_UNAVAILABLE, "failing") };
    let text = format!("{name} is {state}. Your region: {from}.\n");
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
