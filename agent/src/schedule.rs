//! Scheduling of rounds. Free of IO: time is an argument, always the coordinator's as [`crate::clock`]
//! estimates it.

use crate::probe::CheckCache;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::fair_slots::{SlotPool, UNKNOWN_ACCOUNT};
use parallax_protocol::id::WireMonitorId;
use parallax_protocol::message::ScheduleVersion;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Number of consecutive rounds that a target must respond to in time before it counts as fast again.
const PROBATION: u8 = 4;

/// The assignments in force and the next own round of each.
#[derive(Debug, Default)]
pub struct AgentSchedule {
    version: Option<ScheduleVersion>,
    has_accounts: bool,
    entries: HashMap<WireMonitorId, ScheduleEntry>,
    queue: BTreeSet<(i64, WireMonitorId)>,
    missed: u64,
    withdrawn: bool,
}

#[derive(Debug)]
struct ScheduleEntry {
    assignment: Arc<Assignment>,
    cache: Arc<CheckCache>,
    /// Next round to become due.
    round: u64,
    /// Round that waits for a slot or runs.
    current_round: u64,
    state: RoundState,
    /// Rounds until its target counts as fast.
    probation: u8,
}

/// State of a monitor's newest due round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundState {
    Idle,
    Waiting,
    Running,
}

/// A monitor with a due round that needs a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueMonitor {
    /// The monitor.
    pub monitor: WireMonitorId,
    /// The account that the slot counts for.
    pub account: u32,
    /// Pool of slots that it may use.
    pub pool: SlotPool,
}

/// A round to run now.
#[derive(Debug, Clone)]
pub struct DueRound {
    /// Assignment to check.
    pub assignment: Arc<Assignment>,
    /// Cached parts of its check.
    pub cache: Arc<CheckCache>,
    /// The round's number.
    pub round: u64,
}

/// Error for a change based on another revision than the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseMismatch;

impl AgentSchedule {
    /// Delay after which a round that could not begin is missed, in ms; half the interval if that is shorter.
    pub const GRACE_MS: i64 = 5_000;

    /// Duration from which a check marks its target as slow, in ms.
    pub const SLOW_MS: i64 = 2_000;

    /// Returns the version of the schedule; `None` before the first.
    pub fn version(&self) -> Option<ScheduleVersion> {
        self.version
    }

    /// Returns true if every assignment came with its account, so that accounts share the slots fairly.
    pub fn has_accounts(&self) -> bool {
        self.has_accounts
    }

    /// Number of assigned monitors.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no monitor is assigned.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of rounds that were not run because the host slept, was too busy, or still ran the previous
    /// one.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns a monitor's slot in the epoch of [`Self::version`].
    pub fn slot_of(&self, monitor: WireMonitorId) -> Option<u32> {
        self.entries.get(&monitor).map(|entry| entry.assignment.slot)
    }

    /// Applies a whole change. A monitor whose assignment stays the same keeps its next round.
    ///
    /// # Errors
    /// [`BaseMismatch`] if its base is not the present revision; nothing is changed then.
    pub fn apply(&mut self, change: ScheduleChange, now_ms: i64) -> Result<(), BaseMismatch> {
        match change.base {
            Some(revision) if self.version != Some(ScheduleVersion { slot_epoch: change.slot_epoch, revision }) => {
                return Err(BaseMismatch);
            }
            Some(_) => change.drop.iter().for_each(|&monitor| self.remove(monitor)),
            None => {
                let kept: BTreeSet<WireMonitorId> = change.put.iter().map(|a| a.monitor).collect();
                let gone: Vec<WireMonitorId> =
                    self.entries.keys().copied().filter(|monitor| !kept.contains(monitor)).collect();
                gone.into_iter().for_each(|monitor| self.remove(monitor));
            }
        }
        let is_named = change.put.iter().all(|assignment| assignment.account != UNKNOWN_ACCOUNT);
        self.has_accounts = is_named && (change.base.is_none() || self.has_accounts);
        for assignment in change.put {
            self.upsert(assignment, now_ms);
        }
        self.version = Some(ScheduleVersion { slot_epoch: change.slot_epoch, revision: change.revision });
        Ok(())
    }

