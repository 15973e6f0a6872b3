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
use parallax_core::place::Region;
use serde::{Deserialize, Serialize};
use sled::{IVec, Tree};

use super::layout::{self, Key};
use super::pending::Pending;
use super::{failed, record};
use crate::storage::batch::{DAYS_AT_ONCE, FOLD_AT_ONCE};
use crate::storage::{Result, StoreError};

/// Hours per day.
const DAY: i64 = 24;
/// Hours of blocks per record; must divide a day.
const BLOCKS: i64 = 8;
/// Days of roll-ups per record.
const DAYS: i64 = 32;
/// Days before the current one that may still be written: a time zone's day may end that late.
const OPEN_DAYS: i64 = 2;

/// Region number of data without a region.
pub(super) const NO_REGION: u8 = 0;

/// The monitor's slot (0 for roll-ups), and the packed data.
pub(super) type Piece = (u32, Vec<u8>);

/// Kind of compacted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Blocks of eight hours, of all regions.
    Blocks,
    /// Hour roll-ups of a day.
    Hours,
    /// Day roll-ups of 32 days.
    Days,
}

/// A compacted record: the monitor's slot, and the pieces by region and offset in the span.
#[derive(Debug, Serialize, Deserialize)]
struct Folded<'a> {
    slot: u32,
    #[serde(borrow)]
    pieces: Vec<(u8, u8, &'a [u8])>,
}

impl Kind {
    /// Returns the hours or days that one compacted record spans.
    const fn length(self) -> i64 {
        match self {
            Self::Blocks => BLOCKS,
            Self::Hours => DAY,
            Self::Days => DAYS,
        }
    }

    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Blocks => layout::FOLDED_BLOCKS,
            Self::Hours => layout::FOLDED_HOURS,
            Self::Days => layout::FOLDED_DAYS,
        }
    }

    fn folded(self, monitor: MonitorId, span: i64) -> Key {
        layout::folded(self.prefix(), monitor, span)
    }

    /// Returns the key of data that is not compacted.
    fn loose(self, monitor: MonitorId, region: u8, at: i64) -> Key {
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
    fn unpack<B, F>(self, key: &[u8], head: &[u8], piece: F) -> Result<Piece>
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
    kind: Kind,
    monitor: MonitorId,
    region: u8,
    range: Range<i64>,
) -> Result<BTreeMap<i64, Piece>> {
    let mut found = BTreeMap::new();
    if range.is_empty() {
        return Ok(found);
    }
    let piece = |part: &[u8]| tree.get(part).map_err(failed);
    let (first, last) = (range.start.div_euclid(kind.length()), (range.end - 1).div_euclid(kind.length()));
    for item in tree.range(kind.folded(monitor, first)..=kind.folded(monitor, last)) {
        let (key, head) = item.map_err(failed)?;
        let payload = record::payload(&key, &head, piece)?;
        let folded = unfold(&key, &payload)?;
        for (of, place, bytes) in folded.pieces {
            let at = time(kind, &key, place);
            if of == region && range.contains(&at) {
                found.insert(at, (folded.slot, bytes.to_vec()));
            }
        }
    }
    for item in tree.range(kind.loose(monitor, region, range.start)..kind.loose(monitor, region, range.end)) {
        let (key, head) = item.map_err(failed)?;
        found.insert(layout::last_time(&key).unwrap_or_default(), kind.unpack(&key, &head, piece)?);
    }
    Ok(found)
}

/// Compacts a monitor's hours before that one, and its days up to some days before it.
pub(super) fn fold(pending: &mut Pending<'_>, monitor: MonitorId, before: i64) -> Result<()> {
    if !pending.contains(&layout::monitor(monitor))? {
        return Ok(());
    }
    let days = before.div_euclid(DAY).saturating_sub(OPEN_DAYS);
    fold_kind(pending, Kind::Blocks, monitor, before)?;
    fold_kind(pending, Kind::Hours, monitor, before)?;
    fold_kind(pending, Kind::Days, monitor, days)
}

