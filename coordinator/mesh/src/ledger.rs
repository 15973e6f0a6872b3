//! Ledger of one agent's results: which have arrived, which are durable, which are duplicates, and what to
//! acknowledge.

use std::collections::BTreeMap;

use parallax_protocol::id::BootId;
use parallax_protocol::message::{AgentHello, DurabilityMark};

/// Separate runs of numbers per boot, at most. A peer that causes more violates the protocol.
const MAX_RUNS: usize = 4_096;

/// Results of one agent by boot. Numbers run from 1 within a boot.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    boots: BTreeMap<BootId, BootResults>,
    /// Lost results that were not reported yet.
    lost: u64,
}

/// Numbers from the first to the last, both included.
pub(super) type NumberRange = (u64, u64);

/// Reason for refusing numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LedgerError {
    /// The boot was not named in `AgentHello`.
    UnknownBoot,
    /// The first number is 0 or greater than the last.
    BadRange,
    /// The numbers fall into too many runs.
    TooScattered,
}

#[derive(Debug, Default)]
struct BootResults {
    /// Everything up to this number is durable or will never arrive.
    through: u64,
    /// Further such numbers above a gap.
    done: Runs,
    /// Handed to the engine, not durable yet.
    pending: Runs,
    /// Nothing has arrived on the current connection.
    is_fresh: bool,
    /// An acknowledgement is due.
    is_due: bool,
}

impl Ledger {
    /// Begins a connection on which results of these boots may arrive; all other boots are dropped. Returns how far
    /// each known boot is durable.
    pub(super) fn begin_connection(&mut self, hello: &AgentHello) -> Vec<DurabilityMark> {
        let named: Vec<BootId> = hello.earlier_boots.iter().copied().chain([hello.boot]).collect();
        self.boots.retain(|boot, _| named.contains(boot));
        let known = self.boots.iter().filter(|(_, results)| results.through > 0);
        let marks = known.map(|(boot, results)| DurabilityMark { boot: *boot, through: results.through }).collect();
        for boot in named {
            let results = self.boots.entry(boot).or_default();
            results.is_fresh = true;
            results.is_due = false;
        }
        marks
    }

    /// Records the numbers of a batch. Returns the runs of the new ones, first to last; the rest are duplicates.
    pub(super) fn receive(&mut self, boot: BootId, from: u64, through: u64) -> Result<Vec<NumberRange>, LedgerError> {
        let mut lost = 0;
        let boot = self.boot(boot, from, through)?;
        if boot.is_fresh {
            // An agent sends its oldest results first. Everything before them will never arrive, except results that
            // came on an earlier connection and are still being written.
            boot.is_fresh = false;
            let first_pending = boot.pending.0.keys().next().copied().unwrap_or(from);
            let last_skipped = from.min(first_pending) - 1;
            if boot.through > 0 {
                lost = boot.missing(1, last_skipped);
            }
            boot.finish(1, last_skipped);
        }
        let mut new: Vec<NumberRange> = Vec::new();
        for number in (from..=through).filter(|number| !boot.has(*number)) {
            match new.last_mut() {
                Some((_, last)) if last.saturating_add(1) == number => *last = number,
                _ => new.push((number, number)),
            }
        }
        for (first, last) in &new {
            boot.pending.insert(*first, *last);
        }
        boot.is_due |= new.is_empty();
        boot.check()?;
        self.lost = self.lost.saturating_add(lost);
        Ok(new)
    }

    /// Returns the number of lost results since the last call: reported by the agent, or skipped by an agent that lost
    /// count of them in a restart.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Marks numbers that [`Self::receive`] returned as new as durable, or as discarded.
    pub(super) fn mark_durable(&mut self, boot: BootId, from: u64, through: u64) {
        if let Some(boot) = self.boots.get_mut(&boot) {
            boot.pending.remove(from, through);
            boot.finish(from, through);
            boot.is_due = true;
        }
    }

    /// Releases a range whose batch failed; the agent may send it again.
    pub(super) fn release(&mut self, boot: BootId, from: u64, through: u64) {
        if let Some(boot) = self.boots.get_mut(&boot) {
            boot.pending.remove(from, through);
        }
    }

    /// Records the agent's report that the range will never arrive.
    pub(super) fn record_gap(&mut self, boot: BootId, from: u64, through: u64) -> Result<(), LedgerError> {
        let boot = self.boot(boot, from, through)?;
        let lost = boot.missing(from, through);
        boot.finish(from, through);
        boot.is_due = true;
        boot.check()?;
        self.lost = self.lost.saturating_add(lost);
        Ok(())
    }

