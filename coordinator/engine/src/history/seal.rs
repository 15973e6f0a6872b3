//! Sealing: tails of past hours become blocks and roll-ups, some monitors at a time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use chrono_tz::Tz;
use parallax_core::assign::monitor_hash;
use parallax_core::block::{BlockReading, MAX_READINGS, OpenBlock};
use parallax_core::id::MonitorId;
use parallax_core::monitor::Monitor;
use parallax_core::plan::Plan;
use parallax_core::rollup::{RollupRules, day_of};
use parallax_core::time::{HOUR, Timestamp};
use parallax_core::uptime::TimeSpans;
use parallax_core::vantage::Region;
use parallax_store::batch::MAX_COMPACTED_PER_OP;
use parallax_store::{Block, Op, Result, Rollup, StoreRead};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::open_tails::{SealedHour, Sealing};
use super::{
    BLOCK_RETENTION_HOURS, DayRollups, History, HourRollups, ROLLUP_RETENTION_HOURS, WindowSource, merge_new, unpack,
    unpack_rollup,
};

/// Maximum number of monitors sealed by one slice.
const MONITORS_A_SLICE: usize = 64;
/// Hours between two compactions of a monitor's hour records into days. Each one rewrites the day; until then
/// every hour of a region is a record of its own.
const FOLD_INTERVAL_HOURS: i64 = 4;

/// The writes of one slice, and the tails to release once they are durable.
#[derive(Debug)]
pub(super) struct SealSlice {
    pub(super) ops: Vec<Op>,
    pub(super) sealings: Vec<Sealing>,
    /// True if more monitors are due.
    pub(super) more: bool,
}

/// Builds the blocks and roll-ups of the monitors that are due.
pub(super) fn slice(
    history: &History,
    read: &dyn StoreRead,
    now: Timestamp,
    windows: &WindowSource,
) -> Result<SealSlice> {
    let sealings = history.tails().due(now, MONITORS_A_SLICE);
    let mut ops = Vec::new();
    for sealing in &sealings {
        seal(sealing, read, windows, &mut ops)?;
        if is_fold_hour(sealing.monitor, now) {
            let expiry_day = |hours: i64| (now.hour() - hours).div_euclid(24);
            ops.extend([
                Op::CompactHistory(sealing.monitor, now.hour()),
                Op::DeleteBlocks(sealing.monitor, expiry_day(BLOCK_RETENTION_HOURS)),
                Op::DeleteHours(sealing.monitor, expiry_day(ROLLUP_RETENTION_HOURS)),
            ]);
        }
    }
    let more = sealings.len() == MONITORS_A_SLICE;
    Ok(SealSlice { ops, sealings, more })
}

/// Returns true if a monitor's hours are folded, and its expired days deleted, in that hour.
fn is_fold_hour(monitor: MonitorId, now: Timestamp) -> bool {
    let phase = (monitor_hash(monitor) % FOLD_INTERVAL_HOURS.unsigned_abs()).cast_signed();
    (now.hour() + phase).rem_euclid(FOLD_INTERVAL_HOURS) == 0
}

fn seal(sealing: &Sealing, read: &dyn StoreRead, windows: &WindowSource, ops: &mut Vec<Op>) -> Result<()> {
    if sealing.hours.is_empty() {
        return Ok(());
    }
    // A monitor that was deleted in the meantime gets no blocks.
    let Some(monitor) = read.monitor(sealing.monitor)? else { return Ok(()) };
    let hours = || sealing.hours.iter().map(|sealed| sealed.hour);
    let hour_start = |hour: i64| Timestamp::from_millis(hour.saturating_mul(HOUR));
    let first = hours().min().map_or(Timestamp::default(), hour_start);
    let end = hours().max().map_or(first, |hour| hour_start(hour.saturating_add(1)));
    let windows = windows(read, &monitor.value, first..end);
    let mut sealer = MonitorSealer::new(read, monitor.value, windows)?;
    for hour in &sealing.hours {
        sealer.seal_hour(hour)?;
    }
    sealer.write_rollups();
    ops.append(&mut sealer.ops);
    Ok(())
}

/// Readings of one region and hour that never were in a tail, in order of round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastHour {
    /// Region of the rounds.
    pub region: Region,
    /// Hour since the epoch in which they were due.
    pub hour: i64,
    /// The readings.
    pub readings: Vec<BlockReading>,
}

/// Builds the roll-ups of a monitor's past, and blocks of its hours from `blocks_from` on, by the rules for sealed
/// tails. Meant for a monitor without history. Blocks.
///
/// # Errors
/// If the store can't be read.
pub fn seal_past(
    read: &dyn StoreRead,
    monitor: &Monitor,
    windows: TimeSpans,
    blocks_from: i64,
    past: impl IntoIterator<Item = PastHour>,
) -> Result<Vec<Op>> {
    let (id, slot) = (monitor.id, monitor.slot);
    let mut sealer = MonitorSealer::new(read, monitor.clone(), windows)?;
    let mut latest = 0;
    for PastHour { region, hour, readings } in past {
        if readings.is_empty() {
            continue;
        }
        latest = hour.max(latest);
        if hour >= blocks_from {
            let bytes = pack(hour, &readings);
            sealer.ops.push(Op::PutBlock(Block { monitor: id, slot, region, hour, bytes }));
        }
        sealer.add_to_rollups(region, hour, &readings)?;
    }
    sealer.write_rollups();
    // Compacted at once, they are a few hundred records instead of thousands.
    let compaction = Op::CompactHistory(id, latest.saturating_add(1));
    let slices = sealer.ops.chunks(MAX_COMPACTED_PER_OP);
    Ok(slices.flat_map(|slice| slice.iter().cloned().chain([compaction.clone()])).collect())
}

