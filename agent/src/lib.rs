//! An agent: runs checks from one vantage and streams their results to the coordinator.
//!
//! [`AgentRuntime`] is a whole agent; the coordinator's trial mode runs several in one process, each with its own
//! data folder and source address. The modules, in the order of the data flow: [`schedule`] decides which
//! checks are due, the runner starts them, [`probe`] runs them, [`outbox`] numbers the results, [`spool`]
//! stores those that the coordinator has not acknowledged on disk, and the session sends them. No module here
//! judges a monitor.

pub mod backoff;
pub mod check_attempt;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connection;
mod console;
mod context;
pub mod data_folder;
pub mod departure;
pub mod detail_sampling;
pub mod error;
pub mod join;
mod membership_end;
pub mod outbox;
mod own_addresses;
pub mod probe;
pub mod queue;
pub mod readiness;
mod runner;
pub mod schedule;
mod service_manager;
mod session;
pub mod spool;
pub mod status;
mod wire;

use crate::backoff::Backoff;
use crate::clock::AgentClock;
use crate::config::{AgentConfig, NameServers};
use crate::context::{AgentContext, lock};
use crate::data_folder::DataFolder;
use crate::departure::Departure;
use crate::error::AgentError;
use crate::probe::Probes;
use crate::queue::ResultQueue;
use crate::spool::Spool;
use futures_util::future::BoxFuture;
use parallax_certs::{random, tls};
use parallax_dial::{DialGuard, DnsResolver, ResolverSetupError};
use parallax_protocol::close::CloseReason;
use parallax_protocol::id::BootId;
use parallax_protocol::version::SUPPORTED_MESH_VERSIONS;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, timeout};

/// Interval at which unsaved results and schedule changes are written to disk.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the status file, in multiples of [`SAVE_INTERVAL`].
const STATUS_EVERY: u32 = 5;

/// Lifetime after which a connection counts as stable: the next attempt waits the shortest time.
const STABLE_AFTER: Duration = Duration::from_secs(30);

/// Time for a connection to end after its results are flushed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

/// An enrolled agent, with its identity and its spool open.
#[derive(Debug)]
pub struct AgentRuntime(Arc<AgentContext>);

impl AgentRuntime {
    /// Opens the folder of an enrolled agent.
    ///
    /// # Errors
    /// [`AgentError`] if the folder, the identity or the probes are unusable.
    pub fn open(config: AgentConfig) -> Result<Self, AgentError> {
        Ok(Self(Arc::new(open(config)?)))
    }

    /// Returns the agent's name, region and network, in words.
    pub fn identity(&self) -> String {
        let record = &self.0.membership().record;
        format!("{} ({}, {})", record.name, record.region, record.network)
    }

    /// Returns a reader of the runner's loop count, which grows as long as checks can be started.
    pub fn runner_loop_count(&self) -> impl Fn() -> u64 + Send + 'static {
        let shared = Arc::clone(&self.0);
        move || shared.counters.runner_loops.load(Ordering::Relaxed)
    }

    /// Runs until `shutdown` resolves; then waits for running checks, flushes results, and says goodbye to
    /// the coordinator. Dropping the future stops everything at once.
    ///
    /// # Errors
    /// [`AgentError`] if a task crashed. An unreachable coordinator is not an error: the agent continues with its
    /// schedule and reconnects.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
        start_tasks(self.0, Box::pin(shutdown)).await
    }
}

/// Opens an agent and runs it: see [`AgentRuntime`].
///
/// # Errors
/// As for [`AgentRuntime::open`] and [`AgentRuntime::run`].
pub async fn run(config: AgentConfig, shutdown: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
    AgentRuntime::open(config)?.run(shutdown).await
}

/// Boxed, so that the code of all tasks is generated and optimized here and not in the crate that polls it (decision 107).
fn start_tasks<'a>(shared: Arc<AgentContext>, shutdown: BoxFuture<'a, ()>) -> BoxFuture<'a, Result<(), AgentError>> {
    Box::pin(run_tasks(shared, shutdown))
}

