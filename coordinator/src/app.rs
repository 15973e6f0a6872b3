//! Builds every module, connects their channels, and stops them in order. The only file that knows them all.

mod beside;
mod book;
pub mod care;
mod doors;
mod figures;
mod mail;
mod metrics;
mod notices;
mod options;
mod outgoing;
mod past;
mod reactions;
mod rescue;
mod restored;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use parallax_certs::files;
use parallax_certs::rotation::Authorities;
use parallax_certs::secret::MeshSecret;
use parallax_core::quarantine::Suspects;
use parallax_core::time::SECOND;
use parallax_dial::OwnAddresses;
use tokio::sync::{mpsc, watch};

use self::doors::Doors;
use self::options::{Keys, store_options};
use crate::admin;
use crate::calendar::Calendar;
use crate::clock::Clock;
use crate::config::Config;
use crate::drain::Drain;
use crate::flow::counters::Counters;
use crate::flow::driver::{Channels, Driver};
use crate::flow::shard::Shard;
use crate::flow::warmup::Judging;
use crate::flow::{Arrival, Beats, INBOX_DEPTH, Question};
use crate::history::{self, History};
use crate::http;
use crate::members::Roll;
use crate::mesh::{self, Trust};
use crate::service::{self, Service};
use crate::storage::{Store, StoreError};
use crate::supervise::{Lost, Watch};

/// Capacity of the channel of probe requests to the mesh.
const QUESTIONS_WAITING: usize = 16_384;
/// Capacity of the channel of state queries to the driver.
const QUERIES_WAITING: usize = 256;

/// Name of the store's folder.
const STORE: &str = "store";

