//! View model of a page: its monitors with their history, its incidents, and the regions and time of the
//! newest checks.

mod chart;
mod freshness;
mod order;
mod page_indicator;
mod time_range;

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::deploy::Deploy;
use crate::event::MonitorStatus;
use crate::headline::Indicator;
use crate::id::MonitorId;
use crate::incident::{Impact, Incident, IncidentKind};
use crate::machine::MachineView;
use crate::monitor::Monitor;
use crate::page::Page;
use crate::recurrence::Frequency;
use crate::rollup::OutcomeCounts;
use crate::time::{DAY, Timestamp};
use crate::uptime::{ErrorBudget, MonitoredTime, RoundTally, TimeSpan};
use crate::vantage::{Region, RegionSet};

pub use chart::{ChartRange, LatencyBand, LatencyChart};
pub use freshness::{is_probed, is_stale, newest_check_at};
pub use order::worst_first;
pub use page_indicator::page_indicator;
pub use time_range::{MAX_POINTS, TimeRange};

/// Days that the uptime bars cover.
pub const HISTORY_DAYS: usize = 90;
/// Days that an error budget covers.
pub const BUDGET_DAYS: usize = 30;

/// A page as its visitors see it at one moment.
#[derive(Debug, Clone)]
pub struct PageView {
    /// The page.
    pub page: Page,
    /// Time of the view.
    pub now: Timestamp,
    /// Time range of its uptime bars and charts.
    pub range: TimeRange,
    /// Time at which the default range changes; none where the visitor chose the range or it is the longest.
    pub range_changes_at: Option<Timestamp>,
    /// True if the visitor chose the range; false if the page's age decides.
    pub is_range_chosen: bool,
    /// Overall status.
    pub indicator: Indicator,
    /// Its monitors in page order.
    pub monitors: Vec<MonitorView>,
    /// Open incidents, newest first.
    pub incidents: Vec<IncidentView>,
    /// Maintenance in progress, or planned within the next week, soonest first.
    pub maintenance: Vec<IncidentView>,
    /// Maintenance planned for later, soonest first.
    pub later_maintenance: Vec<IncidentView>,
    /// Closed incidents and maintenance windows that overlap the last [`HISTORY_DAYS`] days, newest first.
    pub past_incidents: Vec<IncidentView>,
    /// Deploy markers, newest first; empty if the page does not show them.
    pub deploys: Vec<Deploy>,
    /// Regions with an agent in service.
    pub regions: RegionSet,
}

/// A monitor as a page shows it.
#[derive(Debug, Clone)]
pub struct MonitorView {
    /// The monitor.
    pub monitor: Monitor,
    /// Its present state.
    pub state: MachineView,
    /// Share of the checks of the last 24 hours that passed, in percent.
    pub uptime_24h: Option<f64>,
    /// Median response time of the last 24 hours, in milliseconds.
    pub latency_ms: Option<u32>,
    /// True while a maintenance window covers it.
    pub in_maintenance: bool,
    /// Its history.
    pub history: MonitorHistory,
}

/// The history of a monitor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorHistory {
    /// Days in the page's time zone, oldest first.
    pub days: Vec<UptimeDay>,
    /// Round counts by day for each region with checks, whether or not the region counts towards uptime.
    pub regions: BTreeMap<Region, BTreeMap<NaiveDate, OutcomeCounts>>,
    /// The slices of a short [`TimeRange`], oldest first; empty where the range is shown by day.
    pub slices: Vec<UptimeSlice>,
    /// Round counts by slice for each region with checks: one entry a slice.
    pub slice_regions: BTreeMap<Region, Vec<OutcomeCounts>>,
    /// Response times.
    pub chart: LatencyChart,
}

/// A day of a monitor's history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UptimeDay {
    /// Date in the page's time zone.
    pub date: NaiveDate,
    /// Round outcomes in the counted regions.
    pub counts: OutcomeCounts,
    /// Uptime in percent, rounded down; none without data.
    pub uptime: Option<f64>,
    /// Monitored time, and the downtime within it.
    pub time: MonitoredTime,
}

/// A slice of a monitor's day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UptimeSlice {
    /// Its start and end.
    pub span: TimeSpan,
    /// Round outcomes in the counted regions.
    pub counts: OutcomeCounts,
    /// Uptime in percent, rounded down; none without data.
    pub uptime: Option<f64>,
    /// Monitored time, and the downtime within it.
    pub time: MonitoredTime,
}

/// An incident or maintenance window with those of its monitors that still exist: id, name, and the monitor's
/// own impact if set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentView {
    /// The incident.
    pub incident: Incident,
    /// Its monitors.
    pub monitors: Vec<(MonitorId, String, Option<Impact>)>,
    /// Recurrence of the series that the window belongs to.
    pub repeats: Option<Frequency>,
    /// Number of older updates left out to bound the length of a list.
    pub omitted_updates: usize,
}

