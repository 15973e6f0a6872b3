//! Encoding of schedules and of the lengths in a block's header.

use parallax_primitives::bits::BitReader;

use super::bits::BlockBitWriter;
use super::{BlockError, BlockReading};
use crate::time::{HOUR, Timestamp};

/// Encodes that rounds are due every `interval` milliseconds (at least 1) from this reading on.
pub(super) fn put_schedule(marks: &mut BlockBitWriter, hour: i64, interval: i64, sample: &BlockReading) {
    let whole = interval % 1000 == 0;
    marks.flag(whole);
    if whole {
        marks.golomb((interval / 1000) as u64, 6);
    } else {
        marks.golomb(interval as u64, 16);
    }
    let into_hour = sample.due.since(start_of(hour));
    let span = interval.min(HOUR);
    marks.golomb((into_hour / span) as u64, 0);
    marks.put((into_hour % span) as u64, width_of(span));
    let usual = sample.due.as_millis().div_euclid(interval) as u64;
    marks.golomb(zigzag(sample.round.wrapping_sub(usual) as i64), 0);
}

/// Decodes the interval in milliseconds, and the round and due time of the reading.
pub(super) fn take_schedule(marks: &mut BitReader<'_>, hour: i64) -> Result<(i64, u64, Timestamp), BlockError> {
    let damaged = BlockError::Damaged("a schedule is out of range");
    let (unit, k) = if marks.flag()? { (1000, 6) } else { (1, 16) };
    let interval = i64::try_from(marks.golomb(k)?).ok().and_then(|interval| interval.checked_mul(unit));
    let interval = interval.filter(|interval| *interval > 0).ok_or(damaged)?;
    let span = interval.min(HOUR);
    let spans = i64::try_from(marks.golomb(0)?).map_err(|_| damaged)?;
    let rest = marks.take(width_of(span))? as i64;
    let into_hour = spans.checked_mul(span).and_then(|whole| whole.checked_add(rest));
    let into_hour = into_hour.filter(|into_hour| *into_hour < HOUR).ok_or(damaged)?;
    let due = start_of(hour) + into_hour;
    let usual = due.as_millis().div_euclid(interval) as u64;
    let round = usual.wrapping_add(unzigzag(marks.golomb(0)?) as u64);
    Ok((interval, round, due))
}

/// Maps small numbers of either sign to small unsigned numbers: 0, -1, 1, -2 …
pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a number in groups of seven bits, lowest first.
pub(super) fn put_varint(block: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        block.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    block.push(value as u8);
}

/// Reads a number written by [`put_varint`]; returns it and the remaining bytes.
pub(super) fn take_varint(mut block: &[u8]) -> Result<(u32, &[u8]), BlockError> {
    let mut value = 0_u32;
    for shift in [0, 7, 14, 21] {
        let (&byte, rest) = block.split_first().ok_or(BlockError::Truncated)?;
        value |= u32::from(byte & 0x7f) << shift;
        block = rest;
        if byte < 0x80 {
            return Ok((value, block));
        }
    }
    Err(BlockError::Damaged("a length is too large"))
}

const fn start_of(hour: i64) -> Timestamp {
    Timestamp::from_millis(hour.saturating_mul(HOUR))
}

/// Bits that hold any number below `span`.
const fn width_of(span: i64) -> u32 {
    64 - ((span - 1) as u64).leading_zeros()
}
