//! Results of an agent: frames become batches for the engine, and are acknowledged once durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parallax_core::assign::is_due_about;
use parallax_core::member::AgentRecord;
use parallax_core::observation::Observation;
use parallax_core::time::Timestamp;
use parallax_engine::{Arrival, ObservationBatch};
use parallax_protocol::batch::{ResultFrame, UnpackedBatch};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::id::BootId;
use parallax_protocol::result::NumberedResult;
use quinn::RecvStream;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::warn;

use super::hub::{AgentState, Hub};
use super::ledger::{LedgerError, NumberRange};
use super::wire::{FrameReceiver, SessionError};
use super::{MeshCounters, convert};

/// Batches of one agent in flight to the disk, at most; beyond that the stream is not read.
const MAX_IN_FLIGHT_BATCHES: usize = 64;

/// A batch in flight.
struct InFlightBatch {
    boot: BootId,
    runs: Vec<NumberRange>,
    durable: oneshot::Receiver<()>,
}

/// Reads the results stream to its end. While the inbox is full this waits, and QUIC applies backpressure to the
/// agent. Cancel-safe: nothing is recorded as received that was not handed to the engine.
pub(super) async fn receive(
    hub: Arc<Hub>,
    agent: Arc<AgentRecord>,
    agent_state: Arc<AgentState>,
    closing: watch::Receiver<Option<CloseReason>>,
    stream: RecvStream,
) -> Result<(), SessionError> {
    let (in_flight_sender, in_flight_receiver) = mpsc::channel(MAX_IN_FLIGHT_BATCHES);
    // Outlives the connection: durable results stay durable even if the agent has disconnected.
    tokio::spawn(await_durable(Arc::clone(&hub), Arc::clone(&agent), Arc::clone(&agent_state), in_flight_receiver));
    let mut frames = FrameReceiver::new(stream, MAX_FRAME);
    while let Some(ResultFrame::Batch(batch)) = frames.next().await? {
        let schedule = hub.current_schedule();
        let unpacked = batch.unpack(|slot| schedule.get(slot).map(|one| convert::monitor(one.monitor)))?;
        let permit = in_flight_sender.reserve().await.map_err(|_| SessionError::Close(CloseReason::Internal))?;
        let inbox = hub.inbox.reserve().await.map_err(|_| SessionError::Close(CloseReason::ShuttingDown))?;
        if closing.borrow().is_some() {
            return Err(SessionError::Lost);
        }
        let (boot, from, through) = (unpacked.boot, unpacked.first_seq, unpacked.through);
        let runs = agent_state.ledger().receive(boot, from, through).map_err(close_fault)?;
        let lost = count_lost(&hub, &agent_state);
        if lost > 0
            && let Some(omitted) = hub.logs.admit((Some(agent.id), "gone"))
        {
            warn!(
                agent = %agent.id, count = lost, omitted,
                "results of the agent were lost; it dropped them or restarted",
            );
        }
        let observations = to_observations(&hub, &agent, &agent_state, unpacked, &runs);
        let (on_durable, durable) = oneshot::channel();
        if observations.is_empty() {
            // Nothing to store: counts as durable, but is acknowledged in order.
            let _ = on_durable.send(());
        } else {
            inbox.send(Arrival::Results(ObservationBatch { vantage: agent.vantage_no, observations, on_durable }));
        }
        permit.send(InFlightBatch { boot, runs, durable });
    }
    Ok(())
}

/// Counts the ledger's lost results and returns their number.
pub(super) fn count_lost(hub: &Hub, agent_state: &AgentState) -> u64 {
    let lost = agent_state.ledger().take_lost();
    hub.counters.results_lost.fetch_add(lost, Ordering::Relaxed);
    agent_state.result_counters.dropped.fetch_add(lost, Ordering::Relaxed);
    lost
}

/// Maps a ledger's refusal to the close reason.
pub(super) fn close_fault(error: LedgerError) -> SessionError {
    SessionError::Close(match error {
        LedgerError::UnknownBoot => CloseReason::OutOfOrder,
        LedgerError::BadRange | LedgerError::TooScattered => CloseReason::Invalid,
    })
}

