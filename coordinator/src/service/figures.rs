//! What the service needs to know of the last 24 hours: a narrow door to whoever keeps the readings.

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

/// The figures of one monitor over the last 24 hours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// Share of checks passed, in percent.
    pub uptime: Option<f64>,
    /// Median response time as the page shows it, in milliseconds.
    pub latency_ms: Option<u32>,
    /// Regions that looked, whether they count or not.
    pub seen: RegionSet,
    /// Maintenance that covered the monitor meanwhile: it counts for nothing.
    pub excluded: Spans,
}

/// How the rounds of each region ended, by day.
pub type Lanes = BTreeMap<Region, BTreeMap<NaiveDate, Counts>>;

/// How the rounds of each region ended, by slice.
pub type Slices = BTreeMap<Region, Vec<Counts>>;

/// When a monitor was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// Hours with a round that counted, and the time that it stands for where rounds are rarer.
    pub hours: Spans,
    /// Maintenance that covered the monitor.
    pub excluded: Spans,
}

impl Looked {
    /// Milliseconds of a stretch that were watched: looked at, and neither in maintenance nor in one of those pauses.
    pub fn watched(&self, window: Span, pauses: &[Span]) -> u64 {
        time_within(window, self.hours.as_slice(), &[self.excluded.as_slice(), pauses].concat())
    }
}

/// Results of a monitor's rounds, day by day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenByDay {
    /// The regions that count for up and down.
    pub counted: RegionSet,
    /// How the rounds of every region ended.
    pub lanes: Lanes,
    /// When it was looked at on the days that had a failed round. Of the others nothing is down, however long it was.
    pub looked: BTreeMap<NaiveDate, Looked>,
}

/// Results of a monitor's rounds, slice by slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenBySlice {
    /// How the rounds of every region ended.
    pub lanes: Slices,
    /// When it was looked at.
    pub looked: Looked,
}

/// Whoever can work out figures, and says what the mesh as it stands can do.
pub trait Figures: Send + Sync + fmt::Debug {
    /// One figure for each monitor of the page, in the same order. What can't be worked out is left empty.
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>>;

    /// Up to `limit` readings of the monitor that come after `after` in a list by due time, newest first, then by region.
    fn readings<'a>(
        &'a self,
        monitor: &'a Monitor,
        after: Place,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Reading>>>;

    /// How the rounds of the regions that count ended on each of the days in the page's zone.
    fn days<'a>(
        &'a self,
        page: &'a Page,
        monitor: &'a Monitor,
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<BTreeMap<NaiveDate, Counts>>>;

    /// For each of a page's monitors, in the same order: what was seen of it on each of the days in the page's zone.
    fn lanes<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        days: RangeInclusive<NaiveDate>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SeenByDay>>>;

    /// For each of a page's monitors, in the same order: what was seen of it in each of those spans, which follow each
    /// other and are of one length.
    fn slices<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        spans: &'a [Span],
    ) -> BoxFuture<'a, Result<Vec<SeenBySlice>>>;

    /// For each of a page's monitors, in the same order: its response times over that stretch, or as much of it as fits
    /// the monitor ([`Stretch::fitted`]).
    fn charts<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        stretch: Stretch,
    ) -> BoxFuture<'a, Result<Vec<Chart>>>;

    /// The places in service.
    fn stands(&self) -> Vec<Stand>;

    /// Whether a second network could confirm a failure of the monitor, on a page whose account has that plan.
    fn can_confirm(&self, page: &Page, plan: Plan, monitor: &Monitor) -> bool;
}

/// Figures of a service that keeps no readings, and knows no mesh: all empty, and nothing is said against a monitor.
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