async fn run_tasks(shared: Arc<AgentContext>, shutdown: BoxFuture<'_, ()>) -> Result<(), AgentError> {
    let (stop, stopping) = watch::channel(false);
    let (drain, drained) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(readiness::check_periodically(Arc::clone(&shared)));
    tasks.spawn(save_periodically(Arc::clone(&shared)));
    let mut runner = JoinSet::new();
    runner.spawn(runner::run(Arc::clone(&shared), stopping.clone()));
    let mut connection = JoinSet::new();
    connection.spawn(stay_connected(Arc::clone(&shared), stopping, drained));
    // Tasks end only after the stop, or with a departure; any other end is a panic.
    let died = tokio::select! {
        () = shutdown => Ok(None),
        _ = runner.join_next() => Ok(Some("the runner")),
        ended = connection.join_next() => match ended {
            Some(Ok(Some(departure))) => Err(departure),
            _ => Ok(Some("the connection task")),
        },
        _ = tasks.join_next() => Ok(Some("the task for status, schedule and readiness")),
        () = membership_end::until_expired(&shared) => Err(Departure::Expired),
    };
    let died = match died {
        Ok(died) => died,
        Err(departure) => {
            tracing::error!("{departure}");
            runner.shutdown().await;
            tasks.shutdown().await;
            connection.shutdown().await;
            return Err(membership_end::erase(&shared, departure));
        }
    };
    match died {
        None => tracing::info!("shutting down"),
        Some(part) => tracing::error!("{part} crashed; exiting to be restarted by the service manager"),
    }
    stop.send_replace(true);
    while runner.join_next().await.is_some() {}
    drain.send_replace(true);
    let mut departure = None;
    let farewell = async {
        while let Some(ended) = connection.join_next().await {
            departure = ended.ok().flatten();
        }
    };
    if timeout(CLOSE_TIMEOUT, farewell).await.is_err() {
        tracing::warn!("the connection did not close in time");
    }
    tasks.shutdown().await;
    connection.shutdown().await;
    if let Some(departure) = departure {
        return Err(membership_end::erase(&shared, departure));
    }
    save_at_shutdown(&shared);
    died.map_or(Ok(()), |part| Err(AgentError::TaskCrashed(part)))
}

/// Creates the probes from this configuration.
///
/// # Errors
/// [`AgentError::Probes`] if resolver or roots cannot be set up.
pub fn probes(config: &AgentConfig) -> Result<Probes, AgentError> {
    let fault = |error: &dyn std::error::Error| AgentError::Probes(error.to_string());
    let alive = |resolver: Result<DnsResolver, ResolverSetupError>| -> Result<DnsResolver, AgentError> {
        let resolver = resolver.map_err(|error| fault(&error))?;
        Ok(match config.resolver_zones.as_slice() {
            [] => resolver,
            zones => resolver.with_liveness_zones(zones),
        })
    };
    let resolver = alive(match &config.resolvers {
        NameServers::Servers(servers) => DnsResolver::with_servers(servers),
        NameServers::Public => config::public_resolver(),
        NameServers::Unset | NameServers::System => DnsResolver::system(),
    })?;
    let mut guard = DialGuard::new(resolver, config.policy());
    if config.uses_public_record_resolvers() {
        guard = guard.with_record_resolver(alive(config::public_resolver())?);
    }
    let roots = probe::roots(&config.trust).map_err(|error| fault(&error))?;
    let probes = Probes::new(guard, roots).map_err(|error| fault(&error))?;
    Ok(match &config.rdap {
        Some(base) => probes.with_rdap(base),
        None => probes.with_bootstrap(config.rdap_bootstrap.as_ref(), config.data.join("rdap.json")),
    })
}

fn open(config: AgentConfig) -> Result<AgentContext, AgentError> {
    let data_folder = DataFolder::open(&config.data)?.with_key_file(config.secrets_key_file.as_deref())?;
    let membership = data_folder.membership()?;
    let probes = probes(&config)?;
    let clock = AgentClock::new(membership.record.skew_ms);
    own_addresses::restore(
        probes.guard().own_addresses(),
        &membership.record,
        config.coordinator.as_deref(),
        clock.wall_ms(),
    );
    let spool = Spool::open(&data_folder.spool_folder(), config.spool_bytes)?;
    if spool.damaged() > 0 {
        tracing::warn!(segments = spool.damaged(), "some results on disk are damaged; the readable ones are kept");
    }
    let schedule = data_folder.load_schedule();
    if let Err(error) = data_folder.reseal_schedule(schedule.as_ref()) {
        tracing::error!(%error, "the schedule on disk could not be encrypted with the current key");
    }
    let mut boot = [0; 8];
    random::fill_random(&mut boot)?;
    let queue = ResultQueue::new(BootId(u64::from_le_bytes(boot)), spool, clock.clone());
    let shared = AgentContext::new(config, clock, data_folder, probes, membership, queue);
    if membership_end::has_expired(&shared) {
        shared.data_folder.delete_schedule()?;
        tracing::warn!(
            "the certificate has expired by this host's clock: checks are suspended until the coordinator is reached"
        );
    } else if let Some(stored) = schedule {
        let mut schedule = shared.schedule();
        // A snapshot applies to every schedule.
        let _ = schedule.apply(stored, shared.clock.coordinator_ms());
        tracing::info!(monitors = schedule.len(), "starting with the schedule on disk");
    }
    Ok(shared)
}

