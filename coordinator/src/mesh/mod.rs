//! The coordinator's side of the mesh over QUIC: agents join, connect, receive their share of the checks, and send
//! results to the engine.
//!
//! Guarantees:
//!
//! - A host without a certificate of this installation can only send a join request, and that in one frame.
//! - Each agent has one live connection: the newest. Revocation and the certificate's expiry close it.
//! - A result is acknowledged only after the engine reports it durable; duplicates are dropped.
//! - While the inbox is full, the result stream is not read, and QUIC applies backpressure to the agent.
//! - Every probe request ends with one outcome or with none, in time.
//! - Vantage, region and network of everything received come from the coordinator's record, never from the agent.

mod able;
mod accounts;
mod assign;
mod assignments;
mod convert;
mod gate;
mod hub;
mod join;
mod ledger;
mod listener;
mod questions;
mod results;
mod roster;
mod second;
mod session;
mod steps;
mod trust;
mod wire;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parallax_certs::secret::MeshSecret;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{Agent, Certificate, Invitation, Note, Noted};
use parallax_core::place::Mesh;
use parallax_core::quarantine::Suspects;
use parallax_core::time::Timestamp;
use parallax_protocol::close::CloseReason;
use quinn::{Endpoint, VarInt};
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};

use self::accounts::AccountNumbers;
use self::hub::{Hub, HubParts};
pub use self::roster::{AgentView, Figures, Held};
pub use self::trust::Trust;
use crate::clock::Clock;
use crate::flow::{Arrival, Inbox, Question, Schedule};
use crate::supervise::{Rooms, Watch};

/// Responses that may wait for the driver. More are dropped and counted, and their requests end by their deadlines.
const ANSWERS_WAITING: usize = 65_536;

/// Interval at which shared identities are checked again.
const SETTLE: Duration = Duration::from_secs(10);

/// Time for peers to receive the close at shutdown.
const FAREWELL: Duration = Duration::from_secs(3);

/// Log target for faults of agents' hosts: `parallax up` silences it, and logs those of its own host once for all
/// agents.
pub(crate) const FITNESS: &str = "parallax_coordinator::mesh::fitness";

/// The members' records as the mesh needs them. Every answer reflects durable state only.
pub trait Members: Send + Sync {
    /// Returns every agent, revoked ones included or not.
    fn agents(&self) -> BoxFuture<'_, Result<Vec<Agent>, RecordsFault>>;

    /// Returns one agent, revoked or not.
    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<Agent>, RecordsFault>>;

    /// Returns true if an agent is known to have been revoked or removed, whether or not the records still have it.
    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool>;

    /// Returns one invitation, used, expired or not.
    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsFault>>;

    /// Counts one more wrong secret against an invitation.
    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsFault>>;

    /// Uses an invitation and creates its agent, both or neither. Name, region and network come from the invitation;
    /// vantage and network numbers are assigned here.
    fn enrol(
        &self,
        id: InvitationId,
        newcomer: Newcomer,
    ) -> BoxFuture<'_, Result<Result<Agent, EnrolRefusal>, RecordsFault>>;

    /// Writes a change of an agent's identity to its record; durable when this returns.
    fn note(&self, id: AgentId, note: Note) -> BoxFuture<'_, Result<Noted, RecordsFault>>;
}

/// Reason why an invitation can't create an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnrolRefusal {
    /// It was used already.
    Used,
    /// The operator revoked it.
    Revoked,
    /// An agent with its name is enrolled.
    NameTaken,
}

/// Data that joining adds to an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// The new agent's id.
    pub id: AgentId,
    /// Time of the join.
    pub joined_at: Timestamp,
    /// Its first certificate.
    pub certificate: Certificate,
}

/// The members' records can't be read or written now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("members' records: {0}")]
pub struct RecordsFault(pub String);

