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
    let page = read.page(monitor.value.page)?.map(|page| page.value);
    let account = page.as_ref().map(|page| read.account(page.account)).transpose()?.flatten();
    let hours = || sealing.hours.iter().map(|sealed| sealed.hour);
    let hour_start = |hour: i64| Timestamp::from_millis(hour.saturating_mul(HOUR));
    let first = hours().min().map_or(Timestamp::default(), hour_start);
    let end = hours().max().map_or(first, |hour| hour_start(hour.saturating_add(1)));
    let mut sealer = MonitorSealer {
        read,
        zone: page.map_or(Tz::UTC, |page| page.timezone),
        plan: account.map_or(Plan::Free, |account| account.value.plan),
        windows: windows(read, &monitor.value, first..end),
        monitor: monitor.value,
        hours: BTreeMap::new(),
        days: BTreeMap::new(),
        ops: Vec::new(),
    };
    for hour in &sealing.hours {
        sealer.seal_hour(hour)?;
    }
    sealer.write_rollups();
    ops.append(&mut sealer.ops);
    Ok(())
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

impl MonitorSealer<'_> {
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
        let (read, id) = (self.read, self.monitor.id);
        let slow_threshold_ms = self.monitor.slow_threshold(region, self.plan);
        for sample in added {
            let excluded = self.windows.contains(sample.due);
            let rules = RollupRules { slow_threshold_ms, excluded };
            let hour_rollups = rollup_entry(&mut self.hours, hour, |hours| read.hours(id, hours))?;
            hour_rollups.entry(region).or_default().add(sample, rules);
            let Some(day) = day_of(sample.due, self.zone) else { continue };
            let day_rollups = rollup_entry(&mut self.days, i64::from(day.to_epoch_days()), |days| read.days(id, days))?;
            day_rollups.entry(region).or_default().counts.add(sample, rules);
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
