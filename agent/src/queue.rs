//! Queue of results until the coordinator has acknowledged them: memory first, then disk.

use crate::clock::AgentClock;
use crate::error::AgentError;
use crate::outbox::{Outbox, QueuedResult};
use crate::spool::{ClockPair, Spool, SpoolPosition, merge_gap};
use parallax_protocol::id::{BootId, WireMonitorId};
use parallax_protocol::message::{AgentHello, DurabilityMark, ResultGap};
use parallax_protocol::result::{CheckResult, NumberedResult};

/// The outbox, its spool, and the sending position of a connection.
#[derive(Debug)]
pub struct ResultQueue {
    outbox: Outbox,
    spool: Spool,
    clock: AgentClock,
    cursor: Cursor,
    gaps: Vec<ResultGap>,
    memory_limit: usize,
    dropped: u64,
    disk_fault: Option<String>,
}

/// Position of the next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At a record; lower numbers of this boot are already sent.
    Disk(SpoolPosition, u64),
    Memory(u64),
}

/// A batch to send: consecutive numbers of one boot, ages as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingBatch {
    /// The boot.
    pub boot: BootId,
    /// The results.
    pub results: Vec<NumberedResult>,
}

impl ResultQueue {
    /// Maximum number of results in memory; further ones are only on disk.
    pub const MEMORY_LIMIT: usize = 20_000;

    /// Time that a result waits for its acknowledgement before it is written to disk, in ms.
    pub const SAVE_AFTER_MS: i64 = 1_000;

    /// Creates an empty outbox for `boot`, behind the results in the spool.
    pub fn new(boot: BootId, spool: Spool, clock: AgentClock) -> Self {
        Self {
            outbox: Outbox::new(boot),
            spool,
            clock,
            cursor: Cursor::Disk(SpoolPosition::default(), 0),
            gaps: Vec::new(),
            memory_limit: Self::MEMORY_LIMIT,
            dropped: 0,
            disk_fault: None,
        }
    }

    /// Returns the present boot.
    pub fn boot(&self) -> BootId {
        self.outbox.boot()
    }

    /// Returns the earlier boots with unacknowledged results.
    pub fn earlier_boots(&self) -> Vec<BootId> {
        let mut boots = self.spool.boots();
        boots.retain(|&boot| boot != self.boot());
        boots.truncate(AgentHello::MAX_EARLIER_BOOTS);
        boots
    }

    /// Adds a result. If memory is full and the disk fails, the oldest are lost and reported as a gap.
    /// Returns true if the sender must wake up: the result is the first since the last numbering, or
    /// completes a batch. Otherwise the sender waits for more and wakes by itself.
    pub fn push(
        &mut self,
        result: CheckResult,
        ended_mono_ms: i64,
        slot_of: impl FnMut(WireMonitorId) -> Option<u32>,
    ) -> bool {
        let news = self.outbox.push(result, ended_mono_ms);
        if self.outbox.len() > self.memory_limit {
            self.outbox.number(slot_of);
            self.save_until(i64::MAX);
            let boot = self.boot();
            for lost in self.outbox.evict_to(self.memory_limit / 2) {
                self.record_loss(gap_of(boot, &lost));
            }
        }
        news
    }

    /// Returns the unacknowledged results: in memory, and in records on disk.
    pub fn waiting(&self) -> (usize, u64) {
        (self.outbox.len(), self.spool.len())
    }

    /// Number of results dropped for lack of space since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the current error of the disk.
    pub fn disk_fault(&self) -> Option<&str> {
        self.disk_fault.as_deref()
    }

    /// Number of bytes on disk.
    pub fn spool_bytes(&self) -> u64 {
        self.spool.bytes()
    }

    /// Writes results that have waited too long to disk, or everything at a shutdown (`all`). Call it every
    /// second.
    pub fn save(&mut self, all: bool, slot_of: impl FnMut(WireMonitorId) -> Option<u32>) {
        self.outbox.number(slot_of);
        let before = if all { i64::MAX } else { self.clock.mono_ms() - Self::SAVE_AFTER_MS };
        self.save_until(before);
    }

    /// Restarts sending at the oldest unacknowledged result, for a new connection.
    pub fn rewind(&mut self) {
        self.cursor = Cursor::Disk(SpoolPosition::default(), 0);
    }

    /// Acknowledges results up to the mark.
    ///
    /// # Errors
    /// [`AgentError::File`] if the spool cannot remove a segment.
    pub fn acknowledge(&mut self, mark: DurabilityMark) -> Result<(), AgentError> {
        if mark.boot == self.boot() {
            self.outbox.acknowledge(mark.through);
        }
        self.gaps.retain(|gap| gap.boot != mark.boot || gap.through > mark.through);
        self.spool.acknowledge(mark)
    }

