//! The engine's main loop: the driver owns every machine of its shard, waits for one event at a time and applies it.
//!
//! While a commit is in flight, outputs gather for the next one, so a busy driver writes larger groups and an idle one
//! waits for nothing. When too much has gathered, the driver stops reading its inbox, and the mesh applies
//! backpressure to the agents.

mod edits;
mod looks;
mod names;
mod pings;
mod places;
mod presence;
mod queries;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parallax_core::event::Answer;
use parallax_core::quarantine::Suspects;
use parallax_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::history::History;
use crate::storage::{Op, Store, StoreError};

use super::commit::{self, Underway};
use super::counters::Counters;
use super::machines::{Cx, Harvest, Machines};
use super::places::Places;
use super::shard::Shard;
use super::tokens::Tokens;
use super::warmup::{self, Judging};
use super::{Arrival, Ping, Query, Question, Schedules};

/// Readings, events and pings per commit, at most. Beyond that the inbox waits for the commit in flight.
const HARVEST: usize = 8192;
/// Arrivals processed before the driver looks at its other inputs again.
const AT_ONCE: usize = 64;
/// Interval at which the driver records that it is alive and checks the clock, whatever the timetable says.
const UPKEEP: Duration = Duration::from_secs(5);

/// The driver's channels.
#[derive(Debug)]
pub struct Channels {
    /// Input from the mesh and from HTTP.
    pub inbox: mpsc::Receiver<Arrival>,
    /// Queries for machine state.
    pub queries: mpsc::Receiver<Query>,
    /// Probe requests for the mesh.
    pub questions: mpsc::Sender<Question>,
    /// The schedule that agents are to run.
    pub schedules: watch::Sender<Schedules>,
    /// Suspected vantages, for the mesh: it deals shadow rounds to those in quarantine and logs their names.
    pub suspects: watch::Sender<Arc<Suspects>>,
    /// Stops the driver: it commits what it has and returns.
    pub shutdown: watch::Receiver<bool>,
}

/// The owner of all machines.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    store: Store,
    history: Arc<History>,
    judging: Judging,
    shard: Shard,
    machines: Machines,
    places: Places,
    cursor: u64,
    harvest: Harvest,
    durable: Vec<oneshot::Sender<()>>,
    underway: Option<Underway>,
    extra: Vec<Op>,
    /// Pings of monitors that are not known here yet.
    early: Vec<Ping>,
    pace: pings::Pace,
    looks: looks::Looks,
    names: names::Names,
    tokens: Tokens,
    counters: Arc<Counters>,
    /// The moment at which to read edits; `None` if there are none to read.
    behind: Option<Instant>,
    /// Queries that must reflect edits which were not read yet.
    waiting: Vec<Query>,
    alive_noted: Timestamp,
    /// The wall clock and the monotonic clock at the last check.
    looked: (Timestamp, i64),
}

enum Beat {
    Arrived(usize),
    Asked(Query),
    Landed(Result<commit::Landed, StoreError>),
    Edited,
    Time,
    Stop,
}

impl Driver {
    /// Restores every machine of the shard from storage. Until the mesh reports, no vantage is connected.
    pub async fn start(
        clock: Clock,
        store: Store,
        history: Arc<History>,
        judging: Judging,
        shard: Shard,
    ) -> Result<Self, StoreError> {
        let start = store.read(move |read| warmup::begin(read, judging, shard)).await?;
        let counters = Arc::<Counters>::default();
        let looked = (clock.now(), clock.steady());
        let mut driver = Self {
            clock,
            store,
            history,
            judging,
            shard,
            machines: Machines::default(),
            places: Places::new(judging.confirmation, Arc::clone(&counters)),
            cursor: start.cursor,
            harvest: Harvest::default(),
            durable: Vec::new(),
            underway: None,
            extra: Vec::new(),
            early: Vec::new(),
            pace: pings::Pace::default(),
            looks: looks::Looks::default(),
            names: names::Names::default(),
            tokens: Tokens::default(),
            counters,
            behind: None,
            waiting: Vec::new(),
            alive_noted: Timestamp::default(),
            looked,
        };
        driver.wake(start).await?;
        driver.replay().await?;
        Ok(driver)
    }

