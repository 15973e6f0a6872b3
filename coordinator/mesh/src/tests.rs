//! Tests of the mesh over real QUIC on loopback, with hand-written agents.

mod assignments;
mod credentials;
mod hostile_bytes;
mod joining;
mod probe_requests;
mod results;
mod schedules;
mod sessions;
mod unknown_peers;
mod versions;
mod wrong_clocks;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Mutex;

use parallax_certs::authority::MeshAuthority;
use parallax_certs::certificate_fields::COORDINATOR_NAME;
use parallax_certs::credentials::Credentials;
use parallax_certs::csr::AgentKey;
use parallax_certs::issue::AGENT_VALIDITY;
use parallax_certs::server_verifier::CoordinatorTime;
use parallax_certs::tls::{agent_config, clock, join_config};
use parallax_certs::token::{JoinToken, JoinTokenId};
use parallax_certs::trust_roots::TrustRoots;
use parallax_core::assign::ScheduledMonitor;
use parallax_core::check::{Check, TcpCheck};
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::member::IdentityState;
use parallax_core::time::{DAY, SECOND};
use parallax_core::vantage::{NetworkNo, Region, VantageNo};
use parallax_engine::{INBOX_DEPTH, MonitorSchedule};
use parallax_protocol::fair_slots::MAX_PROBE_REQUESTS;
use parallax_protocol::frame::{MAX_FRAME, MAX_JOIN_FRAME};
use parallax_protocol::id::BootId;
use parallax_protocol::join::{JoinRequest, JoinResponse};
use parallax_protocol::message::{AgentHello, ScheduleVersion, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::text::SecretText;
use parallax_protocol::version::{JOIN_V1, MESH_V1};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, SendStream, TransportConfig};

use super::wire::{FrameReceiver, write};
use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const LIMIT: Duration = Duration::from_secs(30);
const BOOT: BootId = BootId(77);

/// The members' records in memory.
#[derive(Default)]
struct MemoryRecords {
    agents: Mutex<BTreeMap<AgentId, AgentRecord>>,
    invitations: Mutex<BTreeMap<InvitationId, Invitation>>,
    /// Agents that were removed.
    removed: Mutex<BTreeSet<AgentId>>,
}

impl MemberRecords for MemoryRecords {
    fn agents(&self) -> BoxFuture<'_, Result<Vec<AgentRecord>, RecordsError>> {
        Box::pin(async { Ok(self.agents.lock().unwrap().values().cloned().collect()) })
    }

    fn agent(&self, id: AgentId) -> BoxFuture<'_, Result<Option<AgentRecord>, RecordsError>> {
        Box::pin(async move { Ok(self.agents.lock().unwrap().get(&id).cloned()) })
    }

    fn is_removed(&self, id: AgentId) -> BoxFuture<'_, bool> {
        let is_removed = self.removed.lock().unwrap().contains(&id);
        Box::pin(async move { is_removed })
    }

    fn invitation(&self, id: InvitationId) -> BoxFuture<'_, Result<Option<Invitation>, RecordsError>> {
        Box::pin(async move { Ok(self.invitations.lock().unwrap().get(&id).cloned()) })
    }

    fn count_wrong_secret(&self, id: InvitationId) -> BoxFuture<'_, Result<(), RecordsError>> {
        self.invitations.lock().unwrap().get_mut(&id).unwrap().wrong_secrets += 1;
        Box::pin(async { Ok(()) })
    }

    fn enrol(
        &self,
        id: InvitationId,
        new_agent: NewAgent,
    ) -> BoxFuture<'_, Result<Result<AgentRecord, EnrolError>, RecordsError>> {
        Box::pin(async move {
            let mut invitations = self.invitations.lock().unwrap();
            let invitation = invitations.get_mut(&id).unwrap();
            if invitation.used_by.is_some() {
                return Ok(Err(EnrolError::Used));
            }
            invitation.used_by = Some(new_agent.id);
            let mut agents = self.agents.lock().unwrap();
            let no = u16::try_from(agents.len() + 1).unwrap();
            let agent = AgentRecord {
                id: new_agent.id,
                vantage_no: VantageNo(no),
                name: invitation.name.clone(),
                region: invitation.region,
                network: invitation.network.clone(),
                network_no: NetworkNo(no),
                joined_at: new_agent.joined_at,
                revoked_at: None,
                serial: new_agent.certificate.serial,
                identity: IdentityState { valid_from: new_agent.certificate.valid_from, ..IdentityState::default() },
            };
            agents.insert(agent.id, agent.clone());
            Ok(Ok(agent))
        })
    }

    fn update(&self, id: AgentId, change: IdentityChange) -> BoxFuture<'_, Result<IdentityUpdate, RecordsError>> {
        let update = self.agents.lock().unwrap().get_mut(&id).unwrap().apply(&change);
        Box::pin(async move { Ok(update) })
    }
}

