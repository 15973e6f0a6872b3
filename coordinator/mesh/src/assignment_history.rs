//! Assignment history: a result counts only if its round was assigned to the vantage that sent it.
//!
//! An agent runs the share that it was last sent, also while disconnected. So each share stays in force until the
//! agent has confirmed the next one. Nothing is known about the time before this process first sent a share; rounds
//! due by then are accepted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parallax_core::assign::{ScheduledMonitor, due_ms, offset_ms, phase_hash};
use parallax_core::check::CheckKind;
use parallax_core::effective::regions_in_use;
use parallax_core::machine::LATE_AFTER;
use parallax_core::time::{MINUTE, SECOND, Timestamp};
use parallax_core::vantage::{Mesh, Region, RegionSet, VantageNo};
use parallax_engine::Capabilities;

use super::schedule_diff::ShareInputs;
use super::shares::ShareCalculator;

/// Shares remembered, at most. Changes are batched for a quarter of a second, so these cover at least [`LATE_AFTER`];
/// later results go to history only.
const MAX_ENTRIES: usize = 512;
/// Clock tolerance, in milliseconds, where a share ends or begins.
const CLOCK_TOLERANCE: i64 = 5 * SECOND;
/// Milliseconds that a round may be due in the future: no agent with a synchronized clock is off by more.
const MAX_AHEAD: i64 = 30 * SECOND;
/// Milliseconds of connection time for which an agent may leave a share unconfirmed, however often it is sent
/// again.
const MAX_UNCONFIRMED: i64 = MINUTE;
/// Minimum milliseconds counted per connection, so that an agent gains no time by reconnecting again and again.
const MIN_CONNECTION_TIME: i64 = SECOND;
/// Shares of older entries looked up per batch, at most; further rounds that need one are refused.
const MAX_LOOKUPS: usize = 4096;

/// Shares that one agent was sent, newest last.
#[derive(Debug, Default)]
pub(super) struct AssignmentHistory {
    entries: VecDeque<Entry>,
    /// True if older entries were evicted.
    has_evicted: bool,
    /// Milliseconds for which the agent has been connected so far.
    connected: i64,
    /// Time at which `connected` was last updated.
    counted_at: i64,
}

#[derive(Debug)]
struct Entry {
    /// Time of the first send. All times here are from the monotonic clock, in milliseconds.
    since: i64,
    /// Time at which the agent confirmed the next share.
    until: Option<i64>,
    /// Connection time of the agent at the first send.
    connected: i64,
    /// First revision of this share; later revisions of it have the same share.
    revision: u64,
    is_confirmed: bool,
    /// Mesh and capabilities that determine the share; `None` if unknown.
    inputs: Option<(Arc<Mesh>, Arc<Capabilities>)>,
}

impl AssignmentHistory {
    /// Records a connection of the agent, which holds a schedule of this installation or none.
    pub(super) fn connect(&mut self, holds_schedule: bool, monotonic: i64) {
        self.connected = self.connected.saturating_add(MIN_CONNECTION_TIME);
        self.counted_at = monotonic;
        if self.entries.is_empty() {
            self.entries.push_back(Entry {
                since: i64::MIN,
                until: (!holds_schedule).then(|| monotonic.saturating_sub(CLOCK_TOLERANCE)),
                connected: self.connected,
                revision: 0,
                is_confirmed: true,
                inputs: None,
            });
        }
    }

