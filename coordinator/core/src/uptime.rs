//! Uptime: the share of checks that passed, the share of time not down, and the error budget of an uptime target.

use serde::{Deserialize, Serialize};

use crate::observation::RoundOutcome;
use crate::time::{MINUTE, Timestamp};

/// Passed and failed rounds. Disputed ones count as passed; unconfirmed and inconclusive ones do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTally {
    /// Rounds that count as passed.
    pub passed: u64,
    /// Rounds that failed.
    pub failed: u64,
}

impl RoundTally {
    /// Counts one round.
    pub fn add(&mut self, outcome: RoundOutcome) {
        match outcome.counts_as_passed() {
            Some(true) => self.passed = self.passed.saturating_add(1),
            Some(false) => self.failed = self.failed.saturating_add(1),
            None => {}
        }
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
    }

    /// Share of counted rounds that passed, in percent with 3 decimals, rounded down, so that one failed round never
    /// shows as 100; none if no round counted.
    pub fn percent(self) -> Option<f64> {
        percent(self.passed, self.passed.saturating_add(self.failed))
    }
}

impl FromIterator<RoundOutcome> for RoundTally {
    fn from_iter<I: IntoIterator<Item = RoundOutcome>>(outcomes: I) -> Self {
        let mut tally = Self::default();
        outcomes.into_iter().for_each(|outcome| tally.add(outcome));
        tally
    }
}

/// Span of time, including its start and excluding its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimeSpan {
    /// First moment.
    pub from: Timestamp,
    /// First moment after it.
    pub to: Timestamp,
}

impl TimeSpan {
    /// Returns true if the moment lies in the span.
    pub fn contains(self, moment: Timestamp) -> bool {
        self.from <= moment && moment < self.to
    }
}

/// Sorted, non-overlapping spans: overlapping ones are merged, so there are few however many went in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeSpans(Vec<TimeSpan>);

impl TimeSpans {
    /// Returns true if the moment lies in one of the spans.
    pub fn contains(&self, moment: Timestamp) -> bool {
        self.first_ending_after(moment).is_some_and(|span| span.contains(moment))
    }

    /// Returns true if the given span overlaps one of the spans.
    pub fn overlaps(&self, stretch: TimeSpan) -> bool {
        self.first_ending_after(stretch.from).is_some_and(|span| span.from < stretch.to)
    }

    /// All spans, in order.
    pub fn as_slice(&self) -> &[TimeSpan] {
        &self.0
    }

    fn first_ending_after(&self, moment: Timestamp) -> Option<TimeSpan> {
        self.0.get(self.0.partition_point(|span| span.to <= moment)).copied()
    }
}

impl FromIterator<TimeSpan> for TimeSpans {
    fn from_iter<I: IntoIterator<Item = TimeSpan>>(spans: I) -> Self {
        let mut spans: Vec<TimeSpan> = spans.into_iter().filter(|span| span.from < span.to).collect();
        spans.sort_unstable();
        let mut joined: Vec<TimeSpan> = Vec::new();
        for span in spans {
            match joined.last_mut() {
                Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
                _ => joined.push(span),
            }
        }
        Self(joined)
    }
}

/// Monitored time and the part of it that was down: the basis of downtime minutes and error budgets. Both in
/// milliseconds. Pauses, maintenance and hours without a check are in neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonitoredTime {
    /// Monitored time.
    pub monitored: u64,
    /// Downtime; never more than the monitored time.
    pub down: u64,
}

impl MonitoredTime {
    /// Time of a span monitored by rounds with these outcomes: down by the share that failed.
    pub fn of_rounds(watched: u64, tally: RoundTally) -> Self {
        let total = u128::from(tally.passed) + u128::from(tally.failed);
        let down = (u128::from(watched) * u128::from(tally.failed)).checked_div(total).unwrap_or(0);
        Self { monitored: watched, down: u64::try_from(down).unwrap_or(watched) }
    }

    /// Monitored time of a span without `excluded`, with these outages in it: for types without rounds (heartbeat,
    /// component). Both lists may overlap and reach beyond the span.
    pub fn of_outages(window: TimeSpan, outages: &[TimeSpan], excluded: &[TimeSpan]) -> Self {
        let whole = window.to.since(window.from).max(0).unsigned_abs();
        let out = covered(window, excluded);
        let out_or_down = covered(window, &[outages, excluded].concat());
        Self { monitored: whole.saturating_sub(out), down: out_or_down.saturating_sub(out) }
    }

    /// Adds the time of another span.
    pub const fn merge(&mut self, other: Self) {
        self.monitored = self.monitored.saturating_add(other.monitored);
        self.down = self.down.saturating_add(other.down);
    }

    /// Share of the monitored time that was not down, in percent, rounded as by [`RoundTally::percent`]; none if nothing
    /// was monitored.
    pub fn percent(self) -> Option<f64> {
        percent(self.monitored.saturating_sub(self.down), self.monitored)
    }

