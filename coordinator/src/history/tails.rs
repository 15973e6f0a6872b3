//! Open tails: packed readings that are not in a block yet, by monitor, region and hour.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::assign::spread;
use parallax_core::block::{Sample, Tail, decode};
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_core::place::Region;
use parallax_core::time::{HOUR, MINUTE, Timestamp};

/// Minimum delay between the end of an hour and the sealing of its tails, so that confirmations are in.
const GRACE: i64 = 2 * MINUTE;
/// Part of the hour over which the sealing of monitors is spread.
const STAGGER: i64 = 50 * MINUTE;
/// Maximum number of tails of one monitor sealed at once.
const SEALED_AT_ONCE: usize = 240;

/// All open tails.
#[derive(Debug, Default)]
pub(super) struct Tails {
    /// Monitors by slot.
    monitors: Vec<Option<Strands>>,
    /// Queue of monitors by the time of their next sealing.
    due: BTreeSet<(Timestamp, u32)>,
    /// Monitors registered since the last call of [`Tails::due`].
    new: Vec<u32>,
    /// Sequence number of the newest journal entry in the tails.
    pub(super) applied: u64,
}

/// The tails of one monitor.
#[derive(Debug)]
struct Strands {
    monitor: MonitorId,
    /// Time of the last sealing, at the monitor's phase in the hour.
    sealed_at: i64,
    /// Its key in the queue, if it is queued.
    due_at: Option<Timestamp>,
    strands: Vec<Strand>,
}

#[derive(Debug)]
struct Strand {
    region: Region,
    hour: i64,
    body: Body,
}

/// The contents of a tail: a tail that receives readings has the coder's state; one that waits to be sealed
/// is only bytes.
#[derive(Debug)]
enum Body {
    Open(Box<Tail>),
    Waiting(Box<[u8]>),
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

impl Tails {
    pub(super) fn enlist(&mut self, slot: u32, monitor: MonitorId) {
        let Ok(index) = usize::try_from(slot) else { return };
        if self.monitors.len() <= index {
            self.monitors.resize_with(index + 1, || None);
        }
        if let Some(unknown) = self.monitors.get_mut(index).filter(|known| known.is_none()) {
            let sealed_at = i64::MIN / 2;
            *unknown = Some(Strands { monitor, sealed_at, due_at: None, strands: Vec::new() });
            self.new.push(slot);
        }
    }

    pub(super) fn forget(&mut self, slot: u32) -> Option<MonitorId> {
        let strands = self.monitors.get_mut(usize::try_from(slot).ok()?)?.take()?;
        if let Some(due) = strands.due_at {
            self.due.remove(&(due, slot));
        }
        Some(strands.monitor)
    }

    /// Appends a reading; returns false if it is ignored.
    pub(super) fn push(&mut self, reading: &Reading) -> bool {
        let Some(monitor) = self.get_mut(reading.slot) else { return false };
        let taken = monitor.push(reading);
        if taken {
            self.line_up(reading.slot, reading.due.hour());
        }
        taken
    }

    /// Queues a monitor so that its tail of that hour is sealed in time.
    fn line_up(&mut self, slot: u32, hour: i64) {
        let Some(monitor) = self.get(slot) else { return };
        let due = Timestamp::from_millis(monitor.seal_after(hour));
        if monitor.due_at.is_none_or(|at| due < at) {
            self.queue(slot, due);
        }
    }

    /// Sets the time of a monitor's next sealing.
    fn queue(&mut self, slot: u32, due: Timestamp) {
        let Some(monitor) = self.get_mut(slot) else { return };
        if let Some(before) = monitor.due_at.replace(due) {
            self.due.remove(&(before, slot));
        }
        self.due.insert((due, slot));
    }

    /// Restores a tail from a checkpoint; returns false if it can't be decoded. It stays packed until a
    /// reading is added: encoding all of them again would take half of a start.
    pub(super) fn restore(&mut self, slot: u32, region: Region, hour: i64, block: Vec<u8>) -> bool {
        let Ok(samples) = decode(hour, &block) else { return false };
        let Some(monitor) = self.get_mut(slot).filter(|_| !samples.is_empty()) else { return true };
        if monitor.strands.iter().any(|strand| strand.region == region && strand.hour == hour) {
            for sample in samples {
                self.push(&sample.reading(slot, region));
            }
            return true;
        }
        monitor.strands.reserve_exact(1);
        monitor.strands.push(Strand { region, hour, body: Body::Waiting(block.into_boxed_slice()) });
        self.line_up(slot, hour);
        true
    }

    /// Returns the readings in a monitor's tails.
    pub(super) fn samples(&self, slot: u32) -> BTreeMap<(Region, i64), Vec<Sample>> {
        let strands = self.get(slot).map(|monitor| monitor.strands.as_slice()).unwrap_or_default();
        strands.iter().map(|strand| ((strand.region, strand.hour), strand.samples())).collect()
    }

