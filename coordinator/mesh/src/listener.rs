//! The UDP listener for mesh and join: bounded, with address validation, and dispatched by protocol before anything
//! is read.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use parallax_certs::mesh_secret::MeshSecret;
use parallax_certs::tls;
use parallax_core::rate_limit::{FixedWindow, WindowRule};
use parallax_core::time::{SECOND, Timestamp};
use parallax_protocol::close::CloseReason;
use parallax_protocol::version::{ConnectionPurpose, JOIN_V1, SUPPORTED_MESH_VERSIONS};
use parallax_runtime::clock::Clock;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, EndpointConfig, IdleTimeout, Incoming, ServerConfig, TokioRuntime, TransportConfig,
    ValidationTokenConfig, VarInt,
};
use quinn_proto::HashedConnectionIdGenerator;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::handshake_limit::{HandshakeLimiter, HandshakePermit};
use super::hub::Hub;
use super::{MeshCounters, MeshError, Trust, join, peer, session, wire};

/// Idle time-out of a connection. It runs from the first packet sent into the silence (RFC 9000, section 10.1), so
/// a dead agent is noticed after this and a keep-alive together, and its rounds must move within 20 s.
const IDLE_MS: u32 = 13_000;
/// Interval of keep-alives on an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Unread bytes per connection, and unacknowledged ones.
const WINDOW: u32 = 4 << 20;
/// Unread bytes per stream: a frame and a little.
const STREAM_WINDOW: u32 = (1 << 20) + (64 << 10);
/// Handshakes that may wait to be accepted.
const MAX_PENDING: usize = 256;
/// Buffered bytes per such handshake, and for all of them.
const MAX_PENDING_BYTES: u64 = 64 << 10;
const MAX_PENDING_BYTES_TOTAL: u64 = 4 << 20;
/// Time limit for a handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Failed handshakes logged per second, at most.
const MAX_LOGGED_PER_SECOND: u32 = 10;
/// Hosts joining at the same time, at most.
const MAX_JOINING: usize = 64;

/// Builds the settings for new connections: certificates and all limits.
pub(super) fn server_config(trust: &Trust, clock: &Clock) -> Result<ServerConfig, MeshError> {
    let mut protocols = SUPPORTED_MESH_VERSIONS.to_vec();
    protocols.push(JOIN_V1);
    let clock = clock.clone();
    let time = tls::clock(move || clock.now().as_millis().div_euclid(SECOND));
    let crypto = tls::coordinator_config(&trust.credentials()?, &trust.roots()?, &protocols, time)?;
    let crypto = QuicServerConfig::try_from(crypto)
        .map_err(|_| MeshError::Settings("the cipher suites lack the one for QUIC's first packets"))?;
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server
        .transport_config(Arc::new(transport()))
        .validation_token_config(tokens)
        .migration(true)
        .max_incoming(MAX_PENDING)
        .incoming_buffer_size(MAX_PENDING_BYTES)
        .incoming_buffer_size_total(MAX_PENDING_BYTES_TOTAL);
    Ok(server)
}

/// Opens an endpoint on a bound socket.
///
/// Its reset tokens and connection ids are derived from the installation's secret. So a coordinator that was killed
/// can reset its agents' old connections (RFC 9000, section 10.3), and they reconnect within seconds instead of
/// after an idle time-out.
pub(super) fn endpoint(socket: UdpSocket, server: ServerConfig, secret: &MeshSecret) -> Result<Endpoint, MeshError> {
    let reset = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret.secret_for("quic stateless reset"));
    let [a, b, c, d, e, f, g, h, ..] = secret.secret_for("quic connection ids");
    let ids = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let mut config = EndpointConfig::new(Arc::new(reset));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    Ok(Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime))?)
}