/// Deletes data of the oldest days before that one.
pub(super) fn drop_days(
    pending: &mut Pending<'_>,
    kind: Kind,
    monitor: MonitorId,
    before: i64,
) -> Result<()> {
    let spans_before = |day: i64| day.saturating_mul(DAY).div_euclid(kind.length());
    for _ in 0..DAYS_AT_ONCE {
        let folded = kind.folded(monitor, i64::MIN)..kind.folded(monitor, spans_before(before));
        let mut oldest = first_of(pending, folded)?.map(|span| span.saturating_mul(kind.length()));
        for region in kind.regions() {
            let (first, end) = (i64::MIN, before.saturating_mul(DAY));
            let loose = kind.loose(monitor, region, first)..kind.loose(monitor, region, end);
            oldest = oldest.into_iter().chain(first_of(pending, loose)?).min();
        }
        let Some(day) = oldest.map(|hour| hour.div_euclid(DAY)) else { return Ok(()) };
        let (first, end) = (spans_before(day), spans_before(day + 1));
        let mut gone = vec![kind.folded(monitor, first)..kind.folded(monitor, end)];
        for region in kind.regions() {
            let (first, end) = (day.saturating_mul(DAY), (day + 1).saturating_mul(DAY));
            gone.push(kind.loose(monitor, region, first)..kind.loose(monitor, region, end));
        }
        for range in gone {
            for (key, head) in pending.scan(range, usize::MAX)? {
                pending.remove(key, &head)?;
            }
        }
    }
    Ok(())
}

fn fold_kind(pending: &mut Pending<'_>, kind: Kind, monitor: MonitorId, before: i64) -> Result<()> {
    /// Pieces of one span, by region and offset.
    type Span = BTreeMap<(u8, u8), Vec<u8>>;
    let mut spans: BTreeMap<i64, Span> = BTreeMap::new();
    let mut number = 0;
    let mut left = FOLD_AT_ONCE;
    for region in kind.regions() {
        let loose = kind.loose(monitor, region, i64::MIN)..kind.loose(monitor, region, before);
        for (key, head) in pending.scan(loose, left)? {
            let at = layout::last_time(&key).unwrap_or_default();
            let (slot, bytes) = kind.unpack(&key, &head, |part| pending.head(part))?;
            let place = u8::try_from(at.rem_euclid(kind.length())).unwrap_or_default();
            spans.entry(at.div_euclid(kind.length())).or_default().insert((region, place), bytes);
            number = slot;
            left -= 1;
            pending.remove(key, &head)?;
        }
    }
    for (span, fresh) in spans {
        let key = kind.folded(monitor, span);
        let before: Option<IVec> = pending.head(&key)?;
        let payload = match &before {
            Some(head) => Some(record::payload(&key, head, |part| pending.head(part))?),
            None => None,
        };
        let mut pieces: BTreeMap<(u8, u8), &[u8]> = BTreeMap::new();
        if let Some(payload) = &payload {
            pieces.extend(unfold(&key, payload)?.pieces.into_iter().map(|(of, at, bytes)| ((of, at), bytes)));
        }
        pieces.extend(fresh.iter().map(|(at, bytes)| (*at, bytes.as_slice())));
        let pieces = pieces.into_iter().map(|((region, place), bytes)| (region, place, bytes)).collect();
        pending.put(key, &Folded { slot: number, pieces })?;
    }
    Ok(())
}

/// Returns the time of the first key in a range.
fn first_of(pending: &Pending<'_>, range: Range<Key>) -> Result<Option<i64>> {
    Ok(pending.scan(range, 1)?.first().and_then(|(key, _)| layout::last_time(key)))
}

fn unfold<'a>(key: &[u8], payload: &'a [u8]) -> Result<Folded<'a>> {
    postcard::from_bytes(payload)
        .map_err(|_| StoreError::Damaged(format!("the record under {} can't be read", key.escape_ascii())))
}

/// Returns the hour or day of a piece in a compacted record.
fn time(kind: Kind, key: &[u8], place: u8) -> i64 {
    let span = layout::last_time(key).unwrap_or_default();
    span.saturating_mul(kind.length()).saturating_add(i64::from(place))
}