/// Returns the new results of a batch, by slot. Results of deleted monitors, and of rounds that were not assigned
/// to the agent, are left out.
fn to_observations(
    hub: &Hub,
    agent: &AgentRecord,
    agent_state: &AgentState,
    unpacked: UnpackedBatch,
    runs: &[NumberRange],
) -> Vec<(u32, Observation)> {
    // All agents share the index: it is not locked while rounds are checked.
    let (schedule, slots) = {
        let index = hub.index();
        let slot = |numbered: &NumberedResult| index.slot(convert::monitor_id(numbered.result.monitor));
        let slots: Vec<Option<u32>> = unpacked.results.iter().map(slot).collect();
        (index.schedule().clone(), slots)
    };
    let corrected_clock = hub.clock_steps.check(&hub.clock);
    let count = unpacked.through - unpacked.first_seq + 1;
    let new: u64 = runs.iter().map(|(first, last)| last - first + 1).sum();
    for (counter, amount) in [
        (&hub.counters.results, count),
        (&agent_state.result_counters.received, count),
        (&hub.counters.duplicates, count - new),
        (&agent_state.result_counters.duplicates, count - new),
    ] {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
    let is_new = |number: u64| runs.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let results = unpacked.results.into_iter().zip(slots).filter(|(numbered, _)| is_new(numbered.seq));
    let assignments = agent_state.assignments();
    let mut checker =
        assignments.round_checker((agent.vantage_no, agent.region), corrected_clock.now(), hub.clock.monotonic());
    let mut refused = 0;
    let observations = results
        .filter_map(|(mut numbered, slot)| {
            let slot = slot?;
            let monitor = schedule.get(slot)?;
            let agent_round = numbered.result.round;
            corrected_clock.correct(&mut numbered.result, Some(unpacked.sent_ms), monitor.interval_ms);
            if let (Some(number), Some(round)) = (agent_round, numbered.result.round)
                && !checker.is_assigned(monitor, number, round)
            {
                // An edit moves rounds: an agent that ran the earlier ones is not at fault.
                let started = Timestamp::from_millis(numbered.result.started_ms);
                let is_current =
                    numbered.result.revision == monitor.revision && is_due_about(round, monitor.interval_ms, started);
                refused += u64::from(is_current);
                return None;
            }
            let observation = convert::observation(numbered.result, monitor.check.kind(), agent, corrected_clock.now());
            Some((slot, observation))
        })
        .collect();
    drop(assignments);
    if refused > 0 {
        hub.counters.rounds_refused.fetch_add(refused, Ordering::Relaxed);
        if let Some(omitted) = hub.logs.admit((Some(agent.id), "rounds refused")) {
            warn!(
                agent = %agent.id, name = agent.name, count = refused, omitted,
                "results were dropped: their rounds are assigned to other agents, or are not due yet",
            );
        }
    }
    observations
}

/// Waits for batches to become durable, in order of arrival.
async fn await_durable(
    hub: Arc<Hub>,
    agent: Arc<AgentRecord>,
    agent_state: Arc<AgentState>,
    mut batches: mpsc::Receiver<InFlightBatch>,
) {
    while let Some(batch) = batches.recv().await {
        if batch.durable.await.is_ok() {
            let mut ledger = agent_state.ledger();
            for (first, last) in batch.runs {
                ledger.mark_durable(batch.boot, first, last);
            }
            drop(ledger);
            agent_state.ack_due.notify_one();
        } else {
            for (first, last) in batch.runs {
                agent_state.ledger().release(batch.boot, first, last);
            }
            MeshCounters::add(&hub.counters.batches_failed);
            if let Some(omitted) = hub.logs.admit((Some(agent.id), "not kept")) {
                warn!(agent = %agent.id, omitted, "results could not be stored; the agent will resend them");
            }
            // Only a new connection makes an agent resend.
            hub.close(agent.vantage_no, CloseReason::Internal);
        }
    }
}
