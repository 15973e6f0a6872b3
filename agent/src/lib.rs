//! An agent: runs checks from one vantage and streams their results to the coordinator.
//!
//! [`Agent`] is a whole agent; the coordinator's trial mode runs several in one process, each with its own
//! data folder and source address. The modules, in the order of the data flow: [`schedule`] decides which
//! checks are due, the runner starts them, [`probe`] runs them, [`outbox`] numbers the results, [`spool`]
//! stores those that the coordinator has not acknowledged on disk, and the session sends them. No module here
//! judges a monitor.

pub mod attempt;
pub mod backoff;
pub mod cli;
pub mod clock;
pub mod config;
pub mod departure;
pub mod detail;
pub mod error;
pub mod home;
pub mod join;
pub mod link;
mod out;
pub mod outbox;
mod own;
pub mod probe;
pub mod queue;
pub mod readiness;
mod runner;
pub mod schedule;
mod service_manager;
mod session;
mod shared;
pub mod spool;
pub mod status;
mod wire;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::config::{Config, NameServers};
use crate::departure::Departure;
use crate::error::Error;
use crate::home::Home;
use crate::probe::Net;
use crate::queue::Queue;
use crate::shared::{Shared, locked};
use crate::spool::Spool;
use parallax_certs::tls;
use parallax_dial::{Guard, Resolver, SetupError};
use parallax_protocol::close::CloseReason;
use parallax_protocol::id::BootId;
use parallax_protocol::version::MESH_SPOKEN;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, timeout};

/// Interval at which unsaved results and schedule changes are written to disk.
const KEEP: Duration = Duration::from_secs(1);

/// Interval of the status file, in multiples of [`KEEP`].
const STATUS_TURNS: u32 = 5;

/// Lifetime after which a connection counts as stable: the next attempt waits the shortest time.
const HELD: Duration = Duration::from_secs(30);

/// Time for a connection to end after its results are flushed.
const FAREWELL: Duration = Duration::from_secs(6);

/// An enrolled agent, with its identity and its spool open.
#[derive(Debug)]
pub struct Agent(Arc<Shared>);

impl Agent {
    /// Opens the folder of an enrolled agent.
    ///
    /// # Errors
    /// [`Error`] if the folder, the identity or the probes are unusable.
    pub fn open(config: Config) -> Result<Self, Error> {
        Ok(Self(Arc::new(open(config)?)))
    }

    /// Returns the agent's name, region and network, in words.
    pub fn identity(&self) -> String {
        let record = &self.0.membership().record;
        format!("{} ({}, {})", record.name, record.region, record.network)
    }

    /// Returns a reader of the runner's loop count, which grows as long as checks can be started.
    pub fn turns(&self) -> impl Fn() -> u64 + Send + 'static {
        let shared = Arc::clone(&self.0);
        move || shared.counts.turns.load(Ordering::Relaxed)
    }

    /// Runs until `shutdown` resolves; then waits for running checks, flushes results, and says goodbye to
    /// the coordinator. Dropping the future stops everything at once.
    ///
    /// # Errors
    /// [`Error`] if a task crashed. An unreachable coordinator is not an error: the agent continues with its
    /// schedule and reconnects.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        run_open(self.0, shutdown).await
    }
}

/// Opens an agent and runs it: see [`Agent`].
///
/// # Errors
/// As for [`Agent::open`] and [`Agent::run`].
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    Agent::open(config)?.run(shutdown).await
}

