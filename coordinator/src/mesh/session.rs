//! A session: one agent's connection, from its `Hello` to its close.

mod credentials;
mod dismissal;
mod greeting;
mod reports;
mod seen;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parallax_certs::identity::Identity;
use parallax_core::id::AgentId;
use parallax_core::member::{Agent, Note};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::id as wire_id;
use parallax_protocol::message::{HeldSchedule, Hello, TimeAnswer, ToAgent, ToCoordinator, Welcome};
use quinn::{Connection, SendStream};
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tracing::{debug, error, info, warn};

use self::credentials::{Certificates, expired};
use self::greeting::{check_bounds, greet};
use self::reports::FitnessPace;
use self::seen::SeenAddress;
use super::hub::{Hub, Memory};
use super::listener::mesh_version;
use super::roster::Arrived;
use super::wire::{self, Fault, Frames};
use super::{Counters, able, convert, results, second};

/// Time limit from the handshake to the `Hello`.
const HELLO: Duration = Duration::from_secs(5);
/// Time for which schedule and mesh changes are batched before the agent is sent them.
const COLLECT: Duration = Duration::from_millis(250);
/// Time that an agent may take after its goodbye to receive the last acknowledgements.
const LEAVE: Duration = Duration::from_secs(5);
/// Snapshots that an agent may request per connection.
const MOST_SNAPSHOTS: u32 = 20;
/// Faults or check types that an agent may list, at most.
const MOST_NAMED: usize = 32;

/// Serves an agent's connection, then closes it. `authority` is the key hash of the authority that issued its
/// certificate.
pub(super) async fn run(
    hub: Arc<Hub>,
    connection: Connection,
    identity: Identity,
    authority: Option<[u8; 32]>,
) {
    let certificates = Certificates::new(&identity, authority);
    let mut opened = None;
    let fault = match admit(&hub, &connection, &identity, certificates, &mut opened).await {
        Ok(session) => session.serve().await,
        Err(fault) => {
            if matches!(fault.reason(), CloseReason::Revoked | CloseReason::Unknown) {
                Counters::add(&hub.counters.not_enrolled);
                if dismissal::is_due(&hub, &identity, fault.reason()).await {
                    dismissal::tell(&connection, fault.reason(), opened).await;
                }
            }
            fault
        }
    };
    let (remote, agent) = (connection.remote_address(), &identity.agent);
    let enrolled = agent.parse().ok().filter(|id| hub.record(*id).is_some());
    match &fault {
        Fault::Lost => debug!(%remote, agent, "connection ended"),
        Fault::Close(reason) => {
            if let Some(omitted) = hub.logs.admit((enrolled, "closed")) {
                info!(%remote, agent, %reason, omitted, "connection closed");
            }
        }
        Fault::Protocol(error) => {
            Counters::add(&hub.counters.frames_refused);
            if let Some(omitted) = hub.logs.admit((enrolled, "protocol")) {
                warn!(%remote, agent, %error, omitted, "connection closed: the agent violated the protocol");
            }
        }
    }
    wire::close(&connection, fault.reason());
}

/// A registered agent's session.
struct Session {
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    connection: Connection,
    /// Version of the mesh protocol.
    version: u16,
    control: SendStream,
    frames: Frames,
    memory: Arc<Memory>,
    closing: watch::Receiver<Option<CloseReason>>,
    seated: Seated,
    seen: SeenAddress,
    hello: Hello,
    snapshots: u32,
    certificates: Certificates,
    leaves_at: Option<Instant>,
    fitness: FitnessPace,
}

/// A session's registration, which ends with it: however a session ends, its agent must not count as connected.
struct Seated {
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    number: u64,
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.hub.disconnect(&self.agent, self.number);
    }
}

