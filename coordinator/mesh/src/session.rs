//! A session: one agent's connection, from its `Hello` to its close.

mod credentials;
mod dismissal;
mod hello;
mod host_reports;
mod public_address;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parallax_certs::identity::AgentIdentity;
use parallax_core::id::AgentId;
use parallax_core::member::{AgentRecord, IdentityChange};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::id as wire_id;
use parallax_protocol::message::{AgentHello, ScheduleVersion, TimeResponse, ToAgent, ToCoordinator, Welcome};
use quinn::{Connection, SendStream};
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tracing::{debug, error, info, warn};

use self::credentials::{SessionCertificates, wait_until_expired};
use self::hello::{check_bounds, read_hello};
use self::host_reports::FaultReportPacer;
use self::public_address::AgentPublicAddress;
use super::hub::{AgentState, Hub};
use super::roster::ConnectionInfo;
use super::wire::{self, FrameReceiver, SessionError};
use super::{MeshCounters, convert, peer, probe_requests, results, shares};

/// Time limit from the handshake to the `Hello`.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// Time for which schedule and mesh changes are batched before the agent is sent them.
const BATCH_DELAY: Duration = Duration::from_millis(250);
/// Time that an agent may take after its goodbye to receive the last acknowledgements.
const GOODBYE_GRACE: Duration = Duration::from_secs(5);
/// Snapshots that an agent may request per connection.
const MAX_SNAPSHOTS: u32 = 20;
/// Faults or check types that an agent may list, at most.
const MAX_LISTED: usize = 32;

/// Serves an agent's connection, then closes it. `authority` is the key hash of the authority that issued its
/// certificate.
pub(super) async fn run(hub: Arc<Hub>, connection: Connection, identity: AgentIdentity, authority: Option<[u8; 32]>) {
    let certificates = SessionCertificates::new(&identity, authority);
    let mut opened = None;
    let fault = match open_session(&hub, &connection, &identity, certificates, &mut opened).await {
        Ok(session) => session.serve().await,
        Err(fault) => {
            if matches!(fault.reason(), CloseReason::Revoked | CloseReason::UnknownAgent) {
                MeshCounters::add(&hub.counters.not_enrolled);
                if dismissal::is_due(&hub, &identity, fault.reason()).await {
                    dismissal::send(&connection, fault.reason(), opened).await;
                }
            }
            fault
        }
    };
    let (remote, agent) = (connection.remote_address(), &identity.agent);
    let enrolled = agent.parse().ok().filter(|id| hub.agent(*id).is_some());
    match &fault {
        SessionError::Lost => debug!(%remote, agent, "connection ended"),
        SessionError::Close(reason) => {
            if let Some(omitted) = hub.logs.admit((enrolled, "closed")) {
                info!(%remote, agent, %reason, omitted, "connection closed");
            }
        }
        SessionError::Protocol(error) => {
            MeshCounters::add(&hub.counters.frames_refused);
            if let Some(omitted) = hub.logs.admit((enrolled, "protocol")) {
                warn!(%remote, agent, %error, omitted, "connection closed: the agent violated the protocol");
            }
        }
    }
    wire::close(&connection, fault.reason());
}

/// A registered agent's session.
struct Session {
    hub: Arc<Hub>,
    agent: Arc<AgentRecord>,
    connection: Connection,
    /// Version of the mesh protocol.
    version: u16,
    control: SendStream,
    frames: FrameReceiver,
    agent_state: Arc<AgentState>,
    closing: watch::Receiver<Option<CloseReason>>,
    guard: SessionGuard,
    public_address: AgentPublicAddress,
    hello: AgentHello,
    snapshots: u32,
    certificates: SessionCertificates,
    closes_at: Option<Instant>,
    fault_reports: FaultReportPacer,
}

/// A session's registration, which ends with it: however a session ends, its agent must not count as connected.
struct SessionGuard {
    hub: Arc<Hub>,
    agent: Arc<AgentRecord>,
    number: u64,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.hub.disconnect(&self.agent, self.number);
    }
}

