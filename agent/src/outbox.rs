//! Numbered results of this boot that are not yet acknowledged, and the timing of their batches. Free of IO.

use parallax_protocol::batch::ResultBatch;
use parallax_protocol::id::{BootId, WireMonitorId};
use parallax_protocol::result::{CheckResult, WireOutcome};
use std::collections::VecDeque;

/// A numbered result with the time at which it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedResult {
    /// Sequence number.
    pub seq: u64,
    /// End of its check, monotonic ms.
    pub ended_mono_ms: i64,
    /// The result; its age is filled in at sending.
    pub result: CheckResult,
}

/// Results in memory.
#[derive(Debug)]
pub struct Outbox {
    boot: BootId,
    unnumbered: Vec<(CheckResult, i64)>,
    numbered: VecDeque<QueuedResult>,
    next_seq: u64,
    saved_through: u64,
    last_batch_ms: Option<i64>,
    /// True if an unnumbered result is not a pass.
    has_unnumbered_non_pass: bool,
    /// Number above which all results are passes.
    last_non_pass: u64,
}

impl Outbox {
    /// Interval of batches in ms, if one contains anything but passes: those are urgent.
    pub const GATHER_MS: i64 = 20;

    /// Interval of batches of passes, in ms: larger batches need fewer bytes for each result.
    pub const GATHER_PASSED_MS: i64 = 100;

    /// Creates an empty outbox; numbers start at 1.
    pub fn new(boot: BootId) -> Self {
        Self {
            boot,
            unnumbered: Vec::new(),
            numbered: VecDeque::new(),
            next_seq: 1,
            saved_through: 0,
            last_batch_ms: None,
            has_unnumbered_non_pass: false,
            last_non_pass: 0,
        }
    }

    /// Returns the boot that these numbers belong to.
    pub fn boot(&self) -> BootId {
        self.boot
    }

    /// Number of results in memory, numbered or not.
    pub fn len(&self) -> usize {
        self.unnumbered.len() + self.numbered.len()
    }

    /// Returns true if no result is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the lowest number in memory, or the next one to be assigned.
    pub fn first_seq(&self) -> u64 {
        self.numbered.front().map_or(self.next_seq, |queued| queued.seq)
    }

    /// Adds a result. Returns true if it is the first that waits for its number, the first that is not a
    /// pass, or completes a batch.
    pub fn push(&mut self, result: CheckResult, ended_mono_ms: i64) -> bool {
        let is_news = result.report.outcome != WireOutcome::Passed;
        let is_first_news = is_news && !self.has_unnumbered_non_pass;
        self.has_unnumbered_non_pass |= is_news;
        self.unnumbered.push((result, ended_mono_ms));
        is_first_news || self.unnumbered.len() == 1 || self.unnumbered.len() == ResultBatch::MAX
    }

    /// Numbers the new results, sorted by slot, which packs best; results of one monitor stay in order.
    pub fn number(&mut self, mut slot_of: impl FnMut(WireMonitorId) -> Option<u32>) {
        self.unnumbered.sort_by_cached_key(|(result, _)| slot_of(result.monitor).unwrap_or(u32::MAX));
        for (result, ended_mono_ms) in self.unnumbered.drain(..) {
            self.numbered.push_back(QueuedResult { seq: self.next_seq, ended_mono_ms, result });
            self.next_seq += 1;
        }
        if std::mem::take(&mut self.has_unnumbered_non_pass) {
            self.last_non_pass = self.next_seq - 1;
        }
    }

    /// Returns the ms until the batch that starts at `from` is due: zero if idle or if it is full; `None` if
    /// there is nothing to send.
    pub fn wait_ms(&self, from: u64, now_mono_ms: i64) -> Option<i64> {
        let numbered = usize::try_from(self.next_seq.saturating_sub(from.max(self.first_seq()))).ok()?;
        let waiting = numbered.saturating_add(self.unnumbered.len());
        if waiting == 0 {
            return None;
        }
        if waiting >= ResultBatch::MAX {
            return Some(0);
        }
        let has_news = self.has_unnumbered_non_pass || self.last_non_pass >= from;
        let apart = if has_news { Self::GATHER_MS } else { Self::GATHER_PASSED_MS };
        let since = self.last_batch_ms.map_or(apart, |last| now_mono_ms.saturating_sub(last));
        Some((apart - since).clamp(0, apart))
    }

    /// Returns the numbered results from `from` on, at most one batch; empty if there are none, or if `from`
    /// is no longer in memory.
    pub fn batch(&mut self, from: u64, now_mono_ms: i64) -> Vec<QueuedResult> {
        let Some(skip) = from.checked_sub(self.first_seq()).and_then(|skip| usize::try_from(skip).ok()) else {
            return Vec::new();
        };
        self.last_batch_ms = Some(now_mono_ms);
        self.numbered.iter().skip(skip).take(ResultBatch::MAX).cloned().collect()
    }

    /// Acknowledges everything up to `through`. Unassigned numbers are ignored.
    pub fn acknowledge(&mut self, through: u64) {
        while self.numbered.front().is_some_and(|queued| queued.seq <= through) {
            self.numbered.pop_front();
        }
    }

    /// Returns numbered results that are not on disk and ended at `before_mono_ms` or earlier, with all
    /// before them; at most one batch. The caller writes them and calls [`Self::saved`].
    pub fn unsaved(&self, before_mono_ms: i64) -> Vec<QueuedResult> {
        let unsaved = self.numbered.iter().skip_while(|queued| queued.seq <= self.saved_through);
        let batch: Vec<&QueuedResult> = unsaved.take(ResultBatch::MAX).collect();
        let old = batch.iter().rposition(|queued| queued.ended_mono_ms <= before_mono_ms);
        batch.into_iter().take(old.map_or(0, |last| last + 1)).cloned().collect()
    }