    /// Records that the agent is about to be sent its share from these inputs, as that revision.
    pub(super) fn send(&mut self, inputs: &ShareInputs, revision: u64, monotonic: i64) {
        let is_same = |entry: &Entry| {
            entry
                .inputs
                .as_ref()
                .is_some_and(|(mesh, capabilities)| *mesh == inputs.mesh && *capabilities == inputs.capabilities)
        };
        self.count(monotonic);
        if self.entries.back().is_some_and(is_same) {
            return;
        }
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.pop_front();
            self.has_evicted = true;
        }
        self.entries.push_back(Entry {
            since: monotonic,
            until: None,
            connected: self.connected,
            revision,
            is_confirmed: false,
            inputs: Some((Arc::clone(&inputs.mesh), Arc::clone(&inputs.capabilities))),
        });
    }

    /// Records that the agent holds that revision: shares sent before it are no longer in force.
    pub(super) fn confirm(&mut self, revision: u64, monotonic: i64) {
        if let Some(index) = self.entries.iter().rposition(|entry| entry.revision <= revision) {
            self.end_before(index, monotonic);
        }
    }

    /// Treats a share as confirmed if the agent has left it unconfirmed for too long while connected.
    pub(super) fn expire(&mut self, monotonic: i64) {
        self.count(monotonic);
        let is_overdue = |entry: &Entry| self.connected.saturating_sub(entry.connected) > MAX_UNCONFIRMED;
        if let Some(index) = self.entries.iter().rposition(is_overdue) {
            self.end_before(index, monotonic);
        }
    }

    /// Updates the connection time.
    fn count(&mut self, monotonic: i64) {
        self.connected = self.connected.saturating_add(monotonic.saturating_sub(self.counted_at).max(0));
        self.counted_at = monotonic;
    }

    /// Records that the agent holds that entry and none before it.
    fn end_before(&mut self, index: usize, monotonic: i64) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        if std::mem::replace(&mut entry.is_confirmed, true) {
            return;
        }
        for entry in self.entries.iter_mut().take(index) {
            entry.until.get_or_insert(monotonic);
        }
    }

    /// Returns a checker for the vantage's rounds at the given time of both clocks.
    pub(super) fn round_checker(
        &self,
        (vantage, region): (VantageNo, Region),
        now: Timestamp,
        monotonic: i64,
    ) -> RoundChecker<'_> {
        RoundChecker {
            history: self,
            vantage,
            region,
            now: now.as_millis(),
            monotonic,
            turns: Vec::new(),
            calculators: BTreeMap::new(),
            lookups: MAX_LOOKUPS,
        }
    }
}

/// Key of a turn: a check's type and the region that it is pinned to. In one mesh, a vantage's turn depends on
/// nothing else.
type Group = (CheckKind, Option<Region>);

/// A vantage's turn among those that share a group's rounds.
#[derive(Debug, Clone, Copy)]
struct Turn {
    every: u64,
    from: u64,
    /// Regions that the rounds are spread over.
    regions: RegionSet,
}

/// Distinguishes a vantage's own rounds from those of others.
pub(super) struct RoundChecker<'a> {
    history: &'a AssignmentHistory,
    vantage: VantageNo,
    region: Region,
    now: i64,
    monotonic: i64,
    /// Turns from the newest share; `None` if the vantage has none, or a different one per monitor.
    turns: Vec<(Group, Option<Turn>)>,
    calculators: BTreeMap<usize, ShareCalculator<'a>>,
    /// Look-ups left.
    lookups: usize,
}

