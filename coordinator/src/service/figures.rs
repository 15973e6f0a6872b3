//! What the service needs to know of the last 24 hours: a narrow door to whoever keeps the readings.

use std::fmt;

use futures_util::future::BoxFuture;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;

/// The figures of one monitor over the last 24 hours.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figure {
    /// Share of checks passed, in percent.
    pub uptime: Option<f64>,
    /// Median response time as the page shows it, in milliseconds.
    pub latency_ms: Option<u32>,
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

    fn can_confirm(&self, _page: &Page, _plan: Plan, _monitor: &Monitor) -> bool {
        true
    }
}
