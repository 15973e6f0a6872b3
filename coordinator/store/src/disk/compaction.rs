//! Compaction of history: a monitor's hours become few records, since every record costs the engine space and
//! memory.
//!
//! The engine stores 9 to 17 records on a page, tracks every page in memory, and holds at least 256 of them. So
//! records should be few, and not much longer than some thousand bytes: blocks of eight hours, roll-ups of a day.
//!
//! Data that is not compacted yet, or was written for a compacted span later, is stored under a key of its own and
//! takes precedence. Compaction moves it over in one batch, and reads return the same as before.

use std::collections::BTreeMap;
use std::ops::Range;

use parallax_core::id::MonitorId;
use parallax_core::vantage::Region;
use serde::{Deserialize, Serialize};
use sled::{IVec, Tree};

use super::layout::{self, TreeKey};
use super::pending::PendingChanges;
use super::{engine_error, record};
use crate::batch::{MAX_COMPACTED_PER_OP, MAX_DAYS_PER_OP};
use crate::{Result, StoreError};

/// Hours per day.
const HOURS_PER_DAY: i64 = 24;
/// Hours of blocks per record; must divide a day.
const HOURS_PER_BLOCK_RECORD: i64 = 8;
/// Days of roll-ups per record.
const DAYS_PER_RECORD: i64 = 32;
/// Days before the current one that may still be written: a time zone's day may end that late.
const OPEN_DAYS: i64 = 2;

/// Region number of data without a region.
pub(super) const NO_REGION: u8 = 0;

/// The monitor's slot (0 for roll-ups), and the packed data.
pub(super) type CompactedPiece = (u32, Vec<u8>);

/// Kind of compacted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HistoryKind {
    /// Blocks of eight hours, of all regions.
    Blocks,
    /// Hour roll-ups of a day.
    Hours,
    /// Day roll-ups of 32 days.
    Days,
}

/// A compacted record: the monitor's slot, and the pieces by region and offset in the span.
#[derive(Debug, Serialize, Deserialize)]
struct CompactedRecord<'a> {
    slot: u32,
    #[serde(borrow)]
    pieces: Vec<(u8, u8, &'a [u8])>,
}

impl HistoryKind {
    /// Returns the hours or days that one compacted record spans.
    const fn length(self) -> i64 {
        match self {
            Self::Blocks => HOURS_PER_BLOCK_RECORD,
            Self::Hours => HOURS_PER_DAY,
            Self::Days => DAYS_PER_RECORD,
        }
    }

    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Blocks => layout::COMPACTED_BLOCKS,
            Self::Hours => layout::COMPACTED_HOURS,
            Self::Days => layout::COMPACTED_DAYS,
        }
    }

    fn compacted_key(self, monitor: MonitorId, span: i64) -> TreeKey {
        layout::compacted(self.prefix(), monitor, span)
    }

    /// Returns the key of data that is not compacted.
    fn uncompacted_key(self, monitor: MonitorId, region: u8, at: i64) -> TreeKey {
        match self {
            Self::Blocks => layout::block(monitor, region, at),
            Self::Hours => layout::hour(monitor, at),
            Self::Days => layout::day(monitor, at),
        }
    }

    /// Returns the regions that have keys of their own.
    fn regions(self) -> Vec<u8> {
        match self {
            Self::Blocks => Region::ALL.into_iter().map(|region| region as u8).collect(),
            Self::Hours | Self::Days => vec![NO_REGION],
        }
    }

    /// Decodes the record of data that is not compacted.
    fn unpack<B, F>(self, key: &[u8], head: &[u8], piece: F) -> Result<CompactedPiece>
    where
        B: AsRef<[u8]>,
        F: FnMut(&[u8]) -> Result<Option<B>>,
    {
        match self {
            Self::Blocks => record::decode(key, head, piece),
            Self::Hours | Self::Days => Ok((0, record::decode(key, head, piece)?)),
        }
    }
}

/// Reads a monitor's data in a region within a range of hours or days, in order of time.
pub(super) fn read(
    tree: &Tree,
    kind: HistoryKind,
    monitor: MonitorId,
    region: u8,
    range: Range<i64>,
) -> Result<BTreeMap<i64, CompactedPiece>> {
    let mut pieces = BTreeMap::new();
    if range.is_empty() {
        return Ok(pieces);
    }
    let piece = |part: &[u8]| tree.get(part).map_err(engine_error);
    let (first, last) = (range.start.div_euclid(kind.length()), (range.end - 1).div_euclid(kind.length()));
    for item in tree.range(kind.compacted_key(monitor, first)..=kind.compacted_key(monitor, last)) {
        let (key, head) = item.map_err(engine_error)?;
        let payload = record::payload(&key, &head, piece)?;
        let compacted = decode_compacted(&key, &payload)?;
        for (piece_region, offset, bytes) in compacted.pieces {
            let at = time(kind, &key, offset);
            if piece_region == region && range.contains(&at) {
                pieces.insert(at, (compacted.slot, bytes.to_vec()));
            }
        }
    }
    for item in
        tree.range(kind.uncompacted_key(monitor, region, range.start)..kind.uncompacted_key(monitor, region, range.end))
    {
        let (key, head) = item.map_err(engine_error)?;
        pieces.insert(layout::last_time(&key).unwrap_or_default(), kind.unpack(&key, &head, piece)?);
    }
    Ok(pieces)
}