/// Accepts connections until the endpoint is closed.
pub(super) async fn accept(hub: Arc<Hub>, endpoint: Endpoint) {
    let connections = Arc::new(Semaphore::new(hub.settings.max_connections));
    let limiter = HandshakeLimiter::new(Instant::now());
    let joining = Arc::new(Semaphore::new(MAX_JOINING));
    let log_limit = Arc::new(FailureLogLimit(Mutex::new(FixedWindow::new(hub.clock.now()))));
    let mut tasks = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        while tasks.try_join_next().is_some() {}
        // A client's address is validated before it costs anything; the retry packet needs no state here.
        if !incoming.remote_address_validated() {
            if incoming.may_retry() {
                let _ = incoming.retry();
            } else {
                incoming.refuse();
            }
            continue;
        }
        let Ok(connection_permit) = Arc::clone(&connections).try_acquire_owned() else {
            MeshCounters::add(&hub.counters.handshakes_failed);
            incoming.refuse();
            continue;
        };
        // An honest client retries; the rest deserve no response.
        let Some(permit) = limiter.acquire(incoming.remote_address().ip(), Instant::now()) else {
            MeshCounters::add(&hub.counters.handshakes_failed);
            incoming.ignore();
            continue;
        };
        let (hub, joining, log_limit) = (Arc::clone(&hub), Arc::clone(&joining), Arc::clone(&log_limit));
        let limiter = limiter.clone();
        tasks.spawn(async move {
            let connection = finish_handshake(&hub, &log_limit, incoming, permit).await;
            if let Some(connection) = connection {
                serve(hub, connection, &joining, &limiter).await;
            }
            drop(connection_permit);
        });
    }
    // A task that panicked is reported by its supervisor.
    while tasks.join_next().await.is_some() {}
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .receive_window(VarInt::from_u32(WINDOW))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .send_window(u64::from(WINDOW))
        // The control stream and the results stream. Streams for probe requests are opened by this side.
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .datagram_receive_buffer_size(None);
    transport
}

/// Counts logged handshake failures: a flood of them must not fill the log.
struct FailureLogLimit(Mutex<FixedWindow>);

impl FailureLogLimit {
    fn may_log(&self, now: Timestamp) -> bool {
        let rule = WindowRule { limit: MAX_LOGGED_PER_SECOND, length: SECOND };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count(rule, now).allowed
    }
}

/// Finishes a handshake and releases its permit.
async fn finish_handshake(
    hub: &Hub,
    log_limit: &FailureLogLimit,
    incoming: Incoming,
    permit: HandshakePermit,
) -> Option<Connection> {
    let remote = incoming.remote_address();
    let result = match incoming.accept() {
        Ok(connecting) => tokio::select! {
            biased;
            result = timeout(HANDSHAKE_LIMIT, connecting) => result,
            () = permit.evicted() => {
                debug!(%remote, "a handshake was evicted for a newer one");
                MeshCounters::add(&hub.counters.handshakes_failed);
                return None;
            }
        },
        Err(error) => Ok(Err(error)),
    };
    match result {
        Ok(Ok(connection)) => {
            MeshCounters::add(&hub.counters.connections);
            return Some(connection);
        }
        Ok(Err(error)) if log_limit.may_log(hub.clock.now()) => info!(%remote, %error, "handshake failed"),
        Ok(Err(error)) => debug!(%remote, %error, "handshake failed"),
        Err(_) => debug!(%remote, "handshake took too long"),
    }
    MeshCounters::add(&hub.counters.handshakes_failed);
    None
}

/// Dispatches a connection by protocol and identity, and serves it.
async fn serve(hub: Arc<Hub>, connection: Connection, joining: &Semaphore, limiter: &HandshakeLimiter) {
    match peer::negotiated_purpose(&connection) {
        Some(ConnectionPurpose::Mesh(_)) => match peer::identity(&connection) {
            Some(Ok((identity, leaf))) => {
                limiter.add_known_network(connection.remote_address().ip());
                let authority = hub.trust.load().roots().ok().and_then(|roots| roots.issuer_of(&leaf));
                session::run(hub, connection, identity, authority).await;
            }
            Some(Err(error)) => {
                MeshCounters::add(&hub.counters.not_enrolled);
                if let Some(omitted) = hub.logs.admit((None, "not an agent")) {
                    warn!(
                        remote = %connection.remote_address(), %error, omitted,
                        "connection refused: the certificate is from this mesh but not an agent's",
                    );
                }
                wire::close(&connection, CloseReason::UnknownAgent);
            }
            None => {
                MeshCounters::add(&hub.counters.without_identity);
                debug!(remote = %connection.remote_address(), "mesh connection without a certificate");
                wire::close(&connection, CloseReason::MissingCertificate);
            }
        },
        Some(ConnectionPurpose::Join(_)) => match joining.try_acquire() {
            Ok(_permit) => join::serve(&hub, &connection).await,
            Err(_) => wire::close(&connection, CloseReason::RateLimited),
        },
        None => wire::close(&connection, CloseReason::Version),
    }
}
