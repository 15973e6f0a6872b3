//! Wall clock steps of the coordinator: corrects the time and round number of results that agents took by the old
//! clock.
//!
//! Agents derive the coordinator's time from their own monotonic clock and synchronize once a minute. After a step,
//! their results have times and round numbers of the old clock until the next synchronization; results in an
//! agent's spool have them for longer. Each result is shifted by the step that explains it, so that it is judged as
//! if nothing had happened.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use parallax_core::assign::rounds_in;
use parallax_core::time::{DAY, MINUTE, Timestamp};
use parallax_protocol::result::CheckResult;
use parallax_runtime::clock::{Clock, STEP};
use tokio::sync::watch;

use super::convert::LONGEST_CHECK_MS;

/// Steps remembered, newest first.
const MAX_STEPS: usize = 4;
/// Milliseconds for which a step is remembered, for results from an agent's spool.
const MAX_AGE: i64 = DAY;
/// Milliseconds after a step within which an agent may not have synchronized yet; agents do so every minute.
const SYNC_WINDOW: i64 = 3 * MINUTE;
/// Milliseconds that an agent's clock may be ahead: half the round trip of its synchronization.
const TOLERANCE: i64 = 500;

/// Detects and remembers steps of the wall clock.
#[derive(Debug)]
pub(super) struct ClockSteps {
    state: Mutex<StepState>,
    /// Number of steps so far.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct StepState {
    /// Wall clock minus monotonic clock at the last check, in milliseconds.
    offset: Option<i64>,
    /// Newest first: the monotonic time of the step, and its size. Both in milliseconds.
    steps: VecDeque<(i64, i64)>,
}

/// The current time, and the possible offsets of agents' clocks.
#[derive(Debug)]
pub(super) struct CorrectedClock {
    now: Timestamp,
    /// Milliseconds to add to a time taken before the newest step, before the newest two, and so on; and whether
    /// connected agents may still use that clock.
    offsets: Vec<(i64, bool)>,
}

