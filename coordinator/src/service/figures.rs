//! What the service needs to know of the last 24 hours: a narrow door to whoever keeps the readings.

use std::fmt;

use futures_util::future::BoxFuture;
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;

/// The figures of one monitor over the last 24 hours.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figure {
    /// Share of checks passed, in percent.
    pub uptime: Option<f64>,
    /// Median response time as the page shows it, in milliseconds.
    pub latency_ms: Option<u32>,
}

/// Whoever can work out figures.
pub trait Figures: Send + Sync + fmt::Debug {
    /// One figure for each monitor of the page, in the same order. What can't be worked out is left empty.
    fn last_day<'a>(
        &'a self,
        page: &'a Page,
        monitors: &'a [Monitor],
        now: Timestamp,
    ) -> BoxFuture<'a, Vec<Figure>>;
}

/// Figures of a service that keeps no readings: all empty.
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
}
