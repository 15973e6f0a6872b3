//! The mesh as machines see it: the roster with quarantine applied.

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

/// Milliseconds for which problems must last before they are logged: agents reconnect one by one after a start, and
/// leave one by one before a stop.
const SETTLED: i64 = 10 * SECOND;

/// The mesh as machines see it, with its problems.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The vantages as the mesh reported them.
    roster: Arc<Mesh>,
    /// The roster with quarantine applied.
    mesh: Mesh,
    quarantine: Quarantine,
    told: BTreeSet<Notice>,
    /// The problems last logged.
    logged: BTreeSet<Notice>,
    /// Start of the current difference from `logged`.
    unlogged_since: Option<Timestamp>,
    /// Nearly all names fail to resolve at all vantages.
    names_fail: bool,
    counters: Arc<Counters>,
    confirmation: Confirmation,
}

impl Places {
    /// Starts with no vantage connected.
    pub(super) fn new(confirmation: Confirmation, counters: Arc<Counters>) -> Self {
        Self { confirmation, counters, ..Self::default() }
    }

    /// Returns the mesh that machines see.
    pub(super) const fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Returns true if the vantage's results are not counted now.
    pub(super) fn is_quarantined(&self, place: PlaceNo) -> bool {
        self.mesh.place(place).is_some_and(|place| place.quarantined)
    }

    /// Returns the vantages that others contradict.
    pub(super) fn suspects(&self) -> Arc<Suspects> {
        Arc::new(self.quarantine.suspects())
    }

    /// Replaces the roster. Returns true if regions came or went and machines must judge again.
    pub(super) fn set_roster(&mut self, roster: Arc<Mesh>) -> bool {
        self.roster = roster;
        self.quarantine.forget_others(&self.roster);
        self.lay()
    }

    /// Sets whether nearly all names fail at all vantages, which the operator is notified of.
    pub(super) fn set_names_fail(&mut self, names_fail: bool) {
        self.names_fail = names_fail;
        self.lay();
    }

    /// Handles a finished round: judges the vantages that took part.
    pub(super) fn hear_round(
        &mut self,
        report: &RoundReport,
        target: CheckTarget,
        now: Timestamp,
    ) -> Vec<(PlaceNo, Turn)> {
        self.quarantine.hear_round(report, target, &self.mesh, now)
    }

    /// Handles a shadow round of a quarantined vantage, unless it is old.
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

    /// Returns when a vantage may leave quarantine by time alone.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.quarantine.poll_timeout()
    }

    /// Releases vantages whose calm period is over; `None` if nothing is due.
    pub(super) fn fire(&mut self, now: Timestamp) -> Option<Vec<(PlaceNo, Turn)>> {
        self.next_timeout().filter(|at| now >= *at)?;
        let released = self.quarantine.handle_timeout(now).into_iter();
        Some(released.map(|place| (place, Turn::Released)).collect())
    }

    /// Logs problems that began or ended, once they have lasted.
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

    /// Applies quarantine to the roster. Returns true if regions came or went.
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

/// Builds the event of a vantage that enters or leaves quarantine. The mesh, which knows its name, logs it.
pub(super) fn turned(place: PlaceNo, turn: Turn, at: Timestamp) -> Option<Event> {
    let what = match turn {
        Turn::Held(found) => What::Quarantine(place, true, found),
        Turn::Released => What::Quarantine(place, false, Contradictions::default()),
        Turn::Spared(_) => return None,
    };
    Some(Event { at, page: None, monitor: None, what })
}
