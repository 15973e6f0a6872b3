//! The coordinator's end for a bench of the agent: welcomes one agent, acknowledges all it says, and counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use parallax_certs::authority::Authority;
use parallax_certs::tls;
use parallax_certs::token::{Token, TokenId};
use parallax_protocol::assignment::Assignment;
use parallax_protocol::batch::ResultFrame;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{AgentId, MonitorId, Region};
use parallax_protocol::join::{JoinAnswer, JoinRequest, Joined};
use parallax_protocol::message::{Mark, TimeAnswer, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::{CheckResult, Outcome};
use parallax_protocol::version::{JOIN_V1, MESH_V1, Purpose, purpose};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::now_ms;

const AGENT: AgentId = AgentId(0xbe);

/// The numbering that every bench's schedule belongs to.
pub(super) const BOOK: u64 = 1;

/// A listening stub.
pub(super) struct Stub {
    shared: Arc<Shared>,
    address: String,
}

/// What has come, counted since the start.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Outcomes of checks; pending ones are none.
    pub(super) results: AtomicU64,
    /// Those that did not pass.
    pub(super) bad: AtomicU64,
    /// Bytes of frames on the results stream.
    pub(super) stream_bytes: AtomicU64,
    /// Bytes of datagrams that came, all streams and acknowledgements.
    pub(super) datagram_bytes: AtomicU64,
    /// How late checks began, in ms.
    pub(super) late_ms: Mutex<Vec<i64>>,
}

struct Shared {
    authority: Authority,
    seen: Arc<Seen>,
    /// By slot.
    assignments: Vec<Assignment>,
    /// Lateness is noted of slots below.
    watched: u32,
}

impl Stub {
    /// Starts listening; `assignments` are in order of their slots, from 0.
    pub(super) fn start(assignments: Vec<Assignment>) -> Self {
        Self::watching(assignments, u32::MAX)
    }

    /// The same; how late checks begin is noted of the first so many alone.
    pub(super) fn watching(assignments: Vec<Assignment>, watched: u32) -> Self {
        let authority = Authority::make(now_ms() / 1000).expect("an authority can be made");
        let credentials = authority.issue_coordinator().expect("a certificate can be made");
        let roots = authority.roots().expect("an authority has roots");
        let clock = tls::clock(|| now_ms() / 1000);
        let tls = tls::coordinator_config(&[credentials], &roots, &[MESH_V1, JOIN_V1], clock)
            .expect("TLS settings");
        let crypto = QuicServerConfig::try_from(tls).expect("QUIC settings");
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoint = Endpoint::server(config, any).expect("a socket");
        let address = endpoint.local_addr().expect("a bound socket").to_string();
        let shared = Arc::new(Shared { authority, seen: Arc::default(), assignments, watched });
        tokio::spawn(accept(endpoint, Arc::clone(&shared)));
        Self { shared, address }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A token to join with.
    pub(super) fn token(&self) -> String {
        let token = Token::generate(TokenId(7), self.shared.authority.key_hash());
        token.expect("randomness").expose()
    }

    /// What has come.
    pub(super) fn seen(&self) -> Arc<Seen> {
        Arc::clone(&self.shared.seen)
    }
}

impl Shared {
    fn monitor_of(&self, slot: u32) -> Option<MonitorId> {
        self.assignments.get(usize::try_from(slot).ok()?).map(|assignment| assignment.monitor)
    }

