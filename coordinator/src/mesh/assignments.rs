//! Rounds that an agent was dealt, by time: a result counts only from the place whose round it is.
//!
//! A place runs the share that it was last sent, also while its connection is cut. So each share that was sent stays in
//! force until the agent has confirmed the next one. Of the time before this process first sent a share nothing is known,
//! and rounds that were due by then are accepted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parallax_core::assign::{Scheduled, due_ms, offset_ms, regions_in_use, spread_of};
use parallax_core::check::CheckKind;
use parallax_core::machine::LATE;
use parallax_core::place::{Mesh, PlaceNo, Region, RegionSet};
use parallax_core::time::{MINUTE, SECOND, Timestamp};

use super::able::Dealer;
use super::assign::Basis;
use crate::flow::Able;

/// Shares that are remembered. Changes are collected for a quarter of a second, so these last for [`LATE`]; what is
/// later is history only.
const MOST: usize = 512;
/// Milliseconds that an agent's reckoning may be off where a share ends or begins.
const SLACK: i64 = 5 * SECOND;
/// Milliseconds that a round may be due in the future: no agent that compares the clocks is off by so much.
const AHEAD: i64 = 30 * SECOND;
/// Milliseconds of connection for which an agent may leave a share unconfirmed, however often that is sent meanwhile.
const UNCONFIRMED: i64 = MINUTE;
/// Milliseconds that a connection counts for at least, so that none gains time by coming back again and again.
const CONNECTION: i64 = SECOND;
/// Shares of older entries that are looked up for one batch; its further rounds that need one are refused.
const LOOKUPS: usize = 4096;

/// Shares that one agent was sent, the newest last.
#[derive(Debug, Default)]
pub(super) struct AssignmentHistory {
    entries: VecDeque<Entry>,
    /// Older ones were evicted.
    has_evicted: bool,
    /// Milliseconds for which the agent was connected so far.
    connected: i64,
    /// When that was last counted up.
    counted_at: i64,
}

#[derive(Debug)]
struct Entry {
    /// When it was first sent. All moments are of the steady clock, in milliseconds.
    since: i64,
    /// When the agent confirmed the next one.
    until: Option<i64>,
    /// How long the agent had been connected when it was first sent.
    connected: i64,
    /// The first revision of it: one that is confirmed later has the same share.
    revision: u64,
    is_confirmed: bool,
    /// Mesh and capabilities that the share follows from; none where they are not known.
    dealt: Option<(Arc<Mesh>, Arc<Able>)>,
}

impl AssignmentHistory {
    /// An agent has connected, and holds a schedule of this installation or none.
    pub(super) fn connect(&mut self, holds_schedule: bool, steady: i64) {
        self.connected = self.connected.saturating_add(CONNECTION);
        self.counted_at = steady;
        if self.entries.is_empty() {
            self.entries.push_back(Entry {
                since: i64::MIN,
                until: (!holds_schedule).then(|| steady.saturating_sub(SLACK)),
                connected: self.connected,
                revision: 0,
                is_confirmed: true,
                dealt: None,
            });
        }
    }

    /// The agent is about to be sent its share of that basis, as that revision.
    pub(super) fn send(&mut self, basis: &Basis, revision: u64, steady: i64) {
        let is_same = |entry: &Entry| {
            entry.dealt.as_ref().is_some_and(|(mesh, able)| *mesh == basis.mesh && *able == basis.able)
        };
        self.count(steady);
        if self.entries.back().is_some_and(is_same) {
            return;
        }
        if self.entries.len() >= MOST {
            self.entries.pop_front();
            self.has_evicted = true;
        }
        self.entries.push_back(Entry {
            since: steady,
            until: None,
            connected: self.connected,
            revision,
            is_confirmed: false,
            dealt: Some((Arc::clone(&basis.mesh), Arc::clone(&basis.able))),
        });
    }

    /// The agent holds that revision: what was sent before it is no longer in force.
    pub(super) fn confirm(&mut self, revision: u64, steady: i64) {
        if let Some(held) = self.entries.iter().rposition(|entry| entry.revision <= revision) {
            self.end_before(held, steady);
        }
    }

    /// A share that the agent has not confirmed while it was connected for too long since counts as confirmed.
    pub(super) fn expire(&mut self, steady: i64) {
        self.count(steady);
        let is_overdue = |entry: &Entry| self.connected.saturating_sub(entry.connected) > UNCONFIRMED;
        if let Some(held) = self.entries.iter().rposition(is_overdue) {
            self.end_before(held, steady);
        }
    }

    /// Counts the time up for which the agent is connected.
    fn count(&mut self, steady: i64) {
        self.connected = self.connected.saturating_add(steady.saturating_sub(self.counted_at).max(0));
        self.counted_at = steady;
    }

    /// The agent holds that entry, and none before it.
    fn end_before(&mut self, held: usize, steady: i64) {
        let Some(entry) = self.entries.get_mut(held) else { return };
        if std::mem::replace(&mut entry.is_confirmed, true) {
            return;
        }
        for entry in self.entries.iter_mut().take(held) {
            entry.until.get_or_insert(steady);
        }
    }

    /// The rounds of one place, as they are asked about at that moment of both clocks.
    pub(super) fn rounds(
        &self,
        (place, region): (PlaceNo, Region),
        now: Timestamp,
        steady: i64,
    ) -> Rounds<'_> {
        Rounds {
            history: self,
            place,
            region,
            now: now.as_millis(),
            steady,
            turns: Vec::new(),
            dealers: BTreeMap::new(),
            lookups: LOOKUPS,
        }
    }
}

