//! Results of an agent: frames become batches for the engine, and are acknowledged once durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parallax_core::assign::is_due_about;
use parallax_core::member::Agent;
use parallax_core::observation::Observation;
use parallax_core::time::Timestamp;
use parallax_protocol::batch::{ResultFrame, Unpacked};
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::MAX_FRAME;
use parallax_protocol::id::BootId;
use parallax_protocol::result::NumberedResult;
use quinn::RecvStream;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::warn;

use super::hub::{Hub, Memory};
use super::ledger::{Refused, Run};
use super::wire::{Fault, Frames};
use super::{Counters, convert};
use crate::flow::{Arrival, Batch};

/// Batches of one agent in flight to the disk, at most; beyond that the stream is not read.
const BATCHES_UNDER_WAY: usize = 64;

/// A batch in flight.
struct UnderWay {
    boot: BootId,
    runs: Vec<Run>,
    durable: oneshot::Receiver<()>,
}

/// Reads the results stream to its end. While the inbox is full this waits, and QUIC applies backpressure to the
/// agent. Cancel-safe: nothing is recorded as received that was not handed to the engine.
pub(super) async fn receive(
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    memory: Arc<Memory>,
    closing: watch::Receiver<Option<CloseReason>>,
    stream: RecvStream,
) -> Result<(), Fault> {
    let (under_way, confirmed) = mpsc::channel(BATCHES_UNDER_WAY);
    // Outlives the connection: durable results stay durable even if the agent is gone.
    tokio::spawn(confirm(Arc::clone(&hub), Arc::clone(&agent), Arc::clone(&memory), confirmed));
    let mut frames = Frames::new(stream, MAX_FRAME);
    while let Some(ResultFrame::Batch(batch)) = frames.next().await? {
        let schedules = hub.schedules();
        let unpacked = batch.unpack(|slot| schedules.get(slot).map(|one| convert::monitor(one.monitor)))?;
        let way = under_way.reserve().await.map_err(|_| Fault::Close(CloseReason::Internal))?;
        let inbox = hub.inbox.reserve().await.map_err(|_| Fault::Close(CloseReason::ShuttingDown))?;
        if closing.borrow().is_some() {
            return Err(Fault::Lost);
        }
        let (boot, from, through) = (unpacked.boot, unpacked.first_seq, unpacked.through);
        let runs = memory.ledger().receive(boot, from, through).map_err(refusal)?;
        let gone = count_gone(&hub, &memory);
        if gone > 0
            && let Some(omitted) = hub.logs.admit((Some(agent.id), "gone"))
        {
            warn!(
                agent = %agent.id, count = gone, omitted,
                "results of the agent were lost; it dropped them or restarted",
            );
        }
        let observations = observe(&hub, &agent, &memory, unpacked, &runs);
        let (told, durable) = oneshot::channel();
        if observations.is_empty() {
            // Nothing to store: counts as durable, but is acknowledged in order.
            let _ = told.send(());
        } else {
            inbox.send(Arrival::Results(Batch { place: agent.place, observations, durable: told }));
        }
        way.send(UnderWay { boot, runs, durable });
    }
    Ok(())
}

/// Counts the ledger's lost results and returns their number.
pub(super) fn count_gone(hub: &Hub, memory: &Memory) -> u64 {
    let gone = memory.ledger().take_gone();
    hub.counters.gaps.fetch_add(gone, Ordering::Relaxed);
    memory.figures.dropped.fetch_add(gone, Ordering::Relaxed);
    gone
}

/// Maps a ledger's refusal to the close reason.
pub(super) fn refusal(refused: Refused) -> Fault {
    Fault::Close(match refused {
        Refused::UnknownBoot => CloseReason::OutOfOrder,
        Refused::BadRange | Refused::TooScattered => CloseReason::Invalid,
    })
}

/// Returns the new results of a batch, by slot. Results of deleted monitors, and of rounds that were not assigned
/// to the agent, are left out.
fn observe(
    hub: &Hub,
    agent: &Agent,
    memory: &Memory,
    unpacked: Unpacked,
    runs: &[Run],
) -> Vec<(u32, Observation)> {
    // All agents share the index: it is not locked while rounds are checked.
    let (schedules, slots) = {
        let index = hub.index();
        let slot = |numbered: &NumberedResult| index.slot(convert::monitor_id(numbered.result.monitor));
        let slots: Vec<Option<u32>> = unpacked.results.iter().map(slot).collect();
        (index.schedules().clone(), slots)
    };
    let present = hub.steps.look(&hub.clock);
    let count = unpacked.through - unpacked.first_seq + 1;
    let new: u64 = runs.iter().map(|(first, last)| last - first + 1).sum();
    for (counter, by) in [
        (&hub.counters.results, count),
        (&memory.figures.received, count),
        (&hub.counters.duplicates, count - new),
        (&memory.figures.duplicates, count - new),
    ] {
        counter.fetch_add(by, Ordering::Relaxed);
    }
    let is_new = |number: u64| runs.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let results = unpacked.results.into_iter().zip(slots).filter(|(numbered, _)| is_new(numbered.seq));
    let dealt = memory.assignments();
    let mut rounds = dealt.rounds((agent.place, agent.region), present.now(), hub.clock.steady());
    let mut refused = 0;
    let observations = results
        .filter_map(|(mut numbered, slot)| {
            let slot = slot?;
            let monitor = schedules.get(slot)?;
            let numbered_by_agent = numbered.result.round;
            present.correct(&mut numbered.result, Some(unpacked.sent_ms), monitor.interval_ms);
            if let (Some(number), Some(round)) = (numbered_by_agent, numbered.result.round)
                && !rounds.has(monitor, number, round)
            {
                // An edit moves rounds: an agent that ran the earlier ones is not at fault.
                let started = Timestamp::from_millis(numbered.result.started_ms);
                let is_current = numbered.result.revision == monitor.revision
                    && is_due_about(round, monitor.interval_ms, started);
                refused += u64::from(is_current);
                return None;
            }
            let seen = convert::observation(numbered.result, monitor.check.kind(), agent, present.now());
            Some((slot, seen))
        })
        .collect();
    drop(dealt);
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
async fn confirm(
    hub: Arc<Hub>,
    agent: Arc<Agent>,
    memory: Arc<Memory>,
    mut batches: mpsc::Receiver<UnderWay>,
) {
    while let Some(batch) = batches.recv().await {
        if batch.durable.await.is_ok() {
            let mut ledger = memory.ledger();
            for (first, last) in batch.runs {
                ledger.durable(batch.boot, first, last);
            }
            drop(ledger);
            memory.due.notify_one();
        } else {
            for (first, last) in batch.runs {
                memory.ledger().failed(batch.boot, first, last);
            }
            Counters::add(&hub.counters.batches_failed);
            if let Some(omitted) = hub.logs.admit((Some(agent.id), "not kept")) {
                warn!(agent = %agent.id, omitted, "results could not be stored; the agent will resend them");
            }
            // Only a new connection makes an agent resend.
            hub.close(agent.place, CloseReason::Internal);
        }
    }
}
