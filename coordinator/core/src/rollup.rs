//! Roll-ups: readings aggregated by hour and day, stored long after the readings themselves are deleted.

use chrono::{Days, NaiveDate, NaiveTime, TimeZone};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::block::BlockReading;
use crate::observation::RoundOutcome;
use crate::time::{HOUR, Timestamp};
use crate::uptime::{RoundTally, TimeSpan};
use crate::vantage::VantageNo;

/// Maximum number of vantages with separate latencies in a roll-up; readings of others are counted only.
pub const MAX_VANTAGES: usize = 64;

/// Number of rounds by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    /// Passed, including slow ones.
    pub passed: u32,
    /// Failed.
    pub failed: u32,
    /// Disputed; counted as passed for uptime.
    pub disputed: u32,
    /// Passed, but slower than the region's threshold at that time.
    pub slow: u32,
    /// Within a maintenance window: counted here and nowhere else.
    pub excluded: u32,
    /// Unconfirmed or inconclusive.
    pub unknown: u32,
}

impl OutcomeCounts {
    /// Counts one round.
    pub fn add(&mut self, sample: &BlockReading, rules: RollupRules) {
        let field = if rules.excluded {
            &mut self.excluded
        } else {
            match sample.outcome {
                RoundOutcome::Passed => &mut self.passed,
                RoundOutcome::Failed => &mut self.failed,
                RoundOutcome::Disputed => &mut self.disputed,
                RoundOutcome::Unconfirmed | RoundOutcome::Inconclusive => &mut self.unknown,
            }
        };
        *field = field.saturating_add(1);
        if rules.is_slow(sample) {
            self.slow = self.slow.saturating_add(1);
        }
    }

    /// Adds the counts of another bucket.
    pub fn merge(&mut self, other: Self) {
        for (mine, others) in [
            (&mut self.passed, other.passed),
            (&mut self.failed, other.failed),
            (&mut self.disputed, other.disputed),
            (&mut self.slow, other.slow),
            (&mut self.excluded, other.excluded),
            (&mut self.unknown, other.unknown),
        ] {
            *mine = mine.saturating_add(others);
        }
    }

    /// Counts for uptime.
    pub fn tally(self) -> RoundTally {
        RoundTally { passed: u64::from(self.passed) + u64::from(self.disputed), failed: u64::from(self.failed) }
    }
}

/// Rules for adding one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RollupRules {
    /// Slow threshold of the region, in milliseconds.
    pub slow_threshold_ms: Option<u32>,
    /// Set if a maintenance window covers the round.
    pub excluded: bool,
}

impl RollupRules {
    fn is_slow(self, sample: &BlockReading) -> bool {
        !self.excluded
            && sample.outcome == RoundOutcome::Passed
            && self.slow_threshold_ms.zip(sample.latency_ms).is_some_and(|(limit, latency)| latency > limit)
    }
}

/// Roll-up of one hour, for one monitor and region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HourRollup {
    /// Rounds by outcome.
    pub counts: OutcomeCounts,
    /// Latencies of passed rounds by vantage, in order of number; [`MAX_VANTAGES`] at most.
    pub vantages: Vec<(VantageNo, Histogram)>,
}

impl HourRollup {
    /// Adds one reading.
    pub fn add(&mut self, sample: &BlockReading, rules: RollupRules) {
        self.counts.add(sample, rules);
        let Some(latency) = sample.latency_ms.filter(|_| sample.outcome == RoundOutcome::Passed) else {
            return;
        };
        if let Some(histogram) = self.histogram(sample.vantage) {
            histogram.add(latency, 1);
        }
    }

    /// Adds another roll-up of the same monitor and region.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(other.counts);
        for (vantage, theirs) in &other.vantages {
            if let Some(mine) = self.histogram(*vantage) {
                mine.merge(theirs);
            }
        }
    }

    fn histogram(&mut self, vantage: VantageNo) -> Option<&mut Histogram> {
        let at = match self.vantages.binary_search_by_key(&vantage, |(no, _)| *no) {
            Ok(at) => at,
            Err(_) if self.vantages.len() >= MAX_VANTAGES => return None,
            Err(at) => {
                self.vantages.insert(at, (vantage, Histogram::default()));
                at
            }
        };
        self.vantages.get_mut(at).map(|(_, histogram)| histogram)
    }
}

/// Roll-up of one whole day, for one monitor and region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayRollup {
    /// Rounds by outcome.
    pub counts: OutcomeCounts,
}

/// Latency histogram with buckets an eighth of an octave wide, exact below 16 ms, so there are never more than 240.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Non-empty buckets, lowest first.
    buckets: Vec<(u8, u32)>,
}