impl RoundChecker<'_> {
    /// Returns true if the monitor's round was assigned to the vantage and is due. `agent_round` is the round's number
    /// by the agent's clock, `round` by the corrected clock.
    pub(super) fn is_assigned(&mut self, monitor: &ScheduledMonitor, agent_round: u64, round: u64) -> bool {
        self.is_in_newest_share(monitor, agent_round, round) || self.was_assigned(monitor, agent_round, round)
    }

    /// Checks the newest share: the fast path of almost all results.
    fn is_in_newest_share(&mut self, monitor: &ScheduledMonitor, agent_round: u64, round: u64) -> bool {
        let Some(newest) = self.history.entries.back() else { return false };
        let earliest = due_ms(0, monitor.interval_ms, round);
        if self.to_monotonic(earliest) < newest.since.saturating_sub(CLOCK_TOLERANCE) {
            return false;
        }
        let Some(turn) = self.turn(monitor) else { return false };
        if agent_round % turn.every != turn.from {
            return false;
        }
        let latest = earliest.saturating_add(i64::from(monitor.interval_ms));
        latest <= self.now + MAX_AHEAD || {
            let spread = phase_hash(monitor.monitor, &monitor.check);
            let offset = offset_ms(spread, monitor.interval_ms, turn.regions, self.region);
            due_ms(offset, monitor.interval_ms, round) <= self.now + MAX_AHEAD
        }
    }

    /// Checks all shares that were in force when the round was due.
    fn was_assigned(&mut self, monitor: &ScheduledMonitor, agent_round: u64, round: u64) -> bool {
        let earliest = due_ms(0, monitor.interval_ms, round);
        let latest = earliest.saturating_add(i64::from(monitor.interval_ms));
        if earliest > self.now + MAX_AHEAD {
            return false;
        }
        let (first, last) = (self.to_monotonic(earliest), self.to_monotonic(latest));
        for (index, entry) in self.history.entries.iter().enumerate().rev() {
            let from = entry.since.saturating_sub(CLOCK_TOLERANCE);
            let until = entry.until.map_or(i64::MAX, |until| until.saturating_add(CLOCK_TOLERANCE));
            if last < from || first > until {
                continue;
            }
            let Some((mesh, capabilities)) = &entry.inputs else {
                let due = self.due_now(monitor, round).unwrap_or(earliest);
                if due <= self.now + MAX_AHEAD && self.to_monotonic(due) <= until {
                    return true;
                }
                continue;
            };
            let Some(remaining) = self.lookups.checked_sub(1) else { return false };
            self.lookups = remaining;
            let calculator =
                self.calculators.entry(index).or_insert_with(|| ShareCalculator::new(mesh, capabilities, self.vantage));
            let Some(share) = calculator.share(monitor) else { continue };
            let due = due_ms(share.offset_ms, monitor.interval_ms, round);
            let is_own = agent_round % u64::from(share.every.max(1)) == u64::from(share.from);
            if is_own && due <= self.now + MAX_AHEAD && (from..=until).contains(&self.to_monotonic(due)) {
                return true;
            }
        }
        let oldest = self.history.entries.front().map_or(i64::MIN, |oldest| oldest.since);
        self.history.has_evicted && first < oldest && self.now.saturating_sub(latest) > LATE_AFTER
    }

    /// Returns when a round is due in the vantage's region, by the newest share's mesh.
    fn due_now(&self, monitor: &ScheduledMonitor, round: u64) -> Option<i64> {
        let (mesh, _) = self.history.entries.back()?.inputs.as_ref()?;
        let kind = monitor.check.kind();
        let regions = if kind.is_regional() { regions_in_use(kind, monitor.pinned, mesh) } else { RegionSet::NONE };
        let spread = phase_hash(monitor.monitor, &monitor.check);
        let offset = offset_ms(spread, monitor.interval_ms, regions, self.region);
        Some(due_ms(offset, monitor.interval_ms, round))
    }

    /// Returns the vantage's turn in a monitor's group by the newest share.
    fn turn(&mut self, monitor: &ScheduledMonitor) -> Option<Turn> {
        let group = (monitor.check.kind(), monitor.pinned);
        if let Some((_, turn)) = self.turns.iter().find(|(one, _)| *one == group) {
            return *turn;
        }
        let turn = self.newest_turn(monitor, group);
        self.turns.push((group, turn));
        turn
    }

    fn newest_turn(&self, monitor: &ScheduledMonitor, (kind, pinned): Group) -> Option<Turn> {
        let (mesh, capabilities) = self.history.entries.back()?.inputs.as_ref()?;
        if mesh.vantage(self.vantage)?.quarantined {
            return None;
        }
        let share = ShareCalculator::new(mesh, capabilities, self.vantage).share(monitor)?;
        let regions = if kind.is_regional() { regions_in_use(kind, pinned, mesh) } else { RegionSet::NONE };
        Some(Turn { every: u64::from(share.every.max(1)), from: u64::from(share.from), regions })
    }

    /// Converts a wall clock time to the monotonic clock.
    fn to_monotonic(&self, wall: i64) -> i64 {
        self.monotonic.saturating_sub(self.now.saturating_sub(wall))
    }
}

#[cfg(test)]
mod tests;