    /// Marks everything up to `through` as saved on disk.
    pub fn saved(&mut self, through: u64) {
        self.saved_through = self.saved_through.max(through);
    }

    /// Evicts the oldest numbered results until at most `limit` results are in memory. Results that are not
    /// on disk are returned as lost.
    pub fn evict_to(&mut self, limit: usize) -> Vec<QueuedResult> {
        let mut lost = Vec::new();
        while self.len() > limit {
            let Some(oldest) = self.numbered.pop_front() else {
                break;
            };
            if oldest.seq > self.saved_through {
                lost.push(oldest);
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parallax_protocol::result::{ProbeReport, WireFailure};
    use proptest::prelude::*;

    fn result(monitor: u128) -> CheckResult {
        CheckResult {
            monitor: WireMonitorId(monitor),
            revision: 1,
            round: Some(1),
            started_ms: 0,
            age_ms: 0,
            report: ProbeReport::outcome_only(WireOutcome::Passed),
        }
    }

    fn slot_of(monitor: WireMonitorId) -> Option<u32> {
        u32::try_from(monitor.0).ok()
    }

    fn seqs(queued: &[QueuedResult]) -> Vec<u64> {
        queued.iter().map(|queued| queued.seq).collect()
    }

    #[test]
    fn an_idle_outbox_sends_at_once_and_a_busy_one_gathers() {
        let mut outbox = Outbox::new(BootId(1));
        assert_eq!(outbox.wait_ms(1, 0), None);
        outbox.push(result(1), 0);
        assert_eq!(outbox.wait_ms(1, 100), Some(0));
        outbox.number(slot_of);
        assert_eq!(seqs(&outbox.batch(1, 100)), [1]);
        outbox.push(result(1), 0);
        assert_eq!(outbox.wait_ms(2, 105), Some(95));
        (0..500).for_each(|n| {
            outbox.push(result(n), 0);
        });
        assert_eq!(outbox.wait_ms(2, 105), Some(0));
    }

    #[test]
    fn a_failure_does_not_wait_for_passes() {
        let mut failed = result(1);
        failed.report = ProbeReport::outcome_only(WireOutcome::Failed(WireFailure::Refused));
        let mut outbox = Outbox::new(BootId(1));
        assert!(outbox.push(result(1), 0));
        outbox.number(slot_of);
        outbox.batch(1, 100);
        assert!(outbox.push(result(2), 0));
        assert!(outbox.push(failed.clone(), 0), "a sender that waits for passes must check again");
        assert!(!outbox.push(failed, 0));
        assert_eq!(outbox.wait_ms(2, 105), Some(15));
        outbox.number(slot_of);
        assert_eq!(outbox.wait_ms(2, 105), Some(15));
        assert_eq!(outbox.wait_ms(2, 125), Some(0));
        let sent = outbox.batch(2, 125).len();
        assert_eq!(sent, 3);
        outbox.push(result(3), 0);
        assert_eq!(outbox.wait_ms(5, 130), Some(95));
    }

    #[test]
    fn neighbours_by_slot_are_neighbours_by_number() {
        let mut outbox = Outbox::new(BootId(1));
        for n in [5, 2, 9, 2] {
            outbox.push(result(n), 0);
        }
        outbox.number(slot_of);
        let order: Vec<u128> = outbox.batch(1, 0).iter().map(|queued| queued.result.monitor.0).collect();
        assert_eq!(order, [2, 2, 5, 9]);
    }

    #[test]
    fn unacknowledged_results_are_sent_again() {
        let mut outbox = Outbox::new(BootId(1));
        for n in 0..4 {
            outbox.push(result(n), 0);
        }
        outbox.number(slot_of);
        outbox.acknowledge(2);
        assert_eq!(outbox.first_seq(), 3);
        assert_eq!(seqs(&outbox.batch(3, 0)), [3, 4]);
        assert!(outbox.batch(2, 0).is_empty());
        outbox.acknowledge(99);
        assert!(outbox.is_empty());
        assert_eq!(outbox.first_seq(), 5);
    }

    #[test]
    fn only_old_results_are_spooled_and_none_is_lost() {
        let mut outbox = Outbox::new(BootId(1));
        for n in 0..4 {
            outbox.push(result(n), i64::try_from(n).unwrap() * 10);
        }
        outbox.number(slot_of);
        assert_eq!(seqs(&outbox.unsaved(15)), [1, 2]);
        outbox.saved(2);
        assert_eq!(seqs(&outbox.unsaved(100)), [3, 4]);
        assert_eq!(seqs(&outbox.evict_to(1)), [3]);
        assert_eq!(outbox.first_seq(), 4);
    }

    proptest! {
        #[test]
        fn numbers_have_no_gaps_whatever_happens(steps in prop::collection::vec((0u8..5, 0u64..40), 1..80)) {
            let mut outbox = Outbox::new(BootId(1));
            let mut given = 0;
            for (step, n) in steps {
                match step {
                    0 => (0..n).for_each(|m| { outbox.push(result(u128::from(m)), 0); given += 1; }),
                    1 => outbox.acknowledge(n),
                    2 => outbox.saved(n),
                    3 => { outbox.evict_to(usize::try_from(n).unwrap()); }
                    _ => outbox.number(slot_of),
                }
                let from = outbox.first_seq();
                let held = seqs(&outbox.batch(from, 0));
                prop_assert!(held.windows(2).all(|pair| pair[1] == pair[0] + 1));
                prop_assert!(held.last().is_none_or(|&last| last <= given));
            }
        }
    }
}
