//! What is due when. Pure: time is an argument, always the coordinator's as [`crate::clock`] reckons it.

use crate::probe::Kept;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::id::MonitorId;
use parallax_protocol::message::HeldSchedule;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The assignments in force and the next own round of each.
#[derive(Debug, Default)]
pub struct Schedule {
    held: Option<HeldSchedule>,
    entries: BTreeMap<MonitorId, Entry>,
    queue: BTreeSet<(i64, MonitorId)>,
    missed: u64,
}

#[derive(Debug)]
struct Entry {
    assignment: Arc<Assignment>,
    kept: Arc<Kept>,
    round: u64,
    running: bool,
}

/// A round to run now.
#[derive(Debug, Clone)]
pub struct Due {
    /// What to check.
    pub assignment: Arc<Assignment>,
    /// What its probe keeps of it.
    pub kept: Arc<Kept>,
    /// The round's number.
    pub round: u64,
}

/// A change that rests on another revision than the one held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoesNotFit;

impl Schedule {
    /// A round that could not begin this long after its time is missed, in ms; half the interval where that
    /// is shorter.
    pub const GRACE_MS: i64 = 5_000;

    /// Which schedule this is; `None` before the first.
    pub fn held(&self) -> Option<HeldSchedule> {
        self.held
    }

    /// How many monitors are assigned.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no monitor is assigned.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Rounds that were not run because the host slept, was too busy, or still ran the one before.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// A monitor's slot in the book of [`Self::held`].
    pub fn slot_of(&self, monitor: MonitorId) -> Option<u32> {
        self.entries.get(&monitor).map(|entry| entry.assignment.slot)
    }

    /// Takes a whole change. A monitor whose assignment stays the same keeps its next round.
    ///
    /// # Errors
    /// [`DoesNotFit`] when it is based on a revision that is not held; nothing is changed then.
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
        for assignment in change.put {
            self.put(assignment, now_ms);
        }
        self.held = Some(HeldSchedule { book: change.book, revision: change.revision });
        Ok(())
    }

    /// The whole schedule as a snapshot, to be kept on disk; `None` before the first change.
    pub fn snapshot(&self) -> Option<ScheduleChange> {
        let held = self.held?;
        Some(ScheduleChange {
            book: held.book,
            base: None,
            revision: held.revision,
            put: self.entries.values().map(|entry| Assignment::clone(&entry.assignment)).collect(),
            drop: Vec::new(),
            more: false,
        })
    }

    /// When the next round is due, epoch ms.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.queue.first().map(|&(due, _)| due)
    }

    /// Takes out at most `limit` rounds that are due. Those too late are counted as missed and not run; so is
    /// a round whose monitor is still being checked.
    pub fn take_due(&mut self, now_ms: i64, limit: usize) -> Vec<Due> {
        let mut due = Vec::new();
        while due.len() < limit {
            let Some(&(at, monitor)) = self.queue.first().filter(|&&(at, _)| at <= now_ms) else {
                break;
            };
            self.queue.pop_first();
            let Some(entry) = self.entries.get_mut(&monitor) else {
                continue;
            };
            let assignment = Arc::clone(&entry.assignment);
            let round = entry.round;
            let grace = Self::GRACE_MS.min(i64::from(assignment.interval_ms) / 2);
            let next = if now_ms.saturating_sub(at) > grace {
                // Everything that began before now is over, but for this one's successors.
                let next =
                    assignment.own_round_from(assignment.round_at(now_ms).max(round).saturating_add(1));
                let skipped = (next - round) / u64::from(assignment.every.max(1));
                self.missed = self.missed.saturating_add(skipped);
                next
            } else {
                if entry.running {
                    self.missed = self.missed.saturating_add(1);
                } else {
                    entry.running = true;
                    let kept = Arc::clone(&entry.kept);
                    due.push(Due { assignment: Arc::clone(&assignment), kept, round });
                }
                assignment.own_round_from(round.saturating_add(1))
            };
            entry.round = next;
            self.queue.insert((assignment.round_start_ms(next), monitor));
        }
        due
    }

    /// A round taken out by [`Self::take_due`] has ended.
    pub fn finished(&mut self, monitor: MonitorId) {
        if let Some(entry) = self.entries.get_mut(&monitor) {
            entry.running = false;
        }
    }

    /// The coordinator's time has stepped: every monitor's next round is the first one after `now_ms`.
    pub fn rebase(&mut self, now_ms: i64) {
        self.queue.clear();
        for (&monitor, entry) in &mut self.entries {
            entry.round = first_round(&entry.assignment, now_ms);
            self.queue.insert((entry.assignment.round_start_ms(entry.round), monitor));
        }
    }

    fn put(&mut self, assignment: Assignment, now_ms: i64) {
        let monitor = assignment.monitor;
        let old = self.entries.get(&monitor);
        let running = old.is_some_and(|entry| entry.running);
        let same_rounds = old.filter(|entry| {
            let (a, b) = (&entry.assignment, &assignment);
            (a.interval_ms, a.offset_ms, a.every, a.turn) == (b.interval_ms, b.offset_ms, b.every, b.turn)
        });
        let round = same_rounds.map_or_else(|| first_round(&assignment, now_ms), |entry| entry.round);
        let at = assignment.round_start_ms(round);
        self.remove(monitor);
        self.queue.insert((at, monitor));
        let kept = Arc::default();
        self.entries.insert(monitor, Entry { assignment: Arc::new(assignment), kept, round, running });
    }

    fn remove(&mut self, monitor: MonitorId) {
        if let Some(entry) = self.entries.remove(&monitor) {
            self.queue.remove(&(entry.assignment.round_start_ms(entry.round), monitor));
        }
    }
}

/// The first own round that begins at `now_ms` or later.
fn first_round(assignment: &Assignment, now_ms: i64) -> u64 {
    let round = assignment.round_at(now_ms);
    let begun = assignment.round_start_ms(round) < now_ms;
    assignment.own_round_from(round.saturating_add(u64::from(begun)))
}

#[cfg(test)]
mod tests;
