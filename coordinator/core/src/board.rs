//! A page as its visitors are shown it: its monitors with their past, its incidents, and from where and when it was seen.

mod looks;
mod order;

use std::collections::BTreeMap;

use chrono::NaiveDate;
use chrono_tz::Tz;

use crate::deploy::Deploy;
use crate::event::Status;
use crate::headline::Indicator;
use crate::id::MonitorId;
use crate::incident::{Impact, Incident, Kind};
use crate::machine::View;
use crate::monitor::Monitor;
use crate::page::Page;
use crate::place::{Region, RegionSet};
use crate::recurrence::Every;
use crate::rollup::{Counts, day_of, start_of_day};
use crate::time::{DAY, HOUR, MINUTE, Timestamp};
use crate::uptime::{ErrorBudget, Span, Tally};

pub use looks::{is_probed, newest_check, none_looks};
pub use order::worst_first;

/// Days that a strip shows.
pub const DAYS: usize = 90;
/// Days that an error budget is reckoned over.
pub const BUDGET_DAYS: usize = 30;

/// Slices of a week that a strip shows, and how long each is.
const WEEK_SLICES: i64 = 28;
const WEEK_SLICE: i64 = 6 * HOUR;

/// How far back strips and charts go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Range {
    /// 24 hours, hour by hour.
    Day,
    /// 7 days, by quarters of a day.
    Week,
    /// 30 days, day by day.
    Month,
    /// 90 days, day by day.
    #[default]
    Quarter,
}

impl Range {
    /// Each of them, shortest first.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Quarter];

    /// Its name in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
            Self::Quarter => "90d",
        }
    }

    /// The range of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// How many days it spans.
    pub const fn days(self) -> usize {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 30,
            Self::Quarter => DAYS,
        }
    }

    /// Whether a strip shows it day by day, rather than in slices of days.
    pub const fn is_by_day(self) -> bool {
        matches!(self, Self::Month | Self::Quarter)
    }

    /// In how many parts a chart shows it.
    pub const fn parts(self) -> usize {
        match self {
            Self::Day => 96,
            Self::Week => 84,
            Self::Month | Self::Quarter => 90,
        }
    }

    /// The slices that a strip shows of it, oldest first: whole hours, or quarters of a day in that zone; the last holds
    /// `now`. None where it is shown by day.
    pub fn slices(self, now: Timestamp, zone: Tz) -> Vec<Span> {
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
            Span { from, to: from + width }
        };
        (0..count).rev().map(slice).collect()
    }
}

/// One look at a page.
#[derive(Debug, Clone)]
pub struct Board {
    /// The page.
    pub page: Page,
    /// When it was looked at.
    pub now: Timestamp,
    /// How far back its strips go.
    pub range: Range,
    /// How it is in one word.
    pub indicator: Indicator,
    /// Its monitors in page order.
    pub monitors: Vec<Shown>,
    /// Open incidents, newest first.
    pub incidents: Vec<Notice>,
    /// Maintenance under way, or planned within the next week, soonest first.
    pub maintenance: Vec<Notice>,
    /// Maintenance planned for later than that, soonest first.
    pub later: Vec<Notice>,
    /// Incidents and windows that are over and lasted into the last [`DAYS`], newest first.
    pub past: Vec<Notice>,
    /// Deploy markers, newest first; none where the page does not show them.
    pub deploys: Vec<Deploy>,
    /// Regions with a place in service.
    pub regions: RegionSet,
}

/// A monitor as a page shows it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The monitor.
    pub monitor: Monitor,
    /// Its present state.
    pub view: View,
    /// Share of the checks of the last 24 hours that passed, in percent.
    pub uptime_24h: Option<f64>,
    /// Median response time of the last 24 hours, in milliseconds.
    pub latency_ms: Option<u32>,
    /// A window that is under way covers it.
    pub covered: bool,
    /// What was before.
    pub past: Past,
}

/// What is known of a monitor's past.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    /// Day by day in the page's zone, oldest first.
    pub days: Vec<Day>,
    /// The same for each region that was looked from, whether it counts or not.
    pub lanes: BTreeMap<Region, BTreeMap<NaiveDate, Counts>>,
    /// The slices of a short [`Range`], oldest first; none where it is shown by day.
    pub slices: Vec<Slice>,
    /// The same for each region that was looked from: as many as there are slices.
    pub slice_lanes: BTreeMap<Region, Vec<Counts>>,
    /// Response times.
    pub chart: Chart,
}

