//! State shared by all connections: the roster, the live sessions, the sent schedules, and the channels to the engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use parallax_core::event::Answer;
use parallax_core::id::{AgentId, MonitorId};
use parallax_core::member::{Agent, Note, Noted};
use parallax_core::place::{Mesh, PlaceNo};
use parallax_core::time::Timestamp;
use parallax_protocol::close::CloseReason;
use tokio::sync::{Notify, mpsc, watch};
use tracing::{error, info, warn};

use super::accounts::AccountNumbers;
use super::assign::{Basis, Sheet};
use super::assignments::AssignmentHistory;
use super::join::Attempts;
use super::ledger::Ledger;
use super::questions::{self, AskError, QuestionReceiver, QuestionSender};
use super::roster::{AgentView, Arrived, Figures, Roster};
use super::steps::Steps;
use super::{Counters, Members, Settings, Trust};
use crate::clock::Clock;
use crate::flow::{Able, Arrival, Inbox, Question, Schedule, Schedules};
use crate::log_limit::LogLimit;

pub(super) struct Hub {
    pub(super) members: Arc<dyn Members>,
    pub(super) clock: Clock,
    pub(super) inbox: Inbox,
    pub(super) schedule: Schedule,
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    pub(super) trust: ArcSwap<Trust>,
    /// Notified when `trust` changes.
    pub(super) trusted: watch::Sender<()>,
    /// The connected vantages; every change is published.
    pub(super) mesh: watch::Sender<Arc<Mesh>>,
    /// Refused join attempts; locked while one request is decided.
    pub(super) joining: tokio::sync::Mutex<Attempts>,
    /// Notified when the members' records have changed.
    pub(super) refresh: Notify,
    pub(super) steps: Steps,
    /// Pseudonymous account numbers for agents.
    pub(super) accounts: AccountNumbers,
    /// Rate limits of log lines that peers cause, by agent (all unknown peers count as one) and kind.
    pub(super) logs: LogLimit<(Option<AgentId>, &'static str)>,
    reloading: tokio::sync::Mutex<()>,
    answers: mpsc::Sender<Arrival>,
    state: Mutex<State>,
    index: Mutex<Index>,
    able: Mutex<Arc<Able>>,
    sessions: AtomicU64,
    first_revision: u64,
}

#[derive(Default)]
struct State {
    roster: Roster,
    live: BTreeMap<PlaceNo, Live>,
    memories: BTreeMap<AgentId, Arc<Memory>>,
}

struct Live {
    session: u64,
    close: watch::Sender<Option<CloseReason>>,
    questions: QuestionSender,
}

/// State of an agent that outlives its connections.
pub(super) struct Memory {
    pub(super) ledger: Mutex<Ledger>,
    pub(super) sheet: Mutex<Sheet>,
    /// Rounds that were assigned to it.
    pub(super) assignments: Mutex<AssignmentHistory>,
    /// Notified when an acknowledgement is due.
    pub(super) due: Notify,
    /// Result counts since the start.
    pub(super) figures: Counted,
}

/// Counts of one agent's results since the start.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) received: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// A session's receiving ends of the channels that the hub holds.
pub(super) struct Seat {
    pub(super) session: u64,
    pub(super) close: watch::Receiver<Option<CloseReason>>,
    pub(super) questions: QuestionReceiver,
    pub(super) memory: Arc<Memory>,
    /// End of the time during which two hosts count as sharing the identity, if the record does not have it yet.
    pub(super) shared_until: Option<Timestamp>,
}

/// The scheduled monitors by id.
#[derive(Default)]
pub(super) struct Index {
    /// The schedule that was indexed.
    schedules: Schedules,
    slots: BTreeMap<MonitorId, u32>,
}

/// Everything the hub is built from.
pub(super) struct HubParts {
    pub(super) members: Arc<dyn Members>,
    pub(super) clock: Clock,
    pub(super) inbox: Inbox,
    pub(super) answers: mpsc::Sender<Arrival>,
    pub(super) schedule: Schedule,
    pub(super) settings: Settings,
    pub(super) trust: Trust,
    pub(super) accounts: AccountNumbers,
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
            counters: Arc::new(Counters::default()),
            trust: ArcSwap::from_pointee(parts.trust),
            trusted: watch::Sender::new(()),
            mesh: watch::Sender::new(Arc::new(Mesh::default())),
            joining: tokio::sync::Mutex::default(),
            refresh: Notify::new(),
            steps: Steps::default(),
            accounts: parts.accounts,
            logs: LogLimit::default(),
            reloading: tokio::sync::Mutex::default(),
            answers: parts.answers,
            state: Mutex::default(),
            index: Mutex::default(),
            able: Mutex::default(),
            sessions: AtomicU64::new(1),
            first_revision,
        }
    }

    /// Reloads the members' records and closes the connections of those that are no longer enrolled.
    pub(super) async fn reload(&self) {
        // One reload at a time, so that an older list never replaces a newer one.
        let _turn = self.reloading.lock().await;
        let agents = match self.members.agents().await {
            Ok(agents) => agents,
            Err(fault) => {
                error!(%fault, "the members' records can't be read; the mesh keeps the ones it has");
                return;
            }
        };
        let mut state = self.state();
        for (place, session) in state.roster.enrol(agents) {
            if let Some(live) = state.live.get(&place).filter(|live| live.session == session) {
                live.close.send_replace(Some(CloseReason::Revoked));
            }
            state.live.remove(&place);
        }
        let State { roster, memories, .. } = &mut *state;
        memories.retain(|id, _| roster.agent(*id).is_some());
        self.publish(&state);
    }

    /// Registers a session and closes the agent's previous one. Returns `None` if the agent is not enrolled.
    pub(super) fn connect(&self, agent: &Agent, mut arrived: Arrived) -> Option<Seat> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        arrived.session = session;
        let mut state = self.state();
        let seated = state.roster.connect(agent.place, arrived)?;
        let (close, closing) = watch::channel(None);
        let (ask, questions) = questions::queue();
        let before = state.live.insert(agent.place, Live { session, close, questions: ask });
        if let (Some(_), Some(before)) = (seated.replaced, before) {
            before.close.send_replace(Some(CloseReason::Replaced));
            Counters::add(&self.counters.replaced);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "replaced")) {
                warn!(agent = %agent.id, name = agent.name, omitted, "a second connection with the same identity replaced the first");
            }
        }
        if seated.found_shared {
            Counters::add(&self.counters.shared);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "shared")) {
                error!(agent = %agent.id, name = agent.name, omitted, "two hosts share one identity; its rounds do not count until one of them is stopped");
            }
        }
        let memory = state.memories.entry(agent.id).or_insert_with(|| {
            Arc::new(Memory {
                ledger: Mutex::default(),
                sheet: Mutex::new(Sheet::new(self.first_revision)),
                assignments: Mutex::default(),
                due: Notify::new(),
                figures: Counted::default(),
            })
        });
        let memory = Arc::clone(memory);
        self.publish(&state);
        Some(Seat { session, close: closing, questions, memory, shared_until: seated.shared_until })
    }

    /// Writes a change to an agent's record. If that fails, the mesh continues with its state in memory.
    pub(super) async fn note(&self, agent: AgentId, note: Note) -> Option<Noted> {
        let noted = self.members.note(agent, note).await;
        noted.inspect_err(|fault| error!(%agent, %fault, "an agent's record can't be written")).ok()
    }

    /// Ends a session at once, if it is still the current one.
    pub(super) fn disconnect(&self, agent: &Agent, session: u64) {
        let mut state = self.state();
        if state.roster.disconnect(agent.place, session) {
            state.live.remove(&agent.place);
            if let Some(omitted) = self.logs.admit((Some(agent.id), "disconnected")) {
                info!(agent = %agent.id, name = agent.name, omitted, "agent disconnected");
            }
            self.publish(&state);
        }
    }

    /// Closes the vantage's connection, if it has one.
    pub(super) fn close(&self, place: PlaceNo, reason: CloseReason) {
        if let Some(live) = self.state().live.get(&place) {
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
    pub(super) fn ask(&self, question: Question) -> Result<(), Question> {
        let account = self.accounts.number(question.account);
        let state = self.state();
        let Some(live) = state.live.get(&question.ask.place) else { return Err(question) };
        live.questions.ask(account, question).map_err(|unasked| match unasked {
            AskError::Evicted(question) => question,
            AskError::Closed(question) => {
                // The task that sends probe requests has failed: only a new connection starts another.
                live.close.send_replace(Some(CloseReason::Internal));
                question
            }
        })
    }

    /// Sends a response to the driver without ever waiting: the driver may itself be waiting for the mesh.
    pub(super) fn answer(&self, question: &Question, answer: Answer) {
        let arrival = Arrival::Answer { slot: question.slot, number: question.ask.number, answer };
        if self.answers.try_send(arrival).is_err() {
            Counters::add(&self.counters.answers_lost);
        }
    }

    /// Logs how many lines about a peer were suppressed, if no later line reported it.
    pub(super) fn report_omitted_lines(&self) {
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
    pub(super) fn view(&self) -> Vec<AgentView> {
        let state = self.state();
        let mut views = state.roster.view();
        for view in &mut views {
            if let Some(memory) = state.memories.get(&view.agent.id) {
                let counted = &memory.figures;
                view.figures = Figures {
                    received: counted.received.load(Ordering::Relaxed),
                    duplicates: counted.duplicates.load(Ordering::Relaxed),
                    dropped: counted.dropped.load(Ordering::Relaxed),
                };
            }
        }
        views
    }

    /// Returns the roster's record of an enrolled agent.
    pub(super) fn record(&self, id: AgentId) -> Option<Arc<Agent>> {
        self.state().roster.agent(id)
    }

    pub(super) fn schedules(&self) -> Schedules {
        self.schedule.borrow().clone()
    }

    /// Returns the index of monitors by id, current as of this call. Shared by the batches of all agents.
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that an older schedule never follows a newer one.
        index.follow(self.schedules());
        index
    }

    /// Returns the current inputs of a vantage's plan.
    pub(super) fn basis(&self, place: PlaceNo) -> Basis {
        let schedules = self.schedules();
        let mesh = Arc::clone(&self.mesh.borrow());
        Basis { place: Some(place), schedules, mesh, able: self.able() }
    }

    /// Returns the capabilities of the connected vantages; every change is published with the mesh.
    pub(super) fn able(&self) -> Arc<Able> {
        Arc::clone(&self.able.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, state: &State) {
        let mesh = state.roster.mesh();
        let able = state.roster.able();
        let mut held = self.able.lock().unwrap_or_else(PoisonError::into_inner);
        let others_can = **held != able;
        if others_can {
            *held = Arc::new(able);
        }
        drop(held);
        self.mesh.send_if_modified(|held| {
            let changed = **held != mesh;
            if changed {
                *held = Arc::new(mesh);
            }
            changed || others_can
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn assignments(&self) -> MutexGuard<'_, AssignmentHistory> {
        self.assignments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    /// Returns the slot of the monitor with that id.
    pub(super) fn slot(&self, id: MonitorId) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    /// Returns the schedule that was indexed.
    pub(super) fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Applies the edits since the indexed schedule.
    fn follow(&mut self, next: Schedules) {
        match next.changed_since(self.schedules.version()) {
            Some(changed) => {
                for gone in changed.iter().filter_map(|slot| self.schedules.get(*slot)) {
                    self.slots.remove(&gone.monitor);
                }
                let after = changed.iter().filter_map(|slot| next.get(*slot));
                self.slots.extend(after.map(|monitor| (monitor.monitor, monitor.slot)));
            }
            None => self.slots = next.iter().map(|monitor| (monitor.monitor, monitor.slot)).collect(),
        }
        self.schedules = next;
    }
}
