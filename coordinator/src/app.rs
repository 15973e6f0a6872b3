//! Builds every module, connects their channels, and stops them in order. The only file that knows them all.

mod after_restore;
mod background_tasks;
mod consumers;
mod error;
mod health_checks;
mod listeners;
mod mail;
mod metrics;
mod monitor_history;
mod options;
mod recovery_hint;
mod settings;
mod slot_epoch;
mod statistics;
pub mod store_maintenance;

use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use parallax_certs::files;
use parallax_certs::mesh_secret::MeshSecret;
use parallax_certs::rotation::AuthorityStore;
use parallax_core::quarantine::SuspectedVantages;
use parallax_core::time::SECOND;
use parallax_dial::OwnAddresses;
use tokio::sync::{mpsc, watch};

pub use self::error::AppError;
use self::listeners::Listeners;
use self::options::{KeyNeed, store_options};
use crate::admin;
use crate::clock::Clock;
use crate::config::CoordinatorConfig;
use crate::drain::Drain;
use crate::engine::counters::EngineCounters;
use crate::engine::driver::{Driver, DriverChannels};
use crate::engine::restore::VerdictSettings;
use crate::engine::shard::Shard;
use crate::engine::{Arrival, INBOX_DEPTH, PingIntake, ProbeDispatch};
use crate::history::History;
use crate::http;
use crate::members::MemberStore;
use crate::mesh::{self, Trust};
use crate::scheduler::Scheduler;
use crate::service::{ServiceParts, Services};
use crate::storage::{Store, StoreError};
use crate::supervisor::Supervisor;

/// Capacity of the channel of probe requests to the mesh.
const PROBE_REQUEST_QUEUE: usize = 16_384;
/// Capacity of the channel of state queries to the driver.
const QUERY_QUEUE: usize = 256;

/// Name of the store's folder.
const STORE: &str = "store";

/// A running coordinator.
pub struct RunningCoordinator {
    /// Address of the HTTP listener.
    pub http_addr: SocketAddr,
    /// Address of the HTTPS listener, if there is one.
    pub tls_addr: Option<SocketAddr>,
    /// Address of the mesh listener (UDP).
    pub mesh_addr: SocketAddr,
    /// Address of the health listener, if there is one.
    pub admin_addr: Option<SocketAddr>,
    /// Base URL of the dashboard, the API and pings, without a trailing slash.
    pub base_url: String,
    /// The operations that users and the operator can call.
    pub service: Arc<Services>,
    /// The mesh's members.
    pub members: MemberStore,
    /// Counters of the driver.
    pub driver_counters: Arc<EngineCounters>,
    drain: Drain,
}

impl RunningCoordinator {
    /// Waits until the coordinator has received the stop signal and stopped.
    ///
    /// # Errors
    /// [`AppError::PartEnded`] or [`AppError::TaskFailed`] if a part ended unexpectedly; the other parts are stopped then too.
    pub async fn wait(self) -> Result<(), AppError> {
        self.drain.run().await
    }
}

impl fmt::Debug for RunningCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCoordinator")
            .field("http", &self.http_addr)
            .field("mesh", &self.mesh_addr)
            .finish_non_exhaustive()
    }
}

/// The opened store with the operations that need nothing else, for commands while no coordinator runs.
#[derive(Debug)]
pub struct OfflineApp {
    /// The service; monitors' current states are unknown.
    pub service: Arc<Services>,
    /// The mesh's members.
    pub members: MemberStore,
    store: Store,
}

impl OfflineApp {
    /// Closes the store after all pending writes.
    pub async fn close(self) {
        self.store.close().await;
    }
}

/// Opens the store for a command, without listening anywhere.
///
/// # Errors
/// [`AppError`] if the data directory, the store or the authority can't be used; the store is locked while a
/// coordinator runs.
pub async fn open(config: &CoordinatorConfig) -> Result<OfflineApp, AppError> {
    let clock = Clock::system();
    let (store, authorities, secret) = match open_store(config, &clock).await {
        Ok(opened) => opened,
        Err(error) => return Err(with_recovery_hint(config.data.clone(), error).await),
    };
    let members = after_restore::open_members(config, &store, &clock, authorities).await?;
    let base_url = config.http.base_url.clone().unwrap_or_else(|| format!("http://{}", config.http.listen));
    let settings = settings::service_settings(config, base_url, &secret);
    let service = Services::new(ServiceParts::disconnected(store.clone(), clock, settings));
    Ok(OfflineApp { service, members, store })
}

