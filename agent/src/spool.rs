//! Disk storage of unacknowledged results in bounded segment files; the oldest are dropped first and counted.
//!
//! A segment is a sequence of records: length (u32 LE), CRC-32C of the body (u32 LE), body (postcard). A
//! record contains consecutive results of one boot. A truncated or damaged tail, as a crash leaves it, ends
//! its segment.

mod segment;

use crate::error::AgentError;
use crate::outbox::QueuedResult;
use parallax_protocol::id::BootId;
use parallax_protocol::message::{AgentHello, DurabilityMark, ResultGap};
use segment::{SpoolSegment, SpooledResult};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Results on disk, oldest first, over several boots.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    limit: u64,
    segment_limit: u64,
    segments: VecDeque<SpoolSegment>,
    next_number: u64,
    damaged: u64,
}

/// A position in the spool. It stays valid when earlier segments are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SpoolPosition {
    segment: u64,
    record: usize,
}

/// A record read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpooledRecord {
    /// The boot its numbers belong to.
    pub boot: BootId,
    /// Consecutive results; `ended_mono_ms` is by the clock of the present boot.
    pub results: Vec<QueuedResult>,
    /// Position after it.
    pub next: SpoolPosition,
}

impl Spool {
    /// Smallest limit, in bytes.
    pub const MIN_LIMIT: u64 = 1 << 20;

    /// Opens or creates the spool in `folder`, limited to `limit` bytes.
    ///
    /// # Errors
    /// [`AgentError::File`] if the folder or a segment cannot be read. A damaged segment is not an error.
    pub fn open(folder: &Path, limit: u64) -> Result<Self, AgentError> {
        std::fs::create_dir_all(folder).map_err(AgentError::file(folder))?;
        let limit = limit.max(Self::MIN_LIMIT);
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(AgentError::file(folder))? {
            let name = entry.map_err(AgentError::file(folder))?.file_name();
            numbers.extend(name.to_str().and_then(segment::number_of));
        }
        numbers.sort_unstable();
        let mut spool = Self {
            folder: folder.to_path_buf(),
            limit,
            segment_limit: (limit / 8).min(8 << 20),
            segments: VecDeque::new(),
            next_number: numbers.last().map_or(0, |last| last + 1),
            damaged: 0,
        };
        for number in numbers {
            let (segment, whole) = SpoolSegment::scan(folder, number, spool.limit)?;
            spool.damaged += u64::from(!whole);
            if segment.records.is_empty() {
                segment.remove()?;
            } else {
                spool.segments.push_back(segment);
            }
        }
        Ok(spool)
    }

    /// Number of segments found truncated or damaged at opening.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Number of bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Number of unacknowledged results on disk.
    pub fn len(&self) -> u64 {
        let records = self.segments.iter().flat_map(|segment| &segment.records);
        records.filter(|record| !record.acked).map(segment::SegmentRecord::count).sum()
    }

    /// Returns true if nothing is on disk.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the boots in the spool, oldest first, at most as many as a hello may name.
    pub fn boots(&self) -> Vec<BootId> {
        let mut boots = Vec::new();
        let records = self.segments.iter().flat_map(|segment| &segment.records);
        for record in records.filter(|record| !record.acked) {
            if !boots.contains(&record.boot) && boots.len() < AgentHello::MAX_EARLIER_BOOTS {
                boots.push(record.boot);
            }
        }
        boots
    }

    /// Writes consecutive results of one boot as one record. Returns the gaps of results dropped to free
    /// space.
    ///
    /// # Errors
    /// [`AgentError::File`] if the disk fails; the spool is unchanged then.
    pub fn append(
        &mut self,
        boot: BootId,
        results: &[QueuedResult],
        clocks: ClockPair,
    ) -> Result<Vec<ResultGap>, AgentError> {
        let spooled: Vec<SpooledResult> = results.iter().map(|result| clocks.to_disk(result)).collect();
        let full = self.segments.back().is_none_or(|last| last.bytes >= self.segment_limit || last.closed);
        if full {
            let segment = SpoolSegment::create(&self.folder, self.next_number)?;
            self.next_number += 1;
            self.segments.push_back(segment);
        }
        let Some(last) = self.segments.back_mut() else {
            return Ok(Vec::new());
        };
        last.append(boot, &spooled)?;
        let mut gaps = Vec::new();
        while self.bytes() > self.limit && self.segments.len() > 1 {
            let Some(oldest) = self.segments.pop_front() else {
                break;
            };
            oldest.records.iter().for_each(|record| merge_gap(&mut gaps, record.gap()));
            oldest.remove()?;
        }
        Ok(gaps)
    }

