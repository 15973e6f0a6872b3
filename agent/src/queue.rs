//! Results from the moment they are found until the coordinator has them: memory first, then disk.

use crate::clock::Clock;
use crate::error::Error;
use crate::outbox::{Kept, Outbox};
use crate::spool::{Clocks, Position, Spool, merge_gap};
use parallax_protocol::id::{BootId, MonitorId};
use parallax_protocol::message::{Gap, Hello, Mark};
use parallax_protocol::result::{CheckResult, NumberedResult};

/// The outbox, its spool, and how far a connection has sent.
#[derive(Debug)]
pub struct Queue {
    outbox: Outbox,
    spool: Spool,
    clock: Clock,
    cursor: Cursor,
    gaps: Vec<Gap>,
    memory_limit: usize,
    lost: u64,
    disk_fault: Option<String>,
}

/// Where the next batch is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At a record; of this boot nothing below that number is sent.
    Disk(Position, u64),
    Memory(u64),
}

/// A batch to send: consecutive numbers of one boot, ages as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The boot.
    pub boot: BootId,
    /// The results.
    pub results: Vec<NumberedResult>,
}

impl Queue {
    /// Results held in memory at most; more go to disk alone.
    pub const MEMORY_LIMIT: usize = 20_000;

    /// A result that has waited this long for its acknowledgement is written to disk, in ms.
    pub const SAVE_AFTER_MS: i64 = 1_000;

    /// An empty outbox for `boot` before whatever the spool holds.
    pub fn new(boot: BootId, spool: Spool, clock: Clock) -> Self {
        Self {
            outbox: Outbox::new(boot),
            spool,
            clock,
            cursor: Cursor::Disk(Position::default(), 0),
            gaps: Vec::new(),
            memory_limit: Self::MEMORY_LIMIT,
            lost: 0,
            disk_fault: None,
        }
    }

    /// The present boot.
    pub fn boot(&self) -> BootId {
        self.outbox.boot()
    }

    /// Earlier boots whose results are still held.
    pub fn earlier_boots(&self) -> Vec<BootId> {
        let mut boots = self.spool.boots();
        boots.retain(|&boot| boot != self.boot());
        boots.truncate(Hello::MAX_EARLIER_BOOTS);
        boots
    }

    /// Takes a result in. Where memory is full and the disk refuses, the oldest are lost and told as a gap. True where
    /// the sender must look: it is the first since the last numbering, or makes a full batch. In between the sender
    /// waits for company and looks by itself.
    pub fn push(
        &mut self,
        result: CheckResult,
        ended_mono_ms: i64,
        slot_of: impl FnMut(MonitorId) -> Option<u32>,
    ) -> bool {
        let news = self.outbox.push(result, ended_mono_ms);
        if self.outbox.len() > self.memory_limit {
            self.outbox.number(slot_of);
            self.save_until(i64::MAX);
            let boot = self.boot();
            for lost in self.outbox.shrink(self.memory_limit / 2) {
                self.lose(gap_of(boot, &lost));
            }
        }
        news
    }

    /// Results not yet acknowledged: in memory, and in records on disk.
    pub fn waiting(&self) -> (usize, u64) {
        (self.outbox.len(), self.spool.len())
    }

    /// Results dropped for want of room since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Why the disk cannot be written at present.
    pub fn disk_fault(&self) -> Option<&str> {
        self.disk_fault.as_deref()
    }

    /// Bytes on disk.
    pub fn spool_bytes(&self) -> u64 {
        self.spool.bytes()
    }

    /// Writes to disk what has waited too long, or everything at a shutdown (`all`). Call it every second.
    pub fn save(&mut self, all: bool, slot_of: impl FnMut(MonitorId) -> Option<u32>) {
        self.outbox.number(slot_of);
        let before = if all { i64::MAX } else { self.clock.mono_ms() - Self::SAVE_AFTER_MS };
        self.save_until(before);
    }

    /// A new connection: sending starts again at the oldest result not acknowledged.
    pub fn rewind(&mut self) {
        self.cursor = Cursor::Disk(Position::default(), 0);
    }

    /// Results up to the mark are durable.
    ///
    /// # Errors
    /// [`Error::File`] where the spool cannot let go of a segment.
    pub fn acknowledge(&mut self, mark: Mark) -> Result<(), Error> {
        if mark.boot == self.boot() {
            self.outbox.acknowledge(mark.through);
        }
        self.gaps.retain(|gap| gap.boot != mark.boot || gap.through > mark.through);
        self.spool.acknowledge(mark)
    }

    /// The gaps that the coordinator has not acknowledged.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// How many ms to wait before the next batch is due; `None` when there is nothing to send.
    pub fn wait_ms(&self) -> Option<i64> {
        match self.cursor {
            Cursor::Disk(..) if !self.spool.is_empty() => Some(0),
            Cursor::Disk(..) => self.outbox.wait_ms(self.outbox.first_seq(), self.clock.mono_ms()),
            Cursor::Memory(seq) => self.outbox.wait_ms(seq, self.clock.mono_ms()),
        }
    }

    /// The next batch, oldest first; `None` when all is sent. Results on disk that cannot be read are passed
    /// over until the next connection.
    pub fn next_batch(&mut self, slot_of: impl FnMut(MonitorId) -> Option<u32>) -> Option<Batch> {
        self.outbox.number(slot_of);
        if let Cursor::Memory(seq) = self.cursor
            && seq < self.outbox.first_seq()
        {
            // Memory has let go of it: read on from disk, or go on where memory begins.
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
                results.retain(|kept| kept.seq >= below && kept.seq < first);
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

    fn batch(&self, boot: BootId, results: Vec<Kept>) -> Batch {
        let now = self.clock.mono_ms();
        let numbered = results.into_iter().map(|kept| {
            let age_ms = now.saturating_sub(kept.ended_mono_ms).max(0).unsigned_abs();
            NumberedResult { seq: kept.seq, result: CheckResult { age_ms, ..kept.result } }
        });
        Batch { boot, results: numbered.collect() }
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
                    gaps.into_iter().for_each(|gap| self.lose(gap));
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

    fn lose(&mut self, gap: Gap) {
        // A segment can hold results of this boot that memory still has.
        if gap.boot == self.boot() && gap.from >= self.outbox.first_seq() {
            return;
        }
        self.lost = self.lost.saturating_add(gap.count());
        merge_gap(&mut self.gaps, Some(gap));
    }

    fn clocks(&self) -> Clocks {
        Clocks { mono_ms: self.clock.mono_ms(), coordinator_ms: self.clock.coordinator_ms() }
    }
}

fn gap_of(boot: BootId, kept: &Kept) -> Gap {
    let at = kept.result.started_ms;
    Gap { boot, from: kept.seq, through: kept.seq, from_ms: at, through_ms: at }
}

#[cfg(test)]
mod tests;
