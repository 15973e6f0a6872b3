//! A page as its visitors are shown it: its monitors with their past, its incidents, and from where and when it was seen.

mod chart;
mod looks;
mod order;
mod range;

use std::collections::BTreeMap;

use chrono::NaiveDate;

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
use crate::rollup::Counts;
use crate::time::{DAY, Timestamp};
use crate::uptime::{ErrorBudget, Span, Tally, WatchedTime};

pub use chart::{Chart, Stretch};
pub use looks::{is_probed, newest_check, none_looks};
pub use order::worst_first;
pub use range::Range;

/// Days that a strip shows.
pub const DAYS: usize = 90;
/// Days that an error budget is reckoned over.
pub const BUDGET_DAYS: usize = 30;

/// One look at a page.
#[derive(Debug, Clone)]
pub struct Board {
    /// The page.
    pub page: Page,
    /// When it was looked at.
    pub now: Timestamp,
    /// How far back its strips go.
    pub range: Range,
    /// When that will be another range, where the page's age says which.
    pub range_until: Option<Timestamp>,
    /// True if the visitor chose the range; false if the page's age decides.
    pub is_chosen: bool,
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
    /// How much of it was watched, and how much of that it was down.
    pub time: WatchedTime,
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
    /// How much of it was watched, and how much of that it was down.
    pub time: WatchedTime,
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
    /// Older updates that are left out of it, for the sake of a list's length.
    pub more: usize,
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
        match range {
            Range::Day => self.uptime_24h.filter(|_| !self.monitor.paused),
            Range::Week | Range::Month | Range::Quarter => self.uptime_over(range.days()),
        }
    }

    /// Its uptime over its newest days, in percent with three decimals, rounded down: the share of rounds that passed, or of
    /// a heartbeat and a component the share of the time known. None where nothing is known, and while it is paused.
    pub fn uptime_over(&self, days: usize) -> Option<f64> {
        if self.monitor.paused {
            None
        } else if self.monitor.check.kind().has_downtime() {
            self.time_over(days).percent()
        } else {
            tally(self.newest(days)).percent()
        }
    }

    /// Error budget of a target in percent over thirty days, and the part that is used; `None` without data, and while
    /// it is paused.
    pub fn budget(&self, target_percent: f64) -> Option<ErrorBudget> {
        self.uptime_over(BUDGET_DAYS)?;
        let period = BUDGET_DAYS as i64 * DAY;
        Some(ErrorBudget::new(target_percent, period, self.time_over(BUDGET_DAYS)))
    }

    /// How much of its newest days was watched, and how much of that it was down.
    fn time_over(&self, days: usize) -> WatchedTime {
        self.newest(days).fold(WatchedTime::default(), |mut sum, day| {
            sum.merge(day.time);
            sum
        })
    }

    fn newest(&self, days: usize) -> impl Iterator<Item = &Day> {
        self.past.days.iter().rev().take(days)
    }
}

fn tally<'a>(days: impl Iterator<Item = &'a Day>) -> Tally {
    days.fold(Tally::default(), |mut sum, day| {
        sum.merge(day.counts.tally());
        sum
    })
}

#[cfg(test)]
mod tests;