impl Histogram {
    /// Adds a latency in milliseconds, this many times.
    pub fn add(&mut self, latency_ms: u32, times: u32) {
        self.add_to(bucket_of(latency_ms), times);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        other.buckets.iter().for_each(|(bucket, times)| self.add_to(*bucket, *times));
    }

    /// Number of latencies counted.
    pub fn len(&self) -> u64 {
        self.buckets.iter().map(|(_, times)| u64::from(*times)).sum()
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Quantile in milliseconds, given in permille; at most a sixteenth off; none if empty.
    pub fn quantile_ms(&self, permille: u32) -> Option<u32> {
        let rank = (self.len() * u64::from(permille.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, times) in &self.buckets {
            seen += u64::from(*times);
            if seen >= rank {
                return Some(middle_of(*bucket));
            }
        }
        None
    }

    fn add_to(&mut self, bucket: u8, times: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(other, _)| *other) {
            Ok(at) => {
                if let Some((_, count)) = self.buckets.get_mut(at) {
                    *count = count.saturating_add(times);
                }
            }
            Err(at) => self.buckets.insert(at, (bucket, times)),
        }
    }
}

/// Span that the checks of one hour since the epoch represent: that hour; or, if the check interval is longer than an
/// hour, the time until the end of the hour of the next check.
pub fn span_of_hour(hour: i64, interval_ms: i64) -> TimeSpan {
    let from = Timestamp::from_millis(hour.saturating_mul(HOUR));
    let length = if interval_ms > HOUR { interval_ms.saturating_add(HOUR) } else { HOUR };
    TimeSpan { from, to: from + length }
}

/// Day of a moment, in that zone.
pub fn day_of(moment: Timestamp, zone: Tz) -> Option<NaiveDate> {
    Some(moment.to_utc()?.with_timezone(&zone).date_naive())
}

/// First moment of a day in that zone: midnight, or if a clock change skips it, the first moment after.
pub fn start_of_day(day: NaiveDate, zone: Tz) -> Option<Timestamp> {
    let midnight = day.and_time(NaiveTime::MIN);
    if let Some(start) = zone.from_local_datetime(&midnight).earliest() {
        return Some(Timestamp::from_millis(start.timestamp_millis()));
    }
    // If a clock change skips midnight, the day begins after the skip. It lies within a day of the same reading in
    // UTC; zones change their offset in whole quarters of an hour.
    let near = Timestamp::from_millis(midnight.and_utc().timestamp_millis());
    let quarter = HOUR / 4;
    (-96..=96).map(|step| near + step * quarter).find(|moment| day_of(*moment, zone) == Some(day))
}

/// First moment after a day in that zone.
pub fn end_of_day(day: NaiveDate, zone: Tz) -> Option<Timestamp> {
    start_of_day(day.checked_add_days(Days::new(1))?, zone)
}

/// One bucket a millisecond below 16, eight an octave above.
fn bucket_of(latency_ms: u32) -> u8 {
    if latency_ms < 16 {
        return latency_ms as u8;
    }
    let octave = 31 - latency_ms.leading_zeros();
    let eighth = (latency_ms >> (octave - 3)) & 7;
    // At most 16 + 27 * 8 + 7 = 239.
    (16 + (octave - 4) * 8 + eighth) as u8
}

fn middle_of(bucket: u8) -> u32 {
    if bucket < 16 {
        return u32::from(bucket);
    }
    let octave = 4 + (u32::from(bucket) - 16) / 8;
    let eighth = (u32::from(bucket) - 16) % 8;
    let width = 1_u64 << (octave - 3).min(60);
    let low = (8 + u64::from(eighth)) * width;
    u32::try_from(low + (width - 1) / 2).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(vantage: u16, outcome: RoundOutcome, latency_ms: Option<u32>) -> BlockReading {
        BlockReading { vantage: VantageNo(vantage), round: 1, due: Timestamp::from_millis(0), outcome, latency_ms }
    }

    #[test]
    fn each_outcome_is_counted_in_its_own_field() {
        let rules = RollupRules { slow_threshold_ms: Some(100), excluded: false };
        let window = RollupRules { excluded: true, ..rules };
        let mut hour = HourRollup::default();
        hour.add(&sample(1, RoundOutcome::Passed, Some(100)), rules);
        hour.add(&sample(1, RoundOutcome::Passed, Some(101)), rules);
        hour.add(&sample(2, RoundOutcome::Disputed, Some(500)), rules);
        hour.add(&sample(2, RoundOutcome::Failed, None), rules);
        hour.add(&sample(2, RoundOutcome::Unconfirmed, None), rules);
        hour.add(&sample(2, RoundOutcome::Inconclusive, None), rules);
        hour.add(&sample(2, RoundOutcome::Failed, None), window);
        hour.add(&sample(2, RoundOutcome::Passed, Some(900)), window);
        let counts = OutcomeCounts { passed: 2, failed: 1, disputed: 1, slow: 1, excluded: 2, unknown: 2 };
        assert_eq!(hour.counts, counts);
        assert_eq!(hour.counts.tally(), RoundTally { passed: 3, failed: 1 });
        assert_eq!(
            hour.vantages.iter().map(|(vantage, seen)| (vantage.0, seen.len())).collect::<Vec<_>>(),
            [(1, 2), (2, 1)]
        );
    }

    #[test]
    fn places_are_bounded() {
        let mut hour = HourRollup::default();
        (0..500).for_each(|vantage| hour.add(&sample(vantage, RoundOutcome::Passed, Some(5)), RollupRules::default()));
        assert_eq!((hour.counts.passed, hour.vantages.len()), (500, MAX_VANTAGES));
    }

    #[test]
    fn an_hour_is_encoded_in_about_a_byte_a_reading() {
        let mut hour = HourRollup::default();
        (0..60_u32).for_each(|n| {
            hour.add(
                &sample(n as u16 % 3, RoundOutcome::Passed, Some(200 + n % 3 * 50 + n * 7 % 40)),
                RollupRules::default(),
            );
        });
        let bytes = postcard::to_stdvec(&hour).unwrap();
        assert!(bytes.len() < 60, "{} bytes", bytes.len());
        assert_eq!(postcard::from_bytes::<HourRollup>(&bytes).unwrap(), hour);
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let zone = chrono_tz::Asia::Kolkata;
        let moment = Timestamp::parse_iso("2026-11-27T18:29:59Z").unwrap();
        assert_eq!(day_of(moment, zone), NaiveDate::from_ymd_opt(2026, 11, 27));
        assert_eq!(day_of(moment + 1000, zone), NaiveDate::from_ymd_opt(2026, 11, 28));
    }

    #[test]
    fn a_day_may_have_23_or_25_hours_or_begin_at_one() {
        let length = |day: NaiveDate, zone| end_of_day(day, zone).unwrap().since(start_of_day(day, zone).unwrap());
        let berlin = chrono_tz::Europe::Berlin;
        assert_eq!(length(NaiveDate::from_ymd_opt(2026, 3, 29).unwrap(), berlin), 23 * HOUR);
        assert_eq!(length(NaiveDate::from_ymd_opt(2026, 10, 25).unwrap(), berlin), 25 * HOUR);
        // Clocks went from 23:59:59 to 01:00.
        let beirut = chrono_tz::Asia::Beirut;
        let day = NaiveDate::from_ymd_opt(2022, 3, 27).unwrap();
        assert_eq!(start_of_day(day, beirut), Timestamp::parse_iso("2022-03-27T01:00:00+03:00"));
        assert_eq!(length(day, beirut), 23 * HOUR);
    }

    proptest! {
        #[test]
        fn a_quantile_is_at_most_a_sixteenth_off(mut latencies in proptest::collection::vec(any::<u32>(), 1..100), permille in 0_u32..=1000) {
            let mut histogram = Histogram::default();
            latencies.iter().for_each(|latency| histogram.add(*latency, 1));
            latencies.sort_unstable();
            let rank = (latencies.len() * permille as usize).div_ceil(1000).max(1);
            let exact = f64::from(latencies[rank - 1]);
            let estimate = f64::from(histogram.quantile_ms(permille).unwrap());
            prop_assert!((estimate - exact).abs() <= exact / 16.0, "{} for {}", estimate, exact);
        }

        #[test]
        fn rolling_up_parts_and_merging_them_equals_rolling_up_all(
            parts in proptest::collection::vec(proptest::collection::vec((0_u16..4, any::<Option<u32>>()), 0..20), 0..5),
        ) {
            let rules = RollupRules { slow_threshold_ms: Some(1000), excluded: false };
            let (mut all, mut merged) = (HourRollup::default(), HourRollup::default());
            for part in &parts {
                let mut hour = HourRollup::default();
                for (vantage, latency) in part {
                    hour.add(&sample(*vantage, RoundOutcome::Passed, *latency), rules);
                    all.add(&sample(*vantage, RoundOutcome::Passed, *latency), rules);
                }
                merged.merge(&hour);
            }
            prop_assert_eq!(merged, all);
        }
    }
}
