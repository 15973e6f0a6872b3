//! Scheduling of rounds. Free of IO: time is an argument, always the coordinator's as [`crate::clock`]
//! estimates it.

use crate::probe::Kept;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::id::MonitorId;
use parallax_protocol::message::HeldSchedule;
use parallax_protocol::slots::{Pool, UNKNOWN_ACCOUNT};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Number of consecutive rounds that a target must respond to in time before it counts as fast again.
const PROBATION: u8 = 4;

/// The assignments in force and the next own round of each.
#[derive(Debug, Default)]
pub struct Schedule {
    held: Option<HeldSchedule>,
    names_accounts: bool,
    entries: HashMap<MonitorId, Entry>,
    queue: BTreeSet<(i64, MonitorId)>,
    missed: u64,
    withdrawn: bool,
}

#[derive(Debug)]
struct Entry {
    assignment: Arc<Assignment>,
    kept: Arc<Kept>,
    /// Next round to become due.
    round: u64,
    /// Round that waits for a slot or runs.
    taken: u64,
    phase: Phase,
    /// Rounds until its target counts as fast.
    probation: u8,
}

/// State of a monitor's newest due round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Waiting,
    Running,
}

/// A monitor with a due round that needs a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueMonitor {
    /// The monitor.
    pub monitor: MonitorId,
    /// The account that the slot counts for.
    pub account: u32,
    /// Pool of slots that it may use.
    pub pool: Pool,
}

/// A round to run now.
#[derive(Debug, Clone)]
pub struct Due {
    /// Assignment to check.
    pub assignment: Arc<Assignment>,
    /// Cached parts of its check.
    pub kept: Arc<Kept>,
    /// The round's number.
    pub round: u64,
}

/// Error for a change based on another revision than the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoesNotFit;

impl Schedule {
    /// Delay after which a round that could not begin is missed, in ms; half the interval if that is shorter.
    pub const GRACE_MS: i64 = 5_000;

    /// Duration from which a check marks its target as slow, in ms.
    pub const SLOW_MS: i64 = 2_000;

    /// Returns the version of the schedule; `None` before the first.
    pub fn held(&self) -> Option<HeldSchedule> {
        self.held
    }

    /// Returns true if every assignment came with its account, so that accounts share the slots fairly.
    pub fn names_accounts(&self) -> bool {
        self.names_accounts
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

    /// Returns a monitor's slot in the epoch of [`Self::held`].
    pub fn slot_of(&self, monitor: MonitorId) -> Option<u32> {
        self.entries.get(&monitor).map(|entry| entry.assignment.slot)
    }

    /// Applies a whole change. A monitor whose assignment stays the same keeps its next round.
    ///
    /// # Errors
    /// [`DoesNotFit`] if its base is not the present revision; nothing is changed then.
    pub fn apply(&mut self, change: ScheduleChange, now_ms: i64) -> Result<(), DoesNotFit> {
        match change.base {
            Some(revision) if self.held != Some(HeldSchedule { book: change.book, revision }) => {
                return Err(DoesNotFit);
            }
            Some(_) => change.drop.iter().for_each(|&monitor| self.remove(monitor)),
            None => {
                let kept: BTreeSet<MonitorId> = change.put.iter().map(|a| a.monitor).collect();
                let gone: Vec<MonitorId> =
                    self.entries.keys().copied().filter(|monitor| !kept.contains(monitor)).collect();
                gone.into_iter().for_each(|monitor| self.remove(monitor));
            }
        }
        let is_named = change.put.iter().all(|assignment| assignment.account != UNKNOWN_ACCOUNT);
        self.names_accounts = is_named && (change.base.is_none() || self.names_accounts);
        for assignment in change.put {
            self.put(assignment, now_ms);
        }
        self.held = Some(HeldSchedule { book: change.book, revision: change.revision });
        Ok(())
    }

    /// Removes everything, as before the first change. Returns false if there was nothing.
    pub fn clear(&mut self) -> bool {
        let is_held = self.held.is_some();
        *self = Self { missed: self.missed, withdrawn: true, ..Self::default() };
        is_held
    }

    /// Returns the whole schedule as a snapshot, for the disk; `None` before the first change.
    pub fn snapshot(&self) -> Option<ScheduleChange> {
        let held = self.held?;
        let mut put: Vec<Assignment> =
            self.entries.values().map(|entry| Assignment::clone(&entry.assignment)).collect();
        put.sort_by_key(|assignment| assignment.monitor);
        Some(ScheduleChange {
            book: held.book,
            base: None,
            revision: held.revision,
            put,
            drop: Vec::new(),
            more: false,
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
                let next =
                    assignment.own_round_from(assignment.round_at(now_ms).max(round).saturating_add(1));
                let skipped = (next - round) / u64::from(assignment.every.max(1));
                self.missed = self.missed.saturating_add(skipped);
                next
            } else {
                match entry.phase {
                    Phase::Idle => {
                        let pool = if entry.probation > 0 { Pool::Slow } else { Pool::Fast };
                        ready(DueMonitor { monitor, account: assignment.account, pool });
                        (entry.phase, entry.taken) = (Phase::Waiting, round);
                    }
                    Phase::Waiting => {
                        self.missed = self.missed.saturating_add(1);
                        entry.taken = round;
                    }
                    Phase::Running => self.missed = self.missed.saturating_add(1),
                }
                assignment.own_round_from(round.saturating_add(1))
            };
            entry.round = next;
            self.queue.insert((entry.assignment.round_start_ms(next), monitor));
        }
    }

    /// Begins the waiting round, which has a slot now. Returns `None` if it no longer waits, or has waited
    /// too long: then it is missed.
    pub fn begin(&mut self, monitor: MonitorId, now_ms: i64) -> Option<Due> {
        let entry = self.entries.get_mut(&monitor).filter(|entry| entry.phase == Phase::Waiting)?;
        let at = entry.assignment.round_start_ms(entry.taken);
        if now_ms.saturating_sub(at) > grace_ms(&entry.assignment) {
            entry.phase = Phase::Idle;
            self.missed = self.missed.saturating_add(1);
            return None;
        }
        entry.phase = Phase::Running;
        let (assignment, kept) = (Arc::clone(&entry.assignment), Arc::clone(&entry.kept));
        Some(Due { assignment, kept, round: entry.taken })
    }

    /// Returns the account of a monitor; [`UNKNOWN_ACCOUNT`] for a monitor outside the schedule.
    pub fn account_of(&self, monitor: MonitorId) -> u32 {
        self.entries.get(&monitor).map_or(UNKNOWN_ACCOUNT, |entry| entry.assignment.account)
    }

    /// Returns true if a monitor waits for a slot.
    pub fn waits(&self, monitor: MonitorId) -> bool {
        self.entries.get(&monitor).is_some_and(|entry| entry.phase == Phase::Waiting)
    }

    /// Returns true if monitors have stopped waiting since the last call: remove them from the slots before
    /// calling [`Self::take_due`] again.
    pub fn take_withdrawn(&mut self) -> bool {
        std::mem::take(&mut self.withdrawn)
    }

    /// Ends a round begun by [`Self::begin`], which took that many ms.
    pub fn finished(&mut self, monitor: MonitorId, took_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&monitor).filter(|entry| entry.phase == Phase::Running) {
            entry.phase = Phase::Idle;
            let is_slow = took_ms >= Self::SLOW_MS;
            entry.probation = if is_slow { PROBATION } else { entry.probation.saturating_sub(1) };
        }
    }