    /// Returns the acknowledgements that are due, each once.
    pub(super) fn take_due_acks(&mut self) -> Vec<DurabilityMark> {
        let due = self.boots.iter_mut().filter(|(_, results)| results.is_due && results.through > 0);
        due.map(|(boot, results)| {
            results.is_due = false;
            DurabilityMark { boot: *boot, through: results.through }
        })
        .collect()
    }

    fn boot(&mut self, boot: BootId, from: u64, through: u64) -> Result<&mut BootResults, LedgerError> {
        if from == 0 || through < from {
            return Err(LedgerError::BadRange);
        }
        self.boots.get_mut(&boot).ok_or(LedgerError::UnknownBoot)
    }
}

impl BootResults {
    fn has(&self, number: u64) -> bool {
        number <= self.through || self.done.contains(number) || self.pending.contains(number)
    }

    /// Counts the numbers in the range that have neither arrived nor are known to be lost.
    fn missing(&self, from: u64, through: u64) -> u64 {
        let from = from.max(self.through.saturating_add(1));
        if through < from {
            return 0;
        }
        let covered = self.done.count_in(from, through).saturating_add(self.pending.count_in(from, through));
        (through - from).saturating_add(1).saturating_sub(covered)
    }

    fn finish(&mut self, from: u64, through: u64) {
        if through < from || through <= self.through {
            return;
        }
        self.done.insert(from.max(self.through + 1), through);
        if let Some(end) = self.done.end_of_run_at(self.through.saturating_add(1)) {
            self.through = end;
            self.done.remove(0, end);
        }
    }

    fn check(&self) -> Result<(), LedgerError> {
        let runs = self.done.0.len() + self.pending.0.len();
        if runs > MAX_RUNS { Err(LedgerError::TooScattered) } else { Ok(()) }
    }
}

/// Numbers as disjoint, non-adjacent runs: first to last.
#[derive(Debug, Default)]
struct Runs(BTreeMap<u64, u64>);

impl Runs {
    fn contains(&self, number: u64) -> bool {
        self.end_of_run_at(number).is_some()
    }

    fn count_in(&self, from: u64, through: u64) -> u64 {
        let overlaps = self.0.iter().map(|(first, last)| ((*first).max(from), (*last).min(through)));
        overlaps.filter(|(first, last)| first <= last).map(|(first, last)| last - first + 1).sum()
    }

    fn end_of_run_at(&self, number: u64) -> Option<u64> {
        let (_, last) = self.0.range(..=number).next_back()?;
        (*last >= number).then_some(*last)
    }

    fn insert(&mut self, mut from: u64, mut through: u64) {
        let adjacent_end = through.saturating_add(1);
        while let Some((first, last)) = self.0.range(..=adjacent_end).next_back().map(|(first, last)| (*first, *last)) {
            if last.saturating_add(1) < from {
                break;
            }
            from = from.min(first);
            through = through.max(last);
            self.0.remove(&first);
        }
        self.0.insert(from, through);
    }

    fn remove(&mut self, from: u64, through: u64) {
        while let Some((first, last)) = self.0.range(..=through).next_back().map(|(first, last)| (*first, *last)) {
            if last < from {
                break;
            }
            self.0.remove(&first);
            if last > through {
                self.0.insert(through + 1, last);
            }
            if first < from {
                self.0.insert(first, from - 1);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId(7);

    fn hello(earlier: &[u64]) -> AgentHello {
        AgentHello {
            software: "0".to_owned(),
            boot: BOOT,
            earlier_boots: earlier.iter().map(|boot| BootId(*boot)).collect(),
            schedule: None,
            wall_ms: 0,
            kinds: Vec::new(),
            faults: Vec::new(),
            certificate_ends_ms: 0,
        }
    }

    fn connected_ledger() -> Ledger {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.begin_connection(&hello(&[])), []);
        ledger
    }

    fn mark(through: u64) -> Vec<DurabilityMark> {
        vec![DurabilityMark { boot: BOOT, through }]
    }

    #[test]
    fn nothing_is_acknowledged_before_it_is_durable() {
        let mut ledger = connected_ledger();
        assert_eq!(ledger.receive(BOOT, 1, 3), Ok(vec![(1, 3)]));
        assert_eq!(ledger.take_due_acks(), []);
        ledger.mark_durable(BOOT, 1, 3);
        assert_eq!(ledger.take_due_acks(), mark(3));
        assert_eq!(ledger.take_due_acks(), []);
    }

    #[test]
    fn only_the_contiguous_part_is_acknowledged() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 3).unwrap();
        ledger.receive(BOOT, 4, 6).unwrap();
        ledger.mark_durable(BOOT, 4, 6);
        assert_eq!(ledger.take_due_acks(), []);
        ledger.mark_durable(BOOT, 1, 3);
        assert_eq!(ledger.take_due_acks(), mark(6));
    }