    /// Downtime in minutes.
    pub fn minutes_down(self) -> f64 {
        self.down as f64 / MINUTE as f64
    }
}

/// Milliseconds of a span that lie in one of `looked` and in none of `excluded`. Both lists may overlap and reach
/// beyond it.
pub fn time_within(window: TimeSpan, looked: &[TimeSpan], excluded: &[TimeSpan]) -> u64 {
    let out_or_looked = covered(window, &[looked, excluded].concat());
    out_or_looked.saturating_sub(covered(window, excluded))
}

/// Milliseconds of a span that lie in any of the spans.
fn covered(window: TimeSpan, spans: &[TimeSpan]) -> u64 {
    let mut spans: Vec<TimeSpan> = spans.to_vec();
    spans.sort_unstable();
    let (mut covered, mut done) = (0, window.from);
    for span in spans {
        let (from, to) = (span.from.max(done), span.to.min(window.to));
        if from < to {
            covered += to.since(from).unsigned_abs();
            done = to;
        }
    }
    covered
}

/// Downtime that an uptime target allows over a period, and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorBudget {
    /// Minutes of allowed downtime in the period.
    pub allowed_minutes: f64,
    /// Minutes of actual downtime.
    pub used_minutes: f64,
}

impl ErrorBudget {
    /// Computes the budget of a target in percent over `period_ms`, given the monitored time and downtime.
    pub fn new(target_percent: f64, period_ms: i64, time: MonitoredTime) -> Self {
        let minutes = period_ms.max(0) as f64 / MINUTE as f64;
        Self {
            allowed_minutes: minutes * (100.0 - target_percent.clamp(0.0, 100.0)) / 100.0,
            used_minutes: time.minutes_down(),
        }
    }

    /// Minutes of downtime left; negative once the budget is spent.
    pub fn left_minutes(self) -> f64 {
        self.allowed_minutes - self.used_minutes
    }
}

