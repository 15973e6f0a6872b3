//! Slowness: which threshold a reading is held against, and which readings of a region still speak.

use serde::{Deserialize, Serialize};

use crate::place::{Mesh, PlaceNo, Region};
use crate::time::Timestamp;
use crate::watch::Watch;

/// Places of one region whose newest readings are kept.
const PLACES: usize = 32;

/// The newest passed reading of each place of a region: places take turns, and a far one must not make it flap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest(Vec<Passed>);

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
        if let Some(old) = self.0.iter_mut().find(|old| old.place == reading.place) {
            if reading.started >= old.started {
                *old = reading;
            }
            return;
        }
        if self.0.len() >= PLACES
            && let Some(oldest) = (0..self.0.len()).min_by_key(|at| self.0.get(*at).map(|old| old.started))
        {
            self.0.swap_remove(oldest);
        }
        // Most regions have one place, and there are six of these for every monitor.
        self.0.reserve_exact(1);
        self.0.push(reading);
    }

    /// Forgets readings that began before `before`: they say nothing any more.
    pub fn expire(&mut self, before: Timestamp) {
        self.0.retain(|reading| reading.started > before);
    }

    /// The newest reading, whoever read it.
    pub fn newest(&self) -> Option<Passed> {
        self.0.iter().copied().max_by_key(|reading| reading.started)
    }

    /// Start of the oldest reading: the first to expire.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.0.iter().map(|reading| reading.started).min()
    }

    /// Forgets every reading: slowness is judged from the next.
    pub fn clear(&mut self) {
        self.0.clear();
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
        self.0
            .iter()
            .filter(|reading| now.since(reading.started) < watch.intervals(3))
            .filter(|reading| {
                mesh.is_none_or(|mesh| mesh.place(reading.place).is_some_and(|place| place.connected))
            })
            .filter(|reading| reading.latency_ms > threshold)
            .max_by_key(|reading| reading.started)
            .map(|reading| (*reading, threshold))
    }
}
