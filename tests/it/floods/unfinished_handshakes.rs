//! Unfinished QUIC handshakes: hand-made first packets of a client cost far less than the work they request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_protocol::version::MESH_V1;
use parallax_tests::untrusted_peer::{PresentedCertificate, client_config, pseudo_random_bytes};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{ClientConnection, Suite, Version};
use rustls::{Side, SupportedCipherSuite};
use tokio::net::UdpSocket;
use tokio::time::interval;

use super::mesh::FloodTraffic;

/// Least size of a datagram with a client's first packet (RFC 9000, section 14.1).
const LEAST: usize = 1_200;
/// Length of a packet number as written here; the second is that of the authentication tag after a packet.
const NUMBER: usize = 4;
const TAG: usize = 16;
/// Source connection id, the same for all clients.
const CALLER: [u8; 8] = *b"stranger";

/// First packets of a client.
pub(super) struct ClientInitial {
    suite: Suite,
    /// CRYPTO frame with the ClientHello.
    frame: Vec<u8>,
}

impl ClientInitial {
    /// Builds the ClientHello of a client without a certificate that asks for the mesh protocol.
    pub(super) fn new() -> Self {
        parallax_tests::use_ring();
        let config = Arc::new(client_config(MESH_V1, PresentedCertificate::Absent, "parallax:agent:none"));
        // The only mandatory transport parameter: the source connection id (RFC 9000, section 18.2).
        let parameters = [&[0x0f, 8], CALLER.as_slice()].concat();
        let name = "coordinator".try_into().expect("it is a name");
        let mut client = ClientConnection::new(config, Version::V1, name, parameters).expect("TLS 1.3 is on");
        let mut hello = Vec::new();
        client.write_hs(&mut hello);
        let mut frame = vec![0x06, 0];
        frame.extend(two_bytes(hello.len()));
        frame.extend(hello);
        let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { panic!("a TLS 1.3 suite") };
        Self { suite: suite.quic_suite().expect("it serves QUIC"), frame }
    }

    /// Returns the first datagram of a connection to `id`, with the token of a Retry packet (RFC 9000, section
    /// 17.2.2).
    pub(super) fn to(&self, id: &[u8], token: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xc0 | 0x03, 0, 0, 0, 1, u8::try_from(id.len()).expect("it is short")];
        packet.extend(id);
        packet.push(8);
        packet.extend(CALLER);
        packet.extend(two_bytes(token.len()));
        packet.extend(token);
        let number = packet.len() + 2;
        let length = (LEAST - number).max(NUMBER + self.frame.len() + TAG);
        packet.extend(two_bytes(length));
        packet.extend([0; NUMBER]);
        let mut payload = self.frame.clone();
        payload.resize(length - NUMBER - TAG, 0);
        let keys = self.suite.keys(id, Side::Client, Version::V1).local;
        let tag = keys.packet.encrypt_in_place(0, &packet, &mut payload).expect("it is not too long");
        packet.extend(payload);
        packet.extend(tag.as_ref());
        let (head, rest) = packet.split_at_mut(number);
        let (number, rest) = rest.split_at_mut(NUMBER);
        let first = head.first_mut().expect("it has a head");
        keys.header.encrypt_in_place(&rest[..16], first, number).expect("the sample is whole");
        packet
    }
}

/// Returns the id and the token of a Retry packet (RFC 9000, section 17.2.5).
fn parse_retry(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = (datagram.first()?, datagram.get(5..)?);
    if first & 0xf0 != 0xf0 {
        return None;
    }
    let after = |bytes: &[u8]| bytes.first().map(|length| 1 + usize::from(*length));
    let rest = rest.get(after(rest)?..)?;
    let length = after(rest)?;
    Some((rest.get(1..length)?, rest.get(length..rest.len().checked_sub(TAG)?)?))
}

/// Encodes a number as a two-byte QUIC variable-length integer.
fn two_bytes(number: usize) -> [u8; 2] {
    (0x4000 | u16::try_from(number).expect("it is small")).to_be_bytes()
}

/// Starts handshakes at a fixed rate from one address, validates the address if asked to, and then sends nothing more.
pub(super) async fn start_handshakes(
    to: SocketAddr,
    from: u8,
    rate: u64,
    span: Duration,
    hello: Arc<ClientInitial>,
    traffic: Arc<FloodTraffic>,
) {
    const TICKS: u64 = 40;
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 1, from), 0)).await.expect("a socket");
    socket.connect(to).await.expect("loopback is routed");
    // An id is reused once its handshake is over.
    let first: Vec<_> =
        (0..1_000).map(|n| hello.to(&pseudo_random_bytes(u64::from(from) * 1_000 + n, 8), &[])).collect();
    let send = async |datagram: &[u8]| {
        if socket.send(datagram).await.is_ok() {
            traffic.datagrams.fetch_add(1, Ordering::Relaxed);
            traffic.sent.fetch_add(datagram.len() as u64, Ordering::Relaxed);
        }
    };
    let mut came = [0; 2048];
    let mut next = first.iter().cycle();
    let mut tick = interval(Duration::from_secs(1) / u32::try_from(TICKS).expect("it is small"));
    let begun = Instant::now();
    // One more second for packets in flight.
    while begun.elapsed() < span + Duration::from_secs(1) {
        tick.tick().await;
        if begun.elapsed() < span {
            for datagram in next.by_ref().take(usize::try_from(rate / TICKS).expect("it is small")) {
                traffic.begun.fetch_add(1, Ordering::Relaxed);
                send(datagram).await;
            }
        }
        while let Ok(count) = socket.try_recv(&mut came) {
            traffic.came.fetch_add(count as u64, Ordering::Relaxed);
            if let Some((id, token)) = parse_retry(&came[..count]) {
                traffic.proven.fetch_add(1, Ordering::Relaxed);
                send(&hello.to(id, token)).await;
            }
        }
    }
}
