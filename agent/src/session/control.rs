//! The control stream: schedule, acknowledgements, clock comparison.

use super::outgoing::{send_frame, send_frames};
use super::{SessionStop, renewal};
use crate::clock::{TimeExchange, TimeExchanges};
use crate::context::AgentContext;
use crate::wire::{FrameStreamReader, StreamRead};
use parallax_protocol::ProtocolError;
use parallax_protocol::assignment::{ScheduleChange, ScheduleChangeAssembler};
use parallax_protocol::close::CloseReason;
use parallax_protocol::message::{TimeReport, TimeResponse, ToAgent, ToCoordinator, Welcome};
use parallax_protocol::result::WireOwnFault;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Interval of clock comparisons; after a connect, three in quick succession.
const COMPARE_INTERVAL: Duration = Duration::from_secs(60);
const FIRST_COMPARISONS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// Difference up to which the schedule's time is not moved, in ms.
const OFFSET_TOLERANCE_MS: u64 = 2;

/// Step of the coordinator's time above which every round is rescheduled, in ms.
const STEP_MS: u64 = 1_000;

/// Applies the welcome.
pub(super) fn apply_welcome(
    shared: &AgentContext,
    welcome: &Welcome,
    exchanges: &mut TimeExchanges,
    sent_us: i64,
) -> Result<(), SessionStop> {
    let record = {
        let mut membership = shared.membership();
        let record = &mut membership.record;
        if record.agent != welcome.agent.to_string() {
            let rule = "is not this agent's id";
            return Err(SessionStop::ProtocolViolation(ProtocolError::Invalid { field: "welcome.agent", rule }));
        }
        record.name = welcome.name.clone();
        welcome.region.name().clone_into(&mut record.region);
        record.network = welcome.network.clone();
        record.mesh = welcome.mesh.clone();
        record.coordinator_ms = welcome.coordinator_ms;
        record.skew_ms = shared.clock.wall_ms().saturating_sub(welcome.coordinator_ms);
        crate::own_addresses::update_record(shared.probes.guard().own_addresses(), record, shared.clock.wall_ms());
        record.clone()
    };
    shared.coordinator_time.set(welcome.coordinator_ms / 1000);
    if let Err(error) = shared.data_folder.store_record(&record) {
        tracing::warn!(%error, "the coordinator's record could not be saved");
    }
    if let Some(exchange) = exchanges.add(sent_us, shared.clock.mono_us(), welcome.coordinator_ms) {
        adopt_offset(shared, exchange);
    }
    Ok(())
}

/// Reads the control stream until it ends.
pub(super) async fn read(
    shared: &Arc<AgentContext>,
    mut reader: FrameStreamReader,
    mut exchanges: TimeExchanges,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), SessionStop> {
    let mut parts = ScheduleChangeAssembler::default();
    loop {
        let frame = match reader.next::<ToAgent>().await? {
            StreamRead::Value(frame) => frame,
            StreamRead::End => return Err(SessionStop::StreamClosed),
        };
        match frame {
            ToAgent::Schedule(part) => {
                if let Some(change) = parts.push(part).map_err(SessionStop::ProtocolViolation)? {
                    send_frame(&to_coordinator, apply(shared, change)).await?;
                }
            }
            ToAgent::ScheduleByAccount { change: mut part, accounts } => {
                part.set_accounts(&accounts).map_err(SessionStop::ProtocolViolation)?;
                if let Some(change) = parts.push(part).map_err(SessionStop::ProtocolViolation)? {
                    send_frame(&to_coordinator, apply(shared, change)).await?;
                }
            }
            ToAgent::Ack(mark) => {
                if let Err(error) = shared.queue().acknowledge(mark) {
                    tracing::error!(%error, "acknowledged results could not be removed from disk");
                }
            }
            ToAgent::Time(TimeResponse { echo_us: TimeResponse::UNSOLICITED, .. }) => {
                send_frame(&to_coordinator, time_request(shared)).await?;
            }
            ToAgent::Time(answer) => {
                let sent_us = i64::try_from(answer.echo_us).unwrap_or(i64::MAX);
                let received_us = shared.clock.mono_us();
                if let Some(exchange) = exchanges.add(sent_us, received_us, answer.coordinator_ms) {
                    adopt_offset(shared, exchange);
                    let skew_ms = shared.clock.skew_ms();
                    let report = TimeReport { skew_ms, round_trip_ms: exchange.round_trip_ms };
                    send_frame(&to_coordinator, ToCoordinator::TimeReport(report)).await?;
                }
            }
            ToAgent::Renewed(renewed) => send_frames(&to_coordinator, renewal::accept_renewal(shared, renewed)).await?,
            ToAgent::Authorities(trusted) => {
                send_frames(&to_coordinator, renewal::replace_authorities(shared, trusted)).await?
            }
            ToAgent::RenewRefused { reason } => {
                *shared.pending_key() = None;
                match reason {
                    CloseReason::Superseded => tracing::error!(
                        %reason,
                        "the certificate was not renewed: this host's folder is a copy or was restored; join again before it expires",
                    ),
                    _ => tracing::error!(%reason, "the certificate was not renewed"),
                }
            }
            ToAgent::ExternalAddress(address) => crate::own_addresses::add_external_address(shared, address),
            ToAgent::Closing { reason } => return Err(SessionStop::Closing(reason)),
            ToAgent::Welcome(_) => {
                let rule = "may come only once";
                return Err(SessionStop::ProtocolViolation(ProtocolError::Invalid { field: "welcome", rule }));
            }
        }
    }
}