    fn count(&self, result: &CheckResult) {
        match result.report.outcome {
            Outcome::Pending => return,
            Outcome::Passed => {}
            Outcome::Failed(_) | Outcome::Inconclusive(_) => {
                self.seen.bad.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.seen.results.fetch_add(1, Ordering::Relaxed);
        // Ids are slots and one: see the schedule.
        let slot = usize::try_from(result.monitor.0 - 1).expect("a monitor of ours");
        let watched = self.assignments.get(slot).filter(|assignment| assignment.slot < self.watched);
        if let (Some(assignment), Some(round)) = (watched, result.round) {
            let late = result.started_ms - assignment.round_start_ms(round);
            self.seen.late_ms.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        }
    }

    async fn join(&self, connection: Connection) {
        let (mut sending, receiving) = connection.accept_bi().await.expect("a stream");
        let request: JoinRequest = Frames::new(receiving, MAX_JOIN_FRAME).next().await.expect("a request");
        let (now_s, life_s) = (now_ms() / 1000, 86_400);
        let issued = self.authority.issue_agent(&request.csr_der, &AGENT.to_string(), now_s, life_s);
        let answer = JoinAnswer::Joined(Joined {
            certificates_der: vec![issued.expect("a certificate").certificate.to_vec()],
            authorities_der: vec![self.authority.certificate().to_vec()],
            agent: AGENT,
            name: "bench".into(),
            region: Region::Europe,
            network: "AS64500".into(),
            mesh: "bench".into(),
            coordinator_ms: now_ms(),
        });
        send(&mut sending, &answer).await;
        sending.finish().expect("an open stream");
        connection.closed().await;
    }

    /// Serves an agent until it goes.
    async fn serve(self: Arc<Self>, connection: Connection) -> Option<()> {
        let (mut control, receiving) = connection.accept_bi().await.ok()?;
        let mut frames = Frames::new(receiving, MAX_FRAME);
        let ToCoordinator::Hello(hello) = frames.next().await? else { panic!("no hello") };
        let welcome = Welcome {
            agent: AGENT,
            name: "bench".into(),
            region: Region::Europe,
            network: "AS64500".into(),
            mesh: "bench".into(),
            software: "0".into(),
            coordinator_ms: now_ms(),
            book: BOOK,
            marks: Vec::new(),
        };
        send(&mut control, &ToAgent::Welcome(welcome)).await;
        let (told, mut telling) = tokio::sync::mpsc::channel::<ToAgent>(64);
        tokio::spawn(async move {
            while let Some(frame) = telling.recv().await {
                send(&mut control, &frame).await;
            }
        });
        let answers = told.clone();
        tokio::spawn(async move {
            while let Some(frame) = frames.next::<ToCoordinator>().await {
                if let ToCoordinator::TimeAsk { sent_us } = frame {
                    let answer = TimeAnswer { echo_us: sent_us, coordinator_ms: now_ms() };
                    let _ = answers.send(ToAgent::Time(answer)).await;
                }
            }
        });
        let mut results = Frames::new(connection.accept_uni().await.ok()?, MAX_FRAME);
        while let Some(ResultFrame::Batch(batch)) = results.next().await {
            let unpacked = batch.unpack(|slot| self.monitor_of(slot)).expect("a batch as agents make them");
            unpacked.results.iter().for_each(|numbered| self.count(&numbered.result));
            self.seen.stream_bytes.store(results.bytes, Ordering::Relaxed);
            self.seen.datagram_bytes.store(connection.stats().udp_rx.bytes, Ordering::Relaxed);
            let mark = Mark { boot: hello.boot, through: unpacked.through };
            told.send(ToAgent::Ack(mark)).await.ok()?;
        }
        None
    }
}

async fn accept(endpoint: Endpoint, shared: Arc<Shared>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        let protocol = data.and_then(|data| data.protocol).unwrap_or_default();
        let shared = Arc::clone(&shared);
        match purpose(&protocol) {
            Some(Purpose::Join(_)) => tokio::spawn(async move { shared.join(connection).await }),
            _ => tokio::spawn(async move {
                shared.serve(connection).await;
            }),
        };
    }
}

/// Sends one frame. Whoever is gone needs none.
pub(super) async fn send<T: Serialize>(stream: &mut SendStream, value: &T) {
    let frame = encode(value, MAX_FRAME).expect("a frame that fits");
    let _ = stream.write_all(&frame).await;
}

/// Frames as they come.
pub(super) struct Frames {
    stream: RecvStream,
    reader: FrameReader,
    /// Bytes that have come.
    pub(super) bytes: u64,
}

impl Frames {
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, reader: FrameReader::new(limit), bytes: 0 }
    }

    /// The next frame; none at the end.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            if let Some(value) = self.reader.next_value().expect("frames as they are sent") {
                return Some(value);
            }
            let chunk = self.stream.read_chunk(64 << 10, true).await.ok()??;
            self.bytes += chunk.bytes.len() as u64;
            self.reader.feed(&chunk.bytes);
        }
    }
}