    /// Returns the gaps that the coordinator has not acknowledged.
    pub fn gaps(&self) -> &[ResultGap] {
        &self.gaps
    }

    /// Returns the ms until the next batch is due; `None` if there is nothing to send.
    pub fn wait_ms(&self) -> Option<i64> {
        match self.cursor {
            Cursor::Disk(..) if !self.spool.is_empty() => Some(0),
            Cursor::Disk(..) => self.outbox.wait_ms(self.outbox.first_seq(), self.clock.mono_ms()),
            Cursor::Memory(seq) => self.outbox.wait_ms(seq, self.clock.mono_ms()),
        }
    }

    /// Returns the next batch, oldest first; `None` if all is sent. Unreadable results on disk are skipped
    /// until the next connection.
    pub fn next_batch(&mut self, slot_of: impl FnMut(WireMonitorId) -> Option<u32>) -> Option<OutgoingBatch> {
        self.outbox.number(slot_of);
        if let Cursor::Memory(seq) = self.cursor
            && seq < self.outbox.first_seq()
        {
            // Memory has evicted it: continue on disk, or where memory begins.
            self.cursor = match self.spool.find(self.boot(), seq) {
                Some(position) => Cursor::Disk(position, seq),
                None => Cursor::Memory(self.outbox.first_seq()),
            };
        }
        while let Cursor::Disk(position, below) = self.cursor {
            let spooled = self.spool.read(position, self.clocks()).unwrap_or_else(|error| {
                tracing::error!(%error, "results on disk cannot be read");
                None
            });
            let Some(spooled) = spooled else {
                self.cursor = Cursor::Memory(self.outbox.first_seq());
                break;
            };
            self.cursor = Cursor::Disk(spooled.next, below);
            let mut results = spooled.results;
            if spooled.boot == self.boot() {
                let first = self.outbox.first_seq();
                results.retain(|queued| queued.seq >= below && queued.seq < first);
            }
            if !results.is_empty() {
                return Some(self.batch(spooled.boot, results));
            }
        }
        let Cursor::Memory(seq) = self.cursor else {
            return None;
        };
        let results = self.outbox.batch(seq, self.clock.mono_ms());
        let last = results.last()?;
        self.cursor = Cursor::Memory(last.seq + 1);
        Some(self.batch(self.boot(), results))
    }

    fn batch(&self, boot: BootId, results: Vec<QueuedResult>) -> OutgoingBatch {
        let now = self.clock.mono_ms();
        let numbered = results.into_iter().map(|queued| {
            let age_ms = now.saturating_sub(queued.ended_mono_ms).max(0).unsigned_abs();
            NumberedResult { seq: queued.seq, result: CheckResult { age_ms, ..queued.result } }
        });
        OutgoingBatch { boot, results: numbered.collect() }
    }

    fn save_until(&mut self, before_mono_ms: i64) {
        loop {
            let unsaved = self.outbox.unsaved(before_mono_ms);
            let Some(last) = unsaved.last() else {
                return;
            };
            match self.spool.append(self.boot(), &unsaved, self.clocks()) {
                Ok(gaps) => {
                    self.disk_fault = None;
                    self.outbox.saved(last.seq);
                    gaps.into_iter().for_each(|gap| self.record_loss(gap));
                }
                Err(error) => {
                    if self.disk_fault.is_none() {
                        tracing::error!(%error, "results cannot be written to disk; they stay in memory");
                    }
                    self.disk_fault = Some(error.to_string());
                    return;
                }
            }
        }
    }

    fn record_loss(&mut self, gap: ResultGap) {
        // A segment may contain results of this boot that are still in memory.
        if gap.boot == self.boot() && gap.from >= self.outbox.first_seq() {
            return;
        }
        self.dropped = self.dropped.saturating_add(gap.count());
        merge_gap(&mut self.gaps, Some(gap));
    }

    fn clocks(&self) -> ClockPair {
        ClockPair { mono_ms: self.clock.mono_ms(), coordinator_ms: self.clock.coordinator_ms() }
    }
}

fn gap_of(boot: BootId, queued: &QueuedResult) -> ResultGap {
    let at = queued.result.started_ms;
    ResultGap { boot, from: queued.seq, through: queued.seq, from_ms: at, through_ms: at }
}

#[cfg(test)]
mod tests;
