//! Open tails: packed readings that are not in a block yet, by monitor, region and hour.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::assign::monitor_hash;
use parallax_core::block::{BlockReading, OpenBlock, decode};
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_core::time::{HOUR, MINUTE, Timestamp};
use parallax_core::vantage::Region;

/// Minimum delay between the end of an hour and the sealing of its tails, so that confirmations are in.
const GRACE: i64 = 2 * MINUTE;
/// Part of the hour over which the sealing of monitors is spread.
const SEAL_SPREAD: i64 = 50 * MINUTE;
/// Maximum number of tails of one monitor sealed at once.
const MAX_SEALED_AT_ONCE: usize = 240;

/// All open tails.
#[derive(Debug, Default)]
pub(super) struct OpenTails {
    /// Monitors by slot.
    monitors: Vec<Option<MonitorTails>>,
    /// Queue of monitors by the time of their next sealing.
    due: BTreeSet<(Timestamp, u32)>,
    /// Monitors registered since the last call of [`OpenTails::due`].
    unscheduled: Vec<u32>,
    /// Sequence number of the newest journal entry in the tails.
    pub(super) applied: u64,
}

/// The tails of one monitor.
#[derive(Debug)]
struct MonitorTails {
    monitor: MonitorId,
    /// Time of the last sealing, at the monitor's phase in the hour.
    sealed_at: i64,
    /// Its key in the queue, if it is queued.
    due_at: Option<Timestamp>,
    tails: Vec<HourTail>,
}

#[derive(Debug)]
struct HourTail {
    region: Region,
    hour: i64,
    data: TailData,
}

/// The contents of a tail: a tail that receives readings has the coder's state; one that waits to be sealed
/// is only bytes.
#[derive(Debug)]
enum TailData {
    Open(Box<OpenBlock>),
    Packed(Box<[u8]>),
}

/// The tails of one monitor to be sealed, as they were.
#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) slot: u32,
    pub(super) monitor: MonitorId,
    pub(super) hours: Vec<SealedHour>,
}

/// A tail as it was.
#[derive(Debug)]
pub(super) struct SealedHour {
    pub(super) region: Region,
    pub(super) hour: i64,
    pub(super) bytes: Vec<u8>,
}

