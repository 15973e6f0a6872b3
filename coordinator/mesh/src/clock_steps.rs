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
        let (now, monotonic) = (clock.now(), clock.monotonic());
        let (corrected_clock, has_stepped) =
            self.state.lock().unwrap_or_else(PoisonError::into_inner).check(now, monotonic);
        if has_stepped {
            self.count.send_modify(|count| *count += 1);
        }
        corrected_clock
    }

    /// Returns a receiver that changes at each step.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

impl StepState {
    fn check(&mut self, now: Timestamp, monotonic: i64) -> (CorrectedClock, bool) {
        let offset = now.as_millis().saturating_sub(monotonic);
        let jump = self.offset.replace(offset).map_or(0, |previous| offset.saturating_sub(previous));
        let has_stepped = jump.saturating_abs() > STEP;
        if has_stepped {
            self.steps.push_front((monotonic, jump));
            self.steps.truncate(MAX_STEPS);
        }
        while self.steps.back().is_some_and(|(at, _)| monotonic.saturating_sub(*at) > MAX_AGE) {
            self.steps.pop_back();
        }
        let mut sum = 0_i64;
        let offsets = self.steps.iter().map(|(at, jump)| {
            sum = sum.saturating_add(*jump);
            (sum, monotonic.saturating_sub(*at) <= SYNC_WINDOW)
        });
        (CorrectedClock { now, offsets: offsets.collect() }, has_stepped)
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
        let sent_offset = sent_ms.map_or(0, |sent_ms| self.offset_when_sent(sent_ms));
        let sent = sent_ms.map_or(self.now.as_millis(), |sent_ms| sent_ms.saturating_add(sent_offset));
        // Duration of the check, assuming its start is off by that much.
        let check_duration = |offset: i64| {
            let started = result.started_ms.saturating_add(offset);
            let duration = sent.saturating_sub(age).saturating_sub(started);
            (-TOLERANCE..=LONGEST_CHECK_MS).contains(&duration).then_some((duration, offset))
        };
        let best_fit = || {
            let usable_offset =
                |(offset, is_recent): &(i64, bool)| (*is_recent || sent_ms.is_some()).then_some(*offset);
            std::iter::once(0).chain(self.offsets.iter().filter_map(usable_offset)).filter_map(check_duration).min()
        };
        let expected = sent_ms.and_then(|_| check_duration(sent_offset));
        let Some((_, offset)) = expected.or_else(best_fit) else { return };
        result.started_ms = result.started_ms.saturating_add(offset);
        let round_shift = rounds_in(offset, interval_ms);
        result.round = result.round.map(|round| round.saturating_add_signed(round_shift));
    }

