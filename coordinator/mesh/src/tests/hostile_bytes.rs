//! Tests of random, truncated and oversized bytes wherever a peer can send them: no panic, nothing stored, a named
//! close reason, and connected agents stay connected.

use std::net::SocketAddr;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

/// Streams sent, of each kind.
const CASES: usize = 60;

/// Builds streams that an unknown peer may send: noise, a length with noise, and a whole frame that is truncated or
/// altered.
fn streams(frame: Vec<u8>) -> Vec<Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..300);
    let framed = prop::collection::vec(any::<u8>(), 0..200)
        .prop_map(|body| [&u32::try_from(body.len()).unwrap_or(0).to_le_bytes(), body.as_slice()].concat());
    let length = frame.len();
    let (cut, changed) = (frame.clone(), frame);
    let cut = (0..length).prop_map(move |end| cut[..end].to_vec());
    let changed = (0..length, any::<u8>()).prop_map(move |(at, to)| {
        let mut bytes = changed.clone();
        bytes[at] ^= to | 1;
        bytes
    });
    let any_of = prop_oneof![noise, framed, cut, changed];
    let mut runner = TestRunner::deterministic();
    (0..CASES).map(|_| any_of.new_tree(&mut runner).unwrap().current()).collect()
}

/// Sends a stream, ends it, and returns the reason for which the connection was closed; `None` if there was a
/// response.
async fn send(connection: Connection, bytes: &[u8]) -> Option<CloseReason> {
    let (mut control, mut receive) = connection.open_bi().await.ok()?;
    // The peer may close while this is still being written.
    let _ = control.write_all(bytes).await;
    let _ = control.finish();
    let mut first = [0; 1];
    let response = timeout(LIMIT, receive.read(&mut first)).await.expect("in time");
    if matches!(response, Ok(Some(_))) {
        connection.close(VarInt::from_u32(0), b"");
        return None;
    }
    Some(closed(&connection).await)
}

#[tokio::test]
async fn any_first_bytes_end_in_a_response_or_a_close_reason() {
    let test_mesh = TestMesh::start().await;
    let (connected, member) = (test_mesh.member(1).await, test_mesh.member(2).await);
    let mut connected = test_mesh.connect(&connected).await;
    let frame = parallax_protocol::frame::encode(&ToCoordinator::Hello(hello(None)), MAX_FRAME).unwrap();
    for bytes in streams(frame) {
        let ended = send(test_mesh.dial_mesh(&member.credentials).await.unwrap(), &bytes).await;
        let allowed = [
            CloseReason::FrameTooLong,
            CloseReason::Undecodable,
            CloseReason::Invalid,
            CloseReason::OutOfOrder,
            CloseReason::TimedOut,
            // A whole Hello, and the stream's end after it.
            CloseReason::Done,
        ];
        assert!(ended.is_none_or(|reason| allowed.contains(&reason)), "{ended:?} for {bytes:02x?}");
    }
    connected.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(connected.next_reply().await, ToAgent::Time(_)), "the connected agent is still connected");
}

#[tokio::test]
async fn no_bytes_from_a_host_without_identity_create_an_agent() {
    let test_mesh = TestMesh::start().await;
    let key = AgentKey::generate().unwrap();
    let request = JoinRequest {
        token: SecretText::new(JoinToken::generate(JoinTokenId(3), test_mesh.key_hash).unwrap().expose()),
        csr_der: key.request().unwrap(),
    };
    let frame = parallax_protocol::frame::encode(&request, MAX_JOIN_FRAME).unwrap();
    for bytes in streams(frame) {
        let config = join_config(test_mesh.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
        let _ = send(test_mesh.dial(config).await.unwrap(), &bytes).await;
    }
    assert!(test_mesh.records.agents.lock().unwrap().is_empty());
    assert_eq!(test_mesh.mesh.counters().joined.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn noise_and_broken_handshakes_do_not_disturb_connected_agents() {
    let test_mesh = TestMesh::start().await;
    let mut agent = test_mesh.connect(&test_mesh.member(1).await).await;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target: SocketAddr = test_mesh.mesh.address();
    let first = first_datagram().await;
    let mut runner = TestRunner::deterministic();
    let noise = prop::collection::vec(any::<u8>(), 0..1_400);
    for turn in 0..3_000_usize {
        let mut bytes = noise.new_tree(&mut runner).unwrap().current();
        match turn % 4 {
            // A client's first packet unchanged, again and again; with one byte changed; and truncated.
            0 => bytes.clone_from(&first),
            1 => {
                let at = bytes.len() % first.len();
                bytes.clone_from(&first);
                bytes[at] ^= 0x55;
            }
            2 => bytes = first[..bytes.len() % first.len()].to_vec(),
            _ => {}
        }
        socket.send_to(&bytes, target).unwrap();
        if turn % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    agent.send(&ToCoordinator::TimeRequest { sent_us: 1 }).await;
    assert!(matches!(agent.next_reply().await, ToAgent::Time(_)));
    assert!(agent.connection.close_reason().is_none());
    let counters = test_mesh.mesh.counters();
    assert_eq!(counters.connections.load(Ordering::Relaxed), 2, "the joining and the agent's, and no other");
    test_mesh.connect(&test_mesh.member(2).await).await;
}

/// Returns the first datagram of a regular client.
async fn first_datagram() -> Vec<u8> {
    let listener = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let config = join_config([1; 32], &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
    let crypto = QuicClientConfig::try_from(config).unwrap();
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = ClientConfig::new(Arc::new(crypto));
    let _dialling = endpoint.connect_with(config, listener.local_addr().unwrap(), COORDINATOR_NAME).unwrap();
    let mut bytes = vec![0; 2_000];
    let length = timeout(LIMIT, listener.recv(&mut bytes)).await.unwrap().unwrap();
    bytes.truncate(length);
    bytes
}
