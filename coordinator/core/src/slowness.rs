//! Slowness: thresholds for response times, and the readings of a region that are still current.

use serde::{Deserialize, Serialize};

use crate::boxed_if_set::BoxedIfSet;
use crate::effective::EffectiveSettings;
use crate::time::Timestamp;
use crate::vantage::{Mesh, Region, VantageNo};

/// Maximum number of vantages of one region whose newest readings are stored.
const MAX_VANTAGES: usize = 32;

/// Newest passed reading of each vantage of a region. Stored per vantage because they take turns, and a distant one
/// must not make the status flap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredReadings", into = "StoredReadings")]
pub struct NewestReadings(ReadingStore);

/// In-memory form. Most regions have one vantage, and each monitor has six of these: only more than one reading needs
/// the heap, and the niche of the first variant encodes the second.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadingStore {
    One(PassedReading),
    Many(BoxedIfSet<Vec<PassedReading>>),
}

/// Stored form.
#[derive(Serialize, Deserialize)]
enum StoredReadings {
    None,
    One(PassedReading),
    Many(Vec<PassedReading>),
}

impl Default for ReadingStore {
    fn default() -> Self {
        Self::Many(BoxedIfSet::default())
    }
}

impl From<StoredReadings> for NewestReadings {
    fn from(written: StoredReadings) -> Self {
        Self(match written {
            StoredReadings::None => ReadingStore::default(),
            StoredReadings::One(reading) => ReadingStore::One(reading),
            StoredReadings::Many(readings) => ReadingStore::Many(readings.into()),
        })
    }
}

impl From<NewestReadings> for StoredReadings {
    fn from(newest: NewestReadings) -> Self {
        match newest.0 {
            ReadingStore::One(reading) => Self::One(reading),
            ReadingStore::Many(readings) if readings.is_empty() => Self::None,
            ReadingStore::Many(mut readings) => Self::Many(readings.take()),
        }
    }
}

/// Passed reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedReading {
    /// Vantage of the reading.
    pub vantage: VantageNo,
    /// Start of its round.
    pub started: Timestamp,
    /// Response time in milliseconds.
    pub latency_ms: u32,
}

impl NewestReadings {
    /// Moves the readings by `by` milliseconds after a step of the wall clock.
    pub fn shift(&mut self, by: i64) {
        self.all_mut().iter_mut().for_each(|reading| reading.started = reading.started + by);
    }

    /// Inserts a reading, replacing the older one of the same vantage.
    pub fn insert(&mut self, reading: PassedReading) {
        if let Some(old) = self.all_mut().iter_mut().find(|old| old.vantage == reading.vantage) {
            if reading.started >= old.started {
                *old = reading;
            }
            return;
        }
        match &mut self.0 {
            ReadingStore::One(other) => self.0 = ReadingStore::Many(vec![*other, reading].into()),
            ReadingStore::Many(readings) if readings.is_empty() => self.0 = ReadingStore::One(reading),
            ReadingStore::Many(readings) => {
                let oldest = readings.iter().enumerate().min_by_key(|(_, old)| old.started).map(|(at, _)| at);
                if let Some(oldest) = oldest.filter(|_| readings.len() >= MAX_VANTAGES) {
                    readings.swap_remove(oldest);
                }
                readings.push(reading);
            }
        }
    }

    /// Removes readings that began before `before`.
    pub fn expire(&mut self, before: Timestamp) {
        let left: Vec<PassedReading> = self.all().iter().filter(|reading| reading.started > before).copied().collect();
        if left.len() < self.all().len() {
            self.0 = match left.as_slice() {
                [one] => ReadingStore::One(*one),
                _ => ReadingStore::Many(left.into()),
            };
        }
    }

    /// Newest reading of all vantages.
    pub fn newest(&self) -> Option<PassedReading> {
        self.all().iter().copied().max_by_key(|reading| reading.started)
    }

    /// Start of the oldest reading, which expires first.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.all().iter().map(|reading| reading.started).min()
    }

    /// Removes every reading: slowness is judged from the next one on.
    pub fn clear(&mut self) {
        self.0 = ReadingStore::default();
    }

    /// Returns the reading that makes the region slow, with its threshold: from a connected vantage, less than three
    /// intervals old; the newest if there are several. Without a mesh, every vantage counts as connected.
    pub fn slow_reading(
        &self,
        settings: &EffectiveSettings,
        mesh: Option<&Mesh>,
        region: Region,
        now: Timestamp,
    ) -> Option<(PassedReading, u32)> {
        let threshold = settings.threshold(region)?;
        self.all()
            .iter()
            .filter(|reading| now.since(reading.started) < settings.intervals(3))
            .filter(|reading| {
                mesh.is_none_or(|mesh| mesh.vantage(reading.vantage).is_some_and(|place| place.connected))
            })
            .filter(|reading| reading.latency_ms > threshold)
            .max_by_key(|reading| reading.started)
            .map(|reading| (*reading, threshold))
    }

    fn all(&self) -> &[PassedReading] {
        match &self.0 {
            ReadingStore::One(reading) => std::slice::from_ref(reading),
            ReadingStore::Many(readings) => readings,
        }
    }

    fn all_mut(&mut self) -> &mut [PassedReading] {
        match &mut self.0 {
            ReadingStore::One(reading) => std::slice::from_mut(reading),
            ReadingStore::Many(readings) if readings.is_empty() => &mut [],
            ReadingStore::Many(readings) => readings,
        }
    }
}