/// Reason why the mesh could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The socket can't be used.
    #[error("mesh socket: {0}")]
    Socket(#[from] io::Error),
    /// The authority can't issue what the listener needs.
    #[error("mesh certificates: {0}")]
    Certificates(#[from] parallax_certs::Error),
    /// The TLS settings can't be used with QUIC.
    #[error("mesh settings: {0}")]
    Settings(&'static str),
}

/// Settings of the operator and the installation.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The mesh's name, as agents show it.
    pub name: String,
    /// The coordinator's software version.
    pub software: String,
    /// Identity of the slot numbering: unchanged as long as no slot is reassigned to another monitor.
    pub book: u64,
    /// Lifetime of an agent's certificate, in seconds.
    pub certificate_life: i64,
    /// Connections at once, joining hosts included, at most.
    pub max_connections: usize,
}

/// Everything the mesh is built from.
pub struct Parts {
    /// A bound UDP socket, for both mesh and join.
    pub socket: UdpSocket,
    /// The trusted authorities and the signing one.
    pub trust: Trust,
    /// Secret for reset tokens and connection ids, the same at each start.
    pub secret: MeshSecret,
    /// The members' records.
    pub members: Arc<dyn Members>,
    /// The clock.
    pub clock: Clock,
    /// Receives results, probe responses and mesh changes.
    pub inbox: Inbox,
    /// Probe requests from the driver.
    pub questions: mpsc::Receiver<Question>,
    /// The schedule.
    pub schedule: Schedule,
    /// The settings.
    pub settings: Settings,
    /// The supervisor of the mesh's tasks.
    pub watch: Watch,
}

/// Mesh counters since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections whose handshake was completed.
    pub connections: AtomicU64,
    /// Connections refused or closed before that.
    pub handshakes_failed: AtomicU64,
    /// Mesh connections without a certificate.
    pub without_identity: AtomicU64,
    /// Mesh connections of revoked or unknown agents.
    pub not_enrolled: AtomicU64,
    /// Connections replaced by another with the same identity.
    pub replaced: AtomicU64,
    /// Identities detected as shared by two hosts.
    pub shared: AtomicU64,
    /// Connections closed for a frame that violated the protocol.
    pub frames_refused: AtomicU64,
    /// Agents that joined.
    pub joined: AtomicU64,
    /// Attempts to join that were refused.
    pub joins_refused: AtomicU64,
    /// Certificates renewed.
    pub renewed: AtomicU64,
    /// Renewals refused.
    pub renewals_refused: AtomicU64,
    /// Results received, duplicates included.
    pub results: AtomicU64,
    /// Results received a second time.
    pub duplicates: AtomicU64,
    /// Results of rounds that were not assigned to the agent, or not due yet.
    pub rounds_refused: AtomicU64,
    /// Results that agents dropped because their spool was full.
    pub gaps: AtomicU64,
    /// Batches that could not be made durable.
    pub batches_failed: AtomicU64,
    /// Probe requests sent to agents.
    pub questions: AtomicU64,
    /// Probe responses dropped because the driver's queue was full.
    pub answers_lost: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running mesh.
pub struct MeshHandle {
    hub: Arc<Hub>,
    endpoint: Endpoint,
    address: SocketAddr,
    rooms: Rooms,
}

/// Opens the mesh: reads the members, then accepts connections.
///
/// # Errors
/// [`MeshError`] if the socket or the certificates can't be used.
pub async fn start(parts: Parts) -> Result<MeshHandle, MeshError> {
    let server = listener::server_config(&parts.trust, &parts.clock)?;
    let endpoint = listener::endpoint(parts.socket, server, &parts.secret)?;
    let address = endpoint.local_addr()?;
    let (answers, waiting) = mpsc::channel(ANSWERS_WAITING);
    let hub = Arc::new(Hub::new(HubParts {
        members: parts.members,
        clock: parts.clock,
        inbox: parts.inbox.clone(),
        answers,
        schedule: parts.schedule,
        settings: parts.settings,
        trust: parts.trust,
        accounts: AccountNumbers::new(&parts.secret),
    }));
    hub.reload().await;
    let mut rooms = parts.watch.rooms();
    let (of, inbox) = (Arc::clone(&hub), parts.inbox.clone());
    rooms.keep("mesh-news", move || tell_mesh(Arc::clone(&of), of.mesh.subscribe(), inbox.clone()));
    rooms.hold("mesh-answers", tell_answers(waiting, parts.inbox));
    rooms.hold("mesh-questions", second::carry(Arc::clone(&hub), parts.questions));
    let of = Arc::clone(&hub);
    rooms.keep("mesh-records", move || keep(Arc::clone(&of)));
    let (of, listening) = (Arc::clone(&hub), endpoint.clone());
    // All sessions end with it; their agents reconnect within seconds.
    rooms.keep("mesh-listener", move || listener::accept(Arc::clone(&of), listening.clone()));
    Ok(MeshHandle { hub, endpoint, address, rooms })
}

impl MeshHandle {
    /// Returns the local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reloads the members' records soon. Call it after an agent was revoked or changed; the connection of a revoked
    /// agent is closed at once.
    pub fn refresh(&self) {
        self.hub.refresh.notify_one();
    }

    /// Applies quarantine: the held suspects go in, all others come out, and changes are logged.
    pub fn set_suspects(&self, suspects: &Suspects) {
        self.hub.with_roster(|roster| roster.set_suspects(suspects));
    }

    /// Replaces the trusted and signing authorities. Live connections stay, and their agents are notified.
    ///
    /// # Errors
    /// [`MeshError`] if the authority can't be used; nothing changes then.
    pub fn set_trust(&self, trust: Trust) -> Result<(), MeshError> {
        let server = listener::server_config(&trust, &self.hub.clock)?;
        self.hub.trust.store(Arc::new(trust));
        self.endpoint.set_server_config(Some(server));
        self.hub.trusted.send_replace(());
        Ok(())
    }

    /// Returns the mesh as the rules see it, with every change.
    pub fn mesh(&self) -> watch::Receiver<Arc<Mesh>> {
        self.hub.mesh.subscribe()
    }

    /// Returns the agents for display, in the order of their vantage numbers.
    pub fn agents(&self) -> Vec<AgentView> {
        self.hub.view()
    }

    /// Returns a function like [`MeshHandle::agents`] that may outlive the handle.
    pub fn viewer(&self) -> impl Fn() -> Vec<AgentView> + Send + Sync + 'static {
        // The members' records hold this function, and the mesh holds the records: neither may keep the other alive.
        let hub = Arc::downgrade(&self.hub);
        move || hub.upgrade().map_or_else(Vec::new, |hub| hub.view())
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.hub.counters
    }

    /// Closes every connection and stops.
    pub async fn stop(self) {
        self.rooms.let_end();
        self.endpoint.set_server_config(None);
        self.hub.close_all(CloseReason::ShuttingDown);
        let reason = CloseReason::ShuttingDown;
        self.endpoint.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
        // An unreachable peer notices by its idle time-out.
        let _ = timeout(FAREWELL, self.endpoint.wait_idle()).await;
        self.rooms.stop().await;
    }
}

