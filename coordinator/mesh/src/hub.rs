//! State shared by all connections: the roster, the live sessions, the sent schedules, and the channels to the engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use parallax_core::event::ProbeResponse;
use parallax_core::id::{AgentId, MonitorId};
use parallax_core::member::{AgentRecord, IdentityChange, IdentityUpdate};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, VantageNo};
use parallax_engine::{Arrival, Capabilities, EngineInbox, MonitorSchedule, ProbeDispatch, ScheduleReceiver};
use parallax_protocol::close::CloseReason;
use parallax_runtime::clock::Clock;
use parallax_runtime::log_limit::LogLimit;
use tokio::sync::{Notify, mpsc, watch};
use tracing::{error, info, warn};

use super::account_numbers::AccountNumbers;
use super::assignment_history::AssignmentHistory;
use super::clock_steps::ClockSteps;
use super::join_attempts::JoinAttempts;
use super::ledger::Ledger;
use super::probe_queue::{self, ProbeQueueError, ProbeQueueReceiver, ProbeQueueSender};
use super::roster::{AgentView, ConnectionInfo, ResultCounts, Roster};
use super::schedule_diff::{SentSchedule, ShareInputs};
use super::{MemberRecords, MeshCounters, MeshSettings, Trust};

pub(super) struct Hub {
    pub(super) members: Arc<dyn MemberRecords>,
    pub(super) clock: Clock,
    pub(super) inbox: EngineInbox,
    pub(super) schedule: ScheduleReceiver,
    pub(super) settings: MeshSettings,
    pub(super) counters: Arc<MeshCounters>,
    pub(super) trust: ArcSwap<Trust>,
    /// Notified when `trust` changes.
    pub(super) trust_changed: watch::Sender<()>,
    /// The connected vantages; every change is published.
    pub(super) mesh: watch::Sender<Arc<Mesh>>,
    /// Refused join attempts; locked while one request is decided.
    pub(super) join_attempts: tokio::sync::Mutex<JoinAttempts>,
    /// Notified when the members' records have changed.
    pub(super) reload_requested: Notify,
    pub(super) clock_steps: ClockSteps,
    /// Pseudonymous account numbers for agents.
    pub(super) account_numbers: AccountNumbers,
    /// Rate limits of log lines that peers cause, by agent (all unknown peers count as one) and kind.
    pub(super) logs: LogLimit<(Option<AgentId>, &'static str)>,
    reloading: tokio::sync::Mutex<()>,
    responses: mpsc::Sender<Arrival>,
    state: Mutex<HubState>,
    index: Mutex<MonitorIndex>,
    capabilities: Mutex<Arc<Capabilities>>,
    sessions: AtomicU64,
    first_revision: u64,
}

#[derive(Default)]
struct HubState {
    roster: Roster,
    live: BTreeMap<VantageNo, LiveSession>,
    agent_states: BTreeMap<AgentId, Arc<AgentState>>,
}

struct LiveSession {
    session: u64,
    close: watch::Sender<Option<CloseReason>>,
    probes: ProbeQueueSender,
}

/// State of an agent that outlives its connections.
pub(super) struct AgentState {
    pub(super) ledger: Mutex<Ledger>,
    pub(super) sent_schedule: Mutex<SentSchedule>,
    /// Rounds that were assigned to it.
    pub(super) assignments: Mutex<AssignmentHistory>,
    /// Notified when an acknowledgement is due.
    pub(super) ack_due: Notify,
    /// Result counts since the start.
    pub(super) result_counters: ResultCounters,
}

/// Counts of one agent's results since the start.
#[derive(Default)]
pub(super) struct ResultCounters {
    pub(super) received: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// A session's receiving ends of the channels that the hub holds.
pub(super) struct SessionHandle {
    pub(super) session: u64,
    pub(super) close: watch::Receiver<Option<CloseReason>>,
    pub(super) probes: ProbeQueueReceiver,
    pub(super) agent_state: Arc<AgentState>,
    /// End of the time during which two hosts count as sharing the identity, if the record does not have it yet.
    pub(super) shared_until: Option<Timestamp>,
}

/// The scheduled monitors by id.
#[derive(Default)]
pub(super) struct MonitorIndex {
    /// The schedule that was indexed.
    schedule: MonitorSchedule,
    slots: BTreeMap<MonitorId, u32>,
}

/// Everything the hub is built from.
pub(super) struct HubParts {
    pub(super) members: Arc<dyn MemberRecords>,
    pub(super) clock: Clock,
    pub(super) inbox: EngineInbox,
    pub(super) responses: mpsc::Sender<Arrival>,
    pub(super) schedule: ScheduleReceiver,
    pub(super) settings: MeshSettings,
    pub(super) trust: Trust,
    pub(super) account_numbers: AccountNumbers,
}

impl Hub {
    pub(super) fn new(parts: HubParts) -> Self {
        let first_revision = parts.clock.now().as_millis().unsigned_abs();
        Self {
            members: parts.members,
            clock: parts.clock,
            inbox: parts.inbox,
            schedule: parts.schedule,
            settings: parts.settings,
            counters: Arc::new(MeshCounters::default()),
            trust: ArcSwap::from_pointee(parts.trust),
            trust_changed: watch::Sender::new(()),
            mesh: watch::Sender::new(Arc::new(Mesh::default())),
            join_attempts: tokio::sync::Mutex::default(),
            reload_requested: Notify::new(),
            clock_steps: ClockSteps::default(),
            account_numbers: parts.account_numbers,
            logs: LogLimit::default(),
            reloading: tokio::sync::Mutex::default(),
            responses: parts.responses,
            state: Mutex::default(),
            index: Mutex::default(),
            capabilities: Mutex::default(),
            sessions: AtomicU64::new(1),
            first_revision,
        }
    }

