//! Slowness: which threshold a reading is held against, and which readings of a region still speak.

use serde::{Deserialize, Serialize};

use crate::place::{Mesh, PlaceNo, Region};
use crate::rare::Rare;
use crate::time::Timestamp;
use crate::watch::Watch;

/// Places of one region whose newest readings are kept.
const PLACES: usize = 32;

/// The newest passed reading of each place of a region: places take turns, and a far one must not make it flap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Newest(Kept);

/// Most regions have one place, and there are six of these for every monitor: only more than one are on the heap, and
/// what says so takes no room beside the one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    One(Passed),
    Other(Rare<Vec<Passed>>),
}

/// The same as it is written.
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

/// One passed reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Who read it.
    pub place: PlaceNo,
    /// When its round began.
    pub started: Timestamp,
    /// Response time in milliseconds.
    pub latency_ms: u32,
}

impl Newest {
    /// Moves the readings by so many milliseconds, with a wall clock that has stepped.
    pub fn shift(&mut self, by: i64) {
        self.all_mut().iter_mut().for_each(|reading| reading.started = reading.started + by);
    }

    /// Takes a reading in, in place of the same place's older one.
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

    /// Forgets readings that began before `before`: they say nothing any more.
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

    /// The newest reading, whoever read it.
    pub fn newest(&self) -> Option<Passed> {
        self.all().iter().copied().max_by_key(|reading| reading.started)
    }

    /// Start of the oldest reading: the first to expire.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.all().iter().map(|reading| reading.started).min()
    }

    /// Forgets every reading: slowness is judged from the next.
    pub fn clear(&mut self) {
        self.0 = Kept::default();
    }

    /// The reading that makes the region slow, with its threshold: of a connected place, under three intervals old; the
    /// newest, where several do. Without a mesh every place is taken for connected.
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