/// Checks the identity against the records, receives the `Hello` and registers the session. If that fails later,
/// `opened` has the control stream.
async fn admit(
    hub: &Arc<Hub>,
    connection: &Connection,
    identity: &Identity,
    certificates: Certificates,
    opened: &mut Option<(SendStream, Frames)>,
) -> Result<Session, Fault> {
    let id: AgentId = identity.agent.parse().map_err(|_| Fault::Close(CloseReason::Unknown))?;
    let agent = enrolled(hub, id).await?;
    let (control, frames, hello) =
        timeout(HELLO, greet(connection)).await.map_err(|_| Fault::Close(CloseReason::TimedOut))??;
    check_bounds(&hello)?;
    let arrived = Arrived {
        session: 0,
        at: hub.clock.now(),
        remote: connection.remote_address(),
        software: hello.software.clone(),
        boot: hello.boot,
        kinds: hello.kinds.iter().copied().map(able::kind).collect(),
        faults: hello.faults.clone(),
    };
    if hub.record(id).is_none() {
        hub.reload().await;
    }
    let Some(seat) = hub.connect(&agent, arrived) else {
        // Revoked meanwhile, or the records could not be reloaded; in that case the agent must not be reported as
        // unknown.
        *opened = Some((control, frames));
        enrolled(hub, id).await?;
        return Err(Fault::Close(CloseReason::Internal));
    };
    let seated = Seated { hub: Arc::clone(hub), agent: Arc::clone(&agent), number: seat.session };
    if let Some(until) = seat.shared_until {
        hub.note(id, Note::Shared(Some(until))).await;
    }
    certificates.note_shown(hub, &agent).await;
    let connection = connection.clone();
    tokio::spawn(second::run(Arc::clone(hub), Arc::clone(&agent), connection.clone(), seat.questions));
    if let Some(omitted) = hub.logs.admit((Some(agent.id), "connected")) {
        info!(agent = %agent.id, name = agent.name, software = hello.software, omitted, "agent connected");
    }
    Ok(Session {
        hub: Arc::clone(hub),
        agent,
        seen: SeenAddress::new(&connection),
        version: mesh_version(&connection),
        connection,
        control,
        frames,
        memory: seat.memory,
        closing: seat.close,
        seated,
        hello,
        snapshots: 0,
        certificates,
        leaves_at: None,
        fitness: FitnessPace::default(),
    })
}

/// Returns the agent's record if it may connect.
async fn enrolled(hub: &Hub, id: AgentId) -> Result<Arc<Agent>, Fault> {
    match hub.members.agent(id).await {
        Ok(Some(agent)) if agent.revoked_at.is_none() => Ok(Arc::new(agent)),
        Ok(Some(_)) => Err(Fault::Close(CloseReason::Revoked)),
        Ok(None) => Err(Fault::Close(CloseReason::Unknown)),
        Err(fault) => {
            error!(%fault, "an agent's record can't be read");
            Err(Fault::Close(CloseReason::Internal))
        }
    }
}

impl Session {
    /// Serves the session until it ends, then unregisters it at once.
    async fn serve(mut self) -> Fault {
        let (hub, agent) = (Arc::clone(&self.hub), Arc::clone(&self.agent));
        let mut closing = self.closing.clone();
        let stream = self.connection.clone();
        let (memory, over) = (Arc::clone(&self.memory), self.closing.clone());
        let received = async {
            let stream = stream.accept_uni().await.map_err(|_| Fault::Lost)?;
            results::receive(Arc::clone(&hub), Arc::clone(&agent), memory, over, stream).await?;
            // The agent has ended its results stream but not the session.
            pending::<Result<(), Fault>>().await
        };
        let ends = self.certificates.ends();
        tokio::select! {
            fault = self.talk() => fault,
            Err(fault) = received => fault,
            reason = told(&mut closing) => Fault::Close(reason),
            () = expired(&hub, &ends) => Fault::Close(CloseReason::Expired),
        }
    }

    async fn talk(&mut self) -> Fault {
        match self.try_talk().await {
            Ok(never) => match never {},
            Err(fault) => fault,
        }
    }