impl Default for ClockSteps {
    fn default() -> Self {
        Self { state: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl ClockSteps {
    /// Checks the clock.
    pub(super) fn check(&self, clock: &Clock) -> CorrectedClock {
        let (now, steady) = (clock.now(), clock.monotonic());
        let (present, stepped) = self.state.lock().unwrap_or_else(PoisonError::into_inner).check(now, steady);
        if stepped {
            self.count.send_modify(|noted| *noted += 1);
        }
        present
    }

    /// Returns a receiver that changes at each step.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

impl StepState {
    fn check(&mut self, now: Timestamp, steady: i64) -> (CorrectedClock, bool) {
        let offset = now.as_millis().saturating_sub(steady);
        let jump = self.offset.replace(offset).map_or(0, |before| offset.saturating_sub(before));
        let stepped = jump.saturating_abs() > STEP;
        if stepped {
            self.steps.push_front((steady, jump));
            self.steps.truncate(MAX_STEPS);
        }
        while self.steps.back().is_some_and(|(at, _)| steady.saturating_sub(*at) > MAX_AGE) {
            self.steps.pop_back();
        }
        let mut sum = 0_i64;
        let off = self.steps.iter().map(|(at, jump)| {
            sum = sum.saturating_add(*jump);
            (sum, steady.saturating_sub(*at) <= SYNC_WINDOW)
        });
        (CorrectedClock { now, offsets: off.collect() }, stepped)
    }
}

impl CorrectedClock {
    /// Returns the current time.
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Corrects a result's start and round number to the current clock. `sent_ms` is the send time by the agent's
    /// clock; `None` for a probe response, which is sent at once. `interval_ms` is the time between two rounds of
    /// the monitor.
    pub(super) fn correct(&self, result: &mut CheckResult, sent_ms: Option<i64>, interval_ms: u32) {
        if self.offsets.is_empty() {
            return;
        }
        let age = i64::try_from(result.age_ms).unwrap_or(i64::MAX);
        let sent_off = sent_ms.map_or(0, |sent_ms| self.offset_when_sent(sent_ms));
        let sent = sent_ms.map_or(self.now.as_millis(), |sent_ms| sent_ms.saturating_add(sent_off));
        // Duration of the check, assuming its start is off by that much.
        let took = |off: i64| {
            let started = result.started_ms.saturating_add(off);
            let took = sent.saturating_sub(age).saturating_sub(started);
            (-TOLERANCE..=LONGEST_CHECK_MS).contains(&took).then_some((took, off))
        };
        let any = || {
            let may = |(off, fresh): &(i64, bool)| (*fresh || sent_ms.is_some()).then_some(*off);
            std::iter::once(0).chain(self.offsets.iter().filter_map(may)).filter_map(took).min()
        };
        let usual = sent_ms.and_then(|_| took(sent_off));
        let Some((_, off)) = usual.or_else(any) else { return };
        result.started_ms = result.started_ms.saturating_add(off);
        let later = rounds_in(off, interval_ms);
        result.round = result.round.map(|round| round.saturating_add_signed(later));
    }

    /// Returns the offset of the agent's clock when it sent a batch: the one with the shortest transit time.
    fn offset_when_sent(&self, sent_ms: i64) -> i64 {
        let way = |off: i64| {
            let way = self.now.as_millis().saturating_sub(sent_ms.saturating_add(off));
            (way >= -TOLERANCE).then_some((way, off))
        };
        let may = self.offsets.iter().filter(|(_, fresh)| *fresh).map(|(off, _)| *off);
        std::iter::once(0).chain(may).filter_map(way).min().map_or(0, |(_, off)| off)
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::time::SECOND;
    use parallax_protocol::id::WireMonitorId;
    use parallax_protocol::result::{ProbeReport, WireFailure, WireOutcome, WirePhase};

    use super::*;

    /// Time of the check, by the monotonic clock and by the wall clock before any step.
    const NOW: i64 = 1_800_000_000_000;
    const INTERVAL: i64 = 10 * SECOND;

    /// Builds a check result with that duration and age, from an agent whose clock is off by `reckons`.
    fn result(took: i64, age: i64, reckons: i64) -> CheckResult {
        let started_ms = NOW + reckons - age - took;
        let round = Some((started_ms / INTERVAL).unsigned_abs());
        let report = ProbeReport::outcome_only(WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Connect }));
        CheckResult { monitor: WireMonitorId(1), revision: 1, round, started_ms, age_ms: age.unsigned_abs(), report }
    }

    /// Returns the current time after those steps, given as age and size, oldest first.
    fn after(steps: &[(i64, i64)]) -> (CorrectedClock, i64) {
        let mut state = StepState::default();
        state.check(Timestamp::from_millis(NOW - 2 * DAY), NOW - 2 * DAY);
        let mut wall = 0;
        for (ago, jump) in steps {
            wall += jump;
            assert!(state.check(Timestamp::from_millis(NOW - ago + wall), NOW - ago).1);
        }
        (state.check(Timestamp::from_millis(NOW + wall), NOW).0, wall)
    }

    /// Returns the errors of the corrected start and round number.
    fn corrected(steps: &[(i64, i64)], mut seen: CheckResult, way: i64, sent: Option<i64>) -> (i64, i64) {
        let (present, wall) = after(steps);
        let true_start = NOW + wall - way - i64::try_from(seen.age_ms).unwrap();
        let took = 2 * SECOND;
        present.correct(&mut seen, sent, u32::try_from(INTERVAL).unwrap());
        let true_round = (true_start - took).div_euclid(INTERVAL);
        (seen.started_ms - (true_start - took), i64::try_from(seen.round.unwrap()).unwrap() - true_round)
    }

    #[test]
    fn a_result_is_timed_and_numbered_by_the_clock_as_it_is_whatever_its_agent_knows_of_it() {
        let took = 2 * SECOND;
        for jump in [-60 * SECOND, 60 * SECOND, 10 * MINUTE, -10 * MINUTE, 2 * 60 * MINUTE] {
            let steps = [(20 * SECOND, jump)];
            for way in [0, 40, 900] {
                for age in [0, 500, 40 * SECOND] {
                    // The agent has not synchronized yet.
                    let seen = result(took, age + way, 0);
                    let fixed = CheckResult { age_ms: age.unsigned_abs(), ..seen };
                    assert_eq!(corrected(&steps, fixed, way, Some(NOW - way)), (0, 0), "{jump} {way} {age}");
                    // It has.
                    let seen = result(took, age + way, jump);
                    let fixed = CheckResult { age_ms: age.unsigned_abs(), ..seen };
                    let sent = Some(NOW - way + jump);
                    assert_eq!(corrected(&steps, fixed, way, sent), (0, 0), "{jump} {way} {age}");
                    // It synchronized after the check and before it sent the result.
                    let seen = result(took, age + way, 0);
                    let fixed = CheckResult { age_ms: age.unsigned_abs(), ..seen };
                    assert_eq!(corrected(&steps, fixed, way, sent), (0, 0), "{jump} {way} {age}");
                }
            }
            // A probe response is sent at once.
            assert_eq!(corrected(&steps, result(took, 0, 0), 0, None), (0, 0), "{jump}");
            assert_eq!(corrected(&steps, result(took, 0, jump), 0, None), (0, 0), "{jump}");
        }
    }

    #[test]
    fn what_was_stored_before_a_step_is_found_again_for_a_day_and_by_any_of_several_steps() {
        let took = 2 * SECOND;
        let (hour, jump) = (60 * MINUTE, -30 * MINUTE);
        let sent = |wall: i64| Some(NOW + wall);
        assert_eq!(corrected(&[(hour, jump)], result(took, 2 * hour, 0), 0, sent(jump)), (0, 0));
        let two = [(3 * hour, 20 * MINUTE), (hour, jump)];
        let wall = jump + 20 * MINUTE;
        assert_eq!(corrected(&two, result(took, 4 * hour, 0), 0, sent(wall)), (0, 0));
        assert_eq!(corrected(&two, result(took, 2 * hour, 20 * MINUTE), 0, sent(wall)), (0, 0));
        assert_eq!(corrected(&two, result(took, hour / 2, wall), 0, sent(wall)), (0, 0));
    }

    #[test]
    fn without_a_step_nothing_is_moved_however_long_the_way_and_however_wrong_the_agent() {
        for (reckons, way) in [(0, 0), (0, 5 * MINUTE), (DAY, 0), (-DAY, 0)] {
            let (present, _) = after(&[]);
            let mut seen = result(SECOND, 0, reckons);
            let before = seen.clone();
            present.correct(&mut seen, Some(NOW + reckons - way), 10_000);
            assert_eq!(seen, before);
        }
    }

    #[test]
    fn absurd_moments_do_not_overflow() {
        let (present, _) = after(&[(1, MINUTE)]);
        for absurd in [i64::MIN, i64::MAX] {
            for age_ms in [0, u64::MAX] {
                let mut seen = CheckResult { started_ms: absurd, age_ms, ..result(0, 0, 0) };
                present.correct(&mut seen, Some(absurd), 0);
                present.correct(&mut seen, None, u32::MAX);
            }
        }
    }

    #[test]
    fn steps_are_noted_once_and_only_the_newest_few_are_kept() {
        let clock = Clock::manual(Timestamp::from_millis(NOW));
        let steps = ClockSteps::default();
        let seen = steps.subscribe();
        steps.check(&clock);
        for step in 1..=10 {
            // The monotonic clock of a manual clock advances only when it is set forward.
            clock.set(Timestamp::from_millis(NOW - step * MINUTE));
            let present = steps.check(&clock);
            assert_eq!(present.offsets.len(), usize::try_from(step).unwrap().min(MAX_STEPS));
            steps.check(&clock);
            assert_eq!(*seen.borrow(), step.unsigned_abs());
        }
    }
}
