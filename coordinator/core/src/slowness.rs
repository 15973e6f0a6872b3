//! Slowness: thresholds for response times, and the readings of a region that are still current.

use serde::{Deserialize, Serialize};

use crate::place::{Mesh, PlaceNo, Region};
use crate::rare::Rare;
use crate::time::Timestamp;
use crate::watch::Watch;

/// Maximum number of vantages of one region whose newest readings are stored.
const PLACES: usize = 32;

/// Newest passed reading of each vantage of a region. Stored per vantage because they take turns, and a distant one
/// must not make the status flap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Newest(Kept);

/// In-memory form. Most regions have one vantage, and each monitor has six of these: only more than one reading needs
/// the heap, and the niche of the first variant encodes the second.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    One(Passed),
    Other(Rare<Vec<Passed>>),
}

/// Stored form.
#[derive(Serialize, Deserialize)]
enum Written {
    None,
    One(Passed),
    Many(Vec<Passed>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Other(Rare::default())
    }
}

impl From<Written> for Newest {
    fn from(written: Written) -> Self {
        Self(match written {
            Written::None => Kept::default(),
            Written::One(reading) => Kept::One(reading),
            Written::Many(readings) => Kept::Other(readings.into()),
        })
    }
}

impl From<Newest> for Written {
    fn from(newest: Newest) -> Self {
        match newest.0 {
            Kept::One(reading) => Self::One(reading),
            Kept::Other(readings) if readings.is_empty() => Self::None,
            Kept::Other(mut readings) => Self::Many(readings.take()),
        }
    }
}

/// Passed reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Vantage of the reading.
    pub place: PlaceNo,
    /// Start of its round.
    pub started: Timestamp,
    /// Response time in milliseconds.
    pub latency_ms: u32,
}

impl Newest {
    /// Moves the readings by so many milliseconds after a step of the wall clock.
    pub fn shift(&mut self, by: i64) {
        self.all_mut().iter_mut().for_each(|reading| reading.started = reading.started + by);
    }

    /// Inserts a reading, replacing the older one of the same vantage.
    pub fn insert(&mut self, reading: Passed) {
        if let Some(old) = self.all_mut().iter_mut().find(|old| old.place == reading.place) {
            if reading.started >= old.started {
                *old = reading;
            }
            return;
        }
        match &mut self.0 {
            Kept::One(other) => self.0 = Kept::Other(vec![*other, reading].into()),
            Kept::Other(readings) if readings.is_empty() => self.0 = Kept::One(reading),
            Kept::Other(readings) => {
                let oldest = readings.iter().enumerate().min_by_key(|(_, old)| old.started).map(|(at, _)| at);
                if let Some(oldest) = oldest.filter(|_| readings.len() >= PLACES) {
                    readings.swap_remove(oldest);
                }
                readings.push(reading);
            }
        }
    }

    /// Removes readings that began before `before`.
    pub fn expire(&mut self, before: Timestamp) {
        let left: Vec<Passed> =
            self.all().iter().filter(|reading| reading.started > before).copied().collect();
        if left.len() < self.all().len() {
            self.0 = match left.as_slice() {
                [one] => Kept::One(*one),
                _ => Kept::Other(left.into()),
            };
        }
    }

    /// Newest reading of all vantages.
    pub fn newest(&self) -> Option<Passed> {
        self.all().iter().copied().max_by_key(|reading| reading.started)
    }

    /// Start of the oldest reading, which expires first.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.all().iter().map(|reading| reading.started).min()
    }

    /// Removes every reading: slowness is judged from the next one on.
    pub fn clear(&mut self) {
        self.0 = Kept::default();
    }

    /// Returns the reading that makes the region slow, with its threshold: from a connected vantage, less than three
    /// intervals old; the newest if there are several. Without a mesh, every vantage counts as connected.
    pub fn slow(
        &self,
        watch: &Watch,
        mesh: Option<&Mesh>,
        region: Region,
        now: Timestamp,
    ) -> Option<(Passed, u32)> {
        let threshold = watch.threshold(region)?;
        self.all()
            .iter()
            .filter(|reading| now.since(reading.started) < watch.intervals(3))
            .filter(|reading| {
                mesh.is_none_or(|mesh| mesh.place(reading.place).is_some_and(|place| place.connected))
            })
            .filter(|reading| reading.latency_ms > threshold)
            .max_by_key(|reading| reading.started)
            .map(|reading| (*reading, threshold))
    }

    fn all(&self) -> &[Passed] {
        match &self.0 {
            Kept::One(reading) => std::slice::from_ref(reading),
            Kept::Other(readings) => readings,
        }
    }

    fn all_mut(&mut self) -> &mut [Passed] {
        match &mut self.0 {
            Kept::One(reading) => std::slice::from_mut(reading),
            Kept::Other(readings) if readings.is_empty() => &mut [],
            Kept::Other(readings) => readings,
        }
    }
}
