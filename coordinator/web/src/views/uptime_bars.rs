//! Uptime bars of a monitor: one bar per day or part of a day, and the same by region.

mod bar_data;

use std::collections::BTreeMap;

use parallax_core::event::MonitorStatus;
use parallax_core::page_view::{MonitorView, TimeRange, UptimeDay, UptimeSlice};
use parallax_core::rollup::{OutcomeCounts, day_of};
use parallax_core::time::{MINUTE, Timestamp};
use parallax_core::uptime::MonitoredTime;
use parallax_core::vantage::Region;
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

use super::format;
use super::range_context::RangeContext;
use super::uptime;
use bar_data::{BarData, bar_label, bar_state};

/// Width and spacing of a region's bars in view box units.
const BAR_WIDTH: usize = 8;
const BAR_SPACING: usize = 10;
/// Height of a region's bars.
const BAR_HEIGHT: usize = 16;

/// Maximum age in milliseconds of a response time that is shown as current, if a chart's points are closer
/// together.
const MAX_VALUE_AGE: i64 = 5 * MINUTE;

/// State of a bar, shown as shape and color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BarState {
    /// No data.
    NoData,
    /// Up.
    Up,
    /// Slow for a large part.
    Slow,
    /// Down for a few minutes.
    BriefOutage,
    /// Down for longer.
    LongOutage,
    /// Maintenance only.
    Maintenance,
}

impl BarState {
    /// CSS class that sets shape and color.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::NoData => "n",
            Self::Up => "u",
            Self::Slow => "s",
            Self::BriefOutage => "p",
            Self::LongOutage => "d",
            Self::Maintenance => "m",
        }
    }
}

/// A bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UptimeBar {
    /// CSS class.
    pub class: &'static str,
    /// Date, with the hour for a part of a day; also the URL fragment.
    pub key: String,
    /// Label.
    pub label: String,
    /// Number of incidents that began in it.
    pub incidents: usize,
}

/// Uptime bars of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UptimeBars {
    /// CSS class for the number of bars.
    pub class: &'static str,
    /// Bars, oldest first.
    pub bars: Vec<UptimeBar>,
    /// Label below the start.
    pub from: &'static str,
    /// Label below the start if a narrow screen hides the older half.
    pub narrow: Option<&'static str>,
    /// Label below the end.
    pub to: &'static str,
    /// Text alternative of the bars' unit.
    pub units: &'static str,
}

/// Uptime bars of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegionBars {
    /// Region.
    pub name: &'static str,
    /// Width in view box units.
    pub width: usize,
    /// SVG paths by CSS class.
    pub paths: Vec<(&'static str, String)>,
    /// Current response time, or state.
    pub current_value: String,
    /// Text alternative: uptime over the range.
    pub summary: String,
}

/// Builds a monitor's uptime bars; `incidents` are the start times of its incidents.
pub(super) fn build_bars(view: &MonitorView, context: RangeContext, incidents: &[Timestamp]) -> UptimeBars {
    let RangeContext { range, locale, .. } = context;
    let PageLocale { zone, messages } = locale;
    let (class, from, narrow, to, units) = match range {
        TimeRange::Day => ("s24", messages.ago_day, None, messages.now, messages.hourly),
        TimeRange::Week => ("s28", messages.ago_week, None, messages.now, messages.six_hourly),
        TimeRange::Month => ("s30", messages.ago_month, None, messages.today, messages.daily),
        TimeRange::Quarter => ("s90", messages.ago_quarter, Some(messages.ago_half), messages.today, messages.daily),
    };
    let bar = |key: String, title: String, data: BarData, incidents: usize| UptimeBar {
        class: bar_state(data).class(),
        key,
        label: bar_label(title, data, incidents, messages),
        incidents,
    };
    // The last bar includes the present.
    let is_down = |is_last: bool| is_last && !context.is_stale && is_down(view);
    let bars = if range.is_by_day() {
        let days = view.history.days.iter().rev().take(range.days()).enumerate();
        let bar = |(days_ago, day): (usize, &UptimeDay)| {
            let incident_count = incidents.iter().filter(|at| day_of(**at, zone) == Some(day.date)).count();
            let data = BarData { is_down: is_down(days_ago == 0), ..BarData::of(day) };
            bar(day.date.to_string(), messages.locale().full_day(day.date), data, incident_count)
        };
        days.map(bar).rev().collect()
    } else {
        let slices = view.history.slices.iter().enumerate();
        slices
            .map(|(at, slice)| {
                let incident_count = incidents.iter().filter(|at| slice.span.contains(**at)).count();
                let from = format::format_date_time(slice.span.from, locale, "%H:%M");
                let to = format::format_pattern(slice.span.to, zone, "%H:%M %Z");
                let title = fill(messages.span, &[&from, &to]);
                let is_down = is_down(at + 1 == view.history.slices.len());
                let data = BarData { counts: slice.counts, uptime: slice.uptime, time: slice.time, is_down };
                bar(format::format_pattern(slice.span.from, zone, "%Y-%m-%dT%H%M"), title, data, incident_count)
            })
            .collect()
    };
    UptimeBars { class, bars, from, narrow, to, units }
}

/// Returns true if the monitor is down and not in maintenance.
fn is_down(view: &MonitorView) -> bool {
    view.state.status == MonitorStatus::Down && !view.in_maintenance
}

/// State of a day's bar; for the current day, includes a current outage.
pub(super) fn day_state(view: &MonitorView, day: &UptimeDay, is_present: bool) -> BarState {
    bar_state(BarData { is_down: is_present && is_down(view), ..BarData::of(day) })
}