/// A coordinator's mesh, with the channels that the rest of the coordinator would hold.
struct TestMesh {
    mesh: MeshHandle,
    roots: TrustRoots,
    key_hash: [u8; 32],
    records: Arc<MemoryRecords>,
    clock: Clock,
    inbox: mpsc::Receiver<Arrival>,
    probes: mpsc::Sender<ProbeDispatch>,
    schedule: watch::Sender<MonitorSchedule>,
    /// The same authority, for certificates that no test could get by joining.
    authority: MeshAuthority,
}

impl TestMesh {
    async fn start() -> Self {
        Self::with_authority(MeshAuthority::generate(NOW.as_millis() / SECOND).unwrap()).await
    }

    async fn with_authority(authority: MeshAuthority) -> Self {
        Self::with_certificate_life(authority, AGENT_VALIDITY).await
    }

    async fn with_certificate_life(authority: MeshAuthority, certificate_life: i64) -> Self {
        let (roots, key_hash) = (authority.roots().unwrap(), authority.key_hash());
        let records = Arc::new(MemoryRecords::default());
        let (inbox, arrivals) = mpsc::channel(INBOX_DEPTH);
        let (probes, probe_receiver) = mpsc::channel(64);
        let (schedule, scheduled) = watch::channel(MonitorSchedule::default());
        let clock = Clock::manual(NOW);
        let authority_copy = MeshAuthority::from_pem(&authority.to_pem()).unwrap();
        let mesh = start(MeshParts {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            trust: Trust::single(authority),
            secret: MeshSecret::random().unwrap(),
            members: Arc::clone(&records) as Arc<dyn MemberRecords>,
            clock: clock.clone(),
            inbox,
            probes: probe_receiver,
            schedule: scheduled,
            settings: MeshSettings {
                name: "test".to_owned(),
                software: "0.1.0".to_owned(),
                slot_epoch: 5,
                certificate_life,
                max_connections: 100,
            },
            supervisor: Supervisor::default(),
        })
        .await
        .unwrap();
        Self { mesh, roots, key_hash, records, clock, inbox: arrivals, probes, schedule, authority: authority_copy }
    }

    fn invite(&self, number: u128) -> JoinToken {
        let token = JoinToken::generate(JoinTokenId(number), self.key_hash).unwrap();
        let id = InvitationId::from_u128(number);
        let invitation = Invitation {
            id,
            secret_hash: token.secret.hash().0,
            name: format!("agent{number}"),
            region: Region::Europe,
            network: "AS64496".to_owned(),
            created_at: NOW,
            expires_at: NOW + DAY,
            wrong_secrets: 0,
            used_by: None,
            revoked_at: None,
        };
        self.records.invitations.lock().unwrap().insert(id, invitation);
        token
    }

    /// Changes the expiry of an invitation.
    fn set_expiry(&self, number: u128, at: Timestamp) {
        let id = InvitationId::from_u128(number);
        self.records.invitations.lock().unwrap().get_mut(&id).unwrap().expires_at = at;
    }

    /// Sends a join request with that token text.
    async fn join(&self, token: &str, key: &AgentKey) -> Result<JoinResponse, ConnectionError> {
        let config = join_config(self.key_hash, &[JOIN_V1], clock(|| NOW.as_millis() / SECOND)).unwrap();
        let connection = self.dial(config).await?;
        let (mut send, receive) = connection.open_bi().await?;
        let request = JoinRequest { token: SecretText::new(token), csr_der: key.request().unwrap() };
        write(&mut send, &request, MAX_JOIN_FRAME).await.unwrap();
        let response = FrameReceiver::new(receive, MAX_JOIN_FRAME).next().await;
        Ok(response.unwrap().expect("an answer"))
    }

    /// Joins with a new invitation of that number.
    async fn member(&self, number: u128) -> Member {
        let token = self.invite(number);
        let key = AgentKey::generate().unwrap();
        let JoinResponse::Enrolled(enrolment) = self.join(&token.expose(), &key).await.unwrap() else {
            panic!("refused");
        };
        let leaf = enrolment.certificates_der.into_iter().next().unwrap().into();
        Member { id: AgentId::from_u128(enrolment.agent.0), credentials: key.with_certificate(leaf).unwrap() }
    }

    async fn connect(&self, member: &Member) -> TestAgent {
        self.connect_with_schedule(member, None).await
    }

    async fn connect_with_schedule(&self, member: &Member, schedule: Option<ScheduleVersion>) -> TestAgent {
        self.connect_as(member, hello(schedule)).await
    }

    async fn connect_as(&self, member: &Member, hello: AgentHello) -> TestAgent {
        TestAgent::open_session(self.dial_mesh(&member.credentials).await.unwrap(), hello).await
    }

    async fn connect_trusting(&self, member: &Member, roots: &TrustRoots) -> TestAgent {
        let now = clock(|| NOW.as_millis() / SECOND);
        let config = agent_config(&member.credentials, roots, &[MESH_V1], now, CoordinatorTime::new(None)).unwrap();
        TestAgent::open_session(self.dial(config).await.unwrap(), hello(None)).await
    }

