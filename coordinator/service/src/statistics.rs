//! Statistics interface: the figures and the mesh state that the service needs from the history.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use futures_util::future::BoxFuture;
use parallax_core::confirmation::ConfirmingNetworks;
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::page_view::{ChartRange, LatencyChart};
use parallax_core::plan::Plan;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::Timestamp;
use parallax_core::uptime::{TimeSpan, TimeSpans, time_within};
use parallax_core::vantage::{Region, RegionSet};

use super::ServiceResult;

/// Statistics of one monitor over the last 24 hours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorStatistics {
    /// Share of checks passed, in percent.
    pub uptime: Option<f64>,
    /// Median response time as the page shows it, in milliseconds.
    pub latency_ms: Option<u32>,
    /// Regions that ran checks, whether they count or not.
    pub checked_regions: RegionSet,
    /// Maintenance that covered the monitor; it is excluded.
    pub excluded: TimeSpans,
}

/// Round outcomes of each region, by day.
pub type CountsByDay = BTreeMap<Region, BTreeMap<NaiveDate, OutcomeCounts>>;

/// Round outcomes of each region, by slice.
pub type CountsBySlice = BTreeMap<Region, Vec<OutcomeCounts>>;

/// Times when a monitor was watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedHours {
    /// Hours with a counted round, extended by the check interval if rounds are rarer.
    pub hours: TimeSpans,
    /// Maintenance that covered the monitor.
    pub excluded: TimeSpans,
}

impl WatchedHours {
    /// Returns the milliseconds of a period that were watched and in neither maintenance nor one of the pauses.
    pub fn watched_ms(&self, window: TimeSpan, pauses: &[TimeSpan]) -> u64 {
        time_within(window, self.hours.as_slice(), &[self.excluded.as_slice(), pauses].concat())
    }
}

/// Round outcomes of a monitor, by day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DailyOutcomes {
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Round outcomes of every region.
    pub by_region: CountsByDay,
    /// Watched times of the days with a failed round. On other days the downtime is zero, whatever the watched time.
    pub watched: BTreeMap<NaiveDate, WatchedHours>,
}

/// Round outcomes of a monitor, by slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceOutcomes {
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Round outcomes of every region.
    pub by_region: CountsBySlice,
    /// Watched times.
    pub watched: WatchedHours,
}

/// Cursor in a list of checks: continues after this due time and region.
pub type CheckCursor = (Timestamp, Region);

/// An agent in service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingAgent {
    /// The region.
    pub region: Region,
    /// The network's label.
    pub network: String,
    /// Source address of its connection as the coordinator sees it; `None` while it is disconnected.
    pub address: Option<IpAddr>,
}

/// Source of statistics, and of the mesh's current capabilities.
pub trait Statistics: Send + Sync + fmt::Debug {
    /// Returns the statistics of each of the page's monitors, in the same order; empty where they can't be computed.
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<MonitorStatistics>>;

    /// Returns up to `limit` of the monitor's readings after `after`, newest due time first, then by region.
    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: CheckCursor,
        limit: usize,
    ) -> BoxFuture<'a, ServiceResult<Vec<Reading>>>;

    /// Counts the round outcomes of counted regions for each day in the page's time zone.
    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<BTreeMap<NaiveDate, OutcomeCounts>>>;

    /// Returns the round outcomes by day in the page's time zone, for each of the page's monitors in the same order.
    fn outcomes_by_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<Vec<DailyOutcomes>>>;

    /// Returns the round outcomes by slice for each of the page's monitors in the same order. The spans are
    /// contiguous and of equal length.
    fn outcomes_by_slice<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [TimeSpan],
    ) -> BoxFuture<'a, ServiceResult<Vec<SliceOutcomes>>>;

    /// Returns the response times over that period for each of the page's monitors in the same order, or as much of
    /// the period as fits the monitor ([`ChartRange::fitted_to`]).
    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        range: ChartRange,
    ) -> BoxFuture<'a, ServiceResult<Vec<LatencyChart>>>;

    /// Returns the response times of a monitor over that period as [`Self::charts`] does, with the lowest and highest of
    /// each bucket. The period may have ended long ago.
    fn latency<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        range: ChartRange,
        now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<LatencyChart>>;

    /// Lists the agents in service by region and network.
    fn agents_in_service(&self) -> Vec<ServingAgent>;

    /// Returns how failures are confirmed now.
    fn confirming_networks(&self) -> ConfirmingNetworks;

    /// Returns true if a second network could confirm a failure of the monitor, on a page whose account has that
    /// plan.
    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool;
}

/// Statistics of a service without history and mesh: all empty, and every monitor counts as confirmable.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStatistics;

impl Statistics for NoStatistics {
    fn last_day<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _now: Timestamp,
    ) -> BoxFuture<'a, Vec<MonitorStatistics>> {
        Box::pin(std::future::ready(vec![MonitorStatistics::default(); monitors.len()]))
    }

    fn readings<'a>(
        &'a self,
        _monitor: &'a Monitor,
        _after: CheckCursor,
        _limit: usize,
    ) -> BoxFuture<'a, ServiceResult<Vec<Reading>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn days<'a>(
        &'a self,
        _page: &'a Page,
        _monitor: &'a Monitor,
        _days: RangeInclusive<NaiveDate>,
        _now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<BTreeMap<NaiveDate, OutcomeCounts>>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn outcomes_by_day<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _days: RangeInclusive<NaiveDate>,
        _now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<Vec<DailyOutcomes>>> {
        Box::pin(std::future::ready(Ok(vec![DailyOutcomes::default(); monitors.len()])))
    }

    fn outcomes_by_slice<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _spans: &'a [TimeSpan],
    ) -> BoxFuture<'a, ServiceResult<Vec<SliceOutcomes>>> {
        Box::pin(std::future::ready(Ok(vec![SliceOutcomes::default(); monitors.len()])))
    }

    fn charts<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _stretch: ChartRange,
    ) -> BoxFuture<'a, ServiceResult<Vec<LatencyChart>>> {
        Box::pin(std::future::ready(Ok(vec![LatencyChart::default(); monitors.len()])))
    }

    fn latency<'a>(
        &'a self,
        _page: &'a Page,
        _monitor: &'a Monitor,
        _range: ChartRange,
        _now: Timestamp,
    ) -> BoxFuture<'a, ServiceResult<LatencyChart>> {
        Box::pin(std::future::ready(Ok(LatencyChart::default())))
    }

    fn agents_in_service(&self) -> Vec<ServingAgent> {
        Vec::new()
    }

    fn confirming_networks(&self) -> ConfirmingNetworks {
        ConfirmingNetworks::default()
    }

    fn can_confirm(&self, _page: &Page, _plan: Plan, _monitor: &Monitor) -> bool {
        true
    }
}