impl IncidentView {
    /// Returns true if it affects that monitor. A window without monitors covers the whole page.
    pub fn affects(&self, monitor: MonitorId) -> bool {
        let affected = &self.incident.affected;
        let is_of_all = affected.is_empty() && self.incident.kind == IncidentKind::Maintenance;
        is_of_all || affected.iter().any(|affected| affected.monitor == monitor)
    }

    /// Start of the incident; none for maintenance, which is not an outage.
    pub fn outage_start(&self) -> Option<Timestamp> {
        (self.incident.kind == IncidentKind::Incident).then_some(self.incident.started_at)
    }
}

impl PageView {
    /// End time of the newest check behind this view. Heartbeat pings are not checks by agents and count only
    /// if there are no others.
    pub fn last_checked_at(&self) -> Option<Timestamp> {
        newest_check_at(|| self.monitors.iter().map(MonitorView::monitor_and_state))
    }

    /// Regions in service from which a monitor was checked today or yesterday: a monitor may be checked from
    /// few. Empty before the first check.
    pub fn checked_from(&self) -> RegionSet {
        let is_checked = |monitor: &&MonitorView| monitor.is_probed() && monitor.state.last_check.is_some();
        let is_seen = |region: &Region| {
            self.monitors.iter().filter(is_checked).any(|monitor| {
                let newest = monitor.history.days.iter().rev().take(2).map(|day| day.date);
                let region = monitor.history.regions.get(region);
                newest.into_iter().any(|date| region.is_some_and(|days| days.contains_key(&date)))
            })
        };
        self.regions.iter().filter(is_seen).collect()
    }

    /// Returns true if the view is stale: there are monitors to check and no agent in service to check them.
    pub fn is_stale(&self) -> bool {
        is_stale(self.regions, self.monitors.iter().map(MonitorView::monitor_and_state), self.now)
    }

    /// Monitors with that status outside running maintenance windows.
    pub fn with_status(&self, status: MonitorStatus) -> impl Iterator<Item = &MonitorView> {
        self.monitors.iter().filter(move |monitor| monitor.state.status == status && !monitor.in_maintenance)
    }
}

impl MonitorView {
    /// The monitor and its state.
    pub const fn monitor_and_state(&self) -> (&Monitor, &MachineView) {
        (&self.monitor, &self.state)
    }

    /// Returns true if agents probe it; false for heartbeats and paused monitors.
    pub fn is_probed(&self) -> bool {
        is_probed(&self.monitor)
    }

    /// Uptime over a range, as by [`MonitorView::uptime_over`]; for 24 hours it covers the last 24 hours, not the
    /// calendar day.
    pub fn uptime_in(&self, range: TimeRange) -> Option<f64> {
        match range {
            TimeRange::Day => self.uptime_24h.filter(|_| !self.monitor.paused),
            TimeRange::Week | TimeRange::Month | TimeRange::Quarter => self.uptime_over(range.days()),
        }
    }

    /// Uptime over the newest days, in percent with three decimals, rounded down: the share of rounds that
    /// passed or, for heartbeat and component monitors, the share of time not down. None without data, and
    /// while paused.
    pub fn uptime_over(&self, days: usize) -> Option<f64> {
        if self.monitor.paused {
            None
        } else if self.monitor.check.kind().has_downtime() {
            self.time_over(days).percent()
        } else {
            tally(self.newest_days(days)).percent()
        }
    }

    /// Error budget of an uptime target in percent over thirty days, and the part of it that is used; `None`
    /// without data, and while paused.
    pub fn error_budget(&self, target_percent: f64) -> Option<ErrorBudget> {
        self.uptime_over(BUDGET_DAYS)?;
        let period = BUDGET_DAYS as i64 * DAY;
        Some(ErrorBudget::new(target_percent, period, self.time_over(BUDGET_DAYS)))
    }

    /// Monitored time over the newest days, and the downtime within it.
    fn time_over(&self, days: usize) -> MonitoredTime {
        self.newest_days(days).fold(MonitoredTime::default(), |mut sum, day| {
            sum.merge(day.time);
            sum
        })
    }

    fn newest_days(&self, days: usize) -> impl Iterator<Item = &UptimeDay> {
        self.history.days.iter().rev().take(days)
    }
}

fn tally<'a>(days: impl Iterator<Item = &'a UptimeDay>) -> RoundTally {
    days.fold(RoundTally::default(), |mut sum, day| {
        sum.merge(day.counts.tally());
        sum
    })
}

#[cfg(test)]
mod tests;
