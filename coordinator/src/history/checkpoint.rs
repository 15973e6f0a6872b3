//! Checkpoints of the open tails, trimming the journal behind them, and the start from both.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::place::Region;
use parallax_core::time::Timestamp;

use super::tails::Tails;
use super::{CHECKPOINT_EVERY, History, HistoryError};
use crate::storage::batch::TRIM_AT_ONCE;
use crate::storage::{Checkpoint, Op, Read};

/// Slots that share a part of the checkpoint.
const PART_SLOTS: u32 = 64;
/// Parts that one slice writes at most.
const PARTS_A_SLICE: usize = 32;
/// Journal entries, monitors and parts that a start reads at once. It lets go of them soon, but the room that many of them
/// take stays with the allocator.
const ENTRIES_AT_ONCE: usize = 64;
const MONITORS_AT_ONCE: usize = 256;
const PARTS_AT_ONCE: usize = 8;

/// A part: slot, region, hour and packed readings of each open tail.
type Part = Vec<(u32, Region, i64, Vec<u8>)>;

/// How far the running checkpoint and the trim are.
#[derive(Debug, Clone, Default)]
pub(super) struct Upkeep {
    /// When the last checkpoint began.
    began: Option<Timestamp>,
    /// The checkpoint that is being written: its next part, and the journal's end when it began.
    running: Option<(u32, u64)>,
    /// Parts that the store has.
    parts: BTreeSet<u32>,
    /// The journal may be trimmed through this entry.
    trim_to: u64,
    /// It is trimmed through this entry.
    trimmed: u64,
}

/// What one slice writes, and how far things are once that is durable.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) ops: Vec<Op>,
    pub(super) more: bool,
    after: Upkeep,
}

impl Upkeep {
    /// The next parts of a checkpoint, where one is running or due, and the next piece of the trim.
    pub(super) fn slice(&self, history: &History, now: Timestamp) -> Progress {
        let mut after = self.clone();
        let mut ops = Vec::new();
        let due = after.began.is_none_or(|began| now.since(began) >= CHECKPOINT_EVERY || now < began);
        if after.running.is_none() && due {
            after.began = Some(now);
            after.running = Some((0, history.tails().applied));
        }
        if let Some((next, through)) = after.running {
            after.running = after.write_parts(history, next, &mut ops).map(|next| (next, through));
            if after.running.is_none() {
                after.trim_to = after.trim_to.max(through);
            }
        }
        if after.trimmed < after.trim_to {
            ops.push(Op::TrimReadings(after.trim_to));
            after.trimmed = after.trim_to.min(after.trimmed.saturating_add(TRIM_AT_ONCE as u64));
        }
        let more = after.running.is_some() || after.trimmed < after.trim_to;
        Progress { ops, more, after }
    }

    /// Takes a slice for done.
    pub(super) fn settle(&mut self, progress: Progress) {
        *self = progress.after;
    }

    /// Writes parts from `next` on; gives the part to go on with, or none at the end.
    fn write_parts(&mut self, history: &History, mut next: u32, ops: &mut Vec<Op>) -> Option<u32> {
        for _ in 0..PARTS_A_SLICE {
            let open = history.tails().next_open(next.checked_mul(PART_SLOTS)?).map(|slot| slot / PART_SLOTS);
            let stored = self.parts.range(next..).next().copied();
            let part = match (open, stored) {
                (Some(open), Some(stored)) => open.min(stored),
                (Some(part), None) | (None, Some(part)) => part,
                (None, None) => return None,
            };
            let first = part.saturating_mul(PART_SLOTS);
            // Appending goes on between two monitors: what a tail then holds beyond `through` is found there again at
            // the start, and a round counts once.
            let through = history.tails().applied;
            let packed: Part = (first..=first.saturating_add(PART_SLOTS - 1))
                .flat_map(|slot| history.tails().packed(slot))
                .collect();
            if packed.is_empty() {
                self.parts.remove(&part);
                ops.push(Op::DeleteCheckpoint(part));
            } else {
                match postcard::to_stdvec(&packed) {
                    Ok(bytes) => {
                        self.parts.insert(part);
                        ops.push(Op::PutCheckpoint(Checkpoint { part, through, bytes }));
                    }
                    // Without this part the journal must not be trimmed: begin again at the next slice.
                    Err(error) => {
                        tracing::error!(part, %error, "open tails can't be packed");
                        return Some(part);
                    }
                }
            }
            next = part.checked_add(1)?;
        }
        Some(next)
    }
}

