//! Response-time charts: the time range adapts to the age of the monitor, in buckets as fine as the check
//! interval allows.

use std::collections::BTreeMap;

use super::TimeRange;
use crate::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use crate::vantage::{Region, RegionSet};

/// Chart lengths, shortest first, in milliseconds.
const LENGTHS: [i64; 15] = [
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    16 * HOUR,
    DAY,
    2 * DAY,
    4 * DAY,
    7 * DAY,
    14 * DAY,
    30 * DAY,
    60 * DAY,
    90 * DAY,
];
/// Bucket widths of a chart, in minutes.
const WIDTHS: [i64; 16] = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440];
/// Gap between the end of a chart with short buckets and the present, in milliseconds: by then checks that
/// began have ended, so that the last bucket holds every region's result and not just those of the nearest.
const SETTLING_TIME: i64 = 20 * SECOND;
/// The widest bucket that counts as short, in milliseconds.
const SHORT: i64 = 5 * MINUTE;

/// A time range, divided into buckets of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartRange {
    /// Start.
    pub from: Timestamp,
    /// End.
    pub to: Timestamp,
    /// Number of buckets: at least one.
    pub buckets: usize,
}

impl ChartRange {
    /// The newest part of the range that holds the whole life of a monitor created at `made` and checked
    /// every `interval_ms` milliseconds. The younger the monitor, the finer the buckets, so that its line has
    /// some points after minutes. No bucket is shorter than the interval, since an empty bucket would break the
    /// line, or than a minute.
    pub fn fitted_to(self, made: Timestamp, interval_ms: i64) -> Self {
        let whole = self.to.since(self.from).max(1);
        let most = i64::try_from(self.buckets.max(1)).unwrap_or(i64::MAX);
        let age = self.to.since(made);
        let length = LENGTHS.into_iter().find(|length| *length >= age).filter(|length| *length < whole);
        if length.is_none() && interval_ms.max(MINUTE) <= whole / most {
            return self;
        }
        let length = length.unwrap_or(whole);
        // A shorter range may have a quarter more buckets, so that their widths are round clock times.
        let most = if length < whole { most.saturating_add(most / 4) } else { most };
        let least = (length / most).max(interval_ms).max(MINUTE);
        let width = WIDTHS.map(|width| width * MINUTE).into_iter().find(|width| *width >= least).unwrap_or(least);
        let to = if width <= SHORT { self.to - SETTLING_TIME } else { self.to };
        let parts = length.div_euclid(width) + i64::from(length % width > 0);
        Self { from: to - width * parts, to, buckets: usize::try_from(parts).unwrap_or(1) }
    }

    /// The range of that length up to `now`, with at most `points` buckets.
    pub fn ending_at(now: Timestamp, range: TimeRange, points: usize) -> Self {
        let length = i64::try_from(range.days()).unwrap_or(1) * DAY;
        Self { from: now - length, to: now, buckets: points.clamp(1, range.max_points()) }
    }

    /// Length of each bucket, in milliseconds.
    pub fn width(self) -> i64 {
        self.to.since(self.from) / i64::try_from(self.buckets.max(1)).unwrap_or(i64::MAX)
    }
}

/// Lowest and highest response time of a bucket, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyBand {
    /// The lowest.
    pub min: u32,
    /// The highest.
    pub max: u32,
}

/// Response times over a time range, in buckets of equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencyChart {
    /// Start.
    pub from: Timestamp,
    /// End.
    pub to: Timestamp,
    /// Regions whose response times count.
    pub counted: RegionSet,
    /// Median of each bucket in milliseconds, by region; none without measurements.
    pub regions: BTreeMap<Region, Vec<Option<u32>>>,
    /// Lowest and highest response time of each bucket, by region; only where they were requested.
    pub bands: BTreeMap<Region, Vec<Option<LatencyBand>>>,
    /// Response time thresholds in milliseconds, for the counted regions that have one.
    pub thresholds: BTreeMap<Region, u32>,
}