async fn run_open(shared: Arc<Shared>, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let (stop, stopping) = watch::channel(false);
    let (drain, drained) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(readiness::watch(Arc::clone(&shared)));
    tasks.spawn(keep(Arc::clone(&shared)));
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
        () = departure::expired(&shared) => Err(Departure::Expired),
    };
    let died = match died {
        Ok(died) => died,
        Err(departure) => {
            tracing::error!("{departure}");
            runner.shutdown().await;
            tasks.shutdown().await;
            connection.shutdown().await;
            return Err(departure::erase(&shared, departure));
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
    if timeout(FAREWELL, farewell).await.is_err() {
        tracing::warn!("the connection did not close in time");
    }
    tasks.shutdown().await;
    connection.shutdown().await;
    if let Some(departure) = departure {
        return Err(departure::erase(&shared, departure));
    }
    leave(&shared);
    died.map_or(Ok(()), |part| Err(Error::Died(part)))
}

/// Creates the network stack of the probes from this configuration.
///
/// # Errors
/// [`Error::Probes`] if resolver or roots cannot be set up.
pub fn net(config: &Config) -> Result<Net, Error> {
    let fault = |error: &dyn std::error::Error| Error::Probes(error.to_string());
    let alive = |resolver: Result<Resolver, SetupError>| -> Result<Resolver, Error> {
        let resolver = resolver.map_err(|error| fault(&error))?;
        Ok(match config.resolver_zones.as_slice() {
            [] => resolver,
            zones => resolver.alive_by(zones),
        })
    };
    let resolver = alive(match &config.resolvers {
        NameServers::Servers(servers) => Resolver::with_servers(servers),
        NameServers::Public => config::public_resolver(),
        NameServers::Unset | NameServers::System => Resolver::system(),
    })?;
    let mut guard = Guard::new(resolver, config.policy());
    if config.hides_system_records() {
        guard = guard.with_records_from(alive(config::public_resolver())?);
    }
    let roots = probe::net::roots(&config.trust).map_err(|error| fault(&error))?;
    let net = Net::new(guard, roots).map_err(|error| fault(&error))?;
    Ok(match &config.rdap {
        Some(base) => net.with_rdap(base),
        None => net.with_bootstrap(config.rdap_bootstrap.as_ref(), config.data.join("rdap.json")),
    })
}

fn open(config: Config) -> Result<Shared, Error> {
    let home = Home::open(&config.data)?.sealed_with(config.secrets_key_file.as_deref())?;
    let membership = home.membership()?;
    let net = net(&config)?;
    let clock = Clock::new(membership.record.skew_ms);
    own::recall(net.guard().own(), &membership.record, config.coordinator.as_deref(), clock.wall_ms());
    let spool = Spool::open(&home.spool(), config.spool_bytes)?;
    if spool.damaged() > 0 {
        tracing::warn!(
            segments = spool.damaged(),
            "some results on disk are damaged; the readable ones are kept"
        );
    }
    let kept = home.schedule();
    if let Err(error) = home.reseal_schedule(kept.as_ref()) {
        tracing::error!(%error, "the schedule on disk could not be encrypted with the current key");
    }
    let mut boot = [0; 8];
    tls::random(&mut boot)?;
    let queue = Queue::new(BootId(u64::from_le_bytes(boot)), spool, clock.clone());
    let shared = Shared::new(config, clock, home, net, membership, queue);
    if departure::has_expired(&shared) {
        shared.home.delete_schedule()?;
        tracing::warn!(
            "the certificate has ended by this host's clock: checks are suspended until the coordinator is reached"
        );
    } else if let Some(kept) = kept {
        let mut schedule = shared.schedule();
        // A snapshot applies to every schedule.
        let _ = schedule.apply(kept, shared.clock.coordinator_ms());
        tracing::info!(monitors = schedule.len(), "starting with the schedule on disk");
    }
    Ok(shared)
}

/// Connects, serves the connection, and reconnects, until the stop or the end of the membership.
async fn stay_connected(
    shared: Arc<Shared>,
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
                let begun = Instant::now();
                let ended = session::run(&shared, &link, stopping.clone(), drained.clone()).await;
                if ended.departure.is_some() {
                    return ended.departure;
                }
                // During a shutdown, an end by the coordinator is not worth a log line.
                if ended.stopped || *stopping.borrow() {
                    return None;
                }
                if begun.elapsed() >= HELD {
                    backoff.reset();
                }
                if ended.welcomed {
                    last_fault.clear();
                }
                note(
                    &shared,
                    &mut last_fault,
                    ended.reason.map_or("connection lost".into(), |reason| reason.to_string()),
                );
                ended.reason
            }
            Err(Error::Refused(reason)) => {
                note(&shared, &mut last_fault, reason.to_string());
                Some(reason)
            }
            Err(error) => {
                note(&shared, &mut last_fault, error.to_string());
                None
            }
        };
        let wait = if reason.is_some_and(CloseReason::is_lasting) {
            backoff.lasting_wait()
        } else {
            backoff.next_wait()
        };
        tokio::select! {
            _ = stopping.wait_for(|&stopped| stopped) => return None,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn dial(shared: &Shared) -> Result<link::Link, Error> {
    let (tls, coordinator) = {
        let membership = shared.membership();
        let clock = join::wall_seconds(&shared.clock);
        let known = Arc::clone(&shared.known);
        let tls = tls::agent_config(&membership.credentials, &membership.roots, MESH_SPOKEN, clock, known)?;
        let coordinator = shared.config.coordinator.as_ref().unwrap_or(&membership.record.coordinator);
        (tls, coordinator.clone())
    };
    let own = shared.net.guard().own();
    link::dial(&coordinator, shared.config.source, tls, |found| own.add_coordinator(found)).await
}

/// Records a connection error for the status, and logs it once, not at every attempt.
fn note(shared: &Shared, last: &mut String, fault: String) {
    locked(&shared.link_fault).clone_from(&fault);
    if *last != fault {
        tracing::warn!(fault, "not connected; checks continue and results are stored");
        *last = fault;
    }
}

/// Periodically saves the state that should outlive this process.
async fn keep(shared: Arc<Shared>) {
    let mut tick = tokio::time::interval(KEEP);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut kept = shared.schedule().held();
    let mut shown = false;
    for turn in 0u32.. {
        tick.tick().await;
        let held = shared.schedule().held();
        let changed = held != kept;
        let connected = locked(&shared.connected_since_ms).is_some();
        let with_status = turn.is_multiple_of(STATUS_TURNS) || connected != shown;
        shown = connected;
        let shared = Arc::clone(&shared);
        let work = move || {
            let erased = locked(&shared.erased);
            if *erased {
                return;
            }
            shared.queue().save(false, |monitor| shared.schedule().slot_of(monitor));
            if changed {
                keep_schedule(&shared);
            }
            if with_status {
                write_status(&shared);
            }
        };
        if tokio::task::spawn_blocking(work).await.is_ok() {
            kept = held;
        }
    }
}

/// Saves state for the next start at a shutdown.
fn leave(shared: &Shared) {
    shared.queue().save(true, |monitor| shared.schedule().slot_of(monitor));
    keep_schedule(shared);
    let record = {
        let record = &mut shared.membership().record;
        record.coordinator_ms = shared.clock.coordinator_ms();
        record.skew_ms = shared.clock.skew_ms();
        record.clone()
    };
    if let Err(error) = shared.home.keep_record(&record) {
        tracing::warn!(%error, "the coordinator's time could not be saved");
    }
    status::remove(shared.home.folder());
}

fn keep_schedule(shared: &Shared) {
    let snapshot = shared.schedule().snapshot();
    if let Some(snapshot) = snapshot
        && let Err(error) = shared.home.keep_schedule(&snapshot)
    {
        tracing::error!(%error, "the schedule could not be saved");
    }
}

fn write_status(shared: &Shared) {
    if let Err(error) = status::write(shared.home.folder(), &status::take(shared)) {
        tracing::debug!(%error, "the status file could not be written");
    }
}