/// Checks the identity against the records, receives the `Hello` and registers the session. If that fails later,
/// `opened` has the control stream.
async fn open_session(
    hub: &Arc<Hub>,
    connection: &Connection,
    identity: &AgentIdentity,
    certificates: SessionCertificates,
    opened: &mut Option<(SendStream, FrameReceiver)>,
) -> Result<Session, SessionError> {
    let id: AgentId = identity.agent.parse().map_err(|_| SessionError::Close(CloseReason::UnknownAgent))?;
    let agent = enrolled_agent(hub, id).await?;
    let (control, frames, hello) = timeout(HELLO_LIMIT, read_hello(connection))
        .await
        .map_err(|_| SessionError::Close(CloseReason::TimedOut))??;
    check_bounds(&hello)?;
    let connection_info = ConnectionInfo {
        session: 0,
        at: hub.clock.now(),
        remote: connection.remote_address(),
        software: hello.software.clone(),
        boot: hello.boot,
        kinds: hello.kinds.iter().copied().map(shares::check_kind).collect(),
        faults: hello.faults.clone(),
    };
    if hub.agent(id).is_none() {
        hub.reload().await;
    }
    let Some(handle) = hub.connect(&agent, connection_info) else {
        // Revoked meanwhile, or the records could not be reloaded; in that case the agent must not be reported as
        // unknown.
        *opened = Some((control, frames));
        enrolled_agent(hub, id).await?;
        return Err(SessionError::Close(CloseReason::Internal));
    };
    let guard = SessionGuard { hub: Arc::clone(hub), agent: Arc::clone(&agent), number: handle.session };
    if let Some(until) = handle.shared_until {
        hub.update_record(id, IdentityChange::Suspended(Some(until))).await;
    }
    certificates.record_presented(hub, &agent).await;
    let connection = connection.clone();
    tokio::spawn(probe_requests::send_queued(Arc::clone(hub), Arc::clone(&agent), connection.clone(), handle.probes));
    if let Some(omitted) = hub.logs.admit((Some(agent.id), "connected")) {
        info!(agent = %agent.id, name = agent.name, software = hello.software, omitted, "agent connected");
    }
    Ok(Session {
        hub: Arc::clone(hub),
        agent,
        public_address: AgentPublicAddress::new(&connection),
        version: peer::mesh_version(&connection),
        connection,
        control,
        frames,
        agent_state: handle.agent_state,
        closing: handle.close,
        guard,
        hello,
        snapshots: 0,
        certificates,
        closes_at: None,
        fault_reports: FaultReportPacer::default(),
    })
}

/// Returns the agent's record if it may connect.
async fn enrolled_agent(hub: &Hub, id: AgentId) -> Result<Arc<AgentRecord>, SessionError> {
    match hub.members.agent(id).await {
        Ok(Some(agent)) if agent.revoked_at.is_none() => Ok(Arc::new(agent)),
        Ok(Some(_)) => Err(SessionError::Close(CloseReason::Revoked)),
        Ok(None) => Err(SessionError::Close(CloseReason::UnknownAgent)),
        Err(fault) => {
            error!(%fault, "an agent's record can't be read");
            Err(SessionError::Close(CloseReason::Internal))
        }
    }
}

impl Session {
    /// Serves the session until it ends, then unregisters it at once.
    async fn serve(mut self) -> SessionError {
        let (hub, agent) = (Arc::clone(&self.hub), Arc::clone(&self.agent));
        let mut closing = self.closing.clone();
        let stream = self.connection.clone();
        let (agent_state, results_closing) = (Arc::clone(&self.agent_state), self.closing.clone());
        let received = async {
            let stream = stream.accept_uni().await.map_err(|_| SessionError::Lost)?;
            results::receive(Arc::clone(&hub), Arc::clone(&agent), agent_state, results_closing, stream).await?;
            // The agent has ended its results stream but not the session.
            pending::<Result<(), SessionError>>().await
        };
        let ends = self.certificates.ends();
        tokio::select! {
            fault = self.run() => fault,
            Err(fault) = received => fault,
            reason = close_requested(&mut closing) => SessionError::Close(reason),
            () = wait_until_expired(&hub, &ends) => SessionError::Close(CloseReason::Expired),
        }
    }