/// Compares the clocks, and reports the host's faults when they differ from those last seen in `faults`.
pub(super) async fn report_periodically(
    shared: &AgentContext,
    mut faults: watch::Receiver<Vec<WireOwnFault>>,
    to_coordinator: mpsc::Sender<ToCoordinator>,
) -> Result<(), SessionStop> {
    let started = Instant::now();
    let mut first = FIRST_COMPARISONS.into_iter().map(|after| started + after);
    let mut next = first.next().unwrap_or(started);
    loop {
        tokio::select! {
            () = sleep_until(next) => {
                send_frame(&to_coordinator, time_request(shared)).await?;
                next = first.next().unwrap_or(next + COMPARE_INTERVAL);
            }
            changed = faults.changed() => {
                changed.map_err(|_| SessionStop::StreamClosed)?;
                let faults = faults.borrow_and_update().clone();
                send_frame(&to_coordinator, ToCoordinator::Fitness { faults }).await?;
            }
        }
    }
}

fn time_request(shared: &AgentContext) -> ToCoordinator {
    ToCoordinator::TimeRequest { sent_us: u64::try_from(shared.clock.mono_us()).unwrap_or(0) }
}

fn apply(shared: &AgentContext, change: ScheduleChange) -> ToCoordinator {
    let mut schedule = shared.schedule();
    let (slot_epoch, revision) = (change.slot_epoch, change.revision);
    match schedule.apply(change, shared.clock.coordinator_ms()) {
        Ok(()) => {
            tracing::info!(revision, monitors = schedule.len(), "schedule changed");
            drop(schedule);
            shared.remove_unassigned();
            shared.schedule_changed.notify_one();
            ToCoordinator::ScheduleApplied { slot_epoch, revision }
        }
        Err(crate::schedule::BaseMismatch) => ToCoordinator::ScheduleMismatch { current: schedule.version() },
    }
}

fn adopt_offset(shared: &AgentContext, exchange: TimeExchange) {
    let offset_now = shared.clock.coordinator_ms().saturating_sub(shared.clock.mono_ms());
    if offset_now.abs_diff(exchange.offset_ms) <= OFFSET_TOLERANCE_MS {
        return;
    }
    let step_ms = shared.clock.set_offset(exchange.offset_ms);
    let now_ms = shared.clock.coordinator_ms();
    shared.coordinator_time.set(now_ms / 1000);
    if step_ms.unsigned_abs() > STEP_MS {
        tracing::warn!(step_ms, "the coordinator's time differs from the estimate; rounds are rescheduled");
        shared.schedule().rebase(now_ms);
        shared.schedule_changed.notify_one();
    }
}
