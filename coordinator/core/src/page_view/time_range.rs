//! Time ranges of a page: 24 hours to 90 days, chosen by the visitor or by the age of the data.

use chrono_tz::Tz;

use super::HISTORY_DAYS;
use crate::rollup::{day_of, start_of_day};
use crate::time::{DAY, HOUR, Timestamp};
use crate::uptime::TimeSpan;

/// Number of slices in a week's uptime bars, and the length of each.
const WEEK_SLICES: i64 = 28;
const WEEK_SLICE: i64 = 6 * HOUR;

/// Largest number of points in a line of a response-time series.
pub const MAX_POINTS: usize = 720;

/// Time range of uptime bars and charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeRange {
    /// 24 hours, in slices of an hour.
    Day,
    /// 7 days, in slices of six hours.
    Week,
    /// 30 days, by day.
    Month,
    /// 90 days, by day.
    Quarter,
}

impl TimeRange {
    /// All ranges, shortest first.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Quarter];

    /// Name in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
            Self::Quarter => "90d",
        }
    }

    /// The range of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// The default range for a page created at `made`: the shortest that holds its whole age, else the
    /// longest; and the time at which that changes, none for the longest.
    pub fn default_for(made: Timestamp, now: Timestamp) -> (Self, Option<Timestamp>) {
        let end = |range: Self| made + range.days() as i64 * DAY;
        let filled = Self::ALL.into_iter().find(|range| *range == Self::Quarter || now < end(*range));
        let filled = filled.unwrap_or(Self::Quarter);
        (filled, (filled != Self::Quarter).then(|| end(filled)))
    }

    /// Number of days.
    pub const fn days(self) -> usize {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
            Self::Quarter => HISTORY_DAYS,
        }
    }

    /// True if uptime bars show it by day, rather than in slices of days.
    pub const fn is_by_day(self) -> bool {
        matches!(self, Self::Month | Self::Quarter)
    }

    /// Number of buckets in a chart.
    pub const fn chart_buckets(self) -> usize {
        match self {
            Self::Day => 96,
            Self::Week => 84,
            Self::Month | Self::Quarter => 90,
        }
    }

    /// Largest number of buckets of a response-time series, of [`MAX_POINTS`] at most: a range of more than two days is
    /// read from hours, so that shorter buckets would leave gaps.
    pub const fn max_points(self) -> usize {
        match self {
            Self::Week => 7 * 24,
            Self::Day | Self::Month | Self::Quarter => MAX_POINTS,
        }
    }

    /// The slices of its uptime bars, oldest first: hours, or quarters of a day in that time zone; the last
    /// holds `now`. Empty where the range is shown by day.
    pub fn slices(self, now: Timestamp, zone: Tz) -> Vec<TimeSpan> {
        let (last, width, count) = match self {
            Self::Day => (Timestamp::from_millis(now.hour() * HOUR), HOUR, 24),
            Self::Week => {
                let midnight = day_of(now, zone).and_then(|day| start_of_day(day, zone)).unwrap_or(now);
                let passed = now.since(midnight).div_euclid(WEEK_SLICE);
                (midnight + passed * WEEK_SLICE, WEEK_SLICE, WEEK_SLICES)
            }
            Self::Month | Self::Quarter => return Vec::new(),
        };
        let slice = |back: i64| {
            let from = last - back * width;
            TimeSpan { from, to: from + width }
        };
        (0..count).rev().map(slice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_range_fits_the_age_of_the_page() {
        let made = Timestamp::from_millis(1_795_783_560_000);
        for (age, expected, next) in [
            (0, TimeRange::Day, Some(DAY)),
            (10 * 60_000, TimeRange::Day, Some(DAY)),
            (DAY - 1, TimeRange::Day, Some(DAY)),
            (DAY, TimeRange::Week, Some(7 * DAY)),
            (7 * DAY - 1, TimeRange::Week, Some(7 * DAY)),
            (7 * DAY, TimeRange::Month, Some(30 * DAY)),
            (30 * DAY, TimeRange::Quarter, None),
            (400 * DAY, TimeRange::Quarter, None),
            // The clock was put back.
            (-HOUR, TimeRange::Day, Some(DAY)),
        ] {
            let (range, until) = TimeRange::default_for(made, made + age);
            assert_eq!((range, until.map(|until| until.since(made))), (expected, next), "{age}");
        }
    }

    #[test]
    fn chart_slices_are_contiguous_and_the_last_has_the_present() {
        let now = Timestamp::from_millis(1_795_783_560_000);
        for (range, zone, count, width) in [
            (TimeRange::Day, Tz::UTC, 24, HOUR),
            (TimeRange::Week, Tz::UTC, 28, 6 * HOUR),
            (TimeRange::Week, Tz::Asia__Kolkata, 28, 6 * HOUR),
        ] {
            let slices = range.slices(now, zone);
            assert_eq!(slices.len(), count);
            assert!(slices.iter().all(|slice| slice.to.since(slice.from) == width));
            assert!(slices.windows(2).all(|two| two[0].to == two[1].from));
            assert!(slices.last().unwrap().contains(now));
        }
        assert!(TimeRange::Month.slices(now, Tz::UTC).is_empty() && TimeRange::Quarter.slices(now, Tz::UTC).is_empty());
        assert!(TimeRange::ALL.iter().all(|range| TimeRange::from_name(range.name()) == Some(*range)));
        assert_eq!(TimeRange::from_name("1y"), None);
    }
}
