//! The mesh as machines see it: the roster with quarantine applied.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parallax_core::effective::ConfirmationPolicy;
use parallax_core::event::{Event, EventKind, RoundReport};
use parallax_core::observation::Observation;
use parallax_core::quarantine::{CheckTarget, Contradictions, Quarantine, QuarantineChange, SuspectedVantages};
use parallax_core::time::{SECOND, Timestamp};
use parallax_core::vantage::{Mesh, RegionSet, Vantage, VantageNo};

use super::counters::EngineCounters;
use super::mesh_problems::{self, MeshProblem};

/// Milliseconds for which problems must last before they are logged: agents reconnect one by one after a start, and
/// leave one by one before a stop.
const LOG_DELAY: i64 = 10 * SECOND;

/// The mesh as machines see it, with its problems.
#[derive(Debug, Default)]
pub(super) struct MeshView {
    /// The vantages as the mesh reported them.
    roster: Arc<Mesh>,
    /// The roster with quarantine applied.
    mesh: Mesh,
    quarantine: Quarantine,
    problems: BTreeSet<MeshProblem>,
    /// The problems last logged.
    logged_problems: BTreeSet<MeshProblem>,
    /// Start of the current difference from `logged_problems`.
    unlogged_since: Option<Timestamp>,
    /// Nearly all names fail to resolve at all vantages.
    dns_failing: bool,
    counters: Arc<EngineCounters>,
    confirmation: ConfirmationPolicy,
}

impl MeshView {
    /// Starts with no vantage connected.
    pub(super) fn new(confirmation: ConfirmationPolicy, counters: Arc<EngineCounters>) -> Self {
        Self { confirmation, counters, ..Self::default() }
    }

    /// Returns the mesh that machines see.
    pub(super) const fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Returns true if the vantage's results are not counted now.
    pub(super) fn is_quarantined(&self, vantage: VantageNo) -> bool {
        self.mesh.vantage(vantage).is_some_and(|vantage| vantage.quarantined)
    }

    /// Returns the vantages that others contradict.
    pub(super) fn suspects(&self) -> Arc<SuspectedVantages> {
        Arc::new(self.quarantine.suspected())
    }

    /// Replaces the roster. Returns true if regions came or went and machines must judge again.
    pub(super) fn set_roster(&mut self, roster: Arc<Mesh>) -> bool {
        self.roster = roster;
        self.quarantine.retain_enrolled(&self.roster);
        self.apply_quarantine()
    }

    /// Sets whether nearly all names fail at all vantages, which the operator is notified of.
    pub(super) fn set_dns_failing(&mut self, is_failing: bool) {
        self.dns_failing = is_failing;
        self.apply_quarantine();
    }

    /// Handles a finished round: judges the vantages that took part.
    pub(super) fn handle_round(
        &mut self,
        report: &RoundReport,
        target: CheckTarget,
        now: Timestamp,
    ) -> Vec<(VantageNo, QuarantineChange)> {
        self.quarantine.apply_round(report, target, &self.mesh, now)
    }

    /// Handles a shadow round of a quarantined vantage, unless it is old.
    pub(super) fn handle_shadow_round(
        &mut self,
        observation: &Observation,
        agrees: bool,
        target: CheckTarget,
        now: Timestamp,
    ) -> Option<QuarantineChange> {
        if !self.quarantine.counts_shadow_round(observation.vantage, observation.started, now) {
            return None;
        }
        self.quarantine.apply_shadow_round(observation.vantage, agrees, target, now)
    }

    /// Returns when a vantage may leave quarantine by time alone.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        self.quarantine.poll_timeout()
    }

    /// Releases vantages whose calm period is over; `None` if nothing is due.
    pub(super) fn release_due(&mut self, now: Timestamp) -> Option<Vec<(VantageNo, QuarantineChange)>> {
        self.next_timeout().filter(|at| now >= *at)?;
        let released = self.quarantine.handle_timeout(now).into_iter();
        Some(released.map(|vantage| (vantage, QuarantineChange::Released)).collect())
    }

    /// Logs problems that began or ended, once they have lasted.
    pub(super) fn log_problems(&mut self, now: Timestamp) {
        if self.problems == self.logged_problems {
            self.unlogged_since = None;
            return;
        }
        let since = *self.unlogged_since.get_or_insert(now);
        if now.since(since) >= LOG_DELAY {
            mesh_problems::log_changes(&self.logged_problems, &self.problems);
            self.logged_problems.clone_from(&self.problems);
            self.unlogged_since = None;
        }
    }

    /// Applies quarantine to the roster. Returns true if regions came or went.
    pub(super) fn apply_quarantine(&mut self) -> bool {
        let quarantined = |vantage: &Vantage| vantage.quarantined || self.quarantine.is_quarantined(vantage.no);
        let vantages = self.roster.vantages().iter();
        let mesh = Mesh::new(vantages.map(|vantage| Vantage { quarantined: quarantined(vantage), ..*vantage }));
        let mut problems = mesh_problems::find_problems(&mesh, self.confirmation);
        let suspects = self.quarantine.suspected();
        problems.extend((!suspects.spared.is_empty()).then_some(MeshProblem::Contradicted));
        problems.extend(self.dns_failing.then_some(MeshProblem::DnsFailing));
        self.counters.set_mesh_problems(&problems);
        let count = suspects.quarantined.len() as u64;
        self.counters.quarantined.store(count, Ordering::Relaxed);
        self.problems = problems;
        let previous_mesh = std::mem::replace(&mut self.mesh, mesh);
        regions(&previous_mesh) != regions(&self.mesh)
    }
}

fn regions(mesh: &Mesh) -> (RegionSet, RegionSet) {
    (mesh.enrolled_regions(), mesh.available_regions())
}

/// Builds the event of a vantage that enters or leaves quarantine. The mesh, which knows its name, logs it.
pub(super) fn quarantine_event(vantage: VantageNo, change: QuarantineChange, at: Timestamp) -> Option<Event> {
    let kind = match change {
        QuarantineChange::Quarantined(contradictions) => EventKind::QuarantineChanged(vantage, true, contradictions),
        QuarantineChange::Released => EventKind::QuarantineChanged(vantage, false, Contradictions::default()),
        QuarantineChange::Spared(_) => return None,
    };
    Some(Event { at, page: None, monitor: None, kind })
}