/// The open tails as the store has them. A journal entry that a part holds already is not taken in again.
pub(super) fn rebuild(read: &dyn Read) -> Result<(Tails, Upkeep), HistoryError> {
    let mut tails = Tails::default();
    let mut after = None;
    loop {
        let monitors = read.monitors_after(after, MONITORS_AT_ONCE)?;
        let Some(last) = monitors.last() else { break };
        after = Some(last.value.id);
        monitors.iter().for_each(|monitor| tails.enlist(monitor.value.slot, monitor.value.id));
    }
    let mut through: BTreeMap<u32, u64> = BTreeMap::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let parts = read.checkpoints(from, PARTS_AT_ONCE)?;
        next = parts.last().and_then(|last| last.part.checked_add(1));
        for checkpoint in parts {
            let damaged = || HistoryError::Checkpoint(checkpoint.part);
            let part: Part = postcard::from_bytes(&checkpoint.bytes).map_err(|_| damaged())?;
            for (slot, region, hour, block) in part {
                if !tails.restore(slot, region, hour, block) {
                    return Err(damaged());
                }
            }
            through.insert(checkpoint.part, checkpoint.through);
        }
    }
    let mut upkeep = Upkeep { parts: through.keys().copied().collect(), ..Upkeep::default() };
    let mut seq = 0;
    loop {
        let entries = read.readings_after(seq, ENTRIES_AT_ONCE)?;
        if let Some(first) = entries.first().filter(|_| seq == 0) {
            upkeep.trimmed = first.seq.saturating_sub(1);
        }
        let Some(last) = entries.last() else { break };
        seq = last.seq;
        for entry in entries {
            let new =
                |slot: u32| through.get(&(slot / PART_SLOTS)).is_none_or(|through| *through < entry.seq);
            for reading in entry.readings.iter().filter(|reading| new(reading.slot)) {
                tails.push(reading);
            }
        }
    }
    tails.applied = read.last_reading()?.max(seq);
    Ok((tails, upkeep))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::storage::{Batch, Store};

    /// Longest wait for what happens at once.
    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn packing_a_checkpoint_keeps_nobody_else_waiting() {
        let store = Store::in_memory().unwrap();
        let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
        let (held, is_held) = oneshot::channel();
        let (landed, has_landed) = mpsc::channel();
        // Packing needs the tails, and this holds them until a commit has landed meanwhile.
        let holder = thread::spawn({
            let history = Arc::clone(&history);
            move || {
                let tails = history.tails();
                held.send(()).unwrap();
                let landed = has_landed.recv_timeout(SOON);
                drop(tails);
                landed
            }
        });
        is_held.await.unwrap();
        let checkpoint = tokio::spawn({
            let store = store.clone();
            async move {
                let mut upkeep = history.upkeep.lock().await;
                history.checkpoint(&mut upkeep, &store, Timestamp::from_millis(0)).await
            }
        });
        tokio::task::yield_now().await;
        store.commit(Batch::new().write(Op::SetCursor("other".to_owned(), 1)).clone()).await.unwrap();
        landed.send(()).unwrap();
        assert_eq!(holder.join().unwrap(), Ok(()), "a commit lands while a checkpoint is packed");
        assert_eq!(checkpoint.await.unwrap(), Ok(false));
    }
}
