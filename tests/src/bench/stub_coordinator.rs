//! A stub coordinator for benchmarks of the agent: welcomes one agent, acknowledges everything, and counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use parallax_certs::authority::MeshAuthority;
use parallax_certs::tls;
use parallax_certs::token::{JoinToken, JoinTokenId};
use parallax_protocol::assignment::Assignment;
use parallax_protocol::batch::ResultFrame;
use parallax_protocol::frame::{FrameReader, MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{WireAgentId, WireMonitorId, WireRegion};
use parallax_protocol::join::{Enrolment, JoinRequest, JoinResponse};
use parallax_protocol::message::{DurabilityMark, TimeResponse, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::{CheckResult, WireOutcome};
use parallax_protocol::version::{ConnectionPurpose, JOIN_V1, MESH_V1, connection_purpose};
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::now_ms;

const AGENT: WireAgentId = WireAgentId(0xbe);

/// Slot epoch of every benchmark's schedule.
pub(super) const SLOT_EPOCH: u64 = 1;

/// A listening stub coordinator.
pub(super) struct StubCoordinator {
    shared: Arc<Shared>,
    address: String,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct StubCounters {
    /// Completed checks, without pending ones.
    pub(super) results: AtomicU64,
    /// Checks that did not pass.
    pub(super) not_passed: AtomicU64,
    /// Bytes of frames on the results stream.
    pub(super) stream_bytes: AtomicU64,
    /// Bytes of received datagrams, all streams and acknowledgements included.
    pub(super) datagram_bytes: AtomicU64,
    /// Lateness of each check, in ms.
    pub(super) late_ms: Mutex<Vec<i64>>,
}

struct Shared {
    authority: MeshAuthority,
    seen: Arc<StubCounters>,
    /// Assignments by slot.
    assignments: Vec<Assignment>,
    /// Lateness is recorded for slots below this one.
    watched: u32,
}

impl StubCoordinator {
    /// Starts listening; `assignments` are in order of their slots, from 0.
    pub(super) fn start(assignments: Vec<Assignment>) -> Self {
        Self::start_watching(assignments, u32::MAX)
    }

    /// As [`Self::start`], but records the lateness of the first `watched` slots only.
    pub(super) fn start_watching(assignments: Vec<Assignment>, watched: u32) -> Self {
        let authority = MeshAuthority::generate(now_ms() / 1000).expect("an authority can be made");
        let credentials = authority.issue_coordinator().expect("a certificate can be made");
        let roots = authority.roots().expect("an authority has roots");
        let clock = tls::clock(|| now_ms() / 1000);
        let tls = tls::coordinator_config(&[credentials], &roots, &[MESH_V1, JOIN_V1], clock).expect("TLS settings");
        let crypto = QuicServerConfig::try_from(tls).expect("QUIC settings");
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let any = "127.0.0.1:0".parse().expect("an address");
        let endpoint = Endpoint::server(config, any).expect("a socket");
        let address = endpoint.local_addr().expect("a bound socket").to_string();
        let shared = Arc::new(Shared { authority, seen: Arc::default(), assignments, watched });
        tokio::spawn(accept(endpoint, Arc::clone(&shared)));
        Self { shared, address }
    }

    /// Returns the address it listens on.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns a token to join with.
    pub(super) fn token(&self) -> String {
        let token = JoinToken::generate(JoinTokenId(7), self.shared.authority.key_hash());
        token.expect("randomness").expose()
    }

    /// Returns the counters.
    pub(super) fn counters(&self) -> Arc<StubCounters> {
        Arc::clone(&self.shared.seen)
    }
}

impl Shared {
    fn monitor_of(&self, slot: u32) -> Option<WireMonitorId> {
        self.assignments.get(usize::try_from(slot).ok()?).map(|assignment| assignment.monitor)
    }

    fn count(&self, result: &CheckResult) {
        match result.report.outcome {
            WireOutcome::Pending => return,
            WireOutcome::Passed => {}
            WireOutcome::Failed(_) | WireOutcome::Inconclusive(_) => {
                self.seen.not_passed.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.seen.results.fetch_add(1, Ordering::Relaxed);
        // Monitor ids are slot + 1, as in the schedule.
        let slot = usize::try_from(result.monitor.0 - 1).expect("a monitor of ours");
        let watched = self.assignments.get(slot).filter(|assignment| assignment.slot < self.watched);
        if let (Some(assignment), Some(round)) = (watched, result.round) {
            let late = result.started_ms - assignment.round_start_ms(round);
            self.seen.late_ms.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        }
    }

    async fn join(&self, connection: Connection) {
        let (mut sending, receiving) = connection.accept_bi().await.expect("a stream");
        let request: JoinRequest = StubFrameReader::new(receiving, MAX_JOIN_FRAME).next().await.expect("a request");
        let (now_s, life_s) = (now_ms() / 1000, 86_400);
        let issued = self.authority.issue_agent(&request.csr_der, &AGENT.to_string(), now_s, life_s);
        let answer = JoinResponse::Enrolled(Enrolment {
            certificates_der: vec![issued.expect("a certificate").certificate.to_vec()],
            authorities_der: vec![self.authority.certificate().to_vec()],
            agent: AGENT,
            name: "bench".into(),
            region: WireRegion::Europe,
            network: "AS64500".into(),
            mesh: "bench".into(),
            coordinator_ms: now_ms(),
        });
        send(&mut sending, &answer).await;
        sending.finish().expect("an open stream");
        connection.closed().await;
    }

    /// Serves an agent until it disconnects.
    async fn serve(self: Arc<Self>, connection: Connection) -> Option<()> {
        let (mut control, receiving) = connection.accept_bi().await.ok()?;
        let mut frames = StubFrameReader::new(receiving, MAX_FRAME);
        let ToCoordinator::Hello(hello) = frames.next().await? else { panic!("no hello") };
        let welcome = Welcome {
            agent: AGENT,
            name: "bench".into(),
            region: WireRegion::Europe,
            network: "AS64500".into(),
            mesh: "bench".into(),
            software: "0".into(),
            coordinator_ms: now_ms(),
            slot_epoch: SLOT_EPOCH,
            watermarks: Vec::new(),
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
                if let ToCoordinator::TimeRequest { sent_us } = frame {
                    let answer = TimeResponse { echo_us: sent_us, coordinator_ms: now_ms() };
                    let _ = answers.send(ToAgent::Time(answer)).await;
                }
            }
        });
        let mut results = StubFrameReader::new(connection.accept_uni().await.ok()?, MAX_FRAME);
        while let Some(ResultFrame::Batch(batch)) = results.next().await {
            let unpacked = batch.unpack(|slot| self.monitor_of(slot)).expect("a batch as agents make them");
            unpacked.results.iter().for_each(|numbered| self.count(&numbered.result));
            self.seen.stream_bytes.store(results.bytes, Ordering::Relaxed);
            self.seen.datagram_bytes.store(connection.stats().udp_rx.bytes, Ordering::Relaxed);
            let mark = DurabilityMark { boot: hello.boot, through: unpacked.through };
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
        match connection_purpose(&protocol) {
            Some(ConnectionPurpose::Join(_)) => tokio::spawn(async move { shared.join(connection).await }),
            _ => tokio::spawn(async move {
                shared.serve(connection).await;
            }),
        };
    }
}

/// Sends one frame. Errors are ignored: the peer is gone.
pub(super) async fn send<T: Serialize>(stream: &mut SendStream, value: &T) {
    let frame = encode(value, MAX_FRAME).expect("a frame that fits");
    let _ = stream.write_all(&frame).await;
}

/// Reads frames from a stream.
pub(super) struct StubFrameReader {
    stream: RecvStream,
    reader: FrameReader,
    /// Bytes received.
    pub(super) bytes: u64,
}

impl StubFrameReader {
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, reader: FrameReader::new(limit), bytes: 0 }
    }

    /// Returns the next frame, or `None` at the end of the stream.
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