    /// Acknowledges everything of that boot up to the mark: segments without other results are removed.
    ///
    /// # Errors
    /// [`AgentError::File`] if a segment cannot be removed.
    pub fn acknowledge(&mut self, mark: DurabilityMark) -> Result<(), AgentError> {
        for segment in &mut self.segments {
            for record in segment.records.iter_mut().filter(|record| record.boot == mark.boot) {
                record.acked |= record.through <= mark.through;
            }
        }
        while self.segments.front().is_some_and(|s| s.records.iter().all(|record| record.acked)) {
            if let Some(done) = self.segments.pop_front() {
                done.remove()?;
            }
        }
        Ok(())
    }

    /// Reads the next unacknowledged record at or after `from`; `None` at the end. An unreadable record is
    /// skipped.
    ///
    /// # Errors
    /// [`AgentError::File`] if a segment cannot be opened.
    pub fn read(&self, from: SpoolPosition, clocks: ClockPair) -> Result<Option<SpooledRecord>, AgentError> {
        for segment in self.segments.iter().filter(|segment| segment.number >= from.segment) {
            let skip = if segment.number == from.segment { from.record } else { 0 };
            for (index, record) in segment.records.iter().enumerate().skip(skip).filter(|(_, r)| !r.acked) {
                let Some(spooled) = segment.read(record)? else {
                    continue;
                };
                let results = spooled.into_iter().map(|result| clocks.to_memory(result)).collect();
                let next = SpoolPosition { segment: segment.number, record: index + 1 };
                return Ok(Some(SpooledRecord { boot: record.boot, results, next }));
            }
        }
        Ok(None)
    }

    /// Returns the position of the record with this number, or of the first one after it; for a reader that
    /// has fallen behind memory.
    pub fn find(&self, boot: BootId, seq: u64) -> Option<SpoolPosition> {
        self.segments.iter().find_map(|segment| {
            let record = segment.records.iter().position(|r| r.boot == boot && r.through >= seq)?;
            Some(SpoolPosition { segment: segment.number, record })
        })
    }
}

/// Both clocks at the same instant, to convert an end time from one boot of the host to another.
#[derive(Debug, Clone, Copy)]
pub struct ClockPair {
    /// Monotonic ms.
    pub mono_ms: i64,
    /// The coordinator's time, epoch ms.
    pub coordinator_ms: i64,
}

impl ClockPair {
    fn to_disk(self, queued: &QueuedResult) -> SpooledResult {
        let ended_ms = self.coordinator_ms.saturating_sub(self.mono_ms.saturating_sub(queued.ended_mono_ms));
        SpooledResult { seq: queued.seq, ended_ms, result: queued.result.clone() }
    }

    fn to_memory(self, spooled: SpooledResult) -> QueuedResult {
        let age_ms = self.coordinator_ms.saturating_sub(spooled.ended_ms).max(0);
        let ended_mono_ms = self.mono_ms.saturating_sub(age_ms);
        QueuedResult { seq: spooled.seq, ended_mono_ms, result: spooled.result }
    }
}

/// Adds a gap to a list, merging it with the last one if they are adjacent.
pub fn merge_gap(gaps: &mut Vec<ResultGap>, gap: Option<ResultGap>) {
    let Some(gap) = gap else {
        return;
    };
    match gaps.last_mut() {
        Some(last) if last.boot == gap.boot && last.through + 1 >= gap.from && gap.from >= last.from => {
            last.through = last.through.max(gap.through);
            last.from_ms = last.from_ms.min(gap.from_ms);
            last.through_ms = last.through_ms.max(gap.through_ms);
        }
        _ => gaps.push(gap),
    }
}

#[cfg(test)]
mod tests;
