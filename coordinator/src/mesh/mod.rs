//! The mesh's side of QUIC: agents join, connect, get their share of the checks, and what they saw goes down the river.
//!
//! What it promises:
//!
//! - Nobody without a certificate of this installation says anything but "let me join", and that in one frame.
//! - One live connection an agent; the newest has the place. Revocation and the certificate's end close it.
//! - A result is acknowledged after the river says that it is durable, never before; what comes twice is dropped.
//! - A full river is waited for: the stream is not read on, and QUIC holds the agent back.
//! - Every question ends with one outcome or with nothing, in time.
//! - Place, region and network of whatever comes are the coordinator's record, never the agent's word.

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

/// Answers that wait for the driver; more are lost, counted, and their questions end by their deadlines.
const ANSWERS_WAITING: usize = 65_536;

/// How often identities that two hosts shared are looked at again.
const SETTLE: Duration = Duration::from_secs(10);

/// How long peers are given to hear that the coordinator stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// Log target for faults of agents' hosts: `parallax up` silences it, and logs those of its own host once for all agents.
pub(crate) const FITNESS: &str = "parallax_coordinator::mesh::fitness";

/// What the mesh needs of the members' records. Every answer is of what is durable.
pub trait Members: Send + Sync {
    /// Every agent, the revoked ones among them or not.
    fn agents(&self) -> BoxFuture<'_, Result<Vec<Agent>, RecordsFault>>;

    /// One agent, revoked or not.
    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<Agent>, RecordsFault>>;

    /// True where an agent, be it in the records or not, is known to have been revoked or forgotten.
    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool>;

    /// One invitation, used, expired or not.
    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsFault>>;

    /// Counts one wrong secret more against an invitation.
    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsFault>>;

    /// Uses an invitation and makes its agent, both or neither. Name, region and network are the invitation's; the
    /// place and the network get their numbers here.
    fn enrol(
        &self,
        id: InvitationId,
        newcomer: Newcomer,
    ) -> BoxFuture<'_, Result<Result<Agent, EnrolRefusal>, RecordsFault>>;

    /// Takes news of an agent's identity into its record; durable when it answers.
    fn note(&self, id: AgentId, note: Note) -> BoxFuture<'_, Result<Noted, RecordsFault>>;
}

/// Reason for which an invitation makes no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnrolRefusal {
    /// It has made one.
    Used,
    /// The operator took it back.
    Revoked,
    /// An agent of its name is enrolled.
    NameTaken,
}

/// What joining adds to an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// The new agent's id.
    pub id: AgentId,
    /// When it joins.
    pub joined_at: Timestamp,
    /// Its first certificate.
    pub certificate: Certificate,
}

/// The members' records can't be read or written just now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("members' records: {0}")]
pub struct RecordsFault(pub String);

