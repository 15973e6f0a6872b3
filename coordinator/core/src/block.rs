//! Packed blocks: the readings of one monitor, region and hour in about a byte each.
//!
//! A block has two bit strings. *Marks* record where a reading differs from the prediction of those before it:
//! another outcome, another vantage out of turn, missing rounds, a changed schedule. *Values* are the latencies, as
//! differences from the vantage's running mean in an adaptive Rice code (R. F. Rice, JPL 79-22, 1979). A reading that
//! matches the prediction costs its latency and nothing else. Checksums are left to the storage.

use serde::{Deserialize, Serialize};

use crate::observation::{Reading, RoundOutcome};
use crate::time::Timestamp;
use crate::vantage::{Region, VantageNo};

mod bits;
mod decoder;
mod model;
mod schedule;
#[cfg(test)]
mod tests;

pub use decoder::decode;

use bits::{BlockBitWriter, LATENCY_CODE};
use decoder::BlockDecoder;
use model::BlockModel;
use schedule::{put_schedule, put_varint, zigzag};

/// Maximum number of readings in a block: more than two a second.
pub const MAX_READINGS: usize = 8192;

/// First byte of a block in this format.
const FORMAT: u8 = 1;

/// Reading as stored in a block, which implies its monitor and region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReading {
    /// Vantage that ran the round first.
    pub vantage: VantageNo,
    /// Number of the round.
    pub round: u64,
    /// Time at which the round was due, in the coordinator's time.
    pub due: Timestamp,
    /// Final outcome.
    pub outcome: RoundOutcome,
    /// Response time in milliseconds.
    pub latency_ms: Option<u32>,
}

impl BlockReading {
    /// Converts it to a reading of that monitor and region.
    pub const fn to_reading(self, slot: u32, region: Region) -> Reading {
        Reading {
            slot,
            region,
            vantage: self.vantage,
            round: self.round,
            due: self.due,
            outcome: self.outcome,
            latency_ms: self.latency_ms,
        }
    }
}

impl From<&Reading> for BlockReading {
    fn from(reading: &Reading) -> Self {
        Self {
            vantage: reading.vantage,
            round: reading.round,
            due: reading.due,
            outcome: reading.outcome,
            latency_ms: reading.latency_ms,
        }
    }
}

/// Error while adding a reading or reading a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The reading belongs to another hour.
    #[error("the reading belongs to a different hour than its block")]
    OtherHour,
    /// The block already holds [`MAX_READINGS`].
    #[error("the block is full")]
    Full,
    /// The block ends too early.
    #[error("the block ends too early")]
    Truncated,
    /// The format is unknown to this version.
    #[error("unknown block format {0}")]
    Format(u8),
    /// The block is damaged; a description of the fault.
    #[error("the block is damaged: {0}")]
    Damaged(&'static str),
}

/// Open block that still grows.
#[derive(Debug, Clone)]
pub struct OpenBlock {
    hour: i64,
    count: u16,
    /// Readings since the last mark.
    since_mark: u16,
    /// Set while every reading is of a later round than the one before it.
    sorted: bool,
    /// Latest round in it.
    latest: u64,
    model: BlockModel,
    marks: BlockBitWriter,
    values: BlockBitWriter,
}

impl OpenBlock {
    /// Creates an empty block for an hour since the epoch.
    pub fn new(hour: i64) -> Self {
        Self {
            hour,
            count: 0,
            since_mark: 0,
            sorted: true,
            latest: 0,
            model: BlockModel::default(),
            marks: BlockBitWriter::default(),
            values: BlockBitWriter::default(),
        }
    }

    /// Reopens a sealed block.
    ///
    /// # Errors
    /// Returns an error if the block is damaged.
    pub fn reopen(hour: i64, block: &[u8]) -> Result<Self, BlockError> {
        let mut tail = Self::new(hour);
        for sample in decode(hour, block)? {
            tail.push(&sample)?;
        }
        Ok(tail)
    }

    /// Hour since the epoch in which its readings were due.
    pub const fn hour(&self) -> i64 {
        self.hour
    }

    /// Number of readings.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns true if it holds no readings.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a reading, in any order. Returns false if it already holds one of that round, which then stays.
    ///
    /// # Errors
    /// [`BlockError::OtherHour`] and [`BlockError::Full`]; the block is unchanged.
    pub fn push(&mut self, sample: &BlockReading) -> Result<bool, BlockError> {
        if sample.due.hour() != self.hour {
            return Err(BlockError::OtherHour);
        }
        if !self.is_empty() && sample.round <= self.latest {
            if self.contains_round(sample.round) {
                return Ok(false);
            }
            self.sorted = false;
        }
        if self.len() >= MAX_READINGS {
            return Err(BlockError::Full);
        }
        self.latest = self.latest.max(sample.round);
        self.append(sample);
        Ok(true)
    }

