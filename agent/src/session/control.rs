//! The control stream: schedule, acknowledgements, clock comparison.

use super::{Stop, renewal};
use crate::clock::{Exchange, Exchanges};
use crate::shared::Shared;
use crate::wire::{Reader, Received, send};
use parallax_protocol::ProtocolError;
use parallax_protocol::assignment::{ChangeParts, ScheduleChange};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::message::{TimeAnswer, TimeReport, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::OwnFault;
use quinn::SendStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Interval of clock comparisons; after a connect, three in quick succession.
const COMPARE: Duration = Duration::from_secs(60);
const COMPARE_FIRST: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// Difference up to which the schedule's time is not moved, in ms.
const SETTLED_MS: u64 = 2;

/// Step of the coordinator's time above which every round is rescheduled, in ms.
const STEP_MS: u64 = 1_000;

/// Applies the welcome.
pub(super) fn welcomed(
    shared: &Shared,
    welcome: &Welcome,
    exchanges: &mut Exchanges,
    sent_us: i64,
) -> Result<(), Stop> {
    let record = {
        let mut membership = shared.membership();
        let record = &mut membership.record;
        if record.agent != welcome.agent.to_string() {
            let rule = "is not this agent's id";
            return Err(Stop::Broken(ProtocolError::Invalid { field: "welcome.agent", rule }));
        }
        record.name = welcome.name.clone();
        welcome.region.name().clone_into(&mut record.region);
        record.network = welcome.network.clone();
        record.mesh = welcome.mesh.clone();
        record.coordinator_ms = welcome.coordinator_ms;
        record.skew_ms = shared.clock.wall_ms().saturating_sub(welcome.coordinator_ms);
        crate::own::note(shared.net.guard().own(), record, shared.clock.wall_ms());
        record.clone()
    };
    shared.known.set(welcome.coordinator_ms / 1000);
    if let Err(error) = shared.home.keep_record(&record) {
        tracing::warn!(%error, "the coordinator's record could not be saved");
    }
    if let Some(exchange) = exchanges.add(sent_us, shared.clock.mono_us(), welcome.coordinator_ms) {
        believe(shared, exchange);
    }
    Ok(())
}

/// Reads the control stream until it ends.
pub(super) async fn read(
    shared: &Arc<Shared>,
    mut reader: Reader,
    mut exchanges: Exchanges,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), Stop> {
    let mut parts = ChangeParts::default();
    loop {
        let frame = match reader.next::<ToAgent>().await? {
            Received::Value(frame) => frame,
            Received::End => return Err(Stop::Gone),
        };
        match frame {
            ToAgent::Schedule(part) => {
                if let Some(change) = parts.push(part).map_err(Stop::Broken)? {
                    tell(&to_coordinator, apply(shared, change)).await?;
                }
            }
            ToAgent::ScheduleByAccount { change: mut part, accounts } => {
                part.set_accounts(&accounts).map_err(Stop::Broken)?;
                if let Some(change) = parts.push(part).map_err(Stop::Broken)? {
                    tell(&to_coordinator, apply(shared, change)).await?;
                }
            }
            ToAgent::Ack(mark) => {
                if let Err(error) = shared.queue().acknowledge(mark) {
                    tracing::error!(%error, "acknowledged results could not be removed from disk");
                }
            }
            ToAgent::Time(TimeAnswer { echo_us: TimeAnswer::UNASKED, .. }) => {
                tell(&to_coordinator, time_ask(shared)).await?;
            }
            ToAgent::Time(answer) => {
                let sent_us = i64::try_from(answer.echo_us).unwrap_or(i64::MAX);
                let came_us = shared.clock.mono_us();
                if let Some(exchange) = exchanges.add(sent_us, came_us, answer.coordinator_ms) {
                    believe(shared, exchange);
                    let skew_ms = shared.clock.skew_ms();
                    let report = TimeReport { skew_ms, round_trip_ms: exchange.round_trip_ms };
                    tell(&to_coordinator, ToCoordinator::TimeReport(report)).await?;
                }
            }
            ToAgent::Renewed(renewed) => tell_all(&to_coordinator, renewal::renew(shared, renewed)).await?,
            ToAgent::Authorities(told) => tell_all(&to_coordinator, renewal::trust(shared, told)).await?,
            ToAgent::RenewRefused { reason } => {
                *shared.awaited() = None;
                match reason {
                    CloseReason::Superseded => tracing::error!(
                        %reason,
                        "the certificate was not renewed: this host's folder is a copy or was restored; join again before it expires",
                    ),
                    _ => tracing::error!(%reason, "the certificate was not renewed"),
                }
            }
            ToAgent::SeenFrom(seen) => crate::own::seen(shared, seen),
            ToAgent::Closing { reason } => return Err(Stop::Closing(reason)),
            ToAgent::Welcome(_) => {
                let rule = "may come only once";
                return Err(Stop::Broken(ProtocolError::Invalid { field: "welcome", rule }));
            }
        }
    }
}

/// Writes the other tasks' frames; after a goodbye, ends the stream and the session.
pub(super) async fn write(
    mut stream: SendStream,
    mut outgoing: mpsc::Receiver<ToCoordinator>,
) -> Result<(), Stop> {
    while let Some(frame) = outgoing.recv().await {
        let last = frame == ToCoordinator::Goodbye;
        send(&mut stream, &frame, MAX_FRAME).await?;
        if last {
            stream.finish().map_err(|_| Stop::Gone)?;
            // Wait for the peer to receive everything, at most a second.
            let _ = timeout(Duration::from_secs(1), stream.stopped()).await;
            return Err(Stop::Done);
        }
    }
    Err(Stop::Gone)
}

/// Compares the clocks, and reports the host's faults when they differ from those last seen in `faults`.
pub(super) async fn ticks(
    shared: &Shared,
    mut faults: watch::Receiver<Vec<OwnFault>>,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), Stop> {
    let begun = Instant::now();
    let mut first = COMPARE_FIRST.into_iter().map(|after| begun + after);
    let mut next = first.next().unwrap_or(begun);
    loop {
        tokio::select! {
            () = sleep_until(next) => {
                tell(&to_coordinator, time_ask(shared)).await?;
                next = first.next().unwrap_or(next + COMPARE);
            }
            changed = faults.changed() => {
                changed.map_err(|_| Stop::Gone)?;
                let faults = faults.borrow_and_update().clone();
                tell(&to_coordinator, ToCoordinator::Fitness { faults }).await?;
            }
        }
    }
}

fn time_ask(shared: &Shared) -> ToCoordinator {
    ToCoordinator::TimeAsk { sent_us: u64::try_from(shared.clock.mono_us()).unwrap_or(0) }
}

async fn tell_all(
    to_coordinator: &mpsc::Sender<ToCoordinator>,
    frames: impl IntoIterator<Item = ToCoordinator>,
) -> Result<(), Stop> {
    for frame in frames {
        tell(to_coordinator, frame).await?;
    }
    Ok(())
}

pub(super) async fn tell(
    to_coordinator: &mpsc::Sender<ToCoordinator>,
    frame: ToCoordinator,
) -> Result<(), Stop> {
    to_coordinator.send(frame).await.map_err(|_| Stop::Gone)
}

fn apply(shared: &Shared, change: ScheduleChange) -> ToCoordinator {
    let mut schedule = shared.schedule();
    let (book, revision) = (change.book, change.revision);
    match schedule.apply(change, shared.clock.coordinator_ms()) {
        Ok(()) => {
            tracing::info!(revision, monitors = schedule.len(), "schedule changed");
            drop(schedule);
            shared.forget_unassigned();
            shared.schedule_changed.notify_one();
            ToCoordinator::ScheduleHeld { book, revision }
        }
        Err(crate::schedule::DoesNotFit) => ToCoordinator::ScheduleLost { held: schedule.held() },
    }
}

fn believe(shared: &Shared, exchange: Exchange) {
    let offset_now = shared.clock.coordinator_ms().saturating_sub(shared.clock.mono_ms());
    if offset_now.abs_diff(exchange.offset_ms) <= SETTLED_MS {
        return;
    }
    let step_ms = shared.clock.anchor(exchange.offset_ms);
    let now_ms = shared.clock.coordinator_ms();
    shared.known.set(now_ms / 1000);
    if step_ms.unsigned_abs() > STEP_MS {
        tracing::warn!(step_ms, "the coordinator's time differs from the estimate; rounds are rescheduled");
        shared.schedule().rebase(now_ms);
        shared.schedule_changed.notify_one();
    }
}
