//! Slowness: which threshold a reading is held against, and which readings of a region still speak.

use serde::{Deserialize, Serialize};

use crate::place::{Mesh, PlaceNo, Region};
use crate::time::Timestamp;
use crate::watch::Watch;

/// Places of one region whose newest readings are kept.
const PLACES: usize = 32;

/// The newest passed reading of each place of a region: places take turns, and a far one must not make it flap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest(Kept);

/// Most regions have one place, and there are six of these for every monitor: only more than one are on the heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Kept {
    #[default]
    None,
    One(Passed),
    Many(Vec<Passed>),
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
    /// Takes a reading in, in place of the same place's older one.
    pub fn insert(&mut self, reading: Passed) {
        if let Some(old) = self.all_mut().iter_mut().find(|old| old.place == reading.place) {
            if reading.started >= old.started {
                *old = reading;
            }
            return;
        }
        match &mut self.0 {
            Kept::None => self.0 = Kept::One(reading),
            Kept::One(other) => self.0 = Kept::Many(vec![*other, reading]),
            Kept::Many(readings) => {
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
                [] => Kept::None,
                [one] => Kept::One(*one),
                _ => Kept::Many(left),
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
        self.0 = Kept::None;
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
            Kept::None => &[],
            Kept::One(reading) => std::slice::from_ref(reading),
            Kept::Many(readings) => readings,
        }
    }

    fn all_mut(&mut self) -> &mut [Passed] {
        match &mut self.0 {
            Kept::None => &mut [],
            Kept::One(reading) => std::slice::from_mut(reading),
            Kept::Many(readings) => readings,
        }
    }
}