impl OpenTails {
    pub(super) fn register(&mut self, slot: u32, monitor: MonitorId) {
        let Ok(index) = usize::try_from(slot) else { return };
        if self.monitors.len() <= index {
            self.monitors.resize_with(index + 1, || None);
        }
        if let Some(entry) = self.monitors.get_mut(index).filter(|entry| entry.is_none()) {
            let sealed_at = i64::MIN / 2;
            *entry = Some(MonitorTails { monitor, sealed_at, due_at: None, tails: Vec::new() });
            self.unscheduled.push(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<MonitorId> {
        let monitor_tails = self.monitors.get_mut(usize::try_from(slot).ok()?)?.take()?;
        if let Some(due) = monitor_tails.due_at {
            self.due.remove(&(due, slot));
        }
        Some(monitor_tails.monitor)
    }

    /// Appends a reading; returns false if it is ignored.
    pub(super) fn push(&mut self, reading: &Reading) -> bool {
        let Some(monitor) = self.get_mut(reading.slot) else { return false };
        let accepted = monitor.push(reading);
        if accepted {
            self.schedule_seal(reading.slot, reading.due.hour());
        }
        accepted
    }

    /// Queues a monitor so that its tail of that hour is sealed in time.
    fn schedule_seal(&mut self, slot: u32, hour: i64) {
        let Some(monitor) = self.get(slot) else { return };
        let due = Timestamp::from_millis(monitor.seal_after(hour));
        if monitor.due_at.is_none_or(|at| due < at) {
            self.enqueue(slot, due);
        }
    }

    /// Sets the time of a monitor's next sealing.
    fn enqueue(&mut self, slot: u32, due: Timestamp) {
        let Some(monitor) = self.get_mut(slot) else { return };
        if let Some(previous) = monitor.due_at.replace(due) {
            self.due.remove(&(previous, slot));
        }
        self.due.insert((due, slot));
    }

    /// Restores a tail from a checkpoint; returns false if it can't be decoded. It stays packed until a
    /// reading is added: encoding all of them again would take half of a start.
    pub(super) fn restore(&mut self, slot: u32, region: Region, hour: i64, block: Vec<u8>) -> bool {
        let Ok(samples) = decode(hour, &block) else { return false };
        let Some(monitor) = self.get_mut(slot).filter(|_| !samples.is_empty()) else { return true };
        if monitor.tails.iter().any(|tail| tail.region == region && tail.hour == hour) {
            for sample in samples {
                self.push(&sample.to_reading(slot, region));
            }
            return true;
        }
        monitor.tails.reserve_exact(1);
        monitor.tails.push(HourTail { region, hour, data: TailData::Packed(block.into_boxed_slice()) });
        self.schedule_seal(slot, hour);
        true
    }

    /// Returns the readings in a monitor's tails.
    pub(super) fn samples(&self, slot: u32) -> BTreeMap<(Region, i64), Vec<BlockReading>> {
        let tails = self.get(slot).map(|monitor| monitor.tails.as_slice()).unwrap_or_default();
        tails.iter().map(|tail| ((tail.region, tail.hour), tail.samples())).collect()
    }

    /// Returns up to `limit` monitors that are due, with their tails of past hours, if any. A monitor is due
    /// once an hour.
    pub(super) fn due(&mut self, now: Timestamp, limit: usize) -> Vec<Sealing> {
        for slot in std::mem::take(&mut self.unscheduled) {
            if let Some(monitor) = self.get(slot).filter(|monitor| monitor.due_at.is_none()) {
                self.enqueue(slot, Timestamp::from_millis(monitor.last_seal_time(now)) + HOUR);
            }
        }
        let due = self.due.iter().take_while(|(due, _)| *due <= now).take(limit);
        due.filter_map(|(_, slot)| {
            let monitor = self.get(*slot)?;
            let past_tails = monitor.tails.iter().filter(|tail| tail.hour < now.hour());
            let hours: Vec<SealedHour> = past_tails
                .take(MAX_SEALED_AT_ONCE)
                .map(|tail| SealedHour { region: tail.region, hour: tail.hour, bytes: tail.packed() })
                .collect();
            Some(Sealing { slot: *slot, monitor: monitor.monitor, hours })
        })
        .collect()
    }

    /// Releases sealed tails, unless a reading was added in the meantime.
    pub(super) fn confirm_sealed(&mut self, sealings: &[Sealing], now: Timestamp) {
        for sealing in sealings {
            let Some(monitor) = self.get_mut(sealing.slot) else { continue };
            monitor.tails.retain(|tail| {
                let is_sealed = |sealed_hour: &SealedHour| {
                    sealed_hour.region == tail.region
                        && sealed_hour.hour == tail.hour
                        && sealed_hour.bytes == tail.packed()
                };
                !sealing.hours.iter().any(is_sealed)
            });
            monitor.tails.shrink_to_fit();
            if sealing.hours.len() == MAX_SEALED_AT_ONCE {
                // It has more tails to seal.
                continue;
            }
            monitor.sealed_at = monitor.last_seal_time(now);
            let next = Timestamp::from_millis(monitor.sealed_at) + HOUR;
            self.enqueue(sealing.slot, next);
        }
    }

    /// Returns the first slot from `slot` on with open tails.
    pub(super) fn next_open(&self, slot: u32) -> Option<u32> {
        let has_open_tails = |tails: &Option<MonitorTails>| tails.as_ref().is_some_and(|it| !it.tails.is_empty());
        let offset = self.monitors.get(usize::try_from(slot).ok()?..)?.iter().position(has_open_tails)?;
        slot.checked_add(u32::try_from(offset).ok()?)
    }

    /// Returns the packed open tails of a monitor: slot, region, hour and bytes.
    pub(super) fn packed(&self, slot: u32) -> Vec<(u32, Region, i64, Vec<u8>)> {
        let tails = self.get(slot).map(|monitor| monitor.tails.as_slice()).unwrap_or_default();
        tails.iter().map(|tail| (slot, tail.region, tail.hour, tail.packed())).collect()
    }

    fn get(&self, slot: u32) -> Option<&MonitorTails> {
        self.monitors.get(usize::try_from(slot).ok()?)?.as_ref()
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut MonitorTails> {
        self.monitors.get_mut(usize::try_from(slot).ok()?)?.as_mut()
    }
}

impl MonitorTails {
    fn push(&mut self, reading: &Reading) -> bool {
        let hour = reading.due.hour();
        let existing = self.tails.iter().position(|tail| tail.region == reading.region && tail.hour == hour);
        let index = existing.unwrap_or_else(|| {
            // Earlier hours have most likely received their last reading.
            for tail in &mut self.tails {
                if tail.region == reading.region && tail.hour < hour {
                    tail.pack();
                }
            }
            let data = TailData::Open(Box::new(OpenBlock::new(hour)));
            self.tails.reserve_exact(1);
            self.tails.push(HourTail { region: reading.region, hour, data });
            self.tails.len() - 1
        });
        self.tails.get_mut(index).is_some_and(|tail| tail.push(&BlockReading::from(reading)))
    }

    /// Sealing time for tails of that hour: the monitor's phase after the hour, at most once an hour.
    fn seal_after(&self, hour: i64) -> i64 {
        let time = hour.saturating_add(1).saturating_mul(HOUR).saturating_add(self.phase());
        time.max(self.sealed_at.saturating_add(HOUR))
    }

    fn last_seal_time(&self, now: Timestamp) -> i64 {
        let phase = self.phase();
        (now.as_millis() - phase).div_euclid(HOUR) * HOUR + phase
    }

    fn phase(&self) -> i64 {
        GRACE + (monitor_hash(self.monitor) % SEAL_SPREAD.unsigned_abs()).cast_signed()
    }
}

impl HourTail {
    fn push(&mut self, sample: &BlockReading) -> bool {
        if let TailData::Packed(bytes) = &self.data {
            // Bytes packed here can be reopened; if that fails, the reading is ignored.
            let Ok(tail) = OpenBlock::reopen(self.hour, bytes) else { return false };
            self.data = TailData::Open(Box::new(tail));
        }
        match &mut self.data {
            TailData::Open(tail) => tail.push(sample).unwrap_or(false),
            TailData::Packed(_) => false,
        }
    }

    fn pack(&mut self) {
        if let TailData::Open(tail) = &self.data {
            self.data = TailData::Packed(tail.seal().into_boxed_slice());
        }
    }

    fn packed(&self) -> Vec<u8> {
        match &self.data {
            TailData::Open(tail) => tail.seal(),
            TailData::Packed(bytes) => bytes.to_vec(),
        }
    }

    fn samples(&self) -> Vec<BlockReading> {
        match &self.data {
            TailData::Open(tail) => tail.readings(),
            TailData::Packed(bytes) => decode(self.hour, bytes).unwrap_or_default(),
        }
    }
}