    /// Reloads the members' records and closes the connections of those that are no longer enrolled.
    pub(super) async fn reload(&self) {
        // One reload at a time, so that an older list never replaces a newer one.
        let _guard = self.reloading.lock().await;
        let agents = match self.members.agents().await {
            Ok(agents) => agents,
            Err(fault) => {
                error!(%fault, "the members' records can't be read; the mesh keeps the ones it has");
                return;
            }
        };
        let mut state = self.state();
        for (vantage, session) in state.roster.set_agents(agents) {
            if let Some(live) = state.live.get(&vantage).filter(|live| live.session == session) {
                live.close.send_replace(Some(CloseReason::Revoked));
            }
            state.live.remove(&vantage);
        }
        let HubState { roster, agent_states, .. } = &mut *state;
        agent_states.retain(|id, _| roster.agent(*id).is_some());
        self.publish(&state);
    }

    /// Registers a session and closes the agent's previous one. Returns `None` if the agent is not enrolled.
    pub(super) fn connect(&self, agent: &AgentRecord, mut connection_info: ConnectionInfo) -> Option<SessionHandle> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        connection_info.session = session;
        let mut state = self.state();
        let outcome = state.roster.connect(agent.vantage_no, connection_info)?;
        let (close, closing) = watch::channel(None);
        let (probe_sender, probe_receiver) = probe_queue::queue();
        let previous = state.live.insert(agent.vantage_no, LiveSession { session, close, probes: probe_sender });
        if let (Some(_), Some(previous)) = (outcome.replaced, previous) {
            previous.close.send_replace(Some(CloseReason::Replaced));
            MeshCounters::add(&self.counters.replaced);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "replaced")) {
                warn!(agent = %agent.id, name = agent.name, omitted, "a second connection with the same identity replaced the first");
            }
        }
        if outcome.found_shared {
            MeshCounters::add(&self.counters.shared_identities);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "shared")) {
                error!(agent = %agent.id, name = agent.name, omitted, "two hosts share one identity; its rounds do not count until one of them is stopped");
            }
        }
        let agent_state = state.agent_states.entry(agent.id).or_insert_with(|| {
            Arc::new(AgentState {
                ledger: Mutex::default(),
                sent_schedule: Mutex::new(SentSchedule::new(self.first_revision)),
                assignments: Mutex::default(),
                ack_due: Notify::new(),
                result_counters: ResultCounters::default(),
            })
        });
        let agent_state = Arc::clone(agent_state);
        self.publish(&state);
        Some(SessionHandle {
            session,
            close: closing,
            probes: probe_receiver,
            agent_state,
            shared_until: outcome.shared_until,
        })
    }

    /// Writes a change to an agent's record. If that fails, the mesh continues with its state in memory.
    pub(super) async fn update_record(&self, agent: AgentId, change: IdentityChange) -> Option<IdentityUpdate> {
        let update = self.members.update(agent, change).await;
        update.inspect_err(|fault| error!(%agent, %fault, "an agent's record can't be written")).ok()
    }

    /// Ends a session at once, if it is still the current one.
    pub(super) fn disconnect(&self, agent: &AgentRecord, session: u64) {
        let mut state = self.state();
        if state.roster.disconnect(agent.vantage_no, session) {
            state.live.remove(&agent.vantage_no);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "disconnected")) {
                info!(agent = %agent.id, name = agent.name, omitted, "agent disconnected");
            }
            self.publish(&state);
        }
    }

    /// Closes the vantage's connection, if it has one.
    pub(super) fn close(&self, vantage: VantageNo, reason: CloseReason) {
        if let Some(live) = self.state().live.get(&vantage) {
            live.close.send_replace(Some(reason));
        }
    }

    pub(super) fn close_all(&self, reason: CloseReason) {
        for live in self.state().live.values() {
            live.close.send_replace(Some(reason));
        }
    }

    /// Queues a probe request for the vantage's session. Returns the request that won't be sent: this one if there is
    /// no session, or an evicted one of an account with too many in the queue.
    pub(super) fn send_probe(&self, probe: ProbeDispatch) -> Result<(), ProbeDispatch> {
        let account = self.account_numbers.number(probe.account);
        let state = self.state();
        let Some(live) = state.live.get(&probe.request.vantage) else { return Err(probe) };
        live.probes.push(account, probe).map_err(|rejected| match rejected {
            ProbeQueueError::Evicted(probe) => probe,
            ProbeQueueError::Closed(probe) => {
                // The task that sends probe requests has failed: only a new connection starts another.
                live.close.send_replace(Some(CloseReason::Internal));
                probe
            }
        })
    }

    /// Sends a response to the driver without ever waiting: the driver may itself be waiting for the mesh.
    pub(super) fn send_response(&self, probe: &ProbeDispatch, response: ProbeResponse) {
        let arrival = Arrival::ProbeResponse { slot: probe.slot, number: probe.request.number, response };
        if self.responses.try_send(arrival).is_err() {
            MeshCounters::add(&self.counters.responses_lost);
        }
    }

    /// Logs how many lines about a peer were suppressed, if no later line reported it.
    pub(super) fn report_suppressed_lines(&self) {
        for ((agent, kind), omitted) in self.logs.omitted() {
            let agent = agent.map(tracing::field::display);
            info!(agent, kind, omitted, "{omitted} more log lines of this kind were suppressed");
        }
    }

    /// Changes the roster and publishes the mesh if that changed it.
    pub(super) fn with_roster<T>(&self, change: impl FnOnce(&mut Roster) -> T) -> T {
        let mut state = self.state();
        let result = change(&mut state.roster);
        self.publish(&state);
        result
    }

    /// Returns the agents for display.
    pub(super) fn agent_views(&self) -> Vec<AgentView> {
        let state = self.state();
        let mut views = state.roster.agent_views();
        for view in &mut views {
            if let Some(agent_state) = state.agent_states.get(&view.agent.id) {
                let counters = &agent_state.result_counters;
                view.results = ResultCounts {
                    received: counters.received.load(Ordering::Relaxed),
                    duplicates: counters.duplicates.load(Ordering::Relaxed),
                    dropped: counters.dropped.load(Ordering::Relaxed),
                };
            }
        }
        views
    }

    /// Returns the roster's record of an enrolled agent.
    pub(super) fn agent(&self, id: AgentId) -> Option<Arc<AgentRecord>> {
        self.state().roster.agent(id)
    }

    pub(super) fn current_schedule(&self) -> MonitorSchedule {
        self.schedule.borrow().clone()
    }

    /// Returns the index of monitors by id, current as of this call. Shared by the batches of all agents.
    pub(super) fn index(&self) -> MutexGuard<'_, MonitorIndex> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that an older schedule never follows a newer one.
        index.update(self.current_schedule());
        index
    }

    /// Returns the current inputs of a vantage's share.
    pub(super) fn share_inputs(&self, vantage: VantageNo) -> ShareInputs {
        let schedule = self.current_schedule();
        let mesh = Arc::clone(&self.mesh.borrow());
        ShareInputs { vantage: Some(vantage), schedule, mesh, capabilities: self.capabilities() }
    }

    /// Returns the capabilities of the connected vantages; every change is published with the mesh.
    pub(super) fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(&self.capabilities.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, state: &HubState) {
        let mesh = state.roster.mesh();
        let capabilities = state.roster.capabilities();
        let mut current = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        let capabilities_changed = **current != capabilities;
        if capabilities_changed {
            *current = Arc::new(capabilities);
        }
        drop(current);
        self.mesh.send_if_modified(|published| {
            let changed = **published != mesh;
            if changed {
                *published = Arc::new(mesh);
            }
            changed || capabilities_changed
        });
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentState {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent_schedule(&self) -> MutexGuard<'_, SentSchedule> {
        self.sent_schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn assignments(&self) -> MutexGuard<'_, AssignmentHistory> {
        self.assignments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MonitorIndex {
    /// Returns the slot of the monitor with that id.
    pub(super) fn slot(&self, id: MonitorId) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    /// Returns the schedule that was indexed.
    pub(super) fn schedule(&self) -> &MonitorSchedule {
        &self.schedule
    }

    /// Applies the edits since the indexed schedule.
    fn update(&mut self, next: MonitorSchedule) {
        match next.changed_since(self.schedule.version()) {
            Some(changed) => {
                for removed in changed.iter().filter_map(|slot| self.schedule.get(*slot)) {
                    self.slots.remove(&removed.monitor);
                }
                let added = changed.iter().filter_map(|slot| next.get(*slot));
                self.slots.extend(added.map(|monitor| (monitor.monitor, monitor.slot)));
            }
            None => self.slots = next.iter().map(|monitor| (monitor.monitor, monitor.slot)).collect(),
        }
        self.schedule = next;
    }
}