/// Starts all parts in order of their dependencies.
///
/// # Errors
/// [`AppError`] if a part can't start; parts that were already started end when dropped.
pub async fn start(config: CoordinatorConfig, shutdown: watch::Receiver<bool>) -> Result<RunningCoordinator, AppError> {
    let data = config.data.clone();
    match start_parts(config, shutdown).await {
        Ok(running) => Ok(running),
        Err(error) => Err(with_recovery_hint(data, error).await),
    }
}

async fn start_parts(
    config: CoordinatorConfig,
    shutdown: watch::Receiver<bool>,
) -> Result<RunningCoordinator, AppError> {
    let clock = Clock::system();
    let watch = Supervisor::default();
    let (store, authorities, secret) = open_store(&config, &clock).await?;
    consumers::init_cursors(&store, clock.now()).await?;
    let trust = Trust::from(&authorities);
    let members = after_restore::open_members(&config, &store, &clock, authorities).await?;
    let history = Arc::new(rebuild_history(&store).await?);
    let judging = VerdictSettings { plan_limits: config.plans, confirmation: config.confirmation };
    let calendar = Scheduler::start_caught_up(store.clone(), clock.now()).await?;
    let driver = Driver::start(clock.clone(), store.clone(), Arc::clone(&history), judging, Shard::WHOLE).await?;

    let opened = Listeners::open(&config).await?;
    let (http_addr, tls_addr) = (opened.http_addr, opened.tls_addr);
    let socket = UdpSocket::bind(config.mesh.listen)
        .map_err(|source| listeners::listen_error("the mesh", config.mesh.listen, source))?;

    let (inbox, arrivals) = mpsc::channel::<Arrival>(INBOX_DEPTH);
    let (questions, asked) = mpsc::channel::<ProbeDispatch>(PROBE_REQUEST_QUEUE);
    let (queries, looked) = mpsc::channel(QUERY_QUEUE);
    let (schedules, schedule) = watch::channel(driver.schedule());
    let (suspects, suspected) = watch::channel(Arc::<SuspectedVantages>::default());
    let (stop_driver, driver_stops) = watch::channel(false);
    let (stop_doors, doors_stop) = watch::channel(false);

    let beats = PingIntake { inbox: inbox.clone(), tokens: driver.tokens() };
    let mesh = mesh::start(mesh::MeshParts {
        socket,
        trust,
        secret: secret.clone(),
        members: Arc::new(members.clone()),
        clock: clock.clone(),
        inbox,
        probes: asked,
        schedule,
        settings: mesh::MeshSettings {
            name: config.mesh.name.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            slot_epoch: slot_epoch::load_or_create(&store).await?,
            certificate_life: config.mesh.certificate_life,
            max_connections: config.mesh.max_agents,
        },
        supervisor: watch.clone(),
    })
    .await?;
    let mesh = Arc::new(mesh);
    let trusting = Arc::downgrade(&mesh);
    // After the mesh has stopped, there is nothing to update.
    members.connect_mesh(mesh.viewer(), move |trust| trusting.upgrade().map_or(Ok(()), |mesh| mesh.set_trust(trust)));
    let mesh_addr = mesh.address();
    let channels = DriverChannels {
        inbox: arrivals,
        queries: looked,
        probes: questions,
        schedules,
        suspects,
        shutdown: driver_stops,
    };
    let flow = driver.counters();
    let driver = tokio::spawn(driver.run(channels));

    let base_url = config.http.base_url.clone().unwrap_or_else(|| opened.base_url());
    let figures = statistics::HistoryStatistics::new(
        store.clone(),
        Arc::clone(&history),
        mesh.mesh(),
        judging,
        Box::new(mesh.viewer()),
    );
    let settings = settings::service_settings(&config, base_url.clone(), &secret);
    let service = Services::new(ServiceParts {
        store: store.clone(),
        clock: clock.clone(),
        queries,
        pings: beats,
        statistics: Arc::new(figures),
        txt_lookup: settings::txt_resolver(&config)?,
        certificate_problems: opened.certificate_problems(),
        settings: settings.clone(),
    });
    let wake = service.deliveries_due();
    let notices = settings::alert_destinations(&config, &settings.base_url);
    let reactions = consumers::start(&store, &clock, &settings, notices, &wake, &watch);
    let deliverer = settings::deliverer(&config, &store, &clock, &service)?;

    let context = Arc::new(http::HttpContext::new(service.clone(), config.http.requests_per_minute));
    let boards = context.page_cache().clone();
    let mut helpers = watch.task_group();
    let certificates = opened.certificates();
    let mut doors = opened.serve(&context, &clock, &doors_stop, &mut helpers).await?;
    let admin_listener = admin::socket::bind(&config.data).map_err(AppError::Admin)?;
    let operator = admin::OperatorCommands::new(service.clone(), members.clone());
    doors.push(tokio::spawn(admin::socket::serve(admin_listener, operator, doors_stop.clone())));
    let mut admin_addr = None;
    let (ready, is_ready) = watch::channel(false);
    if let Some(address) = config.admin.listen {
        let listener = listeners::bind("the admin address", address).await?;
        admin_addr = listener.local_addr().ok();
        let metrics = metrics::MetricSources {
            driver: Arc::clone(&flow),
            http: context,
            mesh: Arc::clone(mesh.counters()),
            agents: Box::new(mesh.viewer()),
            deliveries: deliverer.counters(),
            alerts: Arc::clone(&reactions.alerts),
            store: store.clone(),
            supervisor: watch.clone(),
        };
        let written = store.clone();
        let write_fault = Arc::new(move || written.write_fault().map(|fault| fault.to_string()));
        let answers = admin::admin_http::AdminSources {
            metrics: metrics.writer(),
            is_own_host: listeners::hostname_check(&service.hosts),
            write_fault,
        };
        let serving = admin::admin_http::serve(listener, is_ready, answers, doors_stop.clone());
        doors.push(tokio::spawn(serving));
    }

    let looked_at = health_checks::HealthSources {
        store: store.clone(),
        clock: clock.clone(),
        counters: Arc::clone(&flow),
        agents: Arc::new(mesh.viewer()),
        supervisor: watch.clone(),
        certificate_life: config.mesh.certificate_life,
        authority_expiry: Arc::new(members.authority_expiry()),
        certificates,
        own_addresses: (!config.deliver.allow_private).then(OwnAddresses::of_this_host),
    };
    background_tasks::start(
        &mut helpers,
        background_tasks::BackgroundTasks {
            store: store.clone(),
            clock,
            config,
            service: service.clone(),
            members: members.clone(),
            mesh: Arc::clone(&mesh),
            suspects: suspected,
            calendar,
            history,
            page_cache: boards,
            health_sources: looked_at,
        },
    );
    let deliverer = tokio::spawn(deliverer.run(doors_stop, watch.clone()));
    ready.send_replace(true);
    let drain = Drain {
        shutdown,
        stop_listeners: stop_doors,
        listeners: doors,
        supervisor: watch,
        background_tasks: helpers,
        mesh,
        stop_driver,
        driver,
        consumers: reactions.tasks,
        deliverer,
        store,
        ready,
    };
    Ok(RunningCoordinator {
        http_addr,
        tls_addr,
        mesh_addr,
        admin_addr,
        base_url,
        service,
        members,
        driver_counters: flow,
        drain,
    })
}

