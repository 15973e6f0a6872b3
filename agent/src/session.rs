//! A connection: hello and welcome, then control, results and check-nows in parallel until it ends.

mod asks;
mod control;
mod renewal;
mod results;

use crate::clock::Exchanges;
use crate::departure::Departure;
use crate::home::life_of;
use crate::link::{Link, close_reason};
use crate::probe;
use crate::shared::{Shared, locked};
use crate::wire::{Reader, Received, WireError, send};
use parallax_protocol::ProtocolError;
use parallax_protocol::check::CheckKind;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{Hello, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::OwnFault;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Time limit for the coordinator's first frame.
const WELCOME: Duration = Duration::from_secs(10);

/// Time for the acknowledgement of results at a shutdown.
const FLUSH: Duration = Duration::from_secs(3);

/// Maximum number of queued control frames.
const WAITING: usize = 64;

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// True if the coordinator had accepted this agent.
    pub(crate) welcomed: bool,
    /// True if this side is shutting down.
    pub(crate) stopped: bool,
    /// The reason given by either side, if any.
    pub(crate) reason: Option<CloseReason>,
    /// The end of the membership, reported by the coordinator itself.
    pub(crate) departure: Option<Departure>,
}

/// Reason to stop serving the streams of a connection.
#[derive(Debug)]
enum Stop {
    /// The stream is closed; the connection has the reason.
    Gone,
    /// The peer broke the protocol.
    Broken(ProtocolError),
    /// The coordinator announces that it will close.
    Closing(CloseReason),
    /// The goodbye is sent.
    Done,
    /// The supported check types have changed, which only a new hello can report.
    KindsChanged,
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Stream => Self::Gone,
            WireError::Protocol(error) => Self::Broken(error),
        }
    }
}

/// Serves a connection until it ends or, after `stop`, until everything is flushed. `drained` turns true when
/// no scheduled check runs any more.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    link: &Link,
    stop: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
) -> Ended {
    let mut welcomed = false;
    let stopped = serve(shared, link, stop, drained, &mut welcomed).await.err().unwrap_or(Stop::Done);
    *locked(&shared.connected_since_ms) = None;
    let mut departure = None;
    let (reason, stopped) = match stopped {
        Stop::Done => (CloseReason::Done, true),
        Stop::KindsChanged => {
            link.close(CloseReason::Done).await;
            return Ended { welcomed, stopped: false, reason: None, departure: None };
        }
        Stop::Closing(reason) => {
            departure = Departure::told_by(reason);
            (reason, false)
        }
        Stop::Broken(error) => {
            tracing::error!(%error, "the coordinator violated the protocol");
            (error.close_reason(), false)
        }
        Stop::Gone => {
            // The connection's own end may follow shortly after its streams'.
            let closed = timeout(Duration::from_millis(500), link.connection.closed()).await.ok();
            let reason = closed.as_ref().and_then(close_reason);
            // Before the welcome the peer is not authenticated.
            departure = reason.filter(|_| welcomed).and_then(Departure::told_by);
            return Ended { welcomed, stopped: false, reason, departure };
        }
    };
    link.close(reason).await;
    Ended { welcomed, stopped, reason: Some(reason), departure }
}