    /// Moves every monitor's next round to the first one after `now_ms`, after a step of the coordinator's
    /// time.
    pub fn rebase(&mut self, now_ms: i64) {
        self.queue.clear();
        for (&monitor, entry) in &mut self.entries {
            if entry.phase == Phase::Waiting {
                entry.phase = Phase::Idle;
                self.withdrawn = true;
            }
            entry.round = first_round(&entry.assignment, now_ms);
            self.queue.insert((entry.assignment.round_start_ms(entry.round), monitor));
        }
    }

    fn put(&mut self, assignment: Assignment, now_ms: i64) {
        let monitor = assignment.monitor;
        let old = self.entries.get(&monitor);
        let (mut phase, mut taken, mut probation) = (Phase::Idle, 0, 0);
        if let Some(entry) = old {
            (phase, taken) = (entry.phase, entry.taken);
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
                if phase == Phase::Waiting {
                    phase = Phase::Idle;
                    self.withdrawn = true;
                }
                first_round(&assignment, now_ms)
            }
        };
        let at = assignment.round_start_ms(round);
        self.unqueue(monitor);
        self.queue.insert((at, monitor));
        let kept = Arc::new(Kept::of_account(assignment.account));
        let entry = Entry { assignment: Arc::new(assignment), kept, round, taken, phase, probation };
        self.entries.insert(monitor, entry);
    }

    fn remove(&mut self, monitor: MonitorId) {
        self.unqueue(monitor);
        let gone = self.entries.remove(&monitor);
        self.withdrawn |= gone.is_some_and(|entry| entry.phase == Phase::Waiting);
    }

    fn unqueue(&mut self, monitor: MonitorId) {
        if let Some(entry) = self.entries.get(&monitor) {
            self.queue.remove(&(entry.assignment.round_start_ms(entry.round), monitor));
        }
    }
}

/// Maximum delay of a round's start, in ms.
fn grace_ms(assignment: &Assignment) -> i64 {
    Schedule::GRACE_MS.min(i64::from(assignment.interval_ms) / 2)
}

/// Returns the first own round that begins at `now_ms` or later.
fn first_round(assignment: &Assignment, now_ms: i64) -> u64 {
    let round = assignment.round_at(now_ms);
    let begun = assignment.round_start_ms(round) < now_ms;
    assignment.own_round_from(round.saturating_add(u64::from(begun)))
}

#[cfg(test)]
mod tests;