/// Builds the uptime bars of the regions that judge a monitor, each with the current response time or state.
pub(super) fn build_region_bars(view: &MonitorView, context: RangeContext) -> Vec<RegionBars> {
    if !view.monitor.check.kind().is_regional() {
        return Vec::new();
    }
    let (history, range) = (&view.history, context.range);
    if !range.is_by_day() {
        let lengths = || history.slices.iter().map(|slice| slice.time.monitored);
        let region_row = |(region, counts): (&_, &Vec<OutcomeCounts>)| {
            region_bars(view, *region, counts.iter().copied().zip(lengths()), context)
        };
        return history.slice_regions.iter().map(region_row).collect();
    }
    let newest: Vec<&UptimeDay> = history.days.iter().rev().take(range.days()).rev().collect();
    history
        .regions
        .iter()
        .map(|(region, days)| {
            let bar = |day: &&UptimeDay| (days.get(&day.date).copied().unwrap_or_default(), day.time.monitored);
            region_bars(view, *region, newest.iter().map(bar), context)
        })
        .collect()
}

fn region_bars(
    view: &MonitorView,
    region: Region,
    bars: impl ExactSizeIterator<Item = (OutcomeCounts, u64)>,
    context: RangeContext,
) -> RegionBars {
    let messages = context.locale.messages;
    let mut by_class: BTreeMap<BarState, String> = BTreeMap::new();
    let mut sum = OutcomeCounts::default();
    let mut width = 0;
    let last = bars.len().saturating_sub(1);
    let sees_down = !context.is_stale && !view.in_maintenance && view.state.seen_down.contains(region);
    for (at, (counts, monitored_ms)) in bars.enumerate() {
        sum.merge(counts);
        let (uptime, time) = (counts.tally().percent(), MonitoredTime::of_rounds(monitored_ms, counts.tally()));
        let state = bar_state(BarData { counts, uptime, time, is_down: at == last && sees_down });
        by_class.entry(state).or_default().push_str(&bar_path(at * BAR_SPACING, state));
        width = at * BAR_SPACING + BAR_WIDTH;
    }
    RegionBars {
        name: messages.locale().region(region),
        width,
        paths: by_class.into_iter().map(|(state, path)| (state.class(), path)).collect(),
        current_value: if context.is_stale {
            messages.no_data.to_owned()
        } else {
            current_value(view, region, messages)
        },
        summary: uptime::UptimeView::of_percent(sum.tally().percent(), view, context).text(),
    }
}

/// Bars of a short range in one image: a path for each state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatePaths {
    /// Width in view box units.
    pub width: usize,
    /// SVG paths by CSS class.
    pub paths: Vec<(&'static str, String)>,
}

/// Draws slices as one image. The last one includes the present; `is_down` if the monitor is down.
pub(super) fn state_paths(slices: &[UptimeSlice], is_down: bool) -> StatePaths {
    let mut by_class: BTreeMap<BarState, String> = BTreeMap::new();
    for (at, slice) in slices.iter().enumerate() {
        let is_down = is_down && at + 1 == slices.len();
        let state = bar_state(BarData { counts: slice.counts, uptime: slice.uptime, time: slice.time, is_down });
        by_class.entry(state).or_default().push_str(&bar_path(at * BAR_SPACING, state));
    }
    StatePaths {
        width: (slices.len() * BAR_SPACING).saturating_sub(BAR_SPACING - BAR_WIDTH),
        paths: by_class.into_iter().map(|(state, path)| (state.class(), path)).collect(),
    }
}

/// Current response time or state in a region, whether the region counts or not. Empty if the region is up
/// without a response time.
fn current_value(view: &MonitorView, region: Region, messages: &PageMessages) -> String {
    if view.state.seen_down.contains(region) {
        return if view.in_maintenance { messages.maintenance } else { messages.region_down }.to_owned();
    }
    if !view.state.seen_up.contains(region) {
        return messages.no_data.to_owned();
    }
    let chart = &view.history.chart;
    let points = chart.regions.get(&region).map(Vec::as_slice).unwrap_or_default();
    // The last point of a chart may have only just begun, and short ones may have missed a check.
    let width = chart.to.since(chart.from) / i64::try_from(points.len().max(1)).unwrap_or(i64::MAX);
    let recent = usize::try_from(MAX_VALUE_AGE / width.max(1)).unwrap_or(usize::MAX).max(2);
    let newest = points.iter().rev().take(recent).find_map(|point| *point);
    newest.map_or_else(String::new, |latency| format::format_milliseconds(latency, messages))
}

/// SVG path of one bar, with the same shapes as the large bars.
fn bar_path(x: usize, state: BarState) -> String {
    match state {
        BarState::NoData => format!("M{x} {}h{BAR_WIDTH}v3h-{BAR_WIDTH}z", BAR_HEIGHT - 3),
        BarState::Up => format!("M{x} 0h{BAR_WIDTH}v{BAR_HEIGHT}h-{BAR_WIDTH}z"),
        BarState::Slow => format!("M{x} 6h{BAR_WIDTH}v{}h-{BAR_WIDTH}z", BAR_HEIGHT - 6),
        BarState::BriefOutage => format!("M{x} 5l{BAR_WIDTH}-5v{BAR_HEIGHT}h-{BAR_WIDTH}z"),
        BarState::LongOutage => format!("M{x} 0l4 5l4-5v{BAR_HEIGHT}h-{BAR_WIDTH}z"),
        BarState::Maintenance => format!("M{x} 8l4-3l4 3v{}h-{BAR_WIDTH}z", BAR_HEIGHT - 8),
    }
}

#[cfg(test)]
mod tests;
