//! Who is there and who is believed: the roster as the mesh tells it, and the quarantine laid over it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parallax_core::event::{Event, RoundReport, What};
use parallax_core::observation::Observation;
use parallax_core::place::{Mesh, Place, PlaceNo, RegionSet};
use parallax_core::quarantine::{CheckTarget, Contradictions, Quarantine, Suspects, Turn};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::watch::Confirmation;

use super::counters::Counters;
use super::notices::{self, Notice};

/// Milliseconds for which the notices of the mesh must have been others than were logged: agents come back one by one after a
/// start, and leave one by one before a stop.
const SETTLED: i64 = 10 * SECOND;

/// The places of the mesh as machines judge by them.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Who is there, as the mesh told.
    roster: Arc<Mesh>,
    /// The same, with quarantine laid over it.
    mesh: Mesh,
    quarantine: Quarantine,
    told: BTreeSet<Notice>,
    /// Those that the log has.
    logged: BTreeSet<Notice>,
    /// Since when those are others.
    unlogged_since: Option<Timestamp>,
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

    /// The places that others contradict.
    pub(super) fn suspects(&self) -> Arc<Suspects> {
        Arc::new(self.quarantine.suspects())
    }

    /// The mesh told who is there. True where regions came or went, and machines must judge anew.
    pub(super) fn set_roster(&mut self, roster: Arc<Mesh>) -> bool {
        self.roster = roster;
        self.quarantine.forget_others(&self.roster);
        self.lay()
    }

    /// Notes whether nearly all names fail at all places, which the operator is told.
    pub(super) fn set_names_fail(&mut self, names_fail: bool) {
        self.names_fail = names_fail;
        self.lay();
    }

    /// Takes in a round that is over: what it says of the places that have spoken.
    pub(super) fn hear_round(
        &mut self,
        report: &RoundReport,
        target: CheckTarget,
        now: Timestamp,
    ) -> Vec<(PlaceNo, Turn)> {
        self.quarantine.hear_round(report, target, &self.mesh, now)
    }

    /// Takes in a shadow round of a place in quarantine, where it is no old one: whether it agrees with the others.
    pub(super) fn hear_shadow(
        &mut self,
        seen: &Observation,
        agrees: bool,
        target: CheckTarget,
        now: Timestamp,
    ) -> Option<Turn> {
        if !self.quarantine.is_fresh(seen.place, seen.started, now) {
            return None;
        }
        self.quarantine.hear_shadow(seen.place, agrees, target, now)
    }

    /// When a place may come out by time alone.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.quarantine.poll_timeout()
    }

    /// Lets out who has been calm for long enough; none where it is not time for anything.
    pub(super) fn fire(&mut self, now: Timestamp) -> Option<Vec<(PlaceNo, Turn)>> {
        self.next_timeout().filter(|at| now >= *at)?;
        let released = self.quarantine.handle_timeout(now).into_iter();
        Some(released.map(|place| (place, Turn::Released)).collect())
    }

    /// Logs the notices that began or ended, once they have lasted.
    pub(super) fn log_notices(&mut self, now: Timestamp) {
        if self.told == self.logged {
            self.unlogged_since = None;
            return;
        }
        let since = *self.unlogged_since.get_or_insert(now);
        if now.since(since) >= SETTLED {
            notices::tell(&self.logged, &self.told);
            self.logged.clone_from(&self.told);
            self.unlogged_since = None;
        }
    }

    /// Lays quarantine over the roster. True where regions came or went.
    pub(super) fn lay(&mut self) -> bool {
        let quarantined = |place: &Place| place.quarantined || self.quarantine.is_quarantined(place.no);
        let places = self.roster.places().iter();
        let mesh = Mesh::new(places.map(|place| Place { quarantined: quarantined(place), ..*place }));
        let mut told = notices::notices(&mesh, self.confirmation);
        let suspects = self.quarantine.suspects();
        told.extend((!suspects.spared.is_empty()).then_some(Notice::Contradicted));
        told.extend(self.names_fail.then_some(Notice::NamesFail));
        self.counters.set_notices(&told);
        let count = suspects.held.len() as u64;
        self.counters.quarantined.store(count, Ordering::Relaxed);
        self.told = told;
        let before = std::mem::replace(&mut self.mesh, mesh);
        regions(&before) != regions(&self.mesh)
    }
}

fn regions(mesh: &Mesh) -> (RegionSet, RegionSet) {
    (mesh.enrolled_regions(), mesh.fit_regions())
}

/// The event of a place that goes into quarantine or comes out. The mesh, which knows its name, logs it.
pub(super) fn turned(place: PlaceNo, turn: Turn, at: Timestamp) -> Option<Event> {
    let what = match turn {
        Turn::Held(found) => What::Quarantine(place, true, found),
        Turn::Released => What::Quarantine(place, false, Contradictions::default()),
        Turn::Spared(_) => return None,
    };
    Some(Event { at, page: None, monitor: None, what })
}