/// One day of a monitor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Day {
    /// Its date in the page's zone.
    pub date: NaiveDate,
    /// How the rounds of the counted regions ended.
    pub counts: Counts,
    /// Uptime in percent, rounded down; none where nothing is known.
    pub uptime: Option<f64>,
    /// How much of it is over and was watched, in milliseconds.
    pub lasted: i64,
}

/// A part of a monitor's day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// When it was.
    pub span: Span,
    /// How the rounds of the counted regions ended.
    pub counts: Counts,
    /// Uptime in percent, rounded down; none where nothing is known.
    pub uptime: Option<f64>,
    /// How much of it is over and was watched, in milliseconds.
    pub lasted: i64,
}

/// Response times over a stretch of time, in parts of one length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chart {
    /// Its beginning.
    pub from: Timestamp,
    /// Its end.
    pub to: Timestamp,
    /// Regions whose response times count.
    pub counted: RegionSet,
    /// The median of each part in milliseconds, by region; none where nothing was measured.
    pub regions: BTreeMap<Region, Vec<Option<u32>>>,
    /// What the readings of those of the counted regions that have a threshold are measured by, in milliseconds.
    pub thresholds: BTreeMap<Region, u32>,
}

/// An incident or a window with its monitors that are still there: id, name, and impact where one of its own was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// It.
    pub incident: Incident,
    /// Its monitors.
    pub monitors: Vec<(MonitorId, String, Option<Impact>)>,
    /// How often the entry repeats that a window was planned from.
    pub repeats: Option<Every>,
}

impl Notice {
    /// Whether it is about that monitor. A window that names none covers the whole page.
    pub fn concerns(&self, monitor: MonitorId) -> bool {
        let affected = &self.incident.affected;
        let is_of_all = affected.is_empty() && self.incident.kind == Kind::Maintenance;
        is_of_all || affected.iter().any(|affected| affected.monitor == monitor)
    }

    /// When it began; none for maintenance, which is no trouble.
    pub fn trouble(&self) -> Option<Timestamp> {
        (self.incident.kind == Kind::Incident).then_some(self.incident.started_at)
    }
}

impl Board {
    /// When the newest check ended that anything here rests on. What heartbeats report is no check of ours, and counts
    /// only where there is none.
    pub fn checked(&self) -> Option<Timestamp> {
        newest_check(|| self.monitors.iter().map(Shown::seen))
    }

    /// The regions in service that anything was checked from that is watched now, today or yesterday: a monitor may be
    /// watched from few. None before the first check.
    pub fn seen_from(&self) -> RegionSet {
        let is_checked = |shown: &&Shown| shown.is_probed() && shown.view.last_check.is_some();
        let is_seen = |region: &Region| {
            self.monitors.iter().filter(is_checked).any(|shown| {
                let newest = shown.past.days.iter().rev().take(2).map(|day| day.date);
                let lane = shown.past.lanes.get(region);
                newest.into_iter().any(|date| lane.is_some_and(|days| days.contains_key(&date)))
            })
        };
        self.regions.iter().filter(is_seen).collect()
    }

    /// Whether what is shown is no longer what is seen: there is something to be checked, and nobody to check it.
    pub fn is_stale(&self) -> bool {
        none_looks(self.regions, self.monitors.iter().map(Shown::seen), self.now)
    }

    /// Monitors with that status that no running window covers.
    pub fn with_status(&self, status: Status) -> impl Iterator<Item = &Shown> {
        self.monitors.iter().filter(move |shown| shown.view.status == status && !shown.covered)
    }
}

impl Shown {
    /// The monitor and how it is.
    pub const fn seen(&self) -> (&Monitor, &View) {
        (&self.monitor, &self.view)
    }

    /// Whether somebody is to look at it, rather than wait for what it reports itself.
    pub fn is_probed(&self) -> bool {
        is_probed(&self.monitor)
    }

    /// Its uptime over a range, as [`Shown::uptime_over`] gives it; over 24 hours that of the last 24, not of today.
    pub fn uptime_in(&self, range: Range) -> Option<f64> {
        if range == Range::Day { self.uptime_24h } else { self.uptime_over(range.days()) }
    }