    #[test]
    fn a_duplicate_is_dropped_and_acknowledged_again() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 3).unwrap();
        assert_eq!(ledger.receive(BOOT, 2, 4), Ok(vec![(4, 4)]));
        ledger.mark_durable(BOOT, 1, 4);
        ledger.take_due_acks();
        assert_eq!(ledger.receive(BOOT, 1, 4), Ok(vec![]));
        assert_eq!(ledger.take_due_acks(), mark(4));
    }

    #[test]
    fn results_in_flight_over_a_reconnect_are_not_accepted_twice() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 5).unwrap();
        ledger.mark_durable(BOOT, 1, 2);
        assert_eq!(ledger.begin_connection(&hello(&[])), mark(2));
        assert_eq!(ledger.receive(BOOT, 3, 6), Ok(vec![(6, 6)]));
        ledger.mark_durable(BOOT, 3, 5);
        assert_eq!(ledger.take_due_acks(), mark(5));
    }

    #[test]
    fn failed_results_may_be_sent_again() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 5).unwrap();
        ledger.release(BOOT, 1, 5);
        ledger.begin_connection(&hello(&[]));
        assert_eq!(ledger.receive(BOOT, 1, 5), Ok(vec![(1, 5)]));
    }

    #[test]
    fn a_restarted_coordinator_starts_at_the_agents_first_number() {
        let mut ledger = connected_ledger();
        assert_eq!(ledger.receive(BOOT, 5_001, 5_002), Ok(vec![(5_001, 5_002)]));
        ledger.mark_durable(BOOT, 5_001, 5_002);
        assert_eq!(ledger.take_due_acks(), mark(5_002));
    }

    #[test]
    fn a_gap_closes_a_hole() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 2).unwrap();
        ledger.receive(BOOT, 6, 7).unwrap();
        ledger.mark_durable(BOOT, 1, 2);
        ledger.mark_durable(BOOT, 6, 7);
        assert_eq!(ledger.take_due_acks(), mark(2));
        ledger.record_gap(BOOT, 3, 5).unwrap();
        assert_eq!(ledger.take_due_acks(), mark(7));
    }

    #[test]
    fn lost_results_are_counted_once() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 2).unwrap();
        ledger.mark_durable(BOOT, 1, 2);
        // Its numbers begin at 10: the seven before are lost. The agent itself reports three of them later.
        ledger.begin_connection(&hello(&[]));
        ledger.receive(BOOT, 10, 11).unwrap();
        assert_eq!(ledger.take_lost(), 7);
        ledger.record_gap(BOOT, 4, 6).unwrap();
        assert_eq!(ledger.take_lost(), 0);
        ledger.record_gap(BOOT, 11, 13).unwrap();
        assert_eq!(ledger.take_lost(), 2);
        assert_eq!(ledger.take_lost(), 0);
    }

    #[test]
    fn boots_that_hello_does_not_name_are_refused() {
        let mut ledger = connected_ledger();
        assert_eq!(ledger.receive(BootId(8), 1, 1), Err(LedgerError::UnknownBoot));
        ledger.begin_connection(&hello(&[8]));
        assert_eq!(ledger.receive(BootId(8), 1, 1), Ok(vec![(1, 1)]));
        ledger.begin_connection(&hello(&[]));
        assert_eq!(ledger.record_gap(BootId(8), 1, 1), Err(LedgerError::UnknownBoot));
        assert_eq!(ledger.receive(BOOT, 0, 1), Err(LedgerError::BadRange));
        assert_eq!(ledger.record_gap(BOOT, 3, 2), Err(LedgerError::BadRange));
    }

    #[test]
    fn holes_are_bounded_and_extremes_do_not_overflow() {
        let mut ledger = connected_ledger();
        ledger.receive(BOOT, 1, 1).unwrap();
        ledger.record_gap(BOOT, u64::MAX, u64::MAX).unwrap();
        ledger.record_gap(BOOT, 2, u64::MAX - 1).unwrap();
        ledger.mark_durable(BOOT, 1, 1);
        assert_eq!(ledger.take_due_acks(), mark(u64::MAX));
        let mut scattered = connected_ledger();
        scattered.receive(BOOT, 1, 1).unwrap();
        let refused = (1..5_000).map(|n| scattered.record_gap(BOOT, n * 3, n * 3)).find(Result::is_err);
        assert_eq!(refused, Some(Err(LedgerError::TooScattered)));
    }
}