    /// Returns the tokens of all heartbeats; the driver keeps them current.
    pub fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }

    /// Returns the engine's counters; the driver keeps them current.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Returns the schedule that agents are to run.
    pub fn schedule(&self) -> Schedules {
        self.machines.schedule().clone()
    }

    /// Runs until it is told to stop or the store is closed.
    pub async fn run(mut self, mut channels: Channels) {
        let mut edits = self.store.edits_seen();
        let mut arrivals = Vec::with_capacity(AT_ONCE);
        self.publish(&channels);
        loop {
            let beat = self.wait(&mut channels, &mut edits, &mut arrivals).await;
            self.counters.turns.fetch_add(1, Ordering::Relaxed);
            // First of all: a ping that arrives after a stall of the coordinator must not find its deadline passed.
            self.mind_the_clock().await;
            match beat {
                Beat::Arrived(0) | Beat::Stop => break,
                Beat::Landed(Err(error)) => {
                    // Without its store the coordinator is useless: it ends with a failing exit code.
                    tracing::error!(%error, "results can't be stored; the coordinator stops");
                    self.underway = None;
                    return;
                }
                Beat::Arrived(_) => {
                    self.take_in(&mut arrivals, &channels);
                    self.meet_newcomers(&channels).await;
                }
                Beat::Asked(query) => self.take_query(query),
                Beat::Landed(Ok(landed)) => self.land(landed),
                Beat::Edited => self.behind = Some(Instant::now()),
                Beat::Time => {}
            }
            self.catch_up(&channels).await;
            self.with(Machines::fire);
            self.answer_waiting();
            self.judge_places(&channels);
            self.expire_names();
            self.ask(&channels);
            self.write_due_pings(false);
            self.show(&channels);
            self.commit();
        }
        self.finish().await;
    }

    fn land(&mut self, landed: commit::Landed) {
        self.underway = None;
        self.counters.commits.note(landed.took);
        self.counters.events.fetch_add(landed.events as u64, Ordering::Relaxed);
        for (entry, readings) in landed.entries {
            self.counters.readings.fetch_add(readings.len() as u64, Ordering::Relaxed);
            self.history.append(&readings, entry);
        }
    }

    /// Publishes the driver's state in the counters.
    fn show(&self, channels: &Channels) {
        self.counters.set_monitors(self.machines.by_status());
        self.counters.backlog.store(channels.inbox.len() as u64, Ordering::Relaxed);
        self.counters.harvest.store(self.gathered() as u64, Ordering::Relaxed);
    }

    /// Counts what waits for the next commit.
    fn gathered(&self) -> usize {
        self.harvest.readings.len() + self.harvest.events.len() + self.extra.len()
    }

    async fn wait(
        &mut self,
        channels: &mut Channels,
        edits: &mut watch::Receiver<u64>,
        arrivals: &mut Vec<Arrival>,
    ) -> Beat {
        let full = self.gathered() >= HARVEST;
        let next = self.machines.next_timeout().into_iter().chain(self.places.next_timeout()).min();
        let until_next = next.map_or(UPKEEP, |at| {
            Duration::from_millis(at.since(self.clock.now()).max(0).unsigned_abs()).min(UPKEEP)
        });
        let again = self.behind.map(|at| at.saturating_duration_since(Instant::now()));
        let until_next = again.map_or(until_next, |again| again.min(until_next));
        let until_next = self.pace.next(Instant::now()).map_or(until_next, |held| held.min(until_next));
        tokio::select! {
            biased;
            _ = channels.shutdown.wait_for(|stop| *stop) => Beat::Stop,
            landed = landed(&mut self.underway) => Beat::Landed(landed),
            Some(query) = channels.queries.recv() => Beat::Asked(query),
            Ok(()) = edits.changed() => Beat::Edited,
            count = channels.inbox.recv_many(arrivals, AT_ONCE), if !full => Beat::Arrived(count),
            () = tokio::time::sleep(until_next) => Beat::Time,
        }
    }

    fn take_in(&mut self, arrivals: &mut Vec<Arrival>, channels: &Channels) {
        for arrival in arrivals.drain(..) {
            match arrival {
                Arrival::Results(batch) => {
                    let shadow = self.places.is_quarantined(batch.place);
                    for (slot, mut observation) in batch.observations {
                        if shadow {
                            self.hear_shadow(slot, &observation, channels);
                            continue;
                        }
                        self.mind_names(slot, &mut observation);
                        let taken = self.with(|machines, cx| machines.observe(slot, observation, cx));
                        if let Err(reason) = taken {
                            tracing::debug!(slot, ?reason, "an observation was dropped");
                        }
                    }
                    self.durable.push(batch.durable);
                }
                Arrival::Answer { number, answer, .. } if self.looks.hear(number, &answer) => {}
                Arrival::CheckNow(wanted) => self.look(wanted),
                Arrival::Answer { slot, number, mut answer } => {
                    if let Answer::Seen(seen) = &mut answer {
                        self.mind_names(slot, seen);
                    }
                    self.with(|machines, cx| machines.answer(slot, number, answer, cx));
                }
                Arrival::Ping(ping) => self.hear_ping(*ping),
                Arrival::Able(able) => self.looks.able = able,
                Arrival::Mesh(mesh) => {
                    if self.places.set_roster(mesh) {
                        self.with(Machines::mesh_changed);
                    }
                }
            }
        }
    }

    fn ask(&mut self, channels: &Channels) {
        for question in self.harvest.questions.drain(..) {
            let (slot, number) = (question.slot, question.ask.number);
            if channels.questions.try_send(question).is_err() {
                // The machine's own deadline moves on to the next vantage.
                self.looks.hear(number, &Answer::Nothing);
                tracing::warn!(
                    slot,
                    number,
                    "a probe request was dropped: too many are waiting for the mesh"
                );
            }
        }
    }

    fn commit(&mut self) {
        let nothing = self.durable.is_empty() && self.extra.is_empty() && self.harvest.changed.is_empty();
        if self.underway.is_some()
            || (nothing && self.harvest.readings.is_empty() && self.harvest.events.is_empty())
        {
            return;
        }
        let harvest = std::mem::take(&mut self.harvest);
        let durable = std::mem::take(&mut self.durable);
        let extra = std::mem::take(&mut self.extra);
        self.underway = commit::begin(&self.store, &self.machines, harvest, durable, extra);
    }

    /// Commits what is left, so that a stop loses no accepted input.
    async fn finish(mut self) {
        self.write_due_pings(true);
        for _ in 0..2 {
            if self.underway.is_some() {
                let landed = landed(&mut self.underway).await;
                self.underway = None;
                match landed {
                    Ok(landed) => self.land(landed),
                    Err(error) => {
                        tracing::warn!(%error, "the last results could not be stored; agents will resend them")
                    }
                }
            }
            self.commit();
        }
        if self.underway.is_some() && landed(&mut self.underway).await.is_err() {
            tracing::warn!("the last results could not be stored; agents will resend them");
        }
    }

    /// Restores all monitors, some at a time.
    async fn wake(&mut self, start: warmup::Start) -> Result<(), StoreError> {
        let (start, mut after) = (Arc::new(start), None);
        loop {
            let start = Arc::clone(&start);
            let Some(stored) = self.store.read(move |read| start.next(read, after)).await? else {
                return Ok(());
            };
            after = Some(stored.last);
            stored.monitors().for_each(|monitor| self.tokens.put(monitor));
            self.with(|machines, cx| stored.wake(machines, cx));
        }
    }

    async fn replay(&mut self) -> Result<(), StoreError> {
        let mut seq = 0;
        loop {
            let entries = self.store.read(move |read| read.readings_after(seq, 64)).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            seq = last.seq;
            entries
                .iter()
                .flat_map(|entry| &entry.readings)
                .for_each(|reading| self.machines.replay(reading));
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Machines, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx { now: self.clock.now(), mesh: self.places.mesh(), harvest: &mut self.harvest };
        act(&mut self.machines, &mut cx)
    }
}

/// Waits for the commit in flight; never returns if there is none.
async fn landed(underway: &mut Option<Underway>) -> Result<commit::Landed, StoreError> {
    match underway {
        Some(underway) => underway.landed().await,
        None => std::future::pending().await,
    }
}