    async fn dial_mesh(&self, credentials: &Credentials) -> Result<Connection, ConnectionError> {
        let now = clock(|| NOW.as_millis() / SECOND);
        let config = agent_config(credentials, &self.roots, &[MESH_V1], now, CoordinatorTime::new(None)).unwrap();
        self.dial(config).await
    }

    async fn dial(&self, config: rustls::ClientConfig) -> Result<Connection, ConnectionError> {
        let crypto = QuicClientConfig::try_from(config).unwrap();
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(MAX_PROBE_REQUESTS));
        config.transport_config(Arc::new(transport));
        endpoint.connect_with(config, self.mesh.address(), COORDINATOR_NAME).unwrap().await
    }

    /// Returns the next arrival other than a change of the mesh.
    async fn arrival(&mut self) -> Arrival {
        loop {
            let arrival = timeout(LIMIT, self.inbox.recv()).await.expect("in time").unwrap();
            if !matches!(arrival, Arrival::MeshChanged(_) | Arrival::CapabilitiesChanged(_)) {
                return arrival;
            }
        }
    }

    async fn batch(&mut self) -> parallax_engine::ObservationBatch {
        match self.arrival().await {
            Arrival::Results(batch) => batch,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the vantage is connected, or disconnected, in the mesh.
    async fn wait_connected(&self, vantage_no: u16, connected: bool) {
        let mut mesh = self.mesh.mesh();
        let has_state = |mesh: &Arc<Mesh>| {
            mesh.vantage(VantageNo(vantage_no)).is_some_and(|vantage| vantage.connected == connected)
        };
        timeout(LIMIT, mesh.wait_for(has_state)).await.expect("in time").unwrap();
    }

    fn schedule(&self, monitors: impl IntoIterator<Item = ScheduledMonitor>) {
        self.schedule.send_modify(|schedule| {
            let slots: Vec<u32> = schedule.iter().map(|monitor| monitor.slot).collect();
            let monitors: Vec<ScheduledMonitor> = monitors.into_iter().collect();
            for slot in slots.into_iter().filter(|slot| monitors.iter().all(|monitor| monitor.slot != *slot)) {
                schedule.remove(slot);
            }
            for monitor in monitors {
                schedule.put(monitor);
            }
        });
    }
}

/// An enrolled host.
struct Member {
    id: AgentId,
    credentials: Credentials,
}

/// An agent's end of a connection.
struct TestAgent {
    connection: Connection,
    control: SendStream,
    frames: FrameReceiver,
    welcome: Welcome,
}

impl TestAgent {
    async fn open_session(connection: Connection, hello: AgentHello) -> Self {
        let (mut control, receive) = connection.open_bi().await.unwrap();
        write(&mut control, &ToCoordinator::Hello(hello), MAX_FRAME).await.unwrap();
        let mut frames = FrameReceiver::new(receive, MAX_FRAME);
        let Some(ToAgent::Welcome(welcome)) = frames.next().await.unwrap() else { panic!("no welcome") };
        Self { connection, control, frames, welcome }
    }

    async fn send(&mut self, frame: &ToCoordinator) {
        write(&mut self.control, frame, MAX_FRAME).await.unwrap();
    }

    async fn next_frame(&mut self) -> ToAgent {
        timeout(LIMIT, self.frames.next()).await.expect("in time").unwrap().unwrap()
    }

    /// Returns the next frame other than an authorities frame.
    async fn next_work_frame(&mut self) -> ToAgent {
        loop {
            let frame = self.next_frame().await;
            if !matches!(frame, ToAgent::Authorities(_) | ToAgent::ExternalAddress(_)) {
                return frame;
            }
        }
    }

    /// Returns the next frame other than an authorities or schedule frame.
    async fn next_reply(&mut self) -> ToAgent {
        loop {
            let frame = self.next_frame().await;
            if !matches!(frame, ToAgent::Schedule(_) | ToAgent::Authorities(_)) {
                return frame;
            }
        }
    }
}

fn hello(schedule: Option<ScheduleVersion>) -> AgentHello {
    AgentHello {
        software: "0.1.0".to_owned(),
        boot: BOOT,
        earlier_boots: Vec::new(),
        schedule,
        wall_ms: NOW.as_millis(),
        kinds: Vec::new(),
        faults: Vec::new(),
        certificate_ends_ms: 0,
    }
}

fn monitor(slot: u32, revision: u32) -> ScheduledMonitor {
    ScheduledMonitor {
        monitor: MonitorId::from_u128(u128::from(slot) + 1_000),
        account: AccountId::from_u128(1),
        slot,
        revision,
        check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
        interval_ms: 60_000,
        pinned: None,
    }
}

/// Waits for the coordinator to close a connection and returns the reason.
async fn closed(connection: &Connection) -> CloseReason {
    match timeout(LIMIT, connection.closed()).await.expect("in time") {
        ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()).unwrap(),
        other => panic!("{other}"),
    }
}