/// Reason why the coordinator can't start or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The data directory is unusable.
    #[error("the data directory can't be used: {0}")]
    Data(String),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key file for secrets is unusable.
    #[error("secrets_key_file can't be used: {0}")]
    SecretsKey(String),
    /// The store needs the operator's attention first.
    #[error("{found}\n{remedy}")]
    Rescue {
        /// The problem found.
        found: String,
        /// The remedy; its last indented line is a command.
        remedy: String,
    },
    /// The history in the store could not be read.
    #[error(transparent)]
    History(#[from] history::HistoryError),
    /// The mesh's authority could not be created or read.
    #[error("the mesh's authority can't be used: {0}")]
    Authority(#[from] parallax_certs::Error),
    /// An address could not be bound.
    #[error("can't listen on {address} for {what}: {source}")]
    Listen {
        /// Purpose of the listener.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The mesh could not start.
    #[error(transparent)]
    Mesh(#[from] mesh::MeshError),
    /// The admin socket could not be opened.
    #[error("the admin socket can't be used: {0}")]
    Admin(io::Error),
    /// The mail settings are unusable.
    #[error("[mail] can't be used: {0}")]
    Mail(String),
    /// The TLS settings are unusable.
    #[error("[tls] can't be used: {0}")]
    Tls(String),
    /// The settings for custom domains are unusable.
    #[error("[domains] can't be used: {0}")]
    Domains(String),
    /// Deliveries could not be set up.
    #[error(transparent)]
    Deliver(#[from] crate::deliver::DeliverError),
    /// A part ended that should run as long as the coordinator does.
    #[error("{0} ended unexpectedly; see the log")]
    Died(&'static str),
    /// A supervised task crashed too often, or can't be restarted.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A running coordinator.
pub struct Running {
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
    pub service: Service,
    /// The mesh's members.
    pub members: Roll,
    /// Counters of the driver.
    pub flow: Arc<Counters>,
    drain: Drain,
}

impl Running {
    /// Waits until the coordinator has received the stop signal and stopped.
    ///
    /// # Errors
    /// [`AppError::Died`] or [`AppError::Lost`] if a part ended unexpectedly; the other parts are stopped then too.
    pub async fn wait(self) -> Result<(), AppError> {
        self.drain.run().await
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("http", &self.http_addr)
            .field("mesh", &self.mesh_addr)
            .finish_non_exhaustive()
    }
}

/// The opened store with the operations that need nothing else, for commands while no coordinator runs.
#[derive(Debug)]
pub struct Opened {
    /// The service; monitors' current states are unknown.
    pub service: Service,
    /// The mesh's members.
    pub members: Roll,
    store: Store,
}

impl Opened {
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
pub async fn open(config: &Config) -> Result<Opened, AppError> {
    let clock = Clock::system();
    let (store, authorities, secret) = match open_store(config, &clock).await {
        Ok(opened) => opened,
        Err(error) => return Err(explained(config.data.clone(), error).await),
    };
    let members = restored::members(config, &store, &clock, authorities).await?;
    // The receiver is dropped: queries end at once, and states are unknown.
    let (queries, _) = mpsc::channel(1);
    let beats = service::beats::deaf();
    let base_url = config.http.base_url.clone().unwrap_or_else(|| format!("http://{}", config.http.listen));
    let settings = outgoing::service_settings(config, base_url, &secret);
    let service =
        Service::new(store.clone(), clock, queries, beats, Arc::new(service::figures::NoFigures), settings);
    Ok(Opened { service, members, store })
}

/// Starts all parts in order of their dependencies.
///
/// # Errors
/// [`AppError`] if a part can't start; parts that were already started end when dropped.
pub async fn start(config: Config, shutdown: watch::Receiver<bool>) -> Result<Running, AppError> {
    let data = config.data.clone();
    match begin(config, shutdown).await {
        Ok(running) => Ok(running),
        Err(error) => Err(explained(data, error).await),
    }
}

async fn begin(config: Config, shutdown: watch::Receiver<bool>) -> Result<Running, AppError> {
    let clock = Clock::system();
    let watch = Watch::default();
    let (store, authorities, secret) = open_store(&config, &clock).await?;
    reactions::begin(&store, clock.now()).await?;
    let trust = Trust::from(&authorities);
    let members = restored::members(&config, &store, &clock, authorities).await?;
    let history = Arc::new(rebuild_history(&store).await?);
    let judging = Judging { limits: config.plans, confirmation: config.confirmation };
    let calendar = Calendar::caught_up(store.clone(), clock.now()).await?;
    let driver =
        Driver::start(clock.clone(), store.clone(), Arc::clone(&history), judging, Shard::WHOLE).await?;

    let opened = Doors::open(&config).await?;
    let (http_addr, tls_addr) = (opened.http_addr, opened.tls_addr);
    let socket = UdpSocket::bind(config.mesh.listen)
        .map_err(|source| doors::listen("the mesh", config.mesh.listen, source))?;

    let (inbox, arrivals) = mpsc::channel::<Arrival>(INBOX_DEPTH);
    let (questions, asked) = mpsc::channel::<Question>(QUESTIONS_WAITING);
    let (queries, looked) = mpsc::channel(QUERIES_WAITING);
    let (schedules, schedule) = watch::channel(driver.schedule());
    let (suspects, suspected) = watch::channel(Arc::<Suspects>::default());
    let (stop_driver, driver_stops) = watch::channel(false);
    let (stop_doors, doors_stop) = watch::channel(false);

    let beats = Beats { inbox: inbox.clone(), tokens: driver.tokens() };
    let mesh = mesh::start(mesh::Parts {
        socket,
        trust,
        secret: secret.clone(),
        members: Arc::new(members.clone()),
        clock: clock.clone(),
        inbox,
        questions: asked,
        schedule,
        settings: mesh::Settings {
            name: config.mesh.name.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            book: book::of(&store).await?,
            certificate_life: config.mesh.certificate_life,
            max_connections: config.mesh.max_agents,
        },
        watch: watch.clone(),
    })
    .await?;
    let mesh = Arc::new(mesh);
    let trusting = Arc::downgrade(&mesh);
    // After the mesh has stopped, there is nothing to update.
    members.join_mesh(mesh.viewer(), move |trust| {
        trusting.upgrade().map_or(Ok(()), |mesh| mesh.set_trust(trust))
    });
    let mesh_addr = mesh.address();
    let channels =
        Channels { inbox: arrivals, queries: looked, questions, schedules, suspects, shutdown: driver_stops };
    let flow = driver.counters();
    let driver = tokio::spawn(driver.run(channels));

    let base_url = config.http.base_url.clone().unwrap_or_else(|| opened.base_url());
    let figures = figures::FromHistory::new(
        store.clone(),
        Arc::clone(&history),
        mesh.mesh(),
        judging,
        Box::new(mesh.viewer()),
    );
    let settings = outgoing::service_settings(&config, base_url.clone(), &secret);
    let service =
        Service::new(store.clone(), clock.clone(), queries, beats, Arc::new(figures), settings.clone());
    service.look_up_by(outgoing::records(&config)?);
    let wake = service.outgoing();
    let notices = outgoing::notices(&config, &settings.base_url);
    let reactions = reactions::start(&store, &clock, &settings, notices, &wake, &watch);
    let deliverer = outgoing::deliverer(&config, &store, &clock, &service)?;

    let context = Arc::new(http::Context::new(service.clone(), config.http.requests_per_minute));
    let boards = context.boards().clone();
    let mut helpers = watch.rooms();
    let certificates = opened.certificates();
    let mut doors = opened.serve(&context, &clock, &doors_stop, &mut helpers).await?;
    let admin_listener = admin::socket::bind(&config.data).map_err(AppError::Admin)?;
    let operator = admin::Operator::new(service.clone(), members.clone());
    doors.push(tokio::spawn(admin::socket::serve(admin_listener, operator, doors_stop.clone())));
    let mut admin_addr = None;
    let (ready, is_ready) = watch::channel(false);
    if let Some(address) = config.admin.listen {
        let listener = doors::bind("the admin address", address).await?;
        admin_addr = listener.local_addr().ok();
        let metrics = metrics::Sources {
            flow: Arc::clone(&flow),
            http: context,
            mesh: Arc::clone(mesh.counters()),
            agents: Box::new(mesh.viewer()),
            deliveries: deliverer.counters(),
            alerts: Arc::clone(&reactions.alerts),
            store: store.clone(),
            watch: watch.clone(),
        };
        let written = store.clone();
        let write_fault = Arc::new(move || written.write_fault().map(|fault| fault.to_string()));
        let answers =
            admin::health::Answers { metrics: metrics.writer(), ours: doors::ours(&service), write_fault };
        let serving = admin::health::serve(listener, is_ready, answers, doors_stop.clone());
        doors.push(tokio::spawn(serving));
    }

    let looked_at = notices::Sources {
        store: store.clone(),
        clock: clock.clone(),
        counters: Arc::clone(&flow),
        agents: Arc::new(mesh.viewer()),
        watch: watch.clone(),
        certificate_life: config.mesh.certificate_life,
        authority_ends: Arc::new(members.authority_ends()),
        certificates,
        own: (!config.deliver.allow_private).then(OwnAddresses::of_this_host),
    };
    beside::stand(
        &mut helpers,
        beside::Parts {
            store: store.clone(),
            clock,
            config,
            service: service.clone(),
            members: members.clone(),
            mesh: Arc::clone(&mesh),
            suspects: suspected,
            calendar,
            history,
            boards,
            looked_at,
        },
    );
    let deliverer = tokio::spawn(deliverer.run(doors_stop, watch.clone()));
    ready.send_replace(true);
    let drain = Drain {
        shutdown,
        stop_doors,
        doors,
        watch,
        helpers,
        mesh,
        stop_driver,
        driver,
        reactions: reactions.rooms,
        deliverer,
        store,
        ready,
    };
    Ok(Running { http_addr, tls_addr, mesh_addr, admin_addr, base_url, service, members, flow, drain })
}

async fn open_store(config: &Config, clock: &Clock) -> Result<(Store, Authorities, MeshSecret), AppError> {
    let (data, options) = (config.data.clone(), store_options(config, Keys::Read)?);
    let now = clock.now().as_millis().div_euclid(SECOND);
    let opened = tokio::task::spawn_blocking(move || -> Result<_, AppError> {
        files::private_folder(&data).map_err(|error| AppError::Data(error.to_string()))?;
        // The store first: its lock makes this process the only user of the directory.
        let store = Store::on_disk(&data.join(STORE), options)?;
        let authorities = Authorities::open(&data, now)?;
        let secret = MeshSecret::open(&data).map_err(|error| AppError::Data(error.to_string()))?;
        Ok((store, authorities, secret))
    });
    opened.await.map_err(|error| AppError::Data(error.to_string()))?
}

/// Adds the remedy to an error that has one.
async fn explained(data: PathBuf, error: AppError) -> AppError {
    let explaining = tokio::task::spawn_blocking(move || rescue::explain(&data, error));
    explaining.await.unwrap_or_else(|error| AppError::Data(error.to_string()))
}

async fn rebuild_history(store: &Store) -> Result<History, AppError> {
    let reader = Arc::clone(store.reader());
    let rebuilt = tokio::task::spawn_blocking(move || History::rebuild(reader.as_ref())).await;
    Ok(rebuilt.map_err(|error| StoreError::Io(error.to_string()))??)
}

#[cfg(test)]
mod tests;