/// The mesh could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The socket is of no use.
    #[error("mesh socket: {0}")]
    Socket(#[from] io::Error),
    /// The authority can't make what the listener needs.
    #[error("mesh certificates: {0}")]
    Certificates(#[from] parallax_certs::Error),
    /// The TLS settings can't be used with QUIC.
    #[error("mesh settings: {0}")]
    Settings(&'static str),
}

/// What the operator and the installation decide.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The mesh's name, as agents show it.
    pub name: String,
    /// The coordinator's software version.
    pub software: String,
    /// Identity of the numbering of slots: kept as long as no slot comes to mean another monitor.
    pub book: u64,
    /// Life of an agent's certificate in seconds.
    pub certificate_life: i64,
    /// Most connections at once, joining hosts among them.
    pub max_connections: usize,
}

/// What the mesh is made of.
pub struct Parts {
    /// A bound UDP socket, for mesh and join alike.
    pub socket: UdpSocket,
    /// Whom to trust.
    pub trust: Trust,
    /// What a connection's reset tokens and ids are made of, the same at each start.
    pub secret: MeshSecret,
    /// The members' records.
    pub members: Arc<dyn Members>,
    /// The present moment.
    pub clock: Clock,
    /// Where results, answers and changes of the mesh go.
    pub inbox: Inbox,
    /// Where the driver's questions come from.
    pub questions: mpsc::Receiver<Question>,
    /// What is to be run.
    pub schedule: Schedule,
    /// What the operator decides.
    pub settings: Settings,
    /// Who sees that the mesh's tasks stand.
    pub watch: Watch,
}

/// What has happened on the mesh, counted since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections whose handshake was completed.
    pub connections: AtomicU64,
    /// Connections refused or given up before that.
    pub handshakes_failed: AtomicU64,
    /// Mesh connections without a certificate.
    pub without_identity: AtomicU64,
    /// Mesh connections of revoked or unknown agents.
    pub not_enrolled: AtomicU64,
    /// Connections replaced by another with the same identity.
    pub replaced: AtomicU64,
    /// Identities found to be shared by two hosts.
    pub shared: AtomicU64,
    /// Connections closed for a frame that broke the protocol.
    pub frames_refused: AtomicU64,
    /// Agents that joined.
    pub joined: AtomicU64,
    /// Attempts to join that were refused.
    pub joins_refused: AtomicU64,
    /// Certificates renewed.
    pub renewed: AtomicU64,
    /// Renewals that were not granted.
    pub renewals_refused: AtomicU64,
    /// Results received, duplicates among them.
    pub results: AtomicU64,
    /// Results received a second time.
    pub duplicates: AtomicU64,
    /// Results of rounds that were not the agent's, or not due yet.
    pub rounds_refused: AtomicU64,
    /// Results that agents dropped for want of room.
    pub gaps: AtomicU64,
    /// Batches that could not be made durable.
    pub batches_failed: AtomicU64,
    /// Questions put to agents.
    pub questions: AtomicU64,
    /// Answers that the driver had no room for.
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

/// Opens the mesh: reads the members, and takes connections from then on.
///
/// # Errors
/// [`MeshError`] where the socket or the certificates are of no use.
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
    // With it go all sessions; their agents are back within seconds.
    rooms.keep("mesh-listener", move || listener::accept(Arc::clone(&of), listening.clone()));
    Ok(MeshHandle { hub, endpoint, address, rooms })
}

impl MeshHandle {
    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the members' records anew, soon: to be called after an agent was revoked or changed. The live
    /// connection of one that was revoked is closed at once.
    pub fn refresh(&self) {
        self.hub.refresh.notify_one();
    }

    /// Puts the suspects that are held into quarantine, lets all others out, and logs what is new of them.
    pub fn set_suspects(&self, suspects: &Suspects) {
        self.hub.with_roster(|roster| roster.set_suspects(suspects));
    }

    /// Trusts and signs otherwise from now on. Live connections stay, and their agents are told.
    ///
    /// # Errors
    /// [`MeshError`] where the authority is of no use; everything stays as it was.
    pub fn set_trust(&self, trust: Trust) -> Result<(), MeshError> {
        let server = listener::server_config(&trust, &self.hub.clock)?;
        self.hub.trust.store(Arc::new(trust));
        self.endpoint.set_server_config(Some(server));
        self.hub.trusted.send_replace(());
        Ok(())
    }

    /// The mesh as the rules see it, with every change.
    pub fn mesh(&self) -> watch::Receiver<Arc<Mesh>> {
        self.hub.mesh.subscribe()
    }

    /// The agents as people see them, in the order of their places.
    pub fn agents(&self) -> Vec<AgentView> {
        self.hub.view()
    }

    /// The same as [`MeshHandle::agents`], for those who outlive the handle.
    pub fn viewer(&self) -> impl Fn() -> Vec<AgentView> + Send + Sync + 'static {
        // The members' records hold this, and the mesh holds them: neither may keep the other alive.
        let hub = Arc::downgrade(&self.hub);
        move || hub.upgrade().map_or_else(Vec::new, |hub| hub.view())
    }

    /// What has been counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.hub.counters
    }

    /// Closes every connection, and ends.
    pub async fn stop(self) {
        self.rooms.let_end();
        self.endpoint.set_server_config(None);
        self.hub.close_all(CloseReason::ShuttingDown);
        let reason = CloseReason::ShuttingDown;
        self.endpoint.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
        // Whoever is not there to hear it will find out by the idle time-out.
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

/// Tells the driver who is there, whenever that has changed.
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

/// Brings answers to the driver.
async fn tell_answers(mut answers: mpsc::Receiver<Arrival>, inbox: Inbox) {
    while let Some(answer) = answers.recv().await {
        if inbox.send(answer).await.is_err() {
            return;
        }
    }
}

/// Reads the members anew when told to, and lets out those who no longer share an identity.
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