/// Rounded down to 3 decimals, computed in integers so that nothing is rounded up on the way.
fn percent(part: u64, whole: u64) -> Option<f64> {
    if whole == 0 {
        return None;
    }
    let thousandths = u128::from(part) * 100_000 / u128::from(whole);
    Some(thousandths as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::DAY;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE)
    }

    fn span(from: i64, to: i64) -> TimeSpan {
        TimeSpan { from: at(from), to: at(to) }
    }

    #[test]
    fn one_failed_round_of_very_many_is_not_a_hundred_percent() {
        assert_eq!(RoundTally { passed: u64::MAX / 2, failed: 1 }.percent(), Some(99.999));
        assert_eq!(RoundTally { passed: 8639, failed: 1 }.percent(), Some(99.988));
        assert_eq!(RoundTally { passed: 2, failed: 1 }.percent(), Some(66.666));
        assert_eq!(RoundTally { passed: 5, failed: 0 }.percent(), Some(100.0));
        assert_eq!(RoundTally { passed: 0, failed: 5 }.percent(), Some(0.0));
    }

    #[test]
    fn inconclusive_and_unconfirmed_rounds_do_not_count() {
        let outcomes = [RoundOutcome::Unconfirmed, RoundOutcome::Inconclusive];
        assert_eq!(outcomes.into_iter().collect::<RoundTally>().percent(), None);
        let outcomes = [RoundOutcome::Disputed, RoundOutcome::Failed, RoundOutcome::Unconfirmed];
        assert_eq!(outcomes.into_iter().collect::<RoundTally>(), RoundTally { passed: 1, failed: 1 });
    }

    #[test]
    fn time_down_is_counted_once_and_only_within_the_window() {
        let day = span(0, 1440);
        let share = |window, outages: &[TimeSpan], excluded: &[TimeSpan]| {
            MonitoredTime::of_outages(window, outages, excluded).percent()
        };
        assert_eq!(share(day, &[], &[]), Some(100.0));
        assert_eq!(share(day, &[span(-50, 72), span(36, 144)], &[]), Some(90.0));
        assert_eq!(share(day, &[span(100, 200), span(120, 130), span(1396, 9999)], &[]), Some(90.0));
        assert_eq!(share(day, &[span(2000, 3000)], &[]), Some(100.0));
        let half = [span(0, 720)];
        assert_eq!(share(day, &[span(700, 756)], &half), Some(95.0));
        assert_eq!(share(day, &half, &half), Some(100.0));
        assert_eq!(share(day, &half, &[day]), None);
        assert_eq!(share(span(5, 5), &[], &[]), None);
        assert_eq!(share(span(5, 4), &[], &[]), None);
    }

    #[test]
    fn three_nines_over_thirty_days_allow_43_minutes() {
        let budget = |watched: i64, tally| {
            let time = MonitoredTime::of_rounds(watched.unsigned_abs(), tally);
            ErrorBudget::new(99.9, 30 * DAY, time)
        };
        let spent = budget(30 * DAY, RoundTally { passed: 9_990, failed: 10 });
        assert!((spent.allowed_minutes - 43.2).abs() < 1e-9);
        assert!(spent.left_minutes().abs() < 1e-9);
        let young = budget(DAY, RoundTally { passed: 90, failed: 10 });
        assert!((young.used_minutes - 144.0).abs() < 1e-9);
        assert!(young.left_minutes() < 0.0);
        assert_eq!(budget(DAY, RoundTally::default()).used_minutes, 0.0);
    }

    #[test]
    fn failed_rounds_count_as_their_share_of_the_monitored_time() {
        for (minutes, passed, failed, down) in [
            // Half a minute of five.
            (5, 9, 1, 0.5),
            (5, 10, 0, 0.0),
            (5, 0, 10, 5.0),
            (0, 9, 1, 0.0),
            (5, 0, 0, 0.0),
            (1440, 143, 1, 10.0),
        ] {
            let watched = u64::try_from(minutes * MINUTE).unwrap();
            let time = MonitoredTime::of_rounds(watched, RoundTally { passed, failed });
            assert_eq!(time.minutes_down(), down, "{minutes} {passed} {failed}");
        }
        let most = MonitoredTime::of_rounds(u64::MAX, RoundTally { passed: 0, failed: u64::MAX });
        assert_eq!(most.down, u64::MAX);
    }

    fn any_outcome() -> impl Strategy<Value = RoundOutcome> {
        prop_oneof![
            20 => Just(RoundOutcome::Passed),
            1 => Just(RoundOutcome::Failed),
            1 => Just(RoundOutcome::Disputed),
            1 => Just(RoundOutcome::Unconfirmed),
            1 => Just(RoundOutcome::Inconclusive),
        ]
    }

    proptest! {
        #[test]
        fn joined_spans_contain_the_same_moments(
            sent in proptest::collection::vec((-20..20_i64, -3..12_i64), 0..12), from in -25..25_i64, length in 1..9_i64,
        ) {
            let sent: Vec<TimeSpan> = sent.into_iter().map(|(from, length)| span(from, from + length)).collect();
            let joined: TimeSpans = sent.iter().copied().collect();
            prop_assert!(joined.as_slice().is_sorted_by(|one, next| one.to < next.from), "{:?}", joined);
            let moments = from..from + length;
            let any = moments.clone().any(|minute| sent.iter().any(|span| span.contains(at(minute))));
            prop_assert_eq!(joined.overlaps(span(from, from + length)), any);
            for minute in moments {
                prop_assert_eq!(joined.contains(at(minute)), sent.iter().any(|span| span.contains(at(minute))));
            }
        }

        #[test]
        fn time_within_matches_a_naive_count(
            looked in proptest::collection::vec((-20..20_i64, 0..12_i64), 0..6),
            out in proptest::collection::vec((-20..20_i64, 0..12_i64), 0..6),
            from in -25..25_i64, length in 0..40_i64,
        ) {
            let spans = |parts: Vec<(i64, i64)>| -> Vec<TimeSpan> {
                parts.into_iter().map(|(from, length)| span(from, from + length)).collect()
            };
            let (looked, out, window) = (spans(looked), spans(out), span(from, from + length));
            let is_in = |spans: &[TimeSpan], minute: i64| spans.iter().any(|span| span.contains(at(minute)));
            let count = |wanted: &dyn Fn(i64) -> bool| {
                (from..from + length).filter(|minute| wanted(*minute)).count() as u64 * MINUTE.unsigned_abs()
            };
            let seen = count(&|minute| is_in(&looked, minute) && !is_in(&out, minute));
            prop_assert_eq!(time_within(window, &looked, &out), seen);
            let time = MonitoredTime::of_outages(window, &looked, &out);
            prop_assert_eq!((time.monitored, time.down), (count(&|minute| !is_in(&out, minute)), seen));
        }

        #[test]
        fn percent_matches_a_naive_count(outcomes in proptest::collection::vec(any_outcome(), 0..400)) {
            let failed = outcomes.iter().filter(|outcome| **outcome == RoundOutcome::Failed).count() as u64;
            let is_passed = |outcome: &&RoundOutcome| matches!(outcome, RoundOutcome::Passed | RoundOutcome::Disputed);
            let passed = outcomes.iter().filter(is_passed).count() as u64;
            let percent = outcomes.into_iter().collect::<RoundTally>().percent();
            match percent {
                None => prop_assert_eq!(passed + failed, 0),
                Some(percent) => {
                    // The largest number of thousandths that is not above the exact share.
                    let thousandths = (percent * 1000.0).round() as u64;
                    prop_assert!(thousandths * (passed + failed) <= passed * 100_000);
                    prop_assert!((thousandths + 1) * (passed + failed) > passed * 100_000);
                    prop_assert_eq!(percent == 100.0, failed == 0);
                }
            }
        }
    }
}
