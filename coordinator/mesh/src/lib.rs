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

mod account_numbers;
mod assignment_history;
mod clock_steps;
mod convert;
mod handshake_limit;
mod hub;
mod join;
mod join_attempts;
mod ledger;
mod listener;
pub mod members;
mod peer;
mod probe_queue;
mod probe_requests;
mod results;
mod roster;
mod schedule_diff;
mod session;
mod shares;
mod trust;
mod wire;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parallax_certs::mesh_secret::MeshSecret;
use parallax_core::id::{AgentId, InvitationId};
use parallax_core::member::{AgentRecord, CertificateId, IdentityChange, IdentityUpdate, Invitation};
use parallax_core::quarantine::SuspectedVantages;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Mesh;
use parallax_engine::{Arrival, EngineInbox, ProbeDispatch, ScheduleReceiver};
use parallax_protocol::close::CloseReason;
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::{Supervisor, TaskGroup};
use quinn::{Endpoint, VarInt};
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};

use self::account_numbers::AccountNumbers;
use self::hub::{Hub, HubParts};
pub use self::roster::{AgentView, HeldCredentials, ResultCounts};
pub use self::trust::Trust;

/// Responses that may wait for the driver. More are dropped and counted, and their requests end by their deadlines.
const MAX_WAITING_RESPONSES: usize = 65_536;

/// Interval at which shared identities are checked again.
const SHARED_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Time for peers to receive the close at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// Log target for faults of agents' hosts: `parallax up` silences it, and logs those of its own host once for all
/// agents.
pub const FITNESS_LOG_TARGET: &str = "parallax_mesh::fitness";

/// The members' records as the mesh needs them. Every method reflects durable state only.
pub trait MemberRecords: Send + Sync {
    /// Returns every agent; the result may include revoked ones.
    fn agents(&self) -> BoxFuture<'_, Result<Vec<AgentRecord>, RecordsError>>;

    /// Returns one agent, revoked or not.
    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<AgentRecord>, RecordsError>>;

    /// Returns true if an agent is known to have been revoked or removed, whether or not the records still have it.
    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool>;

    /// Returns one invitation, used, expired or not.
    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsError>>;

    /// Counts one more wrong secret against an invitation.
    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsError>>;

    /// Uses an invitation and creates its agent, both or neither. Name, region and network come from the invitation;
    /// vantage and network numbers are assigned here.
    fn enrol(
        &self,
        id: InvitationId,
        new_agent: NewAgent,
    ) -> BoxFuture<'_, Result<Result<AgentRecord, EnrolError>, RecordsError>>;

    /// Writes a change of an agent's identity to its record; durable when this returns.
    fn update(&self, id: AgentId, change: IdentityChange) -> BoxFuture<'_, Result<IdentityUpdate, RecordsError>>;
}

/// Reason why an invitation can't create an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnrolError {
    /// It was used already.
    Used,
    /// The operator revoked it.
    Revoked,
    /// An agent with its name is enrolled.
    NameTaken,
}

/// Data that joining adds to an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    /// The new agent's id.
    pub id: AgentId,
    /// Time of the join.
    pub joined_at: Timestamp,
    /// Its first certificate.
    pub certificate: CertificateId,
}

/// The members' records can't be read or written now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("members' records: {0}")]
pub struct RecordsError(pub String);

