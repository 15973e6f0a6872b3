//! Who is there and who is believed: the roster as the mesh tells it, and the quarantine laid over it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parallax_core::event::{Event, What};
use parallax_core::place::{Mesh, Place, PlaceNo, RegionSet};
use parallax_core::quarantine::{Quarantine, Word};
use parallax_core::time::Timestamp;
use parallax_core::watch::Confirmation;

use super::counters::Counters;
use super::notices::{self, Notice};

/// The places of the mesh as machines judge by them.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Who is there, as the mesh told.
    roster: Arc<Mesh>,
    /// The same, with quarantine laid over it.
    mesh: Mesh,
    quarantine: Quarantine,
    told: BTreeSet<Notice>,
    /// Nearly all names fail at all places.
    names_fail: bool,
    counters: Arc<Counters>,
    confirmation: Confirmation,
}

impl Places {
    /// Nobody is there yet.
    pub(super) fn new(confirmation: Confirmation, counters: Arc<Counters>) -> Self {
        Self { confirmation, counters, ..Self::default() }
    }

    /// The mesh that machines judge by.
    pub(super) const fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Whether what the place sees counts for nothing now.
    pub(super) fn is_quarantined(&self, place: PlaceNo) -> bool {
        self.mesh.place(place).is_some_and(|place| place.quarantined)
    }

    /// The places that are in quarantine for their disputes.
    pub(super) fn quarantined(&self) -> Arc<BTreeSet<PlaceNo>> {
        Arc::new(self.quarantine.quarantined().collect())
    }

    /// The mesh told who is there. True where regions came or went, and machines must judge anew.
    pub(super) fn set_roster(&mut self, roster: Arc<Mesh>) -> bool {
        self.roster = roster;
        self.lay()
    }

    /// Notes whether nearly all names fail at all places, which the operator is told.
    pub(super) fn set_names_fail(&mut self, names_fail: bool) {
        self.names_fail = names_fail;
        self.lay();
    }

    /// Takes in a word on a place; the event where it goes into quarantine or comes out.
    pub(super) fn hear(&mut self, place: PlaceNo, word: Word, host: u64, now: Timestamp) -> Option<Event> {
        let quarantined = self.quarantine.hear(place, word, host, now)?;
        Some(turned(place, quarantined, now))
    }

    /// When a place may come out by time alone.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.quarantine.poll_timeout()
    }

    /// Lets out who has been calm for long enough.
    pub(super) fn fire(&mut self, now: Timestamp) -> Vec<Event> {
        if self.next_timeout().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.quarantine.handle_timeout(now).into_iter().map(|place| turned(place, false, now)).collect()
    }

    /// Lays quarantine over the roster. True where regions came or went.
    pub(super) fn lay(&mut self) -> bool {
        let quarantined = |place: &Place| place.quarantined || self.quarantine.is_quarantined(place.no);
        let places = self.roster.places().iter();
        let mesh = Mesh::new(places.map(|place| Place { quarantined: quarantined(place), ..*place }));
        let mut told = notices::notices(&mesh, self.confirmation);
        told.extend(self.names_fail.then_some(Notice::NamesFail));
        notices::tell(&self.told, &told);
        self.counters.set_notices(&told);
        let count = self.quarantine.quarantined().count() as u64;
        self.counters.quarantined.store(count, Ordering::Relaxed);
        self.told = told;
        let before = std::mem::replace(&mut self.mesh, mesh);
        regions(&before) != regions(&self.mesh)
    }
}

fn regions(mesh: &Mesh) -> (RegionSet, RegionSet) {
    (mesh.enrolled_regions(), mesh.fit_regions())
}

fn turned(place: PlaceNo, quarantined: bool, at: Timestamp) -> Event {
    tracing::warn!(place = place.0, quarantined, "a place's failures were disputed by other networks");
    Event { at, page: None, monitor: None, what: What::Quarantine(place, quarantined) }
}