    async fn run(&mut self) -> SessionError {
        match self.try_run().await {
            Ok(never) => match never {},
            Err(fault) => fault,
        }
    }

    async fn try_run(&mut self) -> Result<std::convert::Infallible, SessionError> {
        // If it was revoked between the look-up and the registration, no one else would close this connection.
        enrolled_agent(&self.hub, self.agent.id).await?;
        let mut schedule = self.hub.schedule.clone();
        let mut mesh = self.hub.mesh.subscribe();
        let mut trusted = self.hub.trust_changed.subscribe();
        let mut stepped = self.hub.clock_steps.subscribe();
        self.welcome().await?;
        // Before the schedule: the agent must know which addresses not to check before it checks.
        self.send_address().await?;
        self.send_authorities().await?;
        let current_version = ScheduleVersion {
            slot_epoch: self.hub.settings.slot_epoch,
            revision: self.agent_state.sent_schedule().revision(),
        };
        let (is_current, monotonic) = (self.hello.schedule == Some(current_version), self.hub.clock.monotonic());
        let has_same_epoch =
            self.hello.schedule.is_some_and(|version| version.slot_epoch == current_version.slot_epoch);
        self.agent_state.assignments().connect(has_same_epoch, monotonic);
        if is_current {
            self.agent_state.assignments().confirm(current_version.revision, monotonic);
        }
        self.send_schedule(!is_current).await?;
        let mut send_at: Option<Instant> = None;
        let mut tick = interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                frame = self.frames.next() => match frame? {
                    Some(frame) => self.handle_frame(frame).await?,
                    None => return Err(SessionError::Close(CloseReason::Done)),
                },
                () = self.agent_state.ack_due.notified() => self.acknowledge().await?,
                Ok(()) = schedule.changed() => { send_at.get_or_insert(Instant::now() + BATCH_DELAY); }
                Ok(()) = mesh.changed() => { send_at.get_or_insert(Instant::now() + BATCH_DELAY); }
                Ok(()) = trusted.changed() => self.send_authorities().await?,
                Ok(()) = stepped.changed() => self.send(&ToAgent::Time(self.time(TimeResponse::UNSOLICITED))).await?,
                () = until(send_at) => {
                    send_at = None;
                    self.send_schedule(false).await?;
                }
                // An acknowledgement may have been announced to a session that has since been replaced.
                _ = tick.tick() => {
                    self.hub.clock_steps.check(&self.hub.clock);
                    self.send_address().await?;
                    self.agent_state.assignments().expire(self.hub.clock.monotonic());
                    self.record_due_faults();
                    self.acknowledge().await?;
                }
                () = until(self.closes_at) => return Err(SessionError::Close(CloseReason::Done)),
            }
        }
    }

    async fn welcome(&mut self) -> Result<(), SessionError> {
        let marks = self.agent_state.ledger().begin_connection(&self.hello);
        let settings = &self.hub.settings;
        let welcome = Welcome {
            agent: wire_id::WireAgentId(self.agent.id.to_u128()),
            name: self.agent.name.clone(),
            region: convert::region(self.agent.region),
            network: self.agent.network.clone(),
            mesh: settings.name.clone(),
            software: settings.software.clone(),
            coordinator_ms: self.hub.clock.now().as_millis(),
            slot_epoch: settings.slot_epoch,
            watermarks: marks,
        };
        self.send(&ToAgent::Welcome(welcome)).await
    }

    async fn handle_frame(&mut self, frame: ToCoordinator) -> Result<(), SessionError> {
        match frame {
            ToCoordinator::Hello(_) => Err(SessionError::Close(CloseReason::OutOfOrder)),
            ToCoordinator::ScheduleApplied { slot_epoch, revision } => {
                if slot_epoch == self.hub.settings.slot_epoch {
                    self.agent_state.assignments().confirm(revision, self.hub.clock.monotonic());
                }
                debug!(agent = %self.agent.id, revision, "schedule in force");
                Ok(())
            }
            ToCoordinator::ScheduleMismatch { .. } => {
                self.snapshots += 1;
                if self.snapshots > MAX_SNAPSHOTS {
                    return Err(SessionError::Close(CloseReason::RateLimited));
                }
                self.send_schedule(true).await
            }
            ToCoordinator::TimeRequest { sent_us } => self.send(&ToAgent::Time(self.time(sent_us))).await,
            ToCoordinator::TimeReport(report) => {
                self.record_skew(report.skew_ms);
                Ok(())
            }
            ToCoordinator::Renew { csr_der } => self.renew(&csr_der).await,
            ToCoordinator::TrustReport(report) => self.handle_trust_report(report).await,
            ToCoordinator::Gap(gap) => self.handle_gap(gap).await,
            ToCoordinator::Fitness { faults } => {
                self.handle_faults(faults);
                Ok(())
            }
            ToCoordinator::Goodbye => {
                // Its rounds move to others at once; results in flight are still acknowledged.
                self.hub.disconnect(&self.agent, self.guard.number);
                self.closes_at = Some(Instant::now() + GOODBYE_GRACE);
                Ok(())
            }
        }
    }

    fn time(&self, echo_us: u64) -> TimeResponse {
        TimeResponse { echo_us, coordinator_ms: self.hub.clock.now().as_millis() }
    }

    /// Sends the difference to the agent's share, or the whole share.
    async fn send_schedule(&mut self, is_snapshot: bool) -> Result<(), SessionError> {
        let inputs = self.hub.share_inputs(self.agent.vantage_no);
        let difference = {
            let mut sent_schedule = self.agent_state.sent_schedule();
            let next = inputs.clone();
            let difference =
                if is_snapshot { Some(sent_schedule.snapshot(inputs)) } else { sent_schedule.update(inputs) };
            if let Some(difference) = &difference {
                self.agent_state.assignments().send(&next, difference.revision, self.hub.clock.monotonic());
            }
            difference
        };
        let (slot_epoch, accounts) = (self.hub.settings.slot_epoch, &self.hub.account_numbers);
        let change = difference.map(|difference| convert::schedule_change(slot_epoch, difference, accounts));
        let parts = change.map(|change| change.split()).transpose()?.unwrap_or_default();
        for change in parts {
            let frame = if self.version >= 2 {
                ToAgent::ScheduleByAccount { accounts: change.accounts(), change }
            } else {
                ToAgent::Schedule(change)
            };
            self.send(&frame).await?;
        }
        Ok(())
    }

    async fn acknowledge(&mut self) -> Result<(), SessionError> {
        // Only the newest session acknowledges.
        if self.closing.borrow().is_some() {
            return Ok(());
        }
        let due = self.agent_state.ledger().take_due_acks();
        for mark in due {
            self.send(&ToAgent::Ack(mark)).await?;
        }
        Ok(())
    }

    async fn send_address(&mut self) -> Result<(), SessionError> {
        match self.public_address.changed_frame(&self.connection) {
            Some(frame) => self.send(&frame).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, frame: &ToAgent) -> Result<(), SessionError> {
        wire::write(&mut self.control, frame, MAX_FRAME).await
    }
}

/// Waits until this connection is to be closed.
async fn close_requested(closing: &mut watch::Receiver<Option<CloseReason>>) -> CloseReason {
    match closing.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(reason)) => reason,
        // The session was unregistered without a close reason: after a goodbye. The rest of it ends by itself.
        Ok(None) | Err(_) => pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