async fn open_store(
    config: &CoordinatorConfig,
    clock: &Clock,
) -> Result<(Store, AuthorityStore, MeshSecret), AppError> {
    let (data, options) = (config.data.clone(), store_options(config, KeyNeed::Read)?);
    let now = clock.now().as_millis().div_euclid(SECOND);
    let opened = tokio::task::spawn_blocking(move || -> Result<_, AppError> {
        files::ensure_private_folder(&data).map_err(|error| AppError::Data(error.to_string()))?;
        // The store first: its lock makes this process the only user of the directory.
        let store = Store::on_disk(&data.join(STORE), options)?;
        let authorities = AuthorityStore::open(&data, now)?;
        let secret = MeshSecret::open(&data).map_err(|error| AppError::Data(error.to_string()))?;
        Ok((store, authorities, secret))
    });
    opened.await.map_err(|error| AppError::Data(error.to_string()))?
}

/// Adds the remedy to an error that has one.
async fn with_recovery_hint(data: PathBuf, error: AppError) -> AppError {
    let explaining = tokio::task::spawn_blocking(move || recovery_hint::add_hint(&data, error));
    explaining.await.unwrap_or_else(|error| AppError::Data(error.to_string()))
}

async fn rebuild_history(store: &Store) -> Result<History, AppError> {
    let reader = Arc::clone(store.reader());
    let rebuilt = tokio::task::spawn_blocking(move || History::rebuild(reader.as_ref())).await;
    Ok(rebuilt.map_err(|error| StoreError::Io(error.to_string()))??)
}

#[cfg(test)]
mod tests;
