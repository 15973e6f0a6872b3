//! A connection: hello and welcome, then control, results and check-nows in parallel until it ends.

mod check_now;
mod control;
mod outgoing;
mod renewal;
mod results;

use crate::clock::TimeExchanges;
use crate::connection::{CoordinatorConnection, close_reason};
use crate::context::{AgentContext, lock};
use crate::data_folder::validity_of;
use crate::departure::Departure;
use crate::probe;
use crate::wire::{FrameStreamError, FrameStreamReader, StreamRead, send};
use parallax_protocol::ProtocolError;
use parallax_protocol::check::WireCheckKind;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{AgentHello, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::WireOwnFault;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Time limit for the coordinator's first frame.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the acknowledgement of results at a shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of queued control frames.
const MAX_QUEUED_FRAMES: usize = 64;

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionEnd {
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
enum SessionStop {
    /// The stream is closed; the connection has the reason.
    StreamClosed,
    /// The peer broke the protocol.
    ProtocolViolation(ProtocolError),
    /// The coordinator announces that it will close.
    Closing(CloseReason),
    /// The goodbye is sent.
    Done,
    /// The supported check types have changed, which only a new hello can report.
    KindsChanged,
}

impl From<FrameStreamError> for SessionStop {
    fn from(error: FrameStreamError) -> Self {
        match error {
            FrameStreamError::Closed => Self::StreamClosed,
            FrameStreamError::Protocol(error) => Self::ProtocolViolation(error),
        }
    }
}

/// Serves a connection until it ends or, after `stop`, until everything is flushed. `drained` turns true when
/// no scheduled check runs any more.
pub(crate) async fn run(
    shared: &Arc<AgentContext>,
    link: &CoordinatorConnection,
    stop: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
) -> SessionEnd {
    let mut welcomed = false;
    let stopped = serve(shared, link, stop, drained, &mut welcomed).await.err().unwrap_or(SessionStop::Done);
    *lock(&shared.connected_since_ms) = None;
    let mut departure = None;
    let (reason, stopped) = match stopped {
        SessionStop::Done => (CloseReason::Done, true),
        SessionStop::KindsChanged => {
            link.close(CloseReason::Done).await;
            return SessionEnd { welcomed, stopped: false, reason: None, departure: None };
        }
        SessionStop::Closing(reason) => {
            departure = Departure::from_close_reason(reason);
            (reason, false)
        }
        SessionStop::ProtocolViolation(error) => {
            tracing::error!(%error, "the coordinator violated the protocol");
            (error.close_reason(), false)
        }
        SessionStop::StreamClosed => {
            // The connection's own end may follow shortly after its streams'.
            let closed = timeout(Duration::from_millis(500), link.connection.closed()).await.ok();
            let reason = closed.as_ref().and_then(close_reason);
            // Before the welcome the peer is not authenticated.
            departure = reason.filter(|_| welcomed).and_then(Departure::from_close_reason);
            return SessionEnd { welcomed, stopped: false, reason, departure };
        }
    };
    link.close(reason).await;
    SessionEnd { welcomed, stopped, reason: Some(reason), departure }
}

async fn serve(
    shared: &Arc<AgentContext>,
    link: &CoordinatorConnection,
    stop: watch::Receiver<bool>,
    drained: watch::Receiver<bool>,
    welcomed: &mut bool,
) -> Result<(), SessionStop> {
    let (mut sending, receiving) = link.connection.open_bi().await.map_err(|_| SessionStop::StreamClosed)?;
    // A closed stream has no priority to set; the write reports it.
    let _ = sending.set_priority(2);
    let mut exchanges = TimeExchanges::default();
    // Subscribed before the hello lists the faults: one that appears in the meantime is sent after it.
    let mut faults = shared.faults.subscribe();
    let mut resolves = shared.resolves_records.subscribe();
    resolves.mark_unchanged();
    let hello = hello(shared, link.mesh_version(), faults.borrow_and_update().clone());
    let sent_us = shared.clock.mono_us();
    send(&mut sending, &ToCoordinator::Hello(hello), MAX_FRAME).await?;
    let mut reader = FrameStreamReader::new(receiving, MAX_FRAME);
    let first = timeout(WELCOME_TIMEOUT, reader.next::<ToAgent>()).await;
    let welcome = match first.map_err(|_| SessionStop::Closing(CloseReason::TimedOut))?? {
        StreamRead::Value(ToAgent::Welcome(welcome)) => welcome,
        StreamRead::Value(ToAgent::Closing { reason }) => return Err(SessionStop::Closing(reason)),
        StreamRead::Value(_) => return Err(SessionStop::Closing(CloseReason::OutOfOrder)),
        StreamRead::End => return Err(SessionStop::StreamClosed),
    };
    *welcomed = true;
    control::apply_welcome(shared, &welcome, &mut exchanges, sent_us)?;
    accept_marks(shared, &welcome);
    let (to_coordinator, outgoing) = mpsc::channel(MAX_QUEUED_FRAMES);
    tokio::select! {
        end = control::read(shared, reader, exchanges, to_coordinator.clone()) => end,
        end = outgoing::write(sending, outgoing) => end,
        end = control::report_periodically(shared, faults, to_coordinator.clone()) => end,
        end = renewal::request_when_due(shared, to_coordinator.clone()) => end,
        end = results::send_all(shared, link, welcome.slot_epoch, to_coordinator.clone()) => end,
        end = check_now::serve(shared, link, stop.clone()) => end,
        end = goodbye(shared, stop, drained, to_coordinator.clone()) => end,
        Ok(()) = resolves.changed() => Err(SessionStop::KindsChanged),
    }
}

fn hello(shared: &AgentContext, version: u16, faults: Vec<WireOwnFault>) -> AgentHello {
    let ends = validity_of(&shared.membership().credentials).map_or(0, |life| life.not_after);
    let (boot, earlier_boots) = {
        let queue = shared.queue();
        (queue.boot(), queue.earlier_boots())
    };
    let schedule_version = {
        let schedule = shared.schedule();
        // A schedule of an older version lacks the accounts: request a whole one.
        schedule.version().filter(|_| version < 2 || schedule.has_accounts())
    };
    AgentHello {
        software: env!("CARGO_PKG_VERSION").to_owned(),
        boot,
        earlier_boots,
        schedule: schedule_version,
        wall_ms: shared.clock.wall_ms(),
        kinds: supported_kinds(shared.probes.may_ping(), *shared.resolves_records.borrow()),
        faults,
        certificate_ends_ms: ends.saturating_mul(1000),
    }
}

/// Returns the check types that work from here: ping only if the host permits it, dns only if name servers
/// answer.
fn supported_kinds(may_ping: bool, resolves_records: bool) -> Vec<WireCheckKind> {
    let can = |kind: &WireCheckKind| match kind {
        WireCheckKind::Ping => may_ping,
        WireCheckKind::Dns => resolves_records,
        _ => true,
    };
    probe::KINDS.iter().copied().filter(can).collect()
}

fn accept_marks(shared: &AgentContext, welcome: &Welcome) {
    let mut queue = shared.queue();
    for &mark in &welcome.watermarks {
        if let Err(error) = queue.acknowledge(mark) {
            tracing::error!(%error, "acknowledged results could not be removed from disk");
        }
    }
    queue.rewind();
    drop(queue);
    *lock(&shared.connected_since_ms) = Some(shared.clock.coordinator_ms());
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    tracing::info!(name = welcome.name, region = %welcome.region, network = welcome.network, mesh = welcome.mesh,
        "connected to the mesh");
}

/// After `stop`: waits for the running checks, then for their acknowledgement, then says goodbye. The writer
/// ends the session once the goodbye is sent.
async fn goodbye(
    shared: &AgentContext,
    mut stop: watch::Receiver<bool>,
    mut drained: watch::Receiver<bool>,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), SessionStop> {
    // An error means that the sender is dropped, which is a shutdown too.
    let _ = stop.wait_for(|&stopped| stopped).await;
    let _ = drained.wait_for(|&drained| drained).await;
    let flushed = async {
        while shared.queue().waiting() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
        tracing::info!("some results were not acknowledged in time; they are sent after the next start");
    }
    to_coordinator.send(ToCoordinator::Goodbye).await.map_err(|_| SessionStop::StreamClosed)?;
    std::future::pending().await
}
