//! A minimal coordinator for the tests: an authority, one QUIC socket, and direct access to every stream.

use parallax_agent::config::AgentConfig;
use parallax_agent::data_folder::IdentityRecord;
use parallax_agent::error::AgentError;
use parallax_certs::authority::MeshAuthority;
use parallax_certs::tls;
use parallax_certs::token::{JoinToken, JoinTokenId};
use parallax_protocol::batch::{ResultFrame, UnpackedBatch};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{WireAgentId, WireMonitorId, WireRegion};
use parallax_protocol::join::{Enrolment, JoinRequest, JoinResponse};
use parallax_protocol::message::{
    AgentHello, DurabilityMark, ToAgent, ToCoordinator, Welcome, WireCheckNow, WireCheckNowResponse,
};
use parallax_protocol::version::{ConnectionPurpose, JOIN_V1, MESH_V1, connection_purpose};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::timeout;

const AGENT: WireAgentId = WireAgentId(0xa9e);
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct MiniCoordinator {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    connections: AsyncMutex<mpsc::Receiver<Connection>>,
}

struct Shared {
    authority: MeshAuthority,
    has_join_request: AtomicBool,
    shift_s: AtomicI64,
    refusal: Mutex<Option<CloseReason>>,
}

#[allow(clippy::disallowed_methods, reason = "the test coordinator has no clock module")]
fn now_s() -> i64 {
    i64::try_from(std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Waits until a condition holds.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, holds).await.unwrap();
}

impl MiniCoordinator {
    pub(crate) fn start() -> Self {
        Self::with_protocols(&[MESH_V1, JOIN_V1])
    }

    /// Starts a coordinator with these protocols.
    pub(crate) fn with_protocols(protocols: &[&[u8]]) -> Self {
        let authority = MeshAuthority::generate(now_s()).unwrap();
        let credentials = authority.issue_coordinator().unwrap();
        let roots = authority.roots().unwrap();
        let tls = tls::coordinator_config(&[credentials], &roots, protocols, tls::clock(now_s)).unwrap();
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let shared = Arc::new(Shared {
            authority,
            has_join_request: AtomicBool::new(false),
            shift_s: AtomicI64::new(0),
            refusal: Mutex::new(None),
        });
        let (sender, connections) = mpsc::channel(8);
        tokio::spawn(accept(endpoint.clone(), Arc::clone(&shared), sender));
        Self { shared, endpoint, connections: AsyncMutex::new(connections) }
    }

    pub(crate) fn address(&self) -> String {
        self.endpoint.local_addr().unwrap().to_string()
    }

    pub(crate) fn token(&self) -> String {
        JoinToken::generate(JoinTokenId(7), self.shared.authority.key_hash()).unwrap().expose()
    }

    pub(crate) fn refuse(&self, reason: CloseReason) {
        *self.shared.refusal.lock().unwrap() = Some(reason);
    }

    /// Returns true if any frame of a join has arrived.
    pub(crate) fn has_join_request(&self) -> bool {
        self.shared.has_join_request.load(Ordering::Relaxed)
    }

    pub(crate) async fn join(&self, config: &AgentConfig) -> Result<IdentityRecord, AgentError> {
        parallax_agent::join::join(config, &self.address(), &self.token()).await
    }

    /// Joins with a certificate issued at an offset of some seconds from now.
    pub(crate) async fn join_as_of(&self, config: &AgentConfig, shift_s: i64) -> Result<IdentityRecord, AgentError> {
        self.shared.shift_s.store(shift_s, Ordering::Relaxed);
        self.join(config).await
    }

    pub(crate) fn issue(&self, csr_der: &[u8], shift_s: i64) -> Vec<u8> {
        self.shared.issue(csr_der, shift_s)
    }

    pub(crate) fn authority(&self) -> Vec<u8> {
        self.shared.authority.certificate().to_vec()
    }

    /// Accepts the next mesh connection without reading from it.
    pub(crate) async fn connection(&self) -> Connection {
        let connection = timeout(LIMIT, async { self.connections.lock().await.recv().await }).await;
        connection.unwrap().unwrap()
    }

    /// Accepts the next mesh connection, reads its hello, and welcomes it.
    pub(crate) async fn accept(&self, slot_epoch: u64, marks: Vec<DurabilityMark>) -> MiniSession {
        let connection = self.connection().await;
        let (control, receiving) = timeout(LIMIT, connection.accept_bi()).await.unwrap().unwrap();
        let mut control_in = Frames::new(receiving, MAX_FRAME);
        let ToCoordinator::Hello(hello) = control_in.next().await else { panic!("no hello") };
        let welcome = Welcome {
            agent: AGENT,
            name: "fra1".into(),
            region: WireRegion::Europe,
            network: "AS64500".into(),
            mesh: "test".into(),
            software: "0".into(),
            coordinator_ms: now_s() * 1000,
            slot_epoch,
            watermarks: marks,
        };
        let session =
            MiniSession { connection, hello, control: Arc::new(AsyncMutex::new(control)), control_in, results: None };
        session.send(&ToAgent::Welcome(welcome)).await;
        session
    }
}

impl Shared {
    fn issue(&self, csr_der: &[u8], shift_s: i64) -> Vec<u8> {
        let month = 30 * 86_400;
        let issued = self.authority.issue_agent(csr_der, &AGENT.to_string(), now_s() + shift_s, month).unwrap();
        issued.certificate.to_vec()
    }