/// Compacts a monitor's hours before that one, and its days up to some days before it.
pub(super) fn compact(pending: &mut PendingChanges<'_>, monitor: MonitorId, before: i64) -> Result<()> {
    if !pending.contains(&layout::monitor(monitor))? {
        return Ok(());
    }
    let days = before.div_euclid(HOURS_PER_DAY).saturating_sub(OPEN_DAYS);
    compact_kind(pending, HistoryKind::Blocks, monitor, before)?;
    compact_kind(pending, HistoryKind::Hours, monitor, before)?;
    compact_kind(pending, HistoryKind::Days, monitor, days)
}

/// Deletes data of the oldest days before that one.
pub(super) fn delete_days(
    pending: &mut PendingChanges<'_>,
    kind: HistoryKind,
    monitor: MonitorId,
    before: i64,
) -> Result<()> {
    let span_of_day = |day: i64| day.saturating_mul(HOURS_PER_DAY).div_euclid(kind.length());
    for _ in 0..MAX_DAYS_PER_OP {
        let compacted = kind.compacted_key(monitor, i64::MIN)..kind.compacted_key(monitor, span_of_day(before));
        let mut oldest = first_of(pending, compacted)?.map(|span| span.saturating_mul(kind.length()));
        for region in kind.regions() {
            let (first, end) = (i64::MIN, before.saturating_mul(HOURS_PER_DAY));
            let uncompacted = kind.uncompacted_key(monitor, region, first)..kind.uncompacted_key(monitor, region, end);
            oldest = oldest.into_iter().chain(first_of(pending, uncompacted)?).min();
        }
        let Some(day) = oldest.map(|hour| hour.div_euclid(HOURS_PER_DAY)) else { return Ok(()) };
        let (first, end) = (span_of_day(day), span_of_day(day + 1));
        let mut ranges = vec![kind.compacted_key(monitor, first)..kind.compacted_key(monitor, end)];
        for region in kind.regions() {
            let (first, end) = (day.saturating_mul(HOURS_PER_DAY), (day + 1).saturating_mul(HOURS_PER_DAY));
            ranges.push(kind.uncompacted_key(monitor, region, first)..kind.uncompacted_key(monitor, region, end));
        }
        for range in ranges {
            for (key, head) in pending.scan(range, usize::MAX)? {
                pending.remove(key, &head)?;
            }
        }
    }
    Ok(())
}

fn compact_kind(pending: &mut PendingChanges<'_>, kind: HistoryKind, monitor: MonitorId, before: i64) -> Result<()> {
    /// Pieces of one span, by region and offset.
    type SpanPieces = BTreeMap<(u8, u8), Vec<u8>>;
    let mut spans: BTreeMap<i64, SpanPieces> = BTreeMap::new();
    let mut monitor_slot = 0;
    let mut remaining = MAX_COMPACTED_PER_OP;
    for region in kind.regions() {
        let uncompacted =
            kind.uncompacted_key(monitor, region, i64::MIN)..kind.uncompacted_key(monitor, region, before);
        for (key, head) in pending.scan(uncompacted, remaining)? {
            let at = layout::last_time(&key).unwrap_or_default();
            let (slot, bytes) = kind.unpack(&key, &head, |part| pending.head(part))?;
            let offset = u8::try_from(at.rem_euclid(kind.length())).unwrap_or_default();
            spans.entry(at.div_euclid(kind.length())).or_default().insert((region, offset), bytes);
            monitor_slot = slot;
            remaining -= 1;
            pending.remove(key, &head)?;
        }
    }
    for (span, added) in spans {
        let key = kind.compacted_key(monitor, span);
        let stored_head: Option<IVec> = pending.head(&key)?;
        let payload = match &stored_head {
            Some(head) => Some(record::payload(&key, head, |part| pending.head(part))?),
            None => None,
        };
        let mut pieces: BTreeMap<(u8, u8), &[u8]> = BTreeMap::new();
        if let Some(payload) = &payload {
            pieces.extend(
                decode_compacted(&key, payload)?
                    .pieces
                    .into_iter()
                    .map(|(piece_region, at, bytes)| ((piece_region, at), bytes)),
            );
        }
        pieces.extend(added.iter().map(|(at, bytes)| (*at, bytes.as_slice())));
        let pieces = pieces.into_iter().map(|((region, offset), bytes)| (region, offset, bytes)).collect();
        pending.put(key, &CompactedRecord { slot: monitor_slot, pieces })?;
    }
    Ok(())
}

/// Returns the time of the first key in a range.
fn first_of(pending: &PendingChanges<'_>, range: Range<TreeKey>) -> Result<Option<i64>> {
    Ok(pending.scan(range, 1)?.first().and_then(|(key, _)| layout::last_time(key)))
}

fn decode_compacted<'a>(key: &[u8], payload: &'a [u8]) -> Result<CompactedRecord<'a>> {
    postcard::from_bytes(payload)
        .map_err(|_| StoreError::Damaged(format!("the record under {} can't be read", key.escape_ascii())))
}

/// Returns the hour or day of a piece in a compacted record.
fn time(kind: HistoryKind, key: &[u8], offset: u8) -> i64 {
    let span = layout::last_time(key).unwrap_or_default();
    span.saturating_mul(kind.length()).saturating_add(i64::from(offset))
}
