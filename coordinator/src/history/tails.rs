//! Open tails: the readings that no block holds yet, packed, by monitor, region and hour.

use std::collections::{BTreeMap, BTreeSet};

use parallax_core::assign::spread;
use parallax_core::block::{Sample, Tail, decode};
use parallax_core::id::MonitorId;
use parallax_core::observation::Reading;
use parallax_core::place::Region;
use parallax_core::time::{HOUR, MINUTE, Timestamp};

/// A monitor's hours are sealed so long after the hour at the earliest, so that confirmations are in.
const GRACE: i64 = 2 * MINUTE;
/// Monitors are spread over so much of the hour.
const STAGGER: i64 = 50 * MINUTE;
/// Tails of one monitor that are sealed at once at most.
const SEALED_AT_ONCE: usize = 240;

/// Every open tail.
#[derive(Debug, Default)]
pub(super) struct Tails {
    /// By dense number.
    monitors: Vec<Option<Strands>>,
    /// Monitors by when they have their next turn.
    due: BTreeSet<(Timestamp, u32)>,
    /// Monitors that were enlisted since it was last asked who is due.
    new: Vec<u32>,
    /// Sequence number of the newest journal entry that is in the tails.
    pub(super) applied: u64,
}

/// One monitor's tails.
#[derive(Debug)]
struct Strands {
    monitor: MonitorId,
    /// The moment of the last seal, by the monitor's own turn in the hour.
    sealed_at: i64,
    /// Its key in the queue, where it is in it.
    due_at: Option<Timestamp>,
    strands: Vec<Strand>,
}

#[derive(Debug)]
struct Strand {
    region: Region,
    hour: i64,
    body: Body,
}

/// What takes in readings now has its coder's state; what waits for its seal is bytes alone.
#[derive(Debug)]
enum Body {
    Open(Box<Tail>),
    Waiting(Box<[u8]>),
}

/// The tails of one monitor that are to be sealed, as they were.
#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) slot: u32,
    pub(super) monitor: MonitorId,
    pub(super) hours: Vec<SealedHour>,
}

/// One tail as it was.
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

    /// Takes in a reading; false where it is not.
    pub(super) fn push(&mut self, reading: &Reading) -> bool {
        let Some(monitor) = self.get_mut(reading.slot) else { return false };
        let taken = monitor.push(reading);
        if taken {
            self.line_up(reading.slot, reading.due.hour());
        }
        taken
    }

    /// Sees to it that a monitor with a tail of that hour has its turn in time.
    fn line_up(&mut self, slot: u32, hour: i64) {
        let Some(monitor) = self.get(slot) else { return };
        let due = Timestamp::from_millis(monitor.seal_after(hour));
        if monitor.due_at.is_none_or(|at| due < at) {
            self.queue(slot, due);
        }
    }

    /// Gives a monitor its next turn.
    fn queue(&mut self, slot: u32, due: Timestamp) {
        let Some(monitor) = self.get_mut(slot) else { return };
        if let Some(before) = monitor.due_at.replace(due) {
            self.due.remove(&(before, slot));
        }
        self.due.insert((due, slot));
    }

    /// Takes a tail of a checkpoint back; false where it can't be read. It stays packed until a reading comes to it:
    /// to code all of them anew would be half of a start.
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

    /// The readings in a monitor's tails.
    pub(super) fn samples(&self, slot: u32) -> BTreeMap<(Region, i64), Vec<Sample>> {
        let strands = self.get(slot).map(|monitor| monitor.strands.as_slice()).unwrap_or_default();
        strands.iter().map(|strand| ((strand.region, strand.hour), strand.samples())).collect()
    }

    /// Up to `limit` monitors whose turn it is, with their tails of hours that are over, if any. A monitor has a turn
    /// every hour.
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

    /// Lets go of tails that are sealed, unless a reading came to them meanwhile.
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
                // Its turn is not over.
                continue;
            }
            monitor.sealed_at = monitor.turn_before(now);
            let next = Timestamp::from_millis(monitor.sealed_at) + HOUR;
            self.queue(sealing.slot, next);
        }
    }

    /// The first slot from `slot` on that has open tails.
    pub(super) fn next_open(&self, slot: u32) -> Option<u32> {
        let open = |strands: &Option<Strands>| strands.as_ref().is_some_and(|it| !it.strands.is_empty());
        let behind = self.monitors.get(usize::try_from(slot).ok()?..)?.iter().position(open)?;
        slot.checked_add(u32::try_from(behind).ok()?)
    }

    /// The open tails of a monitor, packed: slot, region, hour and bytes.
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
            // The hours before have most likely seen their last reading.
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

    /// When tails of that hour are sealed: at the monitor's turn after the hour, and not twice within one.
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
            // What was packed here opens again; a reading that finds it otherwise is not taken in.
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