    /// Removes everything, as before the first change. Returns false if there was nothing.
    pub fn clear(&mut self) -> bool {
        let is_held = self.version.is_some();
        *self = Self { missed: self.missed, withdrawn: true, ..Self::default() };
        is_held
    }

    /// Returns the whole schedule as a snapshot, for the disk; `None` before the first change.
    pub fn snapshot(&self) -> Option<ScheduleChange> {
        let version = self.version?;
        let mut put: Vec<Assignment> =
            self.entries.values().map(|entry| Assignment::clone(&entry.assignment)).collect();
        put.sort_by_key(|assignment| assignment.monitor);
        Some(ScheduleChange {
            slot_epoch: version.slot_epoch,
            base: None,
            revision: version.revision,
            put,
            drop: Vec::new(),
            has_more: false,
        })
    }

    /// Returns the time of the next due round, epoch ms.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.queue.first().map(|&(due, _)| due)
    }

    /// Queues the due rounds for a slot: `ready` receives each monitor that starts waiting. Rounds that are
    /// too late count as missed, and so does one whose monitor is still being checked. A monitor that already
    /// waits continues with its newer round.
    pub fn take_due(&mut self, now_ms: i64, mut ready: impl FnMut(DueMonitor)) {
        while let Some(&(at, monitor)) = self.queue.first().filter(|&&(at, _)| at <= now_ms) {
            self.queue.pop_first();
            let Some(entry) = self.entries.get_mut(&monitor) else {
                continue;
            };
            let (assignment, round) = (&entry.assignment, entry.round);
            let next = if now_ms.saturating_sub(at) > grace_ms(assignment) {
                // All rounds that began before now are over, except this one's successors.
                let next = assignment.own_round_from(assignment.round_at(now_ms).max(round).saturating_add(1));
                let skipped = (next - round) / u64::from(assignment.every.max(1));
                self.missed = self.missed.saturating_add(skipped);
                next
            } else {
                match entry.state {
                    RoundState::Idle => {
                        let pool = if entry.probation > 0 { SlotPool::Slow } else { SlotPool::Fast };
                        ready(DueMonitor { monitor, account: assignment.account, pool });
                        (entry.state, entry.current_round) = (RoundState::Waiting, round);
                    }
                    RoundState::Waiting => {
                        self.missed = self.missed.saturating_add(1);
                        entry.current_round = round;
                    }
                    RoundState::Running => self.missed = self.missed.saturating_add(1),
                }
                assignment.own_round_from(round.saturating_add(1))
            };
            entry.round = next;
            self.queue.insert((entry.assignment.round_start_ms(next), monitor));
        }
    }

    /// Begins the waiting round, which has a slot now. Returns `None` if it no longer waits, or has waited
    /// too long: then it is missed.
    pub fn begin(&mut self, monitor: WireMonitorId, now_ms: i64) -> Option<DueRound> {
        let entry = self.entries.get_mut(&monitor).filter(|entry| entry.state == RoundState::Waiting)?;
        let at = entry.assignment.round_start_ms(entry.current_round);
        if now_ms.saturating_sub(at) > grace_ms(&entry.assignment) {
            entry.state = RoundState::Idle;
            self.missed = self.missed.saturating_add(1);
            return None;
        }
        entry.state = RoundState::Running;
        let (assignment, kept) = (Arc::clone(&entry.assignment), Arc::clone(&entry.cache));
        Some(DueRound { assignment, cache: kept, round: entry.current_round })
    }

    /// Returns the account of a monitor; [`UNKNOWN_ACCOUNT`] for a monitor outside the schedule.
    pub fn account_of(&self, monitor: WireMonitorId) -> u32 {
        self.entries.get(&monitor).map_or(UNKNOWN_ACCOUNT, |entry| entry.assignment.account)
    }

    /// Returns true if a monitor waits for a slot.
    pub fn is_waiting(&self, monitor: WireMonitorId) -> bool {
        self.entries.get(&monitor).is_some_and(|entry| entry.state == RoundState::Waiting)
    }

    /// Returns true if monitors have stopped waiting since the last call: remove them from the slots before
    /// calling [`Self::take_due`] again.
    pub fn take_withdrawn(&mut self) -> bool {
        std::mem::take(&mut self.withdrawn)
    }

    /// Ends a round begun by [`Self::begin`], which took that many ms.
    pub fn finish(&mut self, monitor: WireMonitorId, took_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&monitor).filter(|entry| entry.state == RoundState::Running) {
            entry.state = RoundState::Idle;
            let is_slow = took_ms >= Self::SLOW_MS;
            entry.probation = if is_slow { PROBATION } else { entry.probation.saturating_sub(1) };
        }
    }

    /// Moves every monitor's next round to the first one after `now_ms`, after a step of the coordinator's
    /// time.
    pub fn rebase(&mut self, now_ms: i64) {
        self.queue.clear();
        for (&monitor, entry) in &mut self.entries {
            if entry.state == RoundState::Waiting {
                entry.state = RoundState::Idle;
                self.withdrawn = true;
            }
            entry.round = first_round(&entry.assignment, now_ms);
            self.queue.insert((entry.assignment.round_start_ms(entry.round), monitor));
        }
    }

    fn upsert(&mut self, assignment: Assignment, now_ms: i64) {
        let monitor = assignment.monitor;
        let old = self.entries.get(&monitor);
        let (mut phase, mut taken, mut probation) = (RoundState::Idle, 0, 0);
        if let Some(entry) = old {
            (phase, taken) = (entry.state, entry.current_round);
            if entry.assignment.revision == assignment.revision {
                probation = entry.probation;
            }
        }
        let same_rounds = old.filter(|entry| {
            let (a, b) = (&entry.assignment, &assignment);
            (a.interval_ms, a.offset_ms, a.every, a.turn) == (b.interval_ms, b.offset_ms, b.every, b.turn)
        });
        let round = match same_rounds {
            Some(entry) => entry.round,
            None => {
                if phase == RoundState::Waiting {
                    phase = RoundState::Idle;
                    self.withdrawn = true;
                }
                first_round(&assignment, now_ms)
            }
        };
        let at = assignment.round_start_ms(round);
        self.unqueue(monitor);
        self.queue.insert((at, monitor));
        let kept = Arc::new(CheckCache::for_account(assignment.account));
        let entry = ScheduleEntry {
            assignment: Arc::new(assignment),
            cache: kept,
            round,
            current_round: taken,
            state: phase,
            probation,
        };
        self.entries.insert(monitor, entry);
    }

    fn remove(&mut self, monitor: WireMonitorId) {
        self.unqueue(monitor);
        let gone = self.entries.remove(&monitor);
        self.withdrawn |= gone.is_some_and(|entry| entry.state == RoundState::Waiting);
    }

    fn unqueue(&mut self, monitor: WireMonitorId) {
        if let Some(entry) = self.entries.get(&monitor) {
            self.queue.remove(&(entry.assignment.round_start_ms(entry.round), monitor));
        }
    }
}

/// Maximum delay of a round's start, in ms.
fn grace_ms(assignment: &Assignment) -> i64 {
    AgentSchedule::GRACE_MS.min(i64::from(assignment.interval_ms) / 2)
}

/// Returns the first own round that begins at `now_ms` or later.
fn first_round(assignment: &Assignment, now_ms: i64) -> u64 {
    let round = assignment.round_at(now_ms);
    let begun = assignment.round_start_ms(round) < now_ms;
    assignment.own_round_from(round.saturating_add(u64::from(begun)))
}

#[cfg(test)]
mod tests;