    async fn try_talk(&mut self) -> Result<std::convert::Infallible, Fault> {
        // If it was revoked between the look-up and the registration, no one else would close this connection.
        enrolled(&self.hub, self.agent.id).await?;
        let mut schedule = self.hub.schedule.clone();
        let mut mesh = self.hub.mesh.subscribe();
        let mut trusted = self.hub.trusted.subscribe();
        let mut stepped = self.hub.steps.subscribe();
        self.welcome().await?;
        // Before the schedule: the agent must know which addresses not to check before it checks.
        self.tell_address().await?;
        self.tell_authorities().await?;
        let held = HeldSchedule { book: self.hub.settings.book, revision: self.memory.sheet().revision() };
        let (is_held, steady) = (self.hello.held == Some(held), self.hub.clock.steady());
        let holds_ours = self.hello.held.is_some_and(|claimed| claimed.book == held.book);
        self.memory.assignments().connect(holds_ours, steady);
        if is_held {
            self.memory.assignments().confirm(held.revision, steady);
        }
        self.plan(!is_held).await?;
        let mut plan_at: Option<Instant> = None;
        let mut tick = interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                frame = self.frames.next() => match frame? {
                    Some(frame) => self.hear(frame).await?,
                    None => return Err(Fault::Close(CloseReason::Done)),
                },
                () = self.memory.due.notified() => self.acknowledge().await?,
                Ok(()) = schedule.changed() => { plan_at.get_or_insert(Instant::now() + COLLECT); }
                Ok(()) = mesh.changed() => { plan_at.get_or_insert(Instant::now() + COLLECT); }
                Ok(()) = trusted.changed() => self.tell_authorities().await?,
                Ok(()) = stepped.changed() => self.say(&ToAgent::Time(self.time(TimeAnswer::UNASKED))).await?,
                () = until(plan_at) => {
                    plan_at = None;
                    self.plan(false).await?;
                }
                // An acknowledgement may have been announced to a session that has since been replaced.
                _ = tick.tick() => {
                    self.hub.steps.look(&self.hub.clock);
                    self.tell_address().await?;
                    self.memory.assignments().expire(self.hub.clock.steady());
                    self.note_due_fitness();
                    self.acknowledge().await?;
                }
                () = until(self.leaves_at) => return Err(Fault::Close(CloseReason::Done)),
            }
        }
    }

    async fn welcome(&mut self) -> Result<(), Fault> {
        let marks = self.memory.ledger().begin(&self.hello);
        let settings = &self.hub.settings;
        let welcome = Welcome {
            agent: wire_id::AgentId(self.agent.id.to_u128()),
            name: self.agent.name.clone(),
            region: convert::region(self.agent.region),
            network: self.agent.network.clone(),
            mesh: settings.name.clone(),
            software: settings.software.clone(),
            coordinator_ms: self.hub.clock.now().as_millis(),
            book: settings.book,
            marks,
        };
        self.say(&ToAgent::Welcome(welcome)).await
    }

    async fn hear(&mut self, frame: ToCoordinator) -> Result<(), Fault> {
        match frame {
            ToCoordinator::Hello(_) => Err(Fault::Close(CloseReason::OutOfOrder)),
            ToCoordinator::ScheduleHeld { book, revision } => {
                if book == self.hub.settings.book {
                    self.memory.assignments().confirm(revision, self.hub.clock.steady());
                }
                debug!(agent = %self.agent.id, revision, "schedule in force");
                Ok(())
            }
            ToCoordinator::ScheduleLost { .. } => {
                self.snapshots += 1;
                if self.snapshots > MOST_SNAPSHOTS {
                    return Err(Fault::Close(CloseReason::RateLimited));
                }
                self.plan(true).await
            }
            ToCoordinator::TimeAsk { sent_us } => self.say(&ToAgent::Time(self.time(sent_us))).await,
            ToCoordinator::TimeReport(report) => {
                self.note_skew(report.skew_ms);
                Ok(())
            }
            ToCoordinator::Renew { csr_der } => self.renew(&csr_der).await,
            ToCoordinator::Holds(holds) => self.note_held(holds).await,
            ToCoordinator::Gap(gap) => self.gap(gap).await,
            ToCoordinator::Fitness { faults } => {
                self.hear_fitness(faults);
                Ok(())
            }
            ToCoordinator::Goodbye => {
                // Its rounds move to others at once; results in flight are still acknowledged.
                self.hub.disconnect(&self.agent, self.seated.number);
                self.leaves_at = Some(Instant::now() + LEAVE);
                Ok(())
            }
        }
    }

    fn time(&self, echo_us: u64) -> TimeAnswer {
        TimeAnswer { echo_us, coordinator_ms: self.hub.clock.now().as_millis() }
    }

    /// Sends the difference to the agent's plan, or the whole plan.
    async fn plan(&mut self, whole: bool) -> Result<(), Fault> {
        let basis = self.hub.basis(self.agent.place);
        let difference = {
            let mut sheet = self.memory.sheet();
            let next = basis.clone();
            let difference = if whole { Some(sheet.snapshot(basis)) } else { sheet.update(basis) };
            if let Some(difference) = &difference {
                self.memory.assignments().send(&next, difference.revision, self.hub.clock.steady());
            }
            difference
        };
        let (book, accounts) = (self.hub.settings.book, &self.hub.accounts);
        let change = difference.map(|difference| convert::change(book, difference, accounts));
        let parts = change.map(|change| change.split()).transpose()?.unwrap_or_default();
        for change in parts {
            let frame = if self.version >= 2 {
                ToAgent::ScheduleByAccount { accounts: change.accounts(), change }
            } else {
                ToAgent::Schedule(change)
            };
            self.say(&frame).await?;
        }
        Ok(())
    }

    async fn acknowledge(&mut self) -> Result<(), Fault> {
        // Only the newest session acknowledges.
        if self.closing.borrow().is_some() {
            return Ok(());
        }
        let due = self.memory.ledger().take_due();
        for mark in due {
            self.say(&ToAgent::Ack(mark)).await?;
        }
        Ok(())
    }

    async fn tell_address(&mut self) -> Result<(), Fault> {
        match self.seen.news(&self.connection) {
            Some(frame) => self.say(&frame).await,
            None => Ok(()),
        }
    }

    async fn say(&mut self, frame: &ToAgent) -> Result<(), Fault> {
        wire::write(&mut self.control, frame, MAX_FRAME).await
    }
}

/// Waits until this connection is to be closed.
async fn told(closing: &mut watch::Receiver<Option<CloseReason>>) -> CloseReason {
    match closing.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(reason)) => reason,
        // The session was unregistered without a close reason: after a goodbye. The rest of it ends by itself.
        Ok(None) | Err(_) => pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}
