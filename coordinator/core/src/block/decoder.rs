//! Decoder of blocks: makes the same predictions as the encoder and corrects them by the marks.

use parallax_primitives::bits::BitReader;

use super::bits::LATENCY_CODE;
use super::model::BlockModel;
use super::schedule::{take_schedule, take_varint, unzigzag};
use super::{BlockError, BlockReading, FORMAT, MAX_READINGS, outcome_of};
use crate::time::Timestamp;
use crate::vantage::VantageNo;

/// Decodes the readings of a block, in order of round.
///
/// # Errors
/// Returns an error if the block is damaged, or belongs to another hour (as far as that can be detected).
pub fn decode(hour: i64, block: &[u8]) -> Result<Vec<BlockReading>, BlockError> {
    let (&format, rest) = block.split_first().ok_or(BlockError::Truncated)?;
    if format != FORMAT {
        return Err(BlockError::Format(format));
    }
    let (count, rest) = take_varint(rest)?;
    let (marks_len, rest) = take_varint(rest)?;
    let count = u16::try_from(count)
        .ok()
        .filter(|count| usize::from(*count) <= MAX_READINGS)
        .ok_or(BlockError::Damaged("it has too many readings"))?;
    let (marks, values) = rest.split_at_checked(marks_len as usize).ok_or(BlockError::Truncated)?;
    let mut decoder = BlockDecoder::new(hour, count, marks, values);
    let mut samples: Vec<BlockReading> = Vec::with_capacity(usize::from(count));
    for sample in decoder.by_ref() {
        let sample = sample?;
        if samples.last().is_some_and(|last| last.round >= sample.round) {
            return Err(BlockError::Damaged("rounds are not in order"));
        }
        samples.push(sample);
    }
    if !decoder.marks.is_at_end(false) || !decoder.values.is_at_end(false) {
        return Err(BlockError::Damaged("data follows the last reading"));
    }
    Ok(samples)
}

/// Decodes readings one by one, in the order in which they were encoded.
#[derive(Debug)]
pub(super) struct BlockDecoder<'a> {
    hour: i64,
    left: u16,
    first: bool,
    /// Readings before the next mark; none if no mark follows.
    until_mark: Option<u64>,
    model: BlockModel,
    marks: BitReader<'a>,
    values: BitReader<'a>,
}

impl<'a> BlockDecoder<'a> {
    pub(super) fn new(hour: i64, count: u16, marks: &'a [u8], values: &'a [u8]) -> Self {
        Self {
            hour,
            left: count,
            first: true,
            until_mark: Some(0),
            model: BlockModel::default(),
            marks: BitReader::new(marks),
            values: BitReader::new(values),
        }
    }

    fn read(&mut self) -> Result<BlockReading, BlockError> {
        match self.until_mark {
            Some(0) => self.read_mark()?,
            Some(_) | None => {
                self.until_mark = self.until_mark.map(|readings| readings - 1);
                self.model.round = self.model.round.wrapping_add(1);
                let due = self.model.due.as_millis().checked_add(self.model.interval);
                self.model.due = due.map(Timestamp::from_millis).ok_or(BlockError::Damaged("a time is too large"))?;
                let next = self.model.next_vantage().ok_or(BlockError::Damaged("the first vantage is missing"))?;
                self.model.turn_to(next);
            }
        }
        if self.model.due.hour() != self.hour {
            return Err(BlockError::OtherHour);
        }
        let latency_ms = if self.model.has_latency { Some(self.read_latency()?) } else { None };
        let place = self.model.current_vantage().ok_or(BlockError::Damaged("a vantage is missing"))?;
        Ok(BlockReading {
            vantage: place,
            round: self.model.round,
            due: self.model.due,
            outcome: self.model.outcome,
            latency_ms,
        })
    }

    fn read_mark(&mut self) -> Result<(), BlockError> {
        let first = std::mem::replace(&mut self.first, false);
        let new_schedule = first || self.marks.flag()?;
        if self.marks.flag()? {
            self.model.outcome = outcome_of(self.marks.take(3)?)?;
            self.model.has_latency = self.marks.flag()?;
        }
        if first || self.marks.flag()? {
            if self.marks.flag()? {
                let index = usize::try_from(self.marks.golomb(1)?).unwrap_or(usize::MAX);
                self.model.vantage_no(index).ok_or(BlockError::Damaged("a vantage is not in the table"))?;
                self.model.learn_turn_to(index);
            } else {
                let no = u16::try_from(self.marks.golomb(4)?);
                self.model
                    .add_vantage(VantageNo(no.map_err(|_| BlockError::Damaged("a vantage number is too large"))?));
            }
        } else {
            let next = self.model.next_vantage().ok_or(BlockError::Damaged("the first vantage is missing"))?;
            self.model.turn_to(next);
        }
        if new_schedule {
            (self.model.interval, self.model.round, self.model.due) = take_schedule(&mut self.marks, self.hour)?;
        } else {
            let mut round = self.model.round.wrapping_add(1);
            if self.marks.flag()? {
                round = round.wrapping_add(unzigzag(self.marks.golomb(0)?) as u64);
            }
            self.model.due = self.model.due_of(round).ok_or(BlockError::Damaged("a time is too large"))?;
            self.model.round = round;
        }
        self.until_mark = if self.marks.is_at_end(false) { None } else { Some(self.marks.golomb(2)?) };
        Ok(())
    }

    fn read_latency(&mut self) -> Result<u32, BlockError> {
        let place = self.model.current_model().ok_or(BlockError::Damaged("a vantage is missing"))?;
        let (latency, difference) = match place.expected() {
            None => (i64::try_from(self.values.golomb(6)?).unwrap_or(i64::MAX), 0),
            Some(expected) => {
                let difference = self.values.rice(place.rice_order(), LATENCY_CODE)?;
                (expected.saturating_add(unzigzag(difference)), difference)
            }
        };
        let exact = u32::try_from(latency).map_err(|_| BlockError::Damaged("a latency is out of range"))?;
        place.update(latency, i64::try_from(difference).unwrap_or(i64::MAX));
        Ok(exact)
    }
}

impl Iterator for BlockDecoder<'_> {
    type Item = Result<BlockReading, BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let sample = self.read();
        if sample.is_err() {
            self.left = 0;
        }
        Some(sample)
    }
}