async fn serve(
    shared: &Arc<Shared>,
    link: &Link,
    stop: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
    welcomed: &mut bool,
) -> Result<(), Stop> {
    let (mut sending, receiving) = link.connection.open_bi().await.map_err(|_| Stop::Gone)?;
    // A closed stream has no priority to set; the write reports it.
    let _ = sending.set_priority(2);
    let mut exchanges = Exchanges::default();
    // Subscribed before the hello lists the faults: one that appears in the meantime is sent after it.
    let mut faults = shared.faults.subscribe();
    let mut resolves = shared.resolves_records.subscribe();
    resolves.mark_unchanged();
    let hello = hello(shared, link.mesh_version(), faults.borrow_and_update().clone());
    let sent_us = shared.clock.mono_us();
    send(&mut sending, &ToCoordinator::Hello(hello), MAX_FRAME).await?;
    let mut reader = Reader::new(receiving, MAX_FRAME);
    let first = timeout(WELCOME, reader.next::<ToAgent>()).await;
    let welcome = match first.map_err(|_| Stop::Closing(CloseReason::TimedOut))?? {
        Received::Value(ToAgent::Welcome(welcome)) => welcome,
        Received::Value(ToAgent::Closing { reason }) => return Err(Stop::Closing(reason)),
        Received::Value(_) => return Err(Stop::Closing(CloseReason::OutOfOrder)),
        Received::End => return Err(Stop::Gone),
    };
    *welcomed = true;
    control::welcomed(shared, &welcome, &mut exchanges, sent_us)?;
    accept_marks(shared, &welcome);
    let (to_coordinator, outgoing) = mpsc::channel(WAITING);
    tokio::select! {
        end = control::read(shared, reader, exchanges, to_coordinator.clone()) => end,
        end = control::write(sending, outgoing) => end,
        end = control::ticks(shared, faults, to_coordinator.clone()) => end,
        end = renewal::watch(shared, to_coordinator.clone()) => end,
        end = results::send_all(shared, link, welcome.book, to_coordinator.clone()) => end,
        end = asks::serve(shared, link, stop.clone()) => end,
        end = goodbye(shared, stop, drained, to_coordinator.clone()) => end,
        Ok(()) = resolves.changed() => Err(Stop::KindsChanged),
    }
}

fn hello(shared: &Shared, version: u16, faults: Vec<OwnFault>) -> Hello {
    let ends = life_of(&shared.membership().credentials).map_or(0, |life| life.not_after);
    let (boot, earlier_boots) = {
        let queue = shared.queue();
        (queue.boot(), queue.earlier_boots())
    };
    let held = {
        let schedule = shared.schedule();
        // A schedule of an older version lacks the accounts: request a whole one.
        schedule.held().filter(|_| version < 2 || schedule.names_accounts())
    };
    Hello {
        software: env!("CARGO_PKG_VERSION").to_owned(),
        boot,
        earlier_boots,
        held,
        wall_ms: shared.clock.wall_ms(),
        kinds: kinds(shared.net.may_ping(), *shared.resolves_records.borrow()),
        faults,
        certificate_ends_ms: ends.saturating_mul(1000),
    }
}

/// Returns the check types that work from here: ping only if the host permits it, dns only if name servers
/// answer.
fn kinds(may_ping: bool, resolves_records: bool) -> Vec<CheckKind> {
    let can = |kind: &CheckKind| match kind {
        CheckKind::Ping => may_ping,
        CheckKind::Dns => resolves_records,
        _ => true,
    };
    probe::KINDS.iter().copied().filter(can).collect()
}

fn accept_marks(shared: &Shared, welcome: &Welcome) {
    let mut queue = shared.queue();
    for &mark in &welcome.marks {
        if let Err(error) = queue.acknowledge(mark) {
            tracing::error!(%error, "acknowledged results could not be removed from disk");
        }
    }
    queue.rewind();
    drop(queue);
    *locked(&shared.connected_since_ms) = Some(shared.clock.coordinator_ms());
    shared.counts.connections.fetch_add(1, Ordering::Relaxed);
    tracing::info!(name = welcome.name, region = %welcome.region, network = welcome.network, mesh = welcome.mesh,
        "connected to the mesh");
}

/// After `stop`: waits for the running checks, then for their acknowledgement, then says goodbye. The writer
/// ends the session once the goodbye is sent.
async fn goodbye(
    shared: &Shared,
    mut stop: watch::Receiver<bool>,
    mut drained: watch::Receiver<bool>,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), Stop> {
    // An error means that the sender is dropped, which is a shutdown too.
    let _ = stop.wait_for(|&stopped| stopped).await;
    let _ = drained.wait_for(|&drained| drained).await;
    let flushed = async {
        while shared.queue().waiting() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(FLUSH, flushed).await.is_err() {
        tracing::info!("some results were not acknowledged in time; they are sent after the next start");
    }
    to_coordinator.send(ToCoordinator::Goodbye).await.map_err(|_| Stop::Gone)?;
    std::future::pending().await
}
