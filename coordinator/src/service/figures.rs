//! Statistics interface: the figures and the mesh state that the service needs from the history.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use futures_util::future::BoxFuture;
use parallax_core::board::{Chart, Stretch};
use parallax_core::monitor::Monitor;
use parallax_core::observation::Reading;
use parallax_core::page::Page;
use parallax_core::place::{Region, RegionSet};
use parallax_core::plan::Plan;
use parallax_core::rollup::Counts;
use parallax_core::time::Timestamp;
use parallax_core::uptime::{Span, Spans, time_within};

use super::Result;
use super::history::{Place, Stand};

/// Statistics of one monitor over the last 24 hours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// Share of checks passed, in percent.
    pub uptime: Option<f64>,
    /// Median response time as the page shows it, in milliseconds.
    pub latency_ms: Option<u32>,
    /// Regions that ran checks, whether they count or not.
    pub seen: RegionSet,
    /// Maintenance that covered the monitor; it is excluded.
    pub excluded: Spans,
}

/// Round outcomes of each region, by day.
pub type Lanes = BTreeMap<Region, BTreeMap<NaiveDate, Counts>>;

/// Round outcomes of each region, by slice.
pub type Slices = BTreeMap<Region, Vec<Counts>>;

/// Times when a monitor was watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// Hours with a counted round, extended by the check interval if rounds are rarer.
    pub hours: Spans,
    /// Maintenance that covered the monitor.
    pub excluded: Spans,
}

impl Looked {
    /// Returns the milliseconds of a period that were watched and in neither maintenance nor one of the pauses.
    pub fn watched(&self, window: Span, pauses: &[Span]) -> u64 {
        time_within(window, self.hours.as_slice(), &[self.excluded.as_slice(), pauses].concat())
    }
}

/// Round outcomes of a monitor, by day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenByDay {
    /// Regions that count for up and down.
    pub counted: RegionSet,
    /// Round outcomes of every region.
    pub lanes: Lanes,
    /// Watched times of the days with a failed round. On other days the downtime is zero, whatever the watched time.
    pub looked: BTreeMap<NaiveDate, Looked>,
}

/// Round outcomes of a monitor, by slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenBySlice {
    /// Round outcomes of every region.
    pub lanes: Slices,
    /// Watched times.
    pub looked: Looked,
}

/// Source of statistics, and of the mesh's current capabilities.
pub trait Figures: Send + Sync + fmt::Debug {
    /// Returns the statistics of each of the page's monitors, in the same order; empty where they can't be computed.
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>>;

    /// Returns up to `limit` of the monitor's readings after `after`, newest due time first, then by region.
    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: Place,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Reading>>>;

    /// Counts the round outcomes of counted regions for each day in the page's time zone.
    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<BTreeMap<NaiveDate, Counts>>>;

    /// Returns the round outcomes by day in the page's time zone, for each of the page's monitors in the same order.
    fn lanes<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SeenByDay>>>;

    /// Returns the round outcomes by slice for each of the page's monitors in the same order. The spans are
    /// contiguous and of equal length.
    fn slices<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<SeenBySlice>>>;

    /// Returns the response times over that period for each of the page's monitors in the same order, or as much of
    /// the period as fits the monitor ([`Stretch::fitted`]).
    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        stretch: Stretch,
    ) -> BoxFuture<'a, Result<Vec<Chart>>>;

    /// Lists the agents in service by region and network.
    fn stands(&self) -> Vec<Stand>;

    /// Returns true if a second network could confirm a failure of the monitor, on a page whose account has that
    /// plan.
    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool;
}

/// Statistics of a service without history and mesh: all empty, and every monitor counts as confirmable.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFigures;

impl Figures for NoFigures {
    fn last_day<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>> {
        Box::pin(std::future::ready(vec![Figure::default(); monitors.len()]))
    }

    fn readings<'a>(
        &'a self,
        _monitor: &'a Monitor,
        _after: Place,
        _limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Reading>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn days<'a>(
        &'a self,
        _page: &'a Page,
        _monitor: &'a Monitor,
        _days: RangeInclusive<NaiveDate>,
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<BTreeMap<NaiveDate, Counts>>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    fn lanes<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _days: RangeInclusive<NaiveDate>,
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SeenByDay>>> {
        Box::pin(std::future::ready(Ok(vec![SeenByDay::default(); monitors.len()])))
    }

    fn slices<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<SeenBySlice>>> {
        Box::pin(std::future::ready(Ok(vec![SeenBySlice::default(); monitors.len()])))
    }

    fn charts<'a>(
        &'a self,
        _page: &'a Page,
        monitors: &'a [Monitor],
        _stretch: Stretch,
    ) -> BoxFuture<'a, Result<Vec<Chart>>> {
        Box::pin(std::future::ready(Ok(vec![Chart::default(); monitors.len()])))
    }

    fn stands(&self) -> Vec<Stand> {
        Vec::new()
    }

    fn can_confirm(&self, _page: &Page, _plan: Plan, _monitor: &Monitor) -> bool {
        true
    }
}