impl LatencyChart {
    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.regions.values().map(Vec::len).max().unwrap_or(0)
    }

    /// Mean of the counted regions in each bucket.
    pub fn mean(&self) -> Vec<Option<u32>> {
        let part = |at: usize| {
            let counted = self.regions.iter().filter(|(region, _)| self.counted.contains(**region));
            let seen: Vec<u64> =
                counted.filter_map(|(_, parts)| parts.get(at).copied().flatten()).map(u64::from).collect();
            let mean = seen.iter().sum::<u64>().checked_div(seen.len() as u64)?;
            u32::try_from(mean).ok()
        };
        (0..self.buckets()).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_783_560_000);

    fn day(parts: usize) -> ChartRange {
        ChartRange { from: NOW - DAY, to: NOW, buckets: parts }
    }

    #[test]
    fn a_chart_is_as_long_as_its_monitor_is_old_and_as_fine_as_that_allows() {
        for (parts, age, interval, expected) in [
            (48, 0, 60, (15, 1)),
            (48, 5, 60, (15, 1)),
            (48, 5, 30, (15, 1)),
            (48, 5, 90, (16, 2)),
            (48, 5, 300, (15, 5)),
            (48, 16, 60, (30, 1)),
            (48, 60, 60, (60, 1)),
            (48, 80, 60, (120, 2)),
            (96, 80, 60, (120, 1)),
            (48, 300, 60, (480, 10)),
            (48, 800, 60, (960, 20)),
            (48, 1440, 60, (1440, 30)),
            (96, 1440, 60, (1440, 15)),
            (48, 100_000, 60, (1440, 30)),
            // Checked once an hour: one point an hour, however fine the buckets might be.
            (96, 100_000, 3600, (1440, 60)),
        ] {
            let it = day(parts).fitted_to(NOW - age * MINUTE, interval * SECOND);
            let length = it.to.since(it.from) / MINUTE;
            assert_eq!((length, it.width() / MINUTE), expected, "{parts} {age} {interval}");
            let end = if it.width() <= SHORT { NOW - SETTLING_TIME } else { NOW };
            assert_eq!(it.to, end, "{parts} {age} {interval}");
        }
        let quarter = ChartRange { from: NOW - 90 * DAY, to: NOW, buckets: 90 };
        let young = quarter.fitted_to(NOW - 3 * DAY, 60 * SECOND);
        assert_eq!((young.to.since(young.from) / DAY, young.width() / HOUR), (4, 1));
        assert_eq!(quarter.fitted_to(NOW - 80 * DAY, 60 * SECOND), quarter);
    }

    #[test]
    fn a_short_period_has_buckets_of_a_minute_at_least() {
        for (minutes, interval, expected) in [
            (5, 30, (5, 1)),
            (60, 30, (60, 1)),
            (90, 30, (90, 1)),
            (119, 30, (119, 1)),
            (120, 30, (120, 1)),
            (120, 90, (120, 2)),
        ] {
            let zoom = ChartRange { from: NOW - 3 * DAY, to: NOW - 3 * DAY + minutes * MINUTE, buckets: 120 };
            let it = zoom.fitted_to(NOW - 80 * DAY, interval * SECOND);
            assert_eq!((it.to.since(it.from) / MINUTE, it.width() / MINUTE), expected, "{minutes} {interval}");
        }
    }

    proptest! {
        #[test]
        fn every_check_has_a_part_and_no_part_between_them_is_empty(
            parts in 1_usize..120, days in 1_i64..100, age in 0_i64..200_000, interval in 10_i64..7200, first in 0_i64..7200,
        ) {
            let whole = ChartRange { from: NOW - days * DAY, to: NOW, buckets: parts };
            let (made, interval) = (NOW - age * MINUTE, interval * SECOND);
            let it = whole.fitted_to(made, interval);
            prop_assert!(it.buckets >= 1 && it.buckets <= parts + parts / 4 + 2, "{it:?}");
            prop_assert!(it.to <= NOW && it.from >= whole.from - it.width(), "{it:?}");
            // Either the whole life of the monitor is in it, or the whole range.
            prop_assert!(it.from <= made.max(whole.from), "{it:?}");
            let mut filled = vec![false; it.buckets];
            let mut due = made + first * SECOND;
            while due < it.to {
                if due >= it.from {
                    let at = usize::try_from(due.since(it.from) / it.width()).unwrap();
                    if let Some(part) = filled.get_mut(at) { *part = true; }
                }
                due = due + interval;
            }
            let begin = filled.iter().position(|part| *part).unwrap_or(0);
            let end = filled.iter().rposition(|part| *part).map_or(0, |end| end + 1);
            prop_assert!(filled.get(begin..end).unwrap_or_default().iter().all(|part| *part), "{it:?}");
        }
    }

    #[test]
    fn a_chart_is_the_mean_of_the_regions_that_count() {
        let regions = BTreeMap::from([
            (Region::Europe, vec![Some(100), None, Some(30)]),
            (Region::Asia, vec![Some(300), Some(50), None]),
            (Region::Africa, vec![Some(9000), Some(9000), None]),
        ]);
        let mut counted = RegionSet::only(Region::Europe);
        counted.insert(Region::Asia);
        let chart = LatencyChart { counted, regions, ..LatencyChart::default() };
        assert_eq!(chart.mean(), [Some(200), Some(50), Some(30)]);
        assert_eq!(LatencyChart::default().mean(), []);
    }
}
