//! A minimal coordinator for the tests: an authority, one QUIC socket, and direct access to every stream.

use parallax_agent::config::Config;
use parallax_agent::error::Error;
use parallax_agent::home::Record;
use parallax_certs::authority::Authority;
use parallax_certs::tls;
use parallax_certs::token::{Token, TokenId};
use parallax_protocol::batch::{ResultFrame, Unpacked};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{AgentId, MonitorId, Region};
use parallax_protocol::join::{JoinAnswer, JoinRequest, Joined};
use parallax_protocol::message::{CheckAnswer, CheckNow, Hello, Mark, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::version::{JOIN_V1, MESH_V1, Purpose, purpose};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::timeout;

const AGENT: AgentId = AgentId(0xa9e);
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Coordinator {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    connections: AsyncMutex<mpsc::Receiver<Connection>>,
}

struct Shared {
    authority: Authority,
    asked: AtomicBool,
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

impl Coordinator {
    pub(crate) fn start() -> Self {
        Self::speaking(&[MESH_V1, JOIN_V1])
    }

    /// Starts a coordinator with these protocols.
    pub(crate) fn speaking(protocols: &[&[u8]]) -> Self {
        let authority = Authority::make(now_s()).unwrap();
        let credentials = authority.issue_coordinator().unwrap();
        let roots = authority.roots().unwrap();
        let tls = tls::coordinator_config(&[credentials], &roots, protocols, tls::clock(now_s)).unwrap();
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let shared = Arc::new(Shared {
            authority,
            asked: AtomicBool::new(false),
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
        Token::generate(TokenId(7), self.shared.authority.key_hash()).unwrap().expose()
    }

    pub(crate) fn refuse(&self, reason: CloseReason) {
        *self.shared.refusal.lock().unwrap() = Some(reason);
    }

    /// Returns true if any frame of a join has arrived.
    pub(crate) fn was_asked(&self) -> bool {
        self.shared.asked.load(Ordering::Relaxed)
    }

    pub(crate) async fn join(&self, config: &Config) -> Result<Record, Error> {
        parallax_agent::join::join(config, &self.address(), &self.token()).await
    }

    /// Joins with a certificate issued at an offset of some seconds from now.
    pub(crate) async fn join_as_of(&self, config: &Config, shift_s: i64) -> Result<Record, Error> {
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
    pub(crate) async fn accept(&self, book: u64, marks: Vec<Mark>) -> Session {
        let connection = self.connection().await;
        let (control, receiving) = timeout(LIMIT, connection.accept_bi()).await.unwrap().unwrap();
        let mut control_in = Frames::new(receiving, MAX_FRAME);
        let ToCoordinator::Hello(hello) = control_in.next().await else { panic!("no hello") };
        let welcome = Welcome {
            agent: AGENT,
            name: "fra1".into(),
            region: Region::Europe,
            network: "AS64500".into(),
            mesh: "test".into(),
            software: "0".into(),
            coordinator_ms: now_s() * 1000,
            book,
            marks,
        };
        let session = Session {
            connection,
            hello,
            control: Arc::new(AsyncMutex::new(control)),
            control_in,
            results: None,
        };
        session.send(&ToAgent::Welcome(welcome)).await;
        session
    }
}

impl Shared {
    fn issue(&self, csr_der: &[u8], shift_s: i64) -> Vec<u8> {
        let month = 30 * 86_400;
        let issued =
            self.authority.issue_agent(csr_der, &AGENT.to_string(), now_s() + shift_s, month).unwrap();
        issued.certificate.to_vec()
    }

    async fn join(&self, connection: Connection) {
        let (mut sending, receiving) = connection.accept_bi().await.unwrap();
        let request: JoinRequest = Frames::new(receiving, MAX_JOIN_FRAME).next().await;
        self.asked.store(true, Ordering::Relaxed);
        let refusal = *self.refusal.lock().unwrap();
        let answer = match refusal {
            Some(reason) => JoinAnswer::Refused { reason },
            None => JoinAnswer::Joined(Joined {
                certificates_der: vec![self.issue(&request.csr_der, self.shift_s.load(Ordering::Relaxed))],
                authorities_der: vec![self.authority.certificate().to_vec()],
                agent: AGENT,
                name: "fra1".into(),
                region: Region::Europe,
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
        match purpose(&data.protocol.unwrap()) {
            Some(Purpose::Join(1)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { shared.join(connection).await });
            }
            Some(Purpose::Mesh(_)) => {
                assert!(connection.peer_identity().is_some());
                sender.send(connection).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A welcomed agent, as the coordinator sees it.
pub(crate) struct Session {
    pub(crate) hello: Hello,
    connection: Connection,
    control: Arc<AsyncMutex<SendStream>>,
    control_in: Frames,
    results: Option<Frames>,
}

impl Session {
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

    pub(crate) async fn batch(&mut self, monitor_of: impl FnMut(u32) -> Option<MonitorId>) -> Unpacked {
        if self.results.is_none() {
            let stream = timeout(LIMIT, self.connection.accept_uni()).await.unwrap().unwrap();
            self.results = Some(Frames::new(stream, MAX_FRAME));
        }
        let ResultFrame::Batch(batch) = self.results.as_mut().unwrap().next().await;
        batch.unpack(monitor_of).unwrap()
    }

    /// Sends a request, and returns every response.
    pub(crate) async fn ask(&self, ask: &CheckNow) -> Vec<CheckAnswer> {
        let (mut sending, receiving) = self.connection.open_bi().await.unwrap();
        sending.write_all(&encode(ask, MAX_FRAME).unwrap()).await.unwrap();
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
        let through = |batch: Unpacked| ToAgent::Ack(Mark { boot: batch.boot, through: batch.through });
        let boot = self.hello.boot;
        tokio::spawn(async move {
            let everything = ToAgent::Ack(Mark { boot, through: 2 });
            let mut next = Some(everything);
            while let Some(ack) = next {
                let frame = encode(&ack, MAX_FRAME).unwrap();
                if control.lock().await.write_all(&frame).await.is_err() {
                    return;
                }
                next = results
                    .try_next()
                    .await
                    .map(|ResultFrame::Batch(batch)| through(batch.unpack(|_| None).unwrap()));
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
        parallax_agent::link::close_reason(&error)
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