    /// Its uptime over its newest days, in percent with three decimals, rounded down; none where nothing is known.
    pub fn uptime_over(&self, days: usize) -> Option<f64> {
        let newest = || self.past.days.iter().rev().take(days);
        if !self.monitor.check.kind().has_downtime() {
            return tally(newest()).percent();
        }
        let known: Vec<f64> = newest().filter_map(|day| day.uptime).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        (!known.is_empty()).then(|| (mean * 1000.0).floor() / 1000.0)
    }

    /// What a target in percent allows over thirty days, and how much of that is used.
    pub fn budget(&self, target_percent: f64, now: Timestamp) -> Option<ErrorBudget> {
        let uptime = self.uptime_over(BUDGET_DAYS)?;
        let counted = if self.monitor.check.kind().has_downtime() {
            // In thousandths of a percent, which is all that is known.
            let passed = (uptime * 1000.0).round().clamp(0.0, 100_000.0) as u64;
            Tally { passed, failed: 100_000 - passed }
        } else {
            tally(self.past.days.iter().rev().take(BUDGET_DAYS))
        };
        let period = BUDGET_DAYS as i64 * DAY;
        Some(ErrorBudget::new(target_percent, period, now.since(self.monitor.created_at), counted))
    }
}

/// Minutes down of a stretch that lasted so many milliseconds, by the share of what was seen of it; none where nothing is
/// known.
pub fn minutes_down(uptime: Option<f64>, lasted: i64) -> f64 {
    let share = uptime.map_or(0.0, |uptime| (100.0 - uptime).max(0.0) / 100.0);
    share * lasted.max(0) as f64 / MINUTE as f64
}

impl Chart {
    /// How many parts it has.
    pub fn parts(&self) -> usize {
        self.regions.values().map(Vec::len).max().unwrap_or(0)
    }

    /// The mean of the counted regions in each part.
    pub fn mean(&self) -> Vec<Option<u32>> {
        let part = |at: usize| {
            let counted = self.regions.iter().filter(|(region, _)| self.counted.contains(**region));
            let seen: Vec<u64> =
                counted.filter_map(|(_, parts)| parts.get(at).copied().flatten()).map(u64::from).collect();
            let mean = seen.iter().sum::<u64>().checked_div(seen.len() as u64)?;
            u32::try_from(mean).ok()
        };
        (0..self.parts()).map(part).collect()
    }
}

fn tally<'a>(days: impl Iterator<Item = &'a Day>) -> Tally {
    days.fold(Tally::default(), |mut sum, day| {
        sum.merge(day.counts.tally());
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_the_mean_of_the_regions_that_count() {
        let regions = BTreeMap::from([
            (Region::Europe, vec![Some(100), None, Some(30)]),
            (Region::Asia, vec![Some(300), Some(50), None]),
            (Region::Africa, vec![Some(9000), Some(9000), None]),
        ]);
        let mut counted = RegionSet::only(Region::Europe);
        counted.insert(Region::Asia);
        let chart = Chart { counted, regions, ..Chart::default() };
        assert_eq!(chart.mean(), [Some(200), Some(50), Some(30)]);
        assert_eq!(Chart::default().mean(), []);
    }

    #[test]
    fn minutes_down_follow_from_the_share_that_was_up() {
        assert_eq!(minutes_down(None, DAY), 0.0);
        assert!((minutes_down(Some(99.0), DAY) - 14.4).abs() < 1e-9);
        assert!((minutes_down(Some(50.0), HOUR) - 30.0).abs() < 1e-9, "a day that has just begun");
    }

    #[test]
    fn slices_meet_and_the_last_holds_the_present() {
        let now = Timestamp::from_millis(1_795_783_560_000);
        for (range, zone, count, width) in [
            (Range::Day, Tz::UTC, 24, HOUR),
            (Range::Week, Tz::UTC, 28, 6 * HOUR),
            (Range::Week, Tz::Asia__Kolkata, 28, 6 * HOUR),
        ] {
            let slices = range.slices(now, zone);
            assert_eq!(slices.len(), count);
            assert!(slices.iter().all(|slice| slice.to.since(slice.from) == width));
            assert!(slices.windows(2).all(|two| two[0].to == two[1].from));
            assert!(slices.last().unwrap().contains(now));
        }
        assert!(
            Range::Month.slices(now, Tz::UTC).is_empty() && Range::Quarter.slices(now, Tz::UTC).is_empty()
        );
        assert!(Range::ALL.iter().all(|range| Range::named(range.name()) == Some(*range)));
        assert_eq!((Range::named("1y"), Range::default()), (None, Range::Quarter));
    }
}