/// Connects, serves the connection, and reconnects, until the stop or the end of the membership.
async fn stay_connected(
    shared: Arc<AgentContext>,
    mut stopping: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
) -> Option<Departure> {
    let seed = shared.queue().boot().0;
    let mut backoff = Backoff::new(seed);
    let mut last_fault = String::new();
    loop {
        let dialled = tokio::select! {
            _ = stopping.wait_for(|&stopped| stopped) => return None,
            dialled = dial(&shared) => dialled,
        };
        let reason = match dialled {
            Ok(link) => {
                let started = Instant::now();
                let ended = session::run(&shared, &link, stopping.clone(), drained.clone()).await;
                if ended.departure.is_some() {
                    return ended.departure;
                }
                // During a shutdown, an end by the coordinator is not worth a log line.
                if ended.stopped || *stopping.borrow() {
                    return None;
                }
                if started.elapsed() >= STABLE_AFTER {
                    backoff.reset();
                }
                if ended.welcomed {
                    last_fault.clear();
                }
                record_connection_error(
                    &shared,
                    &mut last_fault,
                    ended.reason.map_or("connection lost".into(), |reason| reason.to_string()),
                );
                ended.reason
            }
            Err(AgentError::Refused(reason)) => {
                record_connection_error(&shared, &mut last_fault, reason.to_string());
                Some(reason)
            }
            Err(error) => {
                record_connection_error(&shared, &mut last_fault, error.to_string());
                None
            }
        };
        let wait =
            if reason.is_some_and(CloseReason::is_permanent) { backoff.permanent_wait() } else { backoff.next_wait() };
        tokio::select! {
            _ = stopping.wait_for(|&stopped| stopped) => return None,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn dial(shared: &AgentContext) -> Result<connection::CoordinatorConnection, AgentError> {
    let (tls, coordinator) = {
        let membership = shared.membership();
        let clock = join::wall_clock(&shared.clock);
        let known = Arc::clone(&shared.coordinator_time);
        let tls = tls::agent_config(&membership.credentials, &membership.roots, SUPPORTED_MESH_VERSIONS, clock, known)?;
        let coordinator = shared.config.coordinator.as_ref().unwrap_or(&membership.record.coordinator);
        (tls, coordinator.clone())
    };
    let own = shared.probes.guard().own_addresses();
    connection::dial(&coordinator, shared.config.source, tls, |found| own.add_coordinator(found)).await
}

/// Records a connection error for the status, and logs it once, not at every attempt.
fn record_connection_error(shared: &AgentContext, last: &mut String, fault: String) {
    lock(&shared.connection_error).clone_from(&fault);
    if *last != fault {
        tracing::warn!(fault, "not connected; checks continue and results are stored");
        *last = fault;
    }
}

/// Periodically saves the state that should outlive this process.
async fn save_periodically(shared: Arc<AgentContext>) {
    let mut tick = tokio::time::interval(SAVE_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut saved_version = shared.schedule().version();
    let mut shown_connected = false;
    for turn in 0u32.. {
        tick.tick().await;
        let version = shared.schedule().version();
        let changed = version != saved_version;
        let connected = lock(&shared.connected_since_ms).is_some();
        let with_status = turn.is_multiple_of(STATUS_EVERY) || connected != shown_connected;
        shown_connected = connected;
        let shared = Arc::clone(&shared);
        let work = move || {
            let erased = lock(&shared.is_erased);
            if *erased {
                return;
            }
            shared.queue().save(false, |monitor| shared.schedule().slot_of(monitor));
            if changed {
                save_schedule(&shared);
            }
            if with_status {
                write_status(&shared);
            }
        };
        if tokio::task::spawn_blocking(work).await.is_ok() {
            saved_version = version;
        }
    }
}

/// Saves state for the next start at a shutdown.
fn save_at_shutdown(shared: &AgentContext) {
    shared.queue().save(true, |monitor| shared.schedule().slot_of(monitor));
    save_schedule(shared);
    let record = {
        let record = &mut shared.membership().record;
        record.coordinator_ms = shared.clock.coordinator_ms();
        record.skew_ms = shared.clock.skew_ms();
        record.clone()
    };
    if let Err(error) = shared.data_folder.store_record(&record) {
        tracing::warn!(%error, "the coordinator's time could not be saved");
    }
    status::remove(shared.data_folder.folder());
}

fn save_schedule(shared: &AgentContext) {
    let snapshot = shared.schedule().snapshot();
    if let Some(snapshot) = snapshot
        && let Err(error) = shared.data_folder.store_schedule(&snapshot)
    {
        tracing::error!(%error, "the schedule could not be saved");
    }
}

fn write_status(shared: &AgentContext) {
    if let Err(error) = status::write(shared.data_folder.folder(), &status::snapshot(shared)) {
        tracing::debug!(%error, "the status file could not be written");
    }
}
