//! What all connections share: the roster, the live sessions, what agents were sent, and the ways to the river.

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

/// Shared by every task of the mesh.
pub(super) struct Hub {
    pub(super) members: Arc<dyn Members>,
    pub(super) clock: Clock,
    pub(super) inbox: Inbox,
    pub(super) schedule: Schedule,
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    pub(super) trust: ArcSwap<Trust>,
    /// Told when that is another.
    pub(super) trusted: watch::Sender<()>,
    /// Who is there; every change is published.
    pub(super) mesh: watch::Sender<Arc<Mesh>>,
    /// Refused attempts to join; held while one host is judged.
    pub(super) joining: tokio::sync::Mutex<Attempts>,
    /// Told when the members' records have changed.
    pub(super) refresh: Notify,
    /// Steps of the wall clock.
    pub(super) steps: Steps,
    /// Account numbers on the mesh.
    pub(super) accounts: AccountNumbers,
    /// Lines that peers cause, by agent (all strangers are one) and kind.
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

/// What is kept of an agent over its connections.
pub(super) struct Memory {
    /// What came and what is durable.
    pub(super) ledger: Mutex<Ledger>,
    /// What was sent.
    pub(super) sheet: Mutex<Sheet>,
    /// Rounds that it was dealt.
    pub(super) assignments: Mutex<AssignmentHistory>,
    /// Told when an acknowledgement is due.
    pub(super) due: Notify,
    /// What has come since the start.
    pub(super) figures: Counted,
}

/// One agent's results, counted since the start.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) received: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// The ends of a session that others hold the beginnings of.
pub(super) struct Seat {
    pub(super) session: u64,
    pub(super) close: watch::Receiver<Option<CloseReason>>,
    pub(super) questions: QuestionReceiver,
    pub(super) memory: Arc<Memory>,
    /// Until when two hosts count as sharing the identity, where the record does not say so yet.
    pub(super) shared_until: Option<Timestamp>,
}

/// The scheduled monitors by id.
#[derive(Default)]
pub(super) struct Index {
    /// What it is of.
    schedules: Schedules,
    slots: BTreeMap<MonitorId, u32>,
}

/// What the hub is made of.
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

    /// Reads the members' records anew and closes the connections of those that are no longer enrolled.
    pub(super) async fn reload(&self) {
        // One after the other, so that an older list never takes the place of a newer one.
        let _turn = self.reloading.lock().await;
        let agents = match self.members.agents().await {
            Ok(agents) => agents,
            Err(fault) => {
                error!(%fault, "the members' records can't be read; the mesh goes on with those it has");
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

    /// Seats a session; a session that had the place is closed. None where the agent is not enrolled.
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
                error!(agent = %agent.id, name = agent.name, omitted, "two hosts take one identity from each other; its rounds do not count until that ends");
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

    /// Takes news into an agent's record. Where that fails, the mesh goes on with what it has in memory.
    pub(super) async fn note(&self, agent: AgentId, note: Note) -> Option<Noted> {
        let noted = self.members.note(agent, note).await;
        noted.inspect_err(|fault| error!(%agent, %fault, "an agent's record can't be written")).ok()
    }

    /// Ends a session's seat at once, where it still has it.
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

    /// Closes whatever connection a place has.
    pub(super) fn close(&self, place: PlaceNo, reason: CloseReason) {
        if let Some(live) = self.state().live.get(&place) {
            live.close.send_replace(Some(reason));
        }
    }

    /// Closes every connection.
    pub(super) fn close_all(&self, reason: CloseReason) {
        for live in self.state().live.values() {
            live.close.send_replace(Some(reason));
        }
    }

    /// Hands a question to the place's session. Gives back what is not asked: this one where there is no session, or
    /// one of an account of which too many wait.
    pub(super) fn ask(&self, question: Question) -> Result<(), Question> {
        let account = self.accounts.number(question.account);
        let state = self.state();
        let Some(live) = state.live.get(&question.ask.place) else { return Err(question) };
        live.questions.ask(account, question).map_err(|unasked| match unasked {
            AskError::Evicted(question) => question,
            AskError::Closed(question) => {
                // The task that carried its questions broke off: only a new connection has another.
                live.close.send_replace(Some(CloseReason::Internal));
                question
            }
        })
    }

    /// Sends an answer to the driver without ever waiting for it: the driver may itself be waiting to ask.
    pub(super) fn answer(&self, question: &Question, answer: Answer) {
        let arrival = Arrival::Answer { slot: question.slot, number: question.ask.number, answer };
        if self.answers.try_send(arrival).is_err() {
            Counters::add(&self.counters.answers_lost);
        }
    }

    /// Logs how many lines of a peer were left out where none has followed.
    pub(super) fn report_omitted_lines(&self) {
        for ((agent, kind), omitted) in self.logs.omitted() {
            let agent = agent.map(tracing::field::display);
            info!(agent, kind, omitted, "{omitted} more log lines of this kind were left out");
        }
    }

    /// Changes something in the roster and publishes the mesh where that changed it.
    pub(super) fn with_roster<T>(&self, change: impl FnOnce(&mut Roster) -> T) -> T {
        let mut state = self.state();
        let result = change(&mut state.roster);
        self.publish(&state);
        result
    }

    /// The agents as people see them.
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

    /// The record of an enrolled agent, as the roster has it.
    pub(super) fn record(&self, id: AgentId) -> Option<Arc<Agent>> {
        self.state().roster.agent(id)
    }

    /// The schedule of this moment.
    pub(super) fn schedules(&self) -> Schedules {
        self.schedule.borrow().clone()
    }

    /// The numbers of monitors by id, as of this moment or later. Shared by the batches of all agents.
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that an older schedule never follows a newer one.
        index.follow(self.schedules());
        index
    }

    /// What a place's plan follows from at this moment.
    pub(super) fn basis(&self, place: PlaceNo) -> Basis {
        let schedules = self.schedules();
        let mesh = Arc::clone(&self.mesh.borrow());
        Basis { place: Some(place), schedules, mesh, able: self.able() }
    }

    /// What the connected places can check; every change is told with the mesh.
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
    /// The number of the monitor with that id.
    pub(super) fn slot(&self, id: MonitorId) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    /// The schedule that it is of.
    pub(super) fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Takes over what was edited since the schedule that it is of.
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
