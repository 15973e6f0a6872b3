//! The engine's main loop: the driver owns every machine of its shard, waits for one event at a time and applies it.
//!
//! While a commit is in flight, outputs gather for the next one, so a busy driver writes larger groups and an idle one
//! waits for nothing. When too much has gathered, the driver stops reading its inbox, and the mesh applies
//! backpressure to the agents.

mod check_now;
mod dns_failures;
mod edits;
mod pings;
mod quarantine;
mod queries;
mod stall_detection;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parallax_core::event::ProbeResponse;
use parallax_core::quarantine::SuspectedVantages;
use parallax_core::time::Timestamp;
use parallax_runtime::clock::Clock;
use parallax_store::{Op, Store, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use super::commit::{self, InFlightCommit};
use super::counters::EngineCounters;
use super::heartbeat_tokens::HeartbeatTokens;
use super::machines::{Cx, Machines, PendingCommit};
use super::mesh_view::MeshView;
use super::restore::{self, VerdictSettings};
use super::shard::Shard;
use super::{Arrival, DriverQuery, IncomingPing, MachineQuery, MonitorSchedule, ProbeDispatch};
use crate::history::History;

/// Readings, events and pings per commit, at most. Beyond that the inbox waits for the commit in flight.
const MAX_PENDING: usize = 8192;
/// Arrivals processed before the driver checks its other inputs again.
const ARRIVALS_PER_ITERATION: usize = 64;
/// Interval at which the driver records that it is alive and checks the clock, whatever the timetable says.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The driver's channels.
#[derive(Debug)]
pub struct DriverChannels {
    /// Input from the mesh and from HTTP.
    pub inbox: mpsc::Receiver<Arrival>,
    /// Queries for machine state.
    pub queries: mpsc::Receiver<DriverQuery>,
    /// Probe requests for the mesh.
    pub probes: mpsc::Sender<ProbeDispatch>,
    /// The schedule that agents are to run.
    pub schedules: watch::Sender<MonitorSchedule>,
    /// Suspected vantages, for the mesh: it gives a tenth of the rounds to those in quarantine, to compare them, and logs their names.
    pub suspects: watch::Sender<Arc<SuspectedVantages>>,
    /// Stops the driver: it commits what it has and returns.
    pub shutdown: watch::Receiver<bool>,
}

/// The owner of all machines.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    store: Store,
    history: Arc<History>,
    verdict_settings: VerdictSettings,
    shard: Shard,
    machines: Machines,
    mesh_view: MeshView,
    cursor: u64,
    pending: PendingCommit,
    on_durable: Vec<oneshot::Sender<()>>,
    in_flight: Option<InFlightCommit>,
    extra_ops: Vec<Op>,
    /// Pings of monitors that are not known here yet.
    early_pings: Vec<IncomingPing>,
    ping_pacer: pings::PingPacer,
    check_now: check_now::OpenCheckNowRequests,
    dns_failures: dns_failures::RecentDnsFailures,
    tokens: HeartbeatTokens,
    counters: Arc<EngineCounters>,
    /// Time at which edits are read next; `None` if there are none.
    read_edits_at: Option<Instant>,
    /// Queries that must reflect edits which were not read yet.
    waiting_queries: Vec<MachineQuery>,
    alive_recorded_at: Timestamp,
    /// The wall clock and the monotonic clock at the last check.
    last_clock_check: (Timestamp, i64),
}

enum LoopEvent {
    Arrivals(usize),
    Query(DriverQuery),
    CommitFinished(Result<commit::CommitResult, StoreError>),
    EditsAvailable,
    Tick,
    Stop,
}

impl Driver {
    /// Restores every machine of the shard from storage. Until the mesh reports, no vantage is connected.
    pub async fn start(
        clock: Clock,
        store: Store,
        history: Arc<History>,
        verdict_settings: VerdictSettings,
        shard: Shard,
    ) -> Result<Self, StoreError> {
        let context = store.read(move |read| restore::begin_restore(read, verdict_settings, shard)).await?;
        let counters = Arc::<EngineCounters>::default();
        let last_clock_check = (clock.now(), clock.monotonic());
        let mut driver = Self {
            clock,
            store,
            history,
            verdict_settings,
            shard,
            machines: Machines::default(),
            mesh_view: MeshView::new(verdict_settings.confirmation, Arc::clone(&counters)),
            cursor: context.cursor,
            pending: PendingCommit::default(),
            on_durable: Vec::new(),
            in_flight: None,
            extra_ops: Vec::new(),
            early_pings: Vec::new(),
            ping_pacer: pings::PingPacer::default(),
            check_now: check_now::OpenCheckNowRequests::default(),
            dns_failures: dns_failures::RecentDnsFailures::default(),
            tokens: HeartbeatTokens::default(),
            counters,
            read_edits_at: None,
            waiting_queries: Vec::new(),
            alive_recorded_at: Timestamp::default(),
            last_clock_check,
        };
        driver.restore_machines(context).await?;
        driver.replay_readings().await?;
        Ok(driver)
    }

