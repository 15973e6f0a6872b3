//! Builds every module, connects their channels, and stops them in order. The only file that knows them all.

mod after_restore;
mod background_tasks;
mod consumers;
mod error;
mod health_checks;
mod installation;
mod listeners;
mod mail;
mod mesh_administration;
mod metrics;
mod monitor_history;
mod notifications;
mod options;
mod pipeline;
mod recovery_hint;
mod settings;
mod slot_epoch;
mod statistics;
mod store;
pub mod store_maintenance;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use parallax_dial::OwnAddresses;
use parallax_engine::counters::EngineCounters;
use parallax_mesh::members::MemberStore;
use parallax_runtime::clock::Clock;
use parallax_runtime::supervisor::Supervisor;
use parallax_service::{ServiceParts, Services};
use parallax_store::Store;
use parallax_store::snapshots::SnapshotFolder;
use parallax_web::http;
use tokio::sync::watch;

pub use self::error::AppError;
use self::listeners::{BoundListeners, ListenerSources};
use self::pipeline::PipelineInputs;
use self::recovery_hint::RecoveryHint;
use self::store::StoredState;
use crate::config::CoordinatorConfig;
use crate::shutdown::ShutdownSequence;

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
    shutdown: ShutdownSequence,
}

impl RunningCoordinator {
    /// Waits until the coordinator has received the stop signal and stopped.
    ///
    /// # Errors
    /// [`AppError::PartEnded`] or [`AppError::TaskFailed`] if a part ended unexpectedly; the other parts are stopped
    /// then too.
    pub async fn wait(self) -> Result<(), AppError> {
        self.shutdown.run().await
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
    /// Returns the store, for records that no operation of the service makes.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

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
    let (store, authorities, secret) = match store::open(config, &clock).await {
        Ok(opened) => opened,
        Err(error) => return Err(with_recovery_hint(RecoveryHint::of(config), error).await),
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
    let hint = RecoveryHint::of(&config);
    match start_parts(config, shutdown).await {
        Ok(running) => Ok(running),
        Err(error) => Err(with_recovery_hint(hint, error).await),
    }
}

/// Inputs of every start function.
struct StartContext {
    config: CoordinatorConfig,
    clock: Clock,
    supervisor: Supervisor,
}

async fn start_parts(
    config: CoordinatorConfig,
    shutdown: watch::Receiver<bool>,
) -> Result<RunningCoordinator, AppError> {
    let context = StartContext { config, clock: Clock::system(), supervisor: Supervisor::default() };
    let StoredState { store, secret, trust, members, history, scheduler, driver } = store::start(&context).await?;
    // Bound before the mesh starts, so that an address in use ends the start before an agent connects.
    let bound = BoundListeners::open(&context.config).await?;
    let (http_addr, tls_addr, certificates) = (bound.http_addr, bound.tls_addr, bound.certificates());
    let pipeline = pipeline::start(&context, &store, &secret, PipelineInputs { trust, members, driver }).await?;

    let base_url = context.config.http.base_url.clone().unwrap_or_else(|| bound.base_url());
    let settings = settings::service_settings(&context.config, base_url.clone(), &secret);
    let statistics = statistics::HistoryStatistics::new(
        store.clone(),
        Arc::clone(&history),
        pipeline.mesh.mesh(),
        settings::verdict_settings(&context.config),
        Box::new(pipeline.mesh.viewer()),
    );
    let (queries, pings) = (pipeline.queries.clone(), pipeline.pings.clone());
    let service = Services::new(ServiceParts {
        store: store.clone(),
        clock: context.clock.clone(),
        queries,
        pings,
        statistics: Arc::new(statistics),
        mesh: Arc::new(mesh_administration::MemberAdministration {
            members: pipeline.members.clone(),
            mesh: pipeline.mesh.mesh(),
            confirmation: settings::verdict_settings(&context.config).confirmation,
            counters: Arc::clone(&pipeline.counters),
            clock: context.clock.clone(),
            certificate_life: context.config.mesh.certificate_life,
            port: pipeline.mesh.address().port(),
            installation: installation::InstallationSources {
                store: store.clone(),
                snapshots: SnapshotFolder::of(&context.config.data.join(STORE)),
                started: context.clock.now(),
                authority_expiry: Box::new(pipeline.members.authority_expiry()),
            },
        }),
        txt_lookup: settings::txt_resolver(&context.config)?,
        provider_client: Some(settings::provider_client(&context.config)?),
        certificate_problems: bound.certificate_problems(),
        settings: settings.clone(),
    });

    let notifications = notifications::start(&context, &store, &settings, &service)?;
    let http = Arc::new(http::HttpContext::new(service.clone(), context.config.http.requests_per_minute));
    let page_cache = http.page_cache().clone();
    let mut background_tasks = context.supervisor.task_group();
    let sources =
        ListenerSources { http, store: &store, service: &service, pipeline: &pipeline, notifications: &notifications };
    let listeners = listeners::start(&context, bound, sources, &mut background_tasks).await?;

    let health_sources = health_checks::HealthSources {
        store: store.clone(),
        clock: context.clock.clone(),
        counters: Arc::clone(&pipeline.counters),
        agents: Arc::new(pipeline.mesh.viewer()),
        supervisor: context.supervisor.clone(),
        certificate_life: context.config.mesh.certificate_life,
        authority_expiry: Arc::new(pipeline.members.authority_expiry()),
        certificates,
        own_addresses: (!context.config.deliver.allow_private).then(OwnAddresses::of_this_host),
    };
    background_tasks::start(
        &mut background_tasks,
        background_tasks::BackgroundTasks {
            store: store.clone(),
            clock: context.clock,
            config: context.config,
            service: service.clone(),
            members: pipeline.members.clone(),
            mesh: Arc::clone(&pipeline.mesh),
            suspects: pipeline.suspects,
            scheduler,
            history,
            page_cache,
            health_sources,
        },
    );
    let stopping = listeners.stop.subscribe();
    let deliverer = tokio::spawn(notifications.deliverer.run(stopping, context.supervisor.clone()));
    listeners.ready.send_replace(true);
    Ok(RunningCoordinator {
        http_addr,
        tls_addr,
        mesh_addr: pipeline.mesh.address(),
        admin_addr: listeners.admin_addr,
        base_url,
        service,
        members: pipeline.members,
        driver_counters: pipeline.counters,
        shutdown: ShutdownSequence {
            shutdown,
            stop_listeners: listeners.stop,
            listeners: listeners.tasks,
            supervisor: context.supervisor,
            background_tasks,
            mesh: pipeline.mesh,
            stop_driver: pipeline.stop_driver,
            driver: pipeline.driver,
            consumers: notifications.consumers.tasks,
            deliverer,
            store,
            ready: listeners.ready,
        },
    })
}

/// Adds the remedy to an error that has one.
async fn with_recovery_hint(hint: RecoveryHint, error: AppError) -> AppError {
    let explaining = tokio::task::spawn_blocking(move || hint.add(error));
    explaining.await.unwrap_or_else(|error| AppError::Data(error.to_string()))
}

#[cfg(test)]
mod tests;
