//! Response times of a monitor: the chart of the public page, with outages shaded.

use parallax_core::outage::Outage;
use parallax_core::page_view::LatencyChart;
use parallax_core::time::Timestamp;

use crate::views::chart::ChartView;

/// Width of the chart's view box.
const WIDTH: i64 = 900;
/// Narrowest band, so that a short outage is seen.
const MIN_BAND: i64 = 2;

/// Chart with the bands of outages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResponseChart {
    /// Lines, scale, thresholds and deploys.
    pub chart: ChartView,
    /// Outages: position and width in the view box.
    pub outages: Vec<(i64, i64)>,
    /// Start and end of the chart, for the script.
    pub span: (Timestamp, Timestamp),
}

impl ResponseChart {
    /// Adds the outages within the chart's time.
    pub(crate) fn new(chart: ChartView, times: &LatencyChart, outages: &[Outage], now: Timestamp) -> Self {
        let length = times.to.since(times.from).max(1);
        let x = |at: Timestamp| (at.since(times.from).clamp(0, length)) * WIDTH / length;
        let bands = outages.iter().filter_map(|outage| {
            let to = outage.to.unwrap_or(now);
            let overlaps = to > times.from && outage.from < times.to;
            let (start, end) = (x(outage.from), x(to));
            let width = (end - start).max(MIN_BAND);
            overlaps.then_some((start.min(WIDTH - width), width))
        });
        Self { outages: bands.collect(), span: (times.from, times.to), chart }
    }
}