/// The sealing of one monitor.
struct MonitorSealer<'a> {
    read: &'a dyn StoreRead,
    monitor: Monitor,
    zone: Tz,
    plan: Plan,
    windows: TimeSpans,
    hours: BTreeMap<i64, HourRollups>,
    days: BTreeMap<i64, DayRollups>,
    ops: Vec<Op>,
}

impl<'a> MonitorSealer<'a> {
    fn new(read: &'a dyn StoreRead, monitor: Monitor, windows: TimeSpans) -> Result<Self> {
        let page = read.page(monitor.page)?.map(|page| page.value);
        let account = page.as_ref().map(|page| read.account(page.account)).transpose()?.flatten();
        Ok(Self {
            read,
            zone: page.map_or(Tz::UTC, |page| page.timezone),
            plan: account.map_or(Plan::Free, |account| account.value.plan),
            windows,
            monitor,
            hours: BTreeMap::new(),
            days: BTreeMap::new(),
            ops: Vec::new(),
        })
    }

    /// Turns a tail into a block, or merges it into its hour's existing block: only new readings are added to
    /// roll-ups.
    fn seal_hour(&mut self, sealed: &SealedHour) -> Result<()> {
        let (id, region, hour) = (self.monitor.id, sealed.region, sealed.hour);
        let stored = self.read.blocks(id, region, hour..hour.saturating_add(1))?;
        let mut samples = stored.first().map(unpack).unwrap_or_default();
        let tail = Block { monitor: id, slot: self.monitor.slot, region, hour, bytes: sealed.bytes.clone() };
        let added = merge_new(&mut samples, unpack(&tail));
        if added.is_empty() {
            return Ok(());
        }
        if samples.len() > MAX_READINGS {
            tracing::warn!(monitor = %id, hour, "an hour has more readings than a block holds; dropping the new ones");
            return Ok(());
        }
        let bytes = if stored.is_empty() { sealed.bytes.clone() } else { pack(hour, &samples) };
        self.ops.push(Op::PutBlock(Block { bytes, ..tail }));
        self.add_to_rollups(region, hour, &added)
    }

    fn add_to_rollups(&mut self, region: Region, hour: i64, added: &[BlockReading]) -> Result<()> {
        let (read, id, zone) = (self.read, self.monitor.id, self.zone);
        let slow_threshold_ms = self.monitor.slow_threshold(region, self.plan);
        let windows = &self.windows;
        let rules = |due| RollupRules { slow_threshold_ms, excluded: windows.contains(due) };
        let hour_rollups = rollup_entry(&mut self.hours, hour, |hours| read.hours(id, hours))?;
        let hour_rollup = hour_rollups.entry(region).or_default();
        added.iter().for_each(|sample| hour_rollup.add(sample, rules(sample.due)));
        for (day, samples) in by_day(added, zone) {
            let day_rollups = rollup_entry(&mut self.days, day, |days| read.days(id, days))?;
            let day_rollup = day_rollups.entry(region).or_default();
            samples.iter().for_each(|sample| day_rollup.counts.add(sample, rules(sample.due)));
        }
        Ok(())
    }

    fn write_rollups(&mut self) {
        let id = self.monitor.id;
        let hours = self.hours.iter().filter_map(|(hour, rollups)| rollup(id, *hour, rollups)).map(Op::PutHour);
        let days = self.days.iter().filter_map(|(day, rollups)| rollup(id, *day, rollups)).map(Op::PutDay);
        self.ops.extend(hours.chain(days));
    }
}

/// Splits the readings of one hour by days since the epoch. Time-zone look-ups are slow, and most hours are in one day.
fn by_day(samples: &[BlockReading], zone: Tz) -> Vec<(i64, &[BlockReading])> {
    let number = |due| day_of(due, zone).map(|day| i64::from(day.to_epoch_days()));
    let dues = || samples.iter().map(|sample| sample.due);
    let (first, last) = (dues().min().and_then(number), dues().max().and_then(number));
    match first {
        Some(day) if first == last => vec![(day, samples)],
        _ => samples.chunks(1).filter_map(|chunk| Some((number(chunk.first()?.due)?, chunk))).collect(),
    }
}

/// Returns the roll-up of an hour or day to add to, initialized from the store.
fn rollup_entry<T: DeserializeOwned + Default>(
    rollups: &mut BTreeMap<i64, T>,
    at: i64,
    stored: impl FnOnce(Range<i64>) -> Result<Vec<Rollup>>,
) -> Result<&mut T> {
    Ok(match rollups.entry(at) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let stored = stored(at..at.saturating_add(1))?;
            entry.insert(stored.first().map(unpack_rollup).unwrap_or_default())
        }
    })
}

fn pack(hour: i64, samples: &[BlockReading]) -> Vec<u8> {
    let mut tail = OpenBlock::new(hour);
    for sample in samples {
        // The samples belong to that hour and fit into a block.
        if let Err(error) = tail.push(sample) {
            tracing::error!(hour, %error, "failed to add a reading to its block");
        }
    }
    tail.seal()
}

fn rollup<T: Serialize>(monitor: MonitorId, at: i64, rollups: &T) -> Option<Rollup> {
    match postcard::to_stdvec(rollups) {
        Ok(bytes) => Some(Rollup { monitor, at, bytes }),
        Err(error) => {
            tracing::error!(%monitor, at, %error, "failed to encode a roll-up");
            None
        }
    }
}