    /// Returns the offset of the agent's clock when it sent a batch: the one with the shortest transit time.
    fn offset_when_sent(&self, sent_ms: i64) -> i64 {
        let transit = |offset: i64| {
            let duration = self.now.as_millis().saturating_sub(sent_ms.saturating_add(offset));
            (duration >= -TOLERANCE).then_some((duration, offset))
        };
        let recent_offsets = self.offsets.iter().filter(|(_, is_recent)| *is_recent).map(|(offset, _)| *offset);
        std::iter::once(0).chain(recent_offsets).filter_map(transit).min().map_or(0, |(_, offset)| offset)
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

    /// Builds a check result with that duration and age, from an agent whose clock is off by `agent_offset`.
    fn result(duration: i64, age: i64, agent_offset: i64) -> CheckResult {
        let started_ms = NOW + agent_offset - age - duration;
        let round = Some((started_ms / INTERVAL).unsigned_abs());
        let report = ProbeReport::outcome_only(WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Connect }));
        CheckResult { monitor: WireMonitorId(1), revision: 1, round, started_ms, age_ms: age.unsigned_abs(), report }
    }

    /// Returns the current time after those steps, given as age and size, oldest first.
    fn clock_after(steps: &[(i64, i64)]) -> (CorrectedClock, i64) {
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
    fn corrected(steps: &[(i64, i64)], mut check_result: CheckResult, transit: i64, sent: Option<i64>) -> (i64, i64) {
        let (corrected_clock, wall) = clock_after(steps);
        let true_start = NOW + wall - transit - i64::try_from(check_result.age_ms).unwrap();
        let duration = 2 * SECOND;
        corrected_clock.correct(&mut check_result, sent, u32::try_from(INTERVAL).unwrap());
        let true_round = (true_start - duration).div_euclid(INTERVAL);
        (
            check_result.started_ms - (true_start - duration),
            i64::try_from(check_result.round.unwrap()).unwrap() - true_round,
        )
    }

    #[test]
    fn a_result_is_corrected_to_the_current_clock_whether_or_not_its_agent_has_synchronized() {
        let duration = 2 * SECOND;
        for jump in [-60 * SECOND, 60 * SECOND, 10 * MINUTE, -10 * MINUTE, 2 * 60 * MINUTE] {
            let steps = [(20 * SECOND, jump)];
            for transit in [0, 40, 900] {
                for age in [0, 500, 40 * SECOND] {
                    // The agent has not synchronized yet.
                    let check_result = result(duration, age + transit, 0);
                    let aged = CheckResult { age_ms: age.unsigned_abs(), ..check_result };
                    assert_eq!(corrected(&steps, aged, transit, Some(NOW - transit)), (0, 0), "{jump} {transit} {age}");
                    // It has.
                    let check_result = result(duration, age + transit, jump);
                    let aged = CheckResult { age_ms: age.unsigned_abs(), ..check_result };
                    let sent = Some(NOW - transit + jump);
                    assert_eq!(corrected(&steps, aged, transit, sent), (0, 0), "{jump} {transit} {age}");
                    // It synchronized after the check and before it sent the result.
                    let check_result = result(duration, age + transit, 0);
                    let aged = CheckResult { age_ms: age.unsigned_abs(), ..check_result };
                    assert_eq!(corrected(&steps, aged, transit, sent), (0, 0), "{jump} {transit} {age}");
                }
            }
            // A probe response is sent at once.
            assert_eq!(corrected(&steps, result(duration, 0, 0), 0, None), (0, 0), "{jump}");
            assert_eq!(corrected(&steps, result(duration, 0, jump), 0, None), (0, 0), "{jump}");
        }
    }

    #[test]
    fn spooled_results_from_before_one_of_several_steps_are_corrected() {
        let duration = 2 * SECOND;
        let (hour, jump) = (60 * MINUTE, -30 * MINUTE);
        let sent = |wall: i64| Some(NOW + wall);
        assert_eq!(corrected(&[(hour, jump)], result(duration, 2 * hour, 0), 0, sent(jump)), (0, 0));
        let two = [(3 * hour, 20 * MINUTE), (hour, jump)];
        let wall = jump + 20 * MINUTE;
        assert_eq!(corrected(&two, result(duration, 4 * hour, 0), 0, sent(wall)), (0, 0));
        assert_eq!(corrected(&two, result(duration, 2 * hour, 20 * MINUTE), 0, sent(wall)), (0, 0));
        assert_eq!(corrected(&two, result(duration, hour / 2, wall), 0, sent(wall)), (0, 0));
    }

    #[test]
    fn without_a_step_no_result_is_changed() {
        for (agent_offset, transit) in [(0, 0), (0, 5 * MINUTE), (DAY, 0), (-DAY, 0)] {
            let (corrected_clock, _) = clock_after(&[]);
            let mut check_result = result(SECOND, 0, agent_offset);
            let before = check_result.clone();
            corrected_clock.correct(&mut check_result, Some(NOW + agent_offset - transit), 10_000);
            assert_eq!(check_result, before);
        }
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let (corrected_clock, _) = clock_after(&[(1, MINUTE)]);
        for extreme in [i64::MIN, i64::MAX] {
            for age_ms in [0, u64::MAX] {
                let mut check_result = CheckResult { started_ms: extreme, age_ms, ..result(0, 0, 0) };
                corrected_clock.correct(&mut check_result, Some(extreme), 0);
                corrected_clock.correct(&mut check_result, None, u32::MAX);
            }
        }
    }

    #[test]
    fn each_step_is_counted_once_and_only_the_newest_are_remembered() {
        let clock = Clock::manual(Timestamp::from_millis(NOW));
        let steps = ClockSteps::default();
        let step_count = steps.subscribe();
        steps.check(&clock);
        for step in 1..=10 {
            // The monotonic clock of a manual clock advances only when it is set forward.
            clock.set(Timestamp::from_millis(NOW - step * MINUTE));
            let corrected_clock = steps.check(&clock);
            assert_eq!(corrected_clock.offsets.len(), usize::try_from(step).unwrap().min(MAX_STEPS));
            steps.check(&clock);
            assert_eq!(*step_count.borrow(), step.unsigned_abs());
        }
    }
}