    /// Returns the tokens of all heartbeats; the driver keeps them current.
    pub fn tokens(&self) -> HeartbeatTokens {
        self.tokens.clone()
    }

    /// Returns the engine's counters; the driver keeps them current.
    pub fn counters(&self) -> Arc<EngineCounters> {
        Arc::clone(&self.counters)
    }

    /// Returns the schedule that agents are to run.
    pub fn schedule(&self) -> MonitorSchedule {
        self.machines.schedule().clone()
    }

    /// Runs until `shutdown` is set or the store is closed. Boxed, so that its code is generated and optimized here and not
    /// in the crate that polls it (decision 107).
    pub fn run(self, channels: DriverChannels) -> BoxFuture<'static, ()> {
        Box::pin(self.run_loop(channels))
    }

    async fn run_loop(mut self, mut channels: DriverChannels) {
        let mut edits = self.store.subscribe_edits();
        let mut arrivals = Vec::with_capacity(ARRIVALS_PER_ITERATION);
        self.publish_schedule(&channels);
        loop {
            let event = self.next_event(&mut channels, &mut edits, &mut arrivals).await;
            self.counters.loop_iterations.fetch_add(1, Ordering::Relaxed);
            // Checked first: a stall extends deadlines before the ping that arrives after it is handled.
            self.check_clock().await;
            match event {
                LoopEvent::Arrivals(0) | LoopEvent::Stop => break,
                LoopEvent::CommitFinished(Err(error)) => {
                    // Without its store the coordinator is useless: it ends with a failing exit code.
                    tracing::error!(%error, "results can't be stored; the coordinator stops");
                    self.in_flight = None;
                    return;
                }
                LoopEvent::Arrivals(_) => {
                    self.handle_arrivals(&mut arrivals, &channels);
                    self.retry_early_pings(&channels).await;
                }
                LoopEvent::Query(DriverQuery::Views(query)) => self.handle_query(query),
                LoopEvent::Query(DriverQuery::Copy(query)) => self.answer_copy_query(query),
                LoopEvent::CommitFinished(Ok(result)) => self.on_committed(result),
                LoopEvent::EditsAvailable => self.read_edits_at = Some(Instant::now()),
                LoopEvent::Tick => {}
            }
            self.read_due_edits(&channels).await;
            self.with_machines(Machines::fire_deadlines);
            self.answer_waiting_queries();
            self.judge_vantages(&channels);
            self.expire_dns_failures();
            self.send_probes(&channels);
            self.write_due_pings(false);
            self.update_counters(&channels);
            self.start_commit();
        }
        self.finish().await;
    }

    fn on_committed(&mut self, result: commit::CommitResult) {
        self.in_flight = None;
        self.counters.commits.record(result.duration);
        self.counters.events.fetch_add(result.events as u64, Ordering::Relaxed);
        for (entry, readings) in result.entries {
            self.counters.readings.fetch_add(readings.len() as u64, Ordering::Relaxed);
            self.history.append(&readings, entry);
        }
    }

    /// Publishes the driver's state in the counters.
    fn update_counters(&self, channels: &DriverChannels) {
        self.counters.set_monitors(self.machines.by_status());
        self.counters.backlog.store(channels.inbox.len() as u64, Ordering::Relaxed);
        self.counters.pending.store(self.pending_count() as u64, Ordering::Relaxed);
    }

    /// Counts what waits for the next commit.
    fn pending_count(&self) -> usize {
        self.pending.readings.len() + self.pending.events.len() + self.extra_ops.len()
    }

    async fn next_event(
        &mut self,
        channels: &mut DriverChannels,
        edits: &mut watch::Receiver<u64>,
        arrivals: &mut Vec<Arrival>,
    ) -> LoopEvent {
        let full = self.pending_count() >= MAX_PENDING;
        let next = self.machines.next_timeout().into_iter().chain(self.mesh_view.next_timeout()).min();
        let until_next = next.map_or(CLOCK_CHECK_INTERVAL, |at| {
            Duration::from_millis(at.since(self.clock.now()).max(0).unsigned_abs()).min(CLOCK_CHECK_INTERVAL)
        });
        let until_edits = self.read_edits_at.map(|at| at.saturating_duration_since(Instant::now()));
        let until_next = until_edits.map_or(until_next, |until_edits| until_edits.min(until_next));
        let until_next = self
            .ping_pacer
            .until_next_write(Instant::now())
            .map_or(until_next, |until_ping_write| until_ping_write.min(until_next));
        tokio::select! {
            biased;
            _ = channels.shutdown.wait_for(|stop| *stop) => LoopEvent::Stop,
            result = commit_finished(&mut self.in_flight) => LoopEvent::CommitFinished(result),
            Some(query) = channels.queries.recv() => LoopEvent::Query(query),
            Ok(()) = edits.changed() => LoopEvent::EditsAvailable,
            count = channels.inbox.recv_many(arrivals, ARRIVALS_PER_ITERATION), if !full => LoopEvent::Arrivals(count),
            () = tokio::time::sleep(until_next) => LoopEvent::Tick,
        }
    }

    fn handle_arrivals(&mut self, arrivals: &mut Vec<Arrival>, channels: &DriverChannels) {
        for arrival in arrivals.drain(..) {
            match arrival {
                Arrival::Results(batch) => {
                    let shadow = self.mesh_view.is_quarantined(batch.vantage);
                    for (slot, mut observation) in batch.observations {
                        if shadow {
                            self.handle_shadow_round(slot, &observation, channels);
                            continue;
                        }
                        self.excuse_dns_failure(slot, &mut observation);
                        let result = self.with_machines(|machines, cx| machines.observe(slot, observation, cx));
                        if let Err(reason) = result {
                            tracing::debug!(slot, ?reason, "an observation was dropped");
                        }
                    }
                    self.on_durable.push(batch.on_durable);
                }
                Arrival::ProbeResponse { number, response, .. }
                    if self.check_now.handle_response(number, &response) => {}
                Arrival::CheckNow(request) => self.start_check_now(request),
                Arrival::ProbeResponse { slot, number, mut response } => {
                    if let ProbeResponse::Observed(observation) = &mut response {
                        self.excuse_dns_failure(slot, observation);
                    }
                    self.with_machines(|machines, cx| machines.probe_response(slot, number, response, cx));
                }
                Arrival::Ping(ping) => self.handle_ping(*ping),
                Arrival::CapabilitiesChanged(capabilities) => self.check_now.capabilities = capabilities,
                Arrival::MeshChanged(mesh) => {
                    if self.mesh_view.set_roster(mesh) {
                        self.with_machines(Machines::handle_mesh_change);
                    }
                }
            }
        }
    }

    fn send_probes(&mut self, channels: &DriverChannels) {
        for dispatch in self.pending.probes.drain(..) {
            let (slot, number) = (dispatch.slot, dispatch.request.number);
            if channels.probes.try_send(dispatch).is_err() {
                // The machine's own deadline moves on to the next vantage.
                self.check_now.handle_response(number, &ProbeResponse::NoResponse);
                tracing::warn!(slot, number, "a probe request was dropped: too many are waiting for the mesh");
            }
        }
    }

    fn start_commit(&mut self) {
        let nothing = self.on_durable.is_empty() && self.extra_ops.is_empty() && self.pending.changed.is_empty();
        if self.in_flight.is_some() || (nothing && self.pending.readings.is_empty() && self.pending.events.is_empty()) {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let on_durable = std::mem::take(&mut self.on_durable);
        let extra_ops = std::mem::take(&mut self.extra_ops);
        self.in_flight = commit::start(&self.store, &self.machines, pending, on_durable, extra_ops);
    }

    /// Commits what is left, so that a stop loses no accepted input.
    async fn finish(mut self) {
        self.write_due_pings(true);
        for _ in 0..2 {
            if self.in_flight.is_some() {
                let result = commit_finished(&mut self.in_flight).await;
                self.in_flight = None;
                match result {
                    Ok(result) => self.on_committed(result),
                    Err(error) => {
                        tracing::warn!(%error, "the last results could not be stored; agents will resend them")
                    }
                }
            }
            self.start_commit();
        }
        if self.in_flight.is_some() && commit_finished(&mut self.in_flight).await.is_err() {
            tracing::warn!("the last results could not be stored; agents will resend them");
        }
    }

    /// Restores all monitors, some at a time.
    async fn restore_machines(&mut self, context: restore::RestoreContext) -> Result<(), StoreError> {
        let (context, mut last_monitor) = (Arc::new(context), None);
        loop {
            let context = Arc::clone(&context);
            let Some(stored) = self.store.read(move |read| context.next(read, last_monitor)).await? else {
                return Ok(());
            };
            last_monitor = Some(stored.last);
            stored.monitors().for_each(|monitor| self.tokens.put(monitor));
            self.with_machines(|machines, cx| stored.restore(machines, cx));
        }
    }

    async fn replay_readings(&mut self) -> Result<(), StoreError> {
        let mut seq = 0;
        loop {
            let entries = self.store.read(move |read| read.readings_after(seq, 64)).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            seq = last.seq;
            entries.iter().flat_map(|entry| &entry.readings).for_each(|reading| self.machines.replay(reading));
        }
    }

    fn with_machines<T>(&mut self, apply: impl FnOnce(&mut Machines, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx { now: self.clock.now(), mesh: self.mesh_view.mesh(), pending: &mut self.pending };
        apply(&mut self.machines, &mut cx)
    }
}

/// Waits for the commit in flight; never returns if there is none.
async fn commit_finished(in_flight: &mut Option<InFlightCommit>) -> Result<commit::CommitResult, StoreError> {
    match in_flight {
        Some(in_flight) => in_flight.wait().await,
        None => std::future::pending().await,
    }
}
