//! Starts the mesh and the driver, and connects them by their channels.

use std::net::UdpSocket;
use std::sync::Arc;

use parallax_certs::mesh_secret::MeshSecret;
use parallax_core::quarantine::SuspectedVantages;
use parallax_engine::counters::EngineCounters;
use parallax_engine::driver::{Driver, DriverChannels};
use parallax_engine::{Arrival, INBOX_DEPTH, MachineQuerySender, PingIntake, ProbeDispatch};
use parallax_mesh::members::MemberStore;
use parallax_mesh::{self as mesh, MeshHandle, Trust};
use parallax_store::Store;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{AppError, StartContext, slot_epoch};

/// Capacity of the channel of probe requests to the mesh.
const PROBE_REQUEST_QUEUE: usize = 16_384;
/// Capacity of the channel of state queries to the driver.
const QUERY_QUEUE: usize = 256;

/// Parts restored from the store that the pipeline takes over.
pub(super) struct PipelineInputs {
    pub(super) trust: Trust,
    pub(super) members: MemberStore,
    pub(super) driver: Driver,
}

/// The running mesh and driver, with the ends of their channels that other parts use.
pub(super) struct Pipeline {
    pub(super) mesh: Arc<MeshHandle>,
    /// The members' records, connected to the mesh.
    pub(super) members: MemberStore,
    pub(super) queries: MachineQuerySender,
    pub(super) pings: PingIntake,
    pub(super) suspects: watch::Receiver<Arc<SuspectedVantages>>,
    pub(super) counters: Arc<EngineCounters>,
    pub(super) driver: JoinHandle<()>,
    pub(super) stop_driver: watch::Sender<bool>,
}

/// Binds the mesh's address, and starts the mesh and the driver.
pub(super) async fn start(
    context: &StartContext,
    store: &Store,
    secret: &MeshSecret,
    inputs: PipelineInputs,
) -> Result<Pipeline, AppError> {
    let StartContext { config, clock, supervisor } = context;
    let PipelineInputs { trust, members, driver } = inputs;
    let socket = UdpSocket::bind(config.mesh.listen)
        .map_err(|source| AppError::listen("the mesh", config.mesh.listen, source))?;
    let (inbox, arrivals) = mpsc::channel::<Arrival>(INBOX_DEPTH);
    let (probe_sender, probes) = mpsc::channel::<ProbeDispatch>(PROBE_REQUEST_QUEUE);
    let (query_sender, queries) = mpsc::channel(QUERY_QUEUE);
    let (schedules, schedule) = watch::channel(driver.schedule());
    let (suspect_sender, suspects) = watch::channel(Arc::<SuspectedVantages>::default());
    let (stop_driver, shutdown) = watch::channel(false);

    let pings = PingIntake { inbox: inbox.clone(), tokens: driver.tokens() };
    let parts = mesh::MeshParts {
        socket,
        trust,
        secret: secret.clone(),
        members: Arc::new(members.clone()),
        clock: clock.clone(),
        inbox,
        probes,
        schedule,
        settings: mesh::MeshSettings {
            name: config.mesh.name.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            slot_epoch: slot_epoch::load_or_create(store).await?,
            certificate_life: config.mesh.certificate_life,
            max_connections: config.mesh.max_agents,
        },
        supervisor: supervisor.clone(),
    };
    let mesh = Arc::new(mesh::start(parts).await?);
    let trusting = Arc::downgrade(&mesh);
    // After the mesh has stopped, there is nothing to update.
    let set_trust = move |trust| trusting.upgrade().map_or(Ok(()), |mesh: Arc<MeshHandle>| mesh.set_trust(trust));
    let members = members.connected_to_mesh(mesh.viewer(), set_trust);
    let counters = driver.counters();
    let channels = DriverChannels {
        inbox: arrivals,
        queries,
        probes: probe_sender,
        schedules,
        suspects: suspect_sender,
        shutdown,
    };
    let driver = tokio::spawn(driver.run(channels));
    Ok(Pipeline { mesh, members, queries: query_sender, pings, suspects, counters, driver, stop_driver })
}