    /// Returns up to `limit` monitors that are due, with their tails of past hours, if any. A monitor is due
    /// once an hour.
    pub(super) fn due(&mut self, now: Timestamp, limit: usize) -> Vec<Sealing> {
        for slot in std::mem::take(&mut self.new) {
            if let Some(monitor) = self.get(slot).filter(|monitor| monitor.due_at.is_none()) {
                self.queue(slot, Timestamp::from_millis(monitor.turn_before(now)) + HOUR);
            }
        }
        let due = self.due.iter().take_while(|(due, _)| *due <= now).take(limit);
        due.filter_map(|(_, slot)| {
            let monitor = self.get(*slot)?;
            let over = monitor.strands.iter().filter(|strand| strand.hour < now.hour());
            let hours: Vec<SealedHour> = over
                .take(SEALED_AT_ONCE)
                .map(|strand| SealedHour { region: strand.region, hour: strand.hour, bytes: strand.packed() })
                .collect();
            Some(Sealing { slot: *slot, monitor: monitor.monitor, hours })
        })
        .collect()
    }

    /// Releases sealed tails, unless a reading was added in the meantime.
    pub(super) fn settle(&mut self, sealings: &[Sealing], now: Timestamp) {
        for sealing in sealings {
            let Some(monitor) = self.get_mut(sealing.slot) else { continue };
            monitor.strands.retain(|strand| {
                let sealed = |other: &SealedHour| {
                    other.region == strand.region
                        && other.hour == strand.hour
                        && other.bytes == strand.packed()
                };
                !sealing.hours.iter().any(sealed)
            });
            monitor.strands.shrink_to_fit();
            if sealing.hours.len() == SEALED_AT_ONCE {
                // It has more tails to seal.
                continue;
            }
            monitor.sealed_at = monitor.turn_before(now);
            let next = Timestamp::from_millis(monitor.sealed_at) + HOUR;
            self.queue(sealing.slot, next);
        }
    }

    /// Returns the first slot from `slot` on with open tails.
    pub(super) fn next_open(&self, slot: u32) -> Option<u32> {
        let open = |strands: &Option<Strands>| strands.as_ref().is_some_and(|it| !it.strands.is_empty());
        let behind = self.monitors.get(usize::try_from(slot).ok()?..)?.iter().position(open)?;
        slot.checked_add(u32::try_from(behind).ok()?)
    }

    /// Returns the packed open tails of a monitor: slot, region, hour and bytes.
    pub(super) fn packed(&self, slot: u32) -> Vec<(u32, Region, i64, Vec<u8>)> {
        let strands = self.get(slot).map(|monitor| monitor.strands.as_slice()).unwrap_or_default();
        strands.iter().map(|strand| (slot, strand.region, strand.hour, strand.packed())).collect()
    }

    fn get(&self, slot: u32) -> Option<&Strands> {
        self.monitors.get(usize::try_from(slot).ok()?)?.as_ref()
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut Strands> {
        self.monitors.get_mut(usize::try_from(slot).ok()?)?.as_mut()
    }
}

impl Strands {
    fn push(&mut self, reading: &Reading) -> bool {
        let hour = reading.due.hour();
        let found =
            self.strands.iter().position(|strand| strand.region == reading.region && strand.hour == hour);
        let at = found.unwrap_or_else(|| {
            // Earlier hours have most likely received their last reading.
            for strand in &mut self.strands {
                if strand.region == reading.region && strand.hour < hour {
                    strand.close();
                }
            }
            let body = Body::Open(Box::new(Tail::new(hour)));
            self.strands.reserve_exact(1);
            self.strands.push(Strand { region: reading.region, hour, body });
            self.strands.len() - 1
        });
        self.strands.get_mut(at).is_some_and(|strand| strand.push(&Sample::from(reading)))
    }

    /// Sealing time for tails of that hour: the monitor's phase after the hour, at most once an hour.
    fn seal_after(&self, hour: i64) -> i64 {
        let turn = hour.saturating_add(1).saturating_mul(HOUR).saturating_add(self.phase());
        turn.max(self.sealed_at.saturating_add(HOUR))
    }

    fn turn_before(&self, now: Timestamp) -> i64 {
        let phase = self.phase();
        (now.as_millis() - phase).div_euclid(HOUR) * HOUR + phase
    }

    fn phase(&self) -> i64 {
        GRACE + (spread(self.monitor) % STAGGER.unsigned_abs()).cast_signed()
    }
}

impl Strand {
    fn push(&mut self, sample: &Sample) -> bool {
        if let Body::Waiting(bytes) = &self.body {
            // Bytes packed here can be reopened; if that fails, the reading is ignored.
            let Ok(tail) = Tail::reopen(self.hour, bytes) else { return false };
            self.body = Body::Open(Box::new(tail));
        }
        match &mut self.body {
            Body::Open(tail) => tail.push(sample).unwrap_or(false),
            Body::Waiting(_) => false,
        }
    }

    fn close(&mut self) {
        if let Body::Open(tail) = &self.body {
            self.body = Body::Waiting(tail.seal().into_boxed_slice());
        }
    }

    fn packed(&self) -> Vec<u8> {
        match &self.body {
            Body::Open(tail) => tail.seal(),
            Body::Waiting(bytes) => bytes.to_vec(),
        }
    }

    fn samples(&self) -> Vec<Sample> {
        match &self.body {
            Body::Open(tail) => tail.samples(),
            Body::Waiting(bytes) => decode(self.hour, bytes).unwrap_or_default(),
        }
    }
}