    /// Readings in order of round.
    pub fn readings(&self) -> Vec<BlockReading> {
        let mut samples = self.in_order_of_arrival();
        if !self.sorted {
            samples.sort_by_key(|sample| sample.round);
        }
        samples
    }

    /// Encodes the block, with its readings in order of round.
    pub fn seal(&self) -> Vec<u8> {
        if self.sorted {
            return self.pack();
        }
        let mut sorted = Self::new(self.hour);
        for sample in &self.readings() {
            sorted.append(sample);
        }
        sorted.pack()
    }

    fn contains_round(&self, round: u64) -> bool {
        self.decoder().any(|sample| sample.is_ok_and(|sample| sample.round == round))
    }

    fn in_order_of_arrival(&self) -> Vec<BlockReading> {
        // Data encoded here always decodes.
        self.decoder().map_while(Result::ok).collect()
    }

    fn decoder(&self) -> BlockDecoder<'_> {
        BlockDecoder::new(self.hour, self.count, self.marks.bytes(), self.values.bytes())
    }

    fn pack(&self) -> Vec<u8> {
        let (marks, values) = (self.marks.bytes(), self.values.bytes());
        let mut block = Vec::with_capacity(marks.len() + values.len() + 6);
        block.push(FORMAT);
        put_varint(&mut block, u32::from(self.count));
        put_varint(&mut block, u32::try_from(marks.len()).unwrap_or(u32::MAX));
        block.extend_from_slice(marks);
        block.extend_from_slice(values);
        block
    }

    fn append(&mut self, sample: &BlockReading) {
        let first = self.is_empty();
        let timed = sample.latency_ms.is_some();
        let next_round = self.model.round.wrapping_add(1);
        let new_schedule = first || self.model.due_of(sample.round) != Some(sample.due);
        let jump = !new_schedule && sample.round != next_round;
        let new_word = sample.outcome != self.model.outcome || timed != self.model.has_latency;
        let predicted = self.model.next_vantage();
        let index = self.model.index_of(sample.vantage);
        let other_place = index.is_none() || index != predicted;

        if new_schedule || jump || new_word || other_place {
            let marks = &mut self.marks;
            if !first {
                marks.golomb(u64::from(self.since_mark), 2);
                marks.flag(new_schedule);
            }
            marks.flag(new_word);
            if new_word {
                marks.put(u64::from(outcome_code(sample.outcome)), 3);
                marks.flag(timed);
            }
            if !first {
                marks.flag(other_place);
            }
            if other_place {
                match index {
                    Some(index) => {
                        marks.flag(true);
                        marks.golomb(index as u64, 1);
                    }
                    None => {
                        marks.flag(false);
                        marks.golomb(u64::from(sample.vantage.0), 4);
                    }
                }
            }
            if new_schedule {
                self.model.interval = self.model.guess_interval(sample);
                put_schedule(marks, self.hour, self.model.interval, sample);
            } else {
                marks.flag(jump);
                if jump {
                    marks.golomb(zigzag(sample.round.wrapping_sub(next_round) as i64), 0);
                }
            }
            self.since_mark = 0;
        } else {
            self.since_mark += 1;
        }
        self.model.round = sample.round;
        self.model.due = sample.due;
        self.model.outcome = sample.outcome;
        self.model.has_latency = timed;
        match index {
            Some(index) if other_place => self.model.learn_turn_to(index),
            Some(index) => self.model.turn_to(index),
            None => self.model.add_vantage(sample.vantage),
        }
        if let (Some(latency), Some(model)) = (sample.latency_ms, self.model.current_model()) {
            let latency = i64::from(latency);
            match model.expected() {
                None => {
                    self.values.golomb(latency as u64, 6);
                    model.update(latency, 0);
                }
                Some(expected) => {
                    let difference = zigzag(latency - expected);
                    self.values.rice(difference, model.rice_order(), LATENCY_CODE);
                    model.update(latency, difference as i64);
                }
            }
        }
        self.count += 1;
    }
}

const fn outcome_code(outcome: RoundOutcome) -> u8 {
    match outcome {
        RoundOutcome::Passed => 0,
        RoundOutcome::Failed => 1,
        RoundOutcome::Disputed => 2,
        RoundOutcome::Unconfirmed => 3,
        RoundOutcome::Inconclusive => 4,
    }
}

const fn outcome_of(code: u64) -> Result<RoundOutcome, BlockError> {
    match code {
        0 => Ok(RoundOutcome::Passed),
        1 => Ok(RoundOutcome::Failed),
        2 => Ok(RoundOutcome::Disputed),
        3 => Ok(RoundOutcome::Unconfirmed),
        4 => Ok(RoundOutcome::Inconclusive),
        _ => Err(BlockError::Damaged("an outcome is unknown")),
    }
}