/// A check's kind and the region that it is pinned to: all that a place's turn depends on, in one mesh.
type Group = (CheckKind, Option<Region>);

/// A place's turn among the places that share a group's rounds.
#[derive(Debug, Clone, Copy)]
struct Turn {
    every: u64,
    from: u64,
    /// Regions that the rounds are spread over.
    regions: RegionSet,
}

/// Tells a place's own rounds from those of others.
pub(super) struct Rounds<'a> {
    history: &'a AssignmentHistory,
    place: PlaceNo,
    region: Region,
    now: i64,
    steady: i64,
    /// By the newest share; none where the place has no turn, or one of each monitor.
    turns: Vec<(Group, Option<Turn>)>,
    dealers: BTreeMap<usize, Dealer<'a>>,
    /// Shares that may still be looked up.
    lookups: usize,
}

impl Rounds<'_> {
    /// Checks that a monitor's round was dealt to the place and is due. `numbered` is the round's number by the clock
    /// that the agent went by, `round` by the clock as it is.
    pub(super) fn has(&mut self, monitor: &Scheduled, numbered: u64, round: u64) -> bool {
        self.has_now(monitor, numbered, round) || self.had(monitor, numbered, round)
    }

    /// Checks the newest share for the round: the fast path of almost all results.
    fn has_now(&mut self, monitor: &Scheduled, numbered: u64, round: u64) -> bool {
        let Some(newest) = self.history.entries.back() else { return false };
        let earliest = due_ms(0, monitor.interval_ms, round);
        if self.steadily(earliest) < newest.since.saturating_sub(SLACK) {
            return false;
        }
        let Some(turn) = self.turn(monitor) else { return false };
        if numbered % turn.every != turn.from {
            return false;
        }
        let latest = earliest.saturating_add(i64::from(monitor.interval_ms));
        latest <= self.now + AHEAD || {
            let spread = spread_of(monitor.monitor, &monitor.check);
            let offset = offset_ms(spread, monitor.interval_ms, turn.regions, self.region);
            due_ms(offset, monitor.interval_ms, round) <= self.now + AHEAD
        }
    }

    /// Checks all shares that were in force when the round was due.
    fn had(&mut self, monitor: &Scheduled, numbered: u64, round: u64) -> bool {
        let earliest = due_ms(0, monitor.interval_ms, round);
        let latest = earliest.saturating_add(i64::from(monitor.interval_ms));
        if earliest > self.now + AHEAD {
            return false;
        }
        let (first, last) = (self.steadily(earliest), self.steadily(latest));
        for (index, entry) in self.history.entries.iter().enumerate().rev() {
            let from = entry.since.saturating_sub(SLACK);
            let until = entry.until.map_or(i64::MAX, |until| until.saturating_add(SLACK));
            if last < from || first > until {
                continue;
            }
            let Some((mesh, able)) = &entry.dealt else {
                let due = self.due_now(monitor, round).unwrap_or(earliest);
                if due <= self.now + AHEAD && self.steadily(due) <= until {
                    return true;
                }
                continue;
            };
            let Some(left) = self.lookups.checked_sub(1) else { return false };
            self.lookups = left;
            let dealer = self.dealers.entry(index).or_insert_with(|| Dealer::new(mesh, able, self.place));
            let Some(share) = dealer.share(monitor) else { continue };
            let due = due_ms(share.offset_ms, monitor.interval_ms, round);
            let is_own = numbered % u64::from(share.every.max(1)) == u64::from(share.from);
            if is_own && due <= self.now + AHEAD && (from..=until).contains(&self.steadily(due)) {
                return true;
            }
        }
        let oldest = self.history.entries.front().map_or(i64::MIN, |oldest| oldest.since);
        self.history.has_evicted && first < oldest && self.now.saturating_sub(latest) > LATE
    }

    /// When a round is due in the place's region, by the newest share's mesh.
    fn due_now(&self, monitor: &Scheduled, round: u64) -> Option<i64> {
        let (mesh, _) = self.history.entries.back()?.dealt.as_ref()?;
        let kind = monitor.check.kind();
        let regions =
            if kind.is_regional() { regions_in_use(kind, monitor.pinned, mesh) } else { RegionSet::NONE };
        let spread = spread_of(monitor.monitor, &monitor.check);
        let offset = offset_ms(spread, monitor.interval_ms, regions, self.region);
        Some(due_ms(offset, monitor.interval_ms, round))
    }

    /// The place's turn of a monitor's group by the newest share.
    fn turn(&mut self, monitor: &Scheduled) -> Option<Turn> {
        let group = (monitor.check.kind(), monitor.pinned);
        if let Some((_, turn)) = self.turns.iter().find(|(one, _)| *one == group) {
            return *turn;
        }
        let turn = self.newest_turn(monitor, group);
        self.turns.push((group, turn));
        turn
    }

    fn newest_turn(&self, monitor: &Scheduled, (kind, pinned): Group) -> Option<Turn> {
        let (mesh, able) = self.history.entries.back()?.dealt.as_ref()?;
        if mesh.place(self.place)?.quarantined {
            return None;
        }
        let share = Dealer::new(mesh, able, self.place).share(monitor)?;
        let regions = if kind.is_regional() { regions_in_use(kind, pinned, mesh) } else { RegionSet::NONE };
        Some(Turn { every: u64::from(share.every.max(1)), from: u64::from(share.from), regions })
    }

    /// A moment of the wall clock by the steady one.
    fn steadily(&self, wall: i64) -> i64 {
        self.steady.saturating_sub(self.now.saturating_sub(wall))
    }
}

#[cfg(test)]
mod tests;
