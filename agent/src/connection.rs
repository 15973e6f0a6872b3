//! Connection to the coordinator: one UDP socket from the source address, with QUIC over it.

use crate::error::AgentError;
use parallax_certs::certificate_fields::COORDINATOR_NAME;
use parallax_protocol::close::CloseReason;
use parallax_protocol::fair_slots::MAX_PROBE_REQUESTS;
use parallax_protocol::version::{ConnectionPurpose, connection_purpose};
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig};
use quinn::{ConnectionError, Endpoint, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig, VarInt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Interval of keep-alive packets.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Silence after which a connection ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit of a handshake with one address.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(8);
/// Flow-control window of all streams together, in bytes.
const WINDOW: u32 = 4 << 20;
/// Maximum number of concurrent check-now streams. The coordinator shares them fairly among accounts.
pub const MAX_CHECK_NOWS: u32 = MAX_PROBE_REQUESTS;

/// A connection and the socket it runs on.
#[derive(Debug)]
pub struct CoordinatorConnection {
    /// The connection, after its handshake. The coordinator's first frame shows whether it accepts the agent.
    pub connection: quinn::Connection,
    endpoint: Endpoint,
}

impl CoordinatorConnection {
    /// Returns the negotiated version of the mesh protocol; 0 if there was none.
    pub fn mesh_version(&self) -> u16 {
        let data = self.connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        match data.and_then(|data| connection_purpose(data.protocol.as_deref()?)) {
            Some(ConnectionPurpose::Mesh(version)) => version,
            Some(ConnectionPurpose::Join(_)) | None => 0,
        }
    }

    /// Closes the connection with a reason and waits for the peer to receive it.
    pub async fn close(&self, reason: CloseReason) {
        self.connection.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
        // The close frame is sent at once; the socket stays open briefly for a retransmission.
        let _ = tokio::time::timeout(Duration::from_millis(200), self.endpoint.wait_idle()).await;
    }
}

/// Connects to `coordinator` (`HOST:PORT`), trying each of its addresses in turn. `found` receives all
/// addresses of its name.
///
/// # Errors
/// [`AgentError::Unreachable`] with the last address's reason, or [`AgentError::Refused`] if the coordinator gave one.
pub async fn dial(
    coordinator: &str,
    source: Option<IpAddr>,
    tls: rustls::ClientConfig,
    found: impl FnOnce(Vec<IpAddr>),
) -> Result<CoordinatorConnection, AgentError> {
    let unreachable = |reason: String| AgentError::Unreachable { address: coordinator.to_owned(), reason };
    let crypto = QuicClientConfig::try_from(tls)
        .map_err(|_| unreachable("the TLS settings have no cipher suite for QUIC".into()))?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    let lookup = tokio::time::timeout(HANDSHAKE_TIMEOUT, tokio::net::lookup_host(coordinator));
    let all = lookup.await.map_err(|_| unreachable("name lookup timed out".into()))?;
    let all: Vec<SocketAddr> = all.map_err(|error| unreachable(error.to_string()))?.collect();
    found(all.iter().map(SocketAddr::ip).collect());
    let addresses: Vec<SocketAddr> = all
        .into_iter()
        .filter(|address| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4()))
        .take(4)
        .collect();
    let mut last = unreachable("no address of the source address's family".into());
    for address in addresses {
        match dial_one(address, source, config.clone()).await {
            Ok(link) => return Ok(link),
            Err(DialFailure::Refused(reason)) => return Err(AgentError::Refused(reason)),
            Err(DialFailure::Reason(reason)) => last = unreachable(reason),
        }
    }
    Err(last)
}

/// Returns the coordinator's reason for closing, if it gave a known one.
pub fn close_reason(error: &ConnectionError) -> Option<CloseReason> {
    match error {
        ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()),
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => None,
    }
}

/// Describes a failed connection for the operator, in clearer words than the library's where possible.
fn describe_error(error: &ConnectionError) -> String {
    // TLS alert 48 (RFC 8446, section 6.2) in QUIC's error codes (RFC 9001, section 4.8): unknown_ca, raised
    // locally.
    const UNKNOWN_CA: u64 = 0x0100 + 48;
    match error {
        ConnectionError::TransportError(error) if u64::from(error.code) == UNKNOWN_CA => {
            "it belongs to another installation: its authority is not the one that this host trusts".to_owned()
        }
        other => other.to_string(),
    }
}

enum DialFailure {
    Refused(CloseReason),
    Reason(String),
}

async fn dial_one(
    address: SocketAddr,
    source: Option<IpAddr>,
    config: quinn::ClientConfig,
) -> Result<CoordinatorConnection, DialFailure> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let failed = |error: std::io::Error| DialFailure::Reason(error.to_string());
    let socket = UdpSocket::bind(SocketAddr::new(source.unwrap_or(any), 0)).map_err(failed)?;
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime)).map_err(failed)?;
    let connecting = endpoint
        .connect_with(config, address, COORDINATOR_NAME)
        .map_err(|error| DialFailure::Reason(error.to_string()))?;
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await {
        Ok(Ok(connection)) => Ok(CoordinatorConnection { connection, endpoint }),
        Ok(Err(error)) => {
            Err(close_reason(&error).map_or_else(|| DialFailure::Reason(describe_error(&error)), DialFailure::Refused))
        }
        Err(_) => Err(DialFailure::Reason("no response".into())),
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .keep_alive_interval(Some(KEEP_ALIVE_INTERVAL))
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_CHECK_NOWS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .receive_window(VarInt::from_u32(WINDOW))
        .datagram_receive_buffer_size(None);
    transport
}