/// Reason why the mesh could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The socket can't be used.
    #[error("mesh socket: {0}")]
    Socket(#[from] io::Error),
    /// The authority can't issue what the listener needs.
    #[error("mesh certificates: {0}")]
    Certificates(#[from] parallax_certs::CertsError),
    /// The TLS settings can't be used with QUIC.
    #[error("mesh settings: {0}")]
    Settings(&'static str),
}

/// Settings of the operator and the installation.
#[derive(Debug, Clone)]
pub struct MeshSettings {
    /// The mesh's name, as agents show it.
    pub name: String,
    /// The coordinator's software version.
    pub software: String,
    /// Identity of the slot numbering: unchanged as long as no slot is reassigned to another monitor.
    pub slot_epoch: u64,
    /// Lifetime of an agent's certificate, in seconds.
    pub certificate_life: i64,
    /// Connections at once, joining hosts included, at most.
    pub max_connections: usize,
}

/// Everything the mesh is built from.
pub struct MeshParts {
    /// A bound UDP socket, for both mesh and join.
    pub socket: UdpSocket,
    /// The trusted authorities and the signing one.
    pub trust: Trust,
    /// Secret for reset tokens and connection ids, the same at each start.
    pub secret: MeshSecret,
    /// The members' records.
    pub members: Arc<dyn MemberRecords>,
    /// The clock.
    pub clock: Clock,
    /// Receives results, probe responses and mesh changes.
    pub inbox: EngineInbox,
    /// Probe requests from the driver.
    pub probes: mpsc::Receiver<ProbeDispatch>,
    /// The schedule.
    pub schedule: ScheduleReceiver,
    /// The settings.
    pub settings: MeshSettings,
    /// The supervisor of the mesh's tasks.
    pub supervisor: Supervisor,
}

/// Mesh counters since the start.
#[derive(Debug, Default)]
pub struct MeshCounters {
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
    pub shared_identities: AtomicU64,
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
    pub results_lost: AtomicU64,
    /// Batches that could not be made durable.
    pub batches_failed: AtomicU64,
    /// Probe requests sent to agents.
    pub probes_sent: AtomicU64,
    /// Probe responses dropped because the driver's queue was full.
    pub responses_lost: AtomicU64,
}

impl MeshCounters {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A running mesh.
pub struct MeshHandle {
    hub: Arc<Hub>,
    endpoint: Endpoint,
    address: SocketAddr,
    tasks: TaskGroup,
}

/// Opens the mesh: reads the members, then accepts connections. Boxed, so that its code is generated here (decision 107).
///
/// # Errors
/// [`MeshError`] if the socket or the certificates can't be used.
pub fn start(parts: MeshParts) -> BoxFuture<'static, Result<MeshHandle, MeshError>> {
    Box::pin(start_tasks(parts))
}

async fn start_tasks(parts: MeshParts) -> Result<MeshHandle, MeshError> {
    let server = listener::server_config(&parts.trust, &parts.clock)?;
    let endpoint = listener::endpoint(parts.socket, server, &parts.secret)?;
    let address = endpoint.local_addr()?;
    let (responses, response_receiver) = mpsc::channel(MAX_WAITING_RESPONSES);
    let hub = Arc::new(Hub::new(HubParts {
        members: parts.members,
        clock: parts.clock,
        inbox: parts.inbox.clone(),
        responses,
        schedule: parts.schedule,
        settings: parts.settings,
        trust: parts.trust,
        account_numbers: AccountNumbers::new(&parts.secret),
    }));
    hub.reload().await;
    let mut tasks = parts.supervisor.task_group();
    let (task_hub, inbox) = (Arc::clone(&hub), parts.inbox.clone());
    tasks.spawn_restarting("mesh-news", move || {
        forward_mesh_changes(Arc::clone(&task_hub), task_hub.mesh.subscribe(), inbox.clone())
    });
    tasks.spawn_once("mesh-answers", forward_responses(response_receiver, parts.inbox));
    tasks.spawn_once("mesh-questions", probe_requests::dispatch(Arc::clone(&hub), parts.probes));
    let task_hub = Arc::clone(&hub);
    tasks.spawn_restarting("mesh-records", move || maintain_roster(Arc::clone(&task_hub)));
    let (task_hub, listening) = (Arc::clone(&hub), endpoint.clone());
    // All sessions end with it; their agents reconnect within seconds.
    tasks.spawn_restarting("mesh-listener", move || listener::accept(Arc::clone(&task_hub), listening.clone()));
    Ok(MeshHandle { hub, endpoint, address, tasks })
}

impl MeshHandle {
    /// Returns the local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reloads the members' records soon. Call it after an agent was revoked or changed; the connection of a revoked
    /// agent is closed at once.
    pub fn refresh(&self) {
        self.hub.reload_requested.notify_one();
    }

    /// Puts the vantages in `suspects.quarantined` into quarantine and releases all others. Logs the changes.
    pub fn set_suspects(&self, suspects: &SuspectedVantages) {
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
        self.hub.trust_changed.send_replace(());
        Ok(())
    }

    /// Returns the mesh as the rules see it, with every change.
    pub fn mesh(&self) -> watch::Receiver<Arc<Mesh>> {
        self.hub.mesh.subscribe()
    }

    /// Returns the agents for display, in the order of their vantage numbers.
    pub fn agents(&self) -> Vec<AgentView> {
        self.hub.agent_views()
    }

    /// Returns a function like [`MeshHandle::agents`] that may outlive the handle.
    pub fn viewer(&self) -> impl Fn() -> Vec<AgentView> + Send + Sync + 'static {
        // The members' records own this function, and the mesh owns the records: a strong reference would be a cycle.
        let hub = Arc::downgrade(&self.hub);
        move || hub.upgrade().map_or_else(Vec::new, |hub| hub.agent_views())
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Arc<MeshCounters> {
        &self.hub.counters
    }

    /// Closes every connection and stops.
    pub async fn stop(self) {
        self.tasks.expect_exit();
        self.endpoint.set_server_config(None);
        self.hub.close_all(CloseReason::ShuttingDown);
        let reason = CloseReason::ShuttingDown;
        self.endpoint.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
        // An unreachable peer notices by its idle time-out.
        let _ = timeout(SHUTDOWN_GRACE, self.endpoint.wait_idle()).await;
        self.tasks.stop().await;
    }
}

impl fmt::Debug for MeshHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshHandle").field("address", &self.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for MeshParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Notifies the driver of every change of the mesh.
async fn forward_mesh_changes(hub: Arc<Hub>, mut mesh: watch::Receiver<Arc<Mesh>>, inbox: EngineInbox) {
    mesh.mark_changed();
    let mut sent = Arc::default();
    while mesh.changed().await.is_ok() {
        let new_mesh = Arc::clone(&mesh.borrow_and_update());
        let capabilities = hub.capabilities();
        if sent != capabilities {
            sent = Arc::clone(&capabilities);
            if inbox.send(Arrival::CapabilitiesChanged(capabilities)).await.is_err() {
                return;
            }
        }
        if inbox.send(Arrival::MeshChanged(new_mesh)).await.is_err() {
            return;
        }
    }
}

/// Forwards probe responses to the driver.
async fn forward_responses(mut responses: mpsc::Receiver<Arrival>, inbox: EngineInbox) {
    while let Some(response) = responses.recv().await {
        if inbox.send(response).await.is_err() {
            return;
        }
    }
}

/// Reloads the members on request, and releases agents that no longer share an identity.
async fn maintain_roster(hub: Arc<Hub>) {
    let mut ticks = interval(SHARED_CHECK_INTERVAL);
    loop {
        tokio::select! {
            () = hub.reload_requested.notified() => hub.reload().await,
            _ = ticks.tick() => {
                hub.report_suppressed_lines();
                let now = hub.clock.now();
                for agent in hub.with_roster(|roster| roster.release_settled(now)) {
                    hub.update_record(agent, IdentityChange::Suspended(None)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
