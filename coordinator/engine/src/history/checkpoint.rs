//! Checkpoints of the open tails, trimming of the journal behind them, and the rebuild from both at startup.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use parallax_store::batch::MAX_TRIMMED_PER_OP;
use parallax_store::{Checkpoint, Op, StoreRead};

use super::open_tails::OpenTails;
use super::{CHECKPOINT_EVERY, History, HistoryError};

/// Slots that share a part of the checkpoint.
const PART_SLOTS: u32 = 64;
/// Maximum number of parts written by one slice.
const PARTS_A_SLICE: usize = 32;
/// Journal entries, monitors and parts that a start reads at once. They are freed soon, but the allocator
/// keeps the memory that many of them would take.
const ENTRIES_AT_ONCE: usize = 64;
const MONITORS_AT_ONCE: usize = 256;
const PARTS_AT_ONCE: usize = 8;

/// A part of the checkpoint: slot, region, hour and packed readings of each open tail.
type CheckpointPart = Vec<(u32, Region, i64, Vec<u8>)>;

/// Progress of the running checkpoint and of the trim.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckpointProgress {
    /// Start of the last checkpoint.
    started_at: Option<Timestamp>,
    /// The running checkpoint: its next part, and the end of the journal at its start.
    running: Option<(u32, u64)>,
    /// Parts that are stored.
    parts: BTreeSet<u32>,
    /// Last entry through which the journal may be trimmed.
    trim_to: u64,
    /// Last entry through which the journal is trimmed.
    trimmed: u64,
}

/// The writes of one slice, and the progress once they are durable.
#[derive(Debug)]
pub(super) struct CheckpointSlice {
    pub(super) ops: Vec<Op>,
    pub(super) more: bool,
    progress: CheckpointProgress,
}

impl CheckpointProgress {
    /// Returns the next parts of a running or due checkpoint, and the next step of the trim.
    pub(super) fn slice(&self, history: &History, now: Timestamp) -> CheckpointSlice {
        let mut progress = self.clone();
        let mut ops = Vec::new();
        let due = progress.started_at.is_none_or(|started| now.since(started) >= CHECKPOINT_EVERY || now < started);
        if progress.running.is_none() && due {
            progress.started_at = Some(now);
            progress.running = Some((0, history.tails().applied));
        }
        if let Some((next, through)) = progress.running {
            progress.running = progress.write_parts(history, next, &mut ops).map(|next| (next, through));
            if progress.running.is_none() {
                progress.trim_to = progress.trim_to.max(through);
            }
        }
        if progress.trimmed < progress.trim_to {
            ops.push(Op::TrimReadings(progress.trim_to));
            progress.trimmed = progress.trim_to.min(progress.trimmed.saturating_add(MAX_TRIMMED_PER_OP as u64));
        }
        let more = progress.running.is_some() || progress.trimmed < progress.trim_to;
        CheckpointSlice { ops, more, progress }
    }

    /// Records that a slice is durable.
    pub(super) fn confirm(&mut self, slice: CheckpointSlice) {
        *self = slice.progress;
    }

    /// Writes parts from `next` on; returns the part to continue with, or none at the end.
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
            // Readings are appended between two monitors: a tail may hold some beyond `through`. A start
            // reads those again from the journal, and a round counts once.
            let through = history.tails().applied;
            let packed: CheckpointPart =
                (first..=first.saturating_add(PART_SLOTS - 1)).flat_map(|slot| history.tails().packed(slot)).collect();
            if packed.is_empty() {
                self.parts.remove(&part);
                ops.push(Op::DeleteCheckpoint(part));
            } else {
                match postcard::to_stdvec(&packed) {
                    Ok(bytes) => {
                        self.parts.insert(part);
                        ops.push(Op::PutCheckpoint(Checkpoint { part, through, bytes }));
                    }
                    // Without this part the journal must not be trimmed: the next slice starts with it again.
                    Err(error) => {
                        tracing::error!(part, %error, "failed to encode a part of the checkpoint");
                        return Some(part);
                    }
                }
            }
            next = part.checked_add(1)?;
        }
        Some(next)
    }
}

/// Rebuilds the open tails from the store. Journal entries that a part already contains are skipped.
pub(super) fn rebuild(read: &dyn StoreRead) -> Result<(OpenTails, CheckpointProgress), HistoryError> {
    let mut tails = OpenTails::default();
    let mut last_monitor = None;
    loop {
        let monitors = read.monitors_after(last_monitor, MONITORS_AT_ONCE)?;
        let Some(last) = monitors.last() else { break };
        last_monitor = Some(last.value.id);
        monitors.iter().for_each(|monitor| tails.register(monitor.value.slot, monitor.value.id));
    }
    let mut through: BTreeMap<u32, u64> = BTreeMap::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let parts = read.checkpoints(from, PARTS_AT_ONCE)?;
        next = parts.last().and_then(|last| last.part.checked_add(1));
        for checkpoint in parts {
            let damaged = || HistoryError::Checkpoint(checkpoint.part);
            let part: CheckpointPart = postcard::from_bytes(&checkpoint.bytes).map_err(|_| damaged())?;
            for (slot, region, hour, block) in part {
                if !tails.restore(slot, region, hour, block) {
                    return Err(damaged());
                }
            }
            through.insert(checkpoint.part, checkpoint.through);
        }
    }
    let mut progress = CheckpointProgress { parts: through.keys().copied().collect(), ..CheckpointProgress::default() };
    let mut seq = 0;
    loop {
        let entries = read.readings_after(seq, ENTRIES_AT_ONCE)?;
        if let Some(first) = entries.first().filter(|_| seq == 0) {
            progress.trimmed = first.seq.saturating_sub(1);
        }
        let Some(last) = entries.last() else { break };
        seq = last.seq;
        for entry in entries {
            let is_new = |slot: u32| through.get(&(slot / PART_SLOTS)).is_none_or(|through| *through < entry.seq);
            for reading in entry.readings.iter().filter(|reading| is_new(reading.slot)) {
                tails.push(reading);
            }
        }
    }
    tails.applied = read.last_reading()?.max(seq);
    Ok((tails, progress))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use parallax_store::{Batch, Store};
    use tokio::sync::oneshot;

    use super::*;

    /// Timeout for something that happens at once.
    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn packing_a_checkpoint_does_not_delay_commits() {
        let store = Store::in_memory().unwrap();
        let history = Arc::new(History::rebuild(store.reader().as_ref()).unwrap());
        let (lock_taken, lock_receiver) = oneshot::channel();
        let (commit_done, commit_receiver) = mpsc::channel();
        // Packing locks the tails, and this thread holds the lock until a concurrent commit is done.
        let holder = thread::spawn({
            let history = Arc::clone(&history);
            move || {
                let tails = history.tails();
                lock_taken.send(()).unwrap();
                let result = commit_receiver.recv_timeout(SOON);
                drop(tails);
                result
            }
        });
        lock_receiver.await.unwrap();
        let checkpoint = tokio::spawn({
            let store = store.clone();
            async move {
                let mut progress = history.checkpoint_progress.lock().await;
                history.checkpoint(&mut progress, &store, Timestamp::from_millis(0)).await
            }
        });
        tokio::task::yield_now().await;
        store.commit(Batch::new().write(Op::SetCursor("other".to_owned(), 1)).clone()).await.unwrap();
        commit_done.send(()).unwrap();
        assert_eq!(holder.join().unwrap(), Ok(()), "a commit completes while a checkpoint is packed");
        assert_eq!(checkpoint.await.unwrap(), Ok(false));
    }
}