    async fn join(&self, connection: Connection) {
        let (mut sending, receiving) = connection.accept_bi().await.unwrap();
        let request: JoinRequest = Frames::new(receiving, MAX_JOIN_FRAME).next().await;
        self.has_join_request.store(true, Ordering::Relaxed);
        let refusal = *self.refusal.lock().unwrap();
        let answer = match refusal {
            Some(reason) => JoinResponse::Refused { reason },
            None => JoinResponse::Enrolled(Enrolment {
                certificates_der: vec![self.issue(&request.csr_der, self.shift_s.load(Ordering::Relaxed))],
                authorities_der: vec![self.authority.certificate().to_vec()],
                agent: AGENT,
                name: "fra1".into(),
                region: WireRegion::Europe,
                network: "AS64500".into(),
                mesh: "test".into(),
                coordinator_ms: now_s() * 1000,
            }),
        };
        sending.write_all(&encode(&answer, MAX_JOIN_FRAME).unwrap()).await.unwrap();
        sending.finish().unwrap();
        connection.closed().await;
    }
}

async fn accept(endpoint: Endpoint, shared: Arc<Shared>, sender: mpsc::Sender<Connection>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        let data = connection.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
        match connection_purpose(&data.protocol.unwrap()) {
            Some(ConnectionPurpose::Join(1)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { shared.join(connection).await });
            }
            Some(ConnectionPurpose::Mesh(_)) => {
                assert!(connection.peer_identity().is_some());
                sender.send(connection).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A welcomed agent, as the coordinator sees it.
pub(crate) struct MiniSession {
    pub(crate) hello: AgentHello,
    connection: Connection,
    control: Arc<AsyncMutex<SendStream>>,
    control_in: Frames,
    results: Option<Frames>,
}

impl MiniSession {
    pub(crate) async fn send(&self, frame: &ToAgent) {
        self.control.lock().await.write_all(&encode(frame, MAX_FRAME).unwrap()).await.unwrap();
    }

    /// Returns the next matching control frame; skips others, answering time requests.
    pub(crate) async fn control_until(&mut self, wanted: impl Fn(&ToCoordinator) -> bool) -> ToCoordinator {
        loop {
            let frame: ToCoordinator = self.control_in.next().await;
            if wanted(&frame) {
                return frame;
            }
        }
    }

    pub(crate) async fn batch(&mut self, monitor_of: impl FnMut(u32) -> Option<WireMonitorId>) -> UnpackedBatch {
        if self.results.is_none() {
            let stream = timeout(LIMIT, self.connection.accept_uni()).await.unwrap().unwrap();
            self.results = Some(Frames::new(stream, MAX_FRAME));
        }
        let ResultFrame::Batch(batch) = self.results.as_mut().unwrap().next().await;
        batch.unpack(monitor_of).unwrap()
    }

    /// Sends a request, and returns every response.
    pub(crate) async fn check_now(&self, request: &WireCheckNow) -> Vec<WireCheckNowResponse> {
        let (mut sending, receiving) = self.connection.open_bi().await.unwrap();
        sending.write_all(&encode(request, MAX_FRAME).unwrap()).await.unwrap();
        sending.finish().unwrap();
        let mut frames = Frames::new(receiving, MAX_FRAME);
        let mut answers = Vec::new();
        while let Some(answer) = timeout(LIMIT, frames.try_next()).await.unwrap() {
            answers.push(answer);
        }
        answers
    }

    /// Returns the agent's address.
    pub(crate) fn peer(&self) -> String {
        self.connection.remote_address().ip().to_string()
    }

    /// Acknowledges every batch as it arrives from now on.
    pub(crate) fn acknowledge_everything(&mut self) {
        let mut results = self.results.take().unwrap();
        let control = Arc::clone(&self.control);
        let through = |batch: UnpackedBatch| ToAgent::Ack(DurabilityMark { boot: batch.boot, through: batch.through });
        let boot = self.hello.boot;
        tokio::spawn(async move {
            let everything = ToAgent::Ack(DurabilityMark { boot, through: 2 });
            let mut next = Some(everything);
            while let Some(ack) = next {
                let frame = encode(&ack, MAX_FRAME).unwrap();
                if control.lock().await.write_all(&frame).await.is_err() {
                    return;
                }
                next =
                    results.try_next().await.map(|ResultFrame::Batch(batch)| through(batch.unpack(|_| None).unwrap()));
            }
        });
    }

    /// Returns the negotiated protocol.
    pub(crate) fn version(&self) -> Vec<u8> {
        let data = self.connection.handshake_data().unwrap();
        data.downcast::<quinn::crypto::rustls::HandshakeData>().unwrap().protocol.unwrap()
    }

    pub(crate) fn close(&self, reason: CloseReason) {
        self.connection.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
    }

    /// Waits until the agent closes the connection and returns its reason.
    pub(crate) async fn closed(&self) -> Option<CloseReason> {
        let error = timeout(LIMIT, self.connection.closed()).await.unwrap();
        parallax_agent::connection::close_reason(&error)
    }
}

struct Frames {
    stream: RecvStream,
    reader: FrameReader,
}

impl Frames {
    fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, reader: FrameReader::new(limit) }
    }

    async fn next<T: DeserializeOwned + Serialize>(&mut self) -> T {
        timeout(LIMIT, self.try_next()).await.unwrap().unwrap()
    }

    async fn try_next<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            if let Some(value) = self.reader.next_value().unwrap() {
                return Some(value);
            }
            let chunk = self.stream.read_chunk(4096, true).await.ok()??;
            self.reader.feed(&chunk.bytes);
        }
    }
}