impl fmt::Debug for MeshHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshHandle").field("address", &self.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Notifies the driver of every change of the mesh.
async fn tell_mesh(hub: Arc<Hub>, mut mesh: watch::Receiver<Arc<Mesh>>, inbox: Inbox) {
    mesh.mark_changed();
    let mut told = Arc::default();
    while mesh.changed().await.is_ok() {
        let now = Arc::clone(&mesh.borrow_and_update());
        let able = hub.able();
        if told != able {
            told = Arc::clone(&able);
            if inbox.send(Arrival::Able(able)).await.is_err() {
                return;
            }
        }
        if inbox.send(Arrival::Mesh(now)).await.is_err() {
            return;
        }
    }
}

/// Forwards probe responses to the driver.
async fn tell_answers(mut answers: mpsc::Receiver<Arrival>, inbox: Inbox) {
    while let Some(answer) = answers.recv().await {
        if inbox.send(answer).await.is_err() {
            return;
        }
    }
}

/// Reloads the members on request, and releases agents that no longer share an identity.
async fn keep(hub: Arc<Hub>) {
    let mut settle = interval(SETTLE);
    loop {
        tokio::select! {
            () = hub.refresh.notified() => hub.reload().await,
            _ = settle.tick() => {
                hub.report_omitted_lines();
                let now = hub.clock.now();
                for agent in hub.with_roster(|roster| roster.settle(now)) {
                    hub.note(agent, Note::Shared(None)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
