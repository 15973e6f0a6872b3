//! Response time chart: one line per region or their mean, the thresholds, and markers of deploys.

#[cfg(test)]
mod tests;
mod threshold;

use std::fmt::Write;

use parallax_core::deploy::Deploy;
use parallax_core::page_view::{LatencyChart, MonitorView, TimeRange};
use parallax_core::time::{DAY, MINUTE, Timestamp};
use parallax_core::vantage::{Region, RegionSet};
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};

use super::format::{self, FormattedTime};
use super::ranges;
use threshold::{ThresholdLine, threshold_lines};

/// Width of a deploy's label in thousandths of the chart's width: per letter and for its mark, on wide and on
/// narrow screens.
const LABEL_LETTER_WIDTH: [i64; 2] = [8, 21];
const LABEL_MARK_WIDTH: [i64; 2] = [18, 44];
/// Position from which a label is placed left of its mark, so that it doesn't overflow.
const LABEL_FLIP_AT: i64 = 750;

/// Width and height of the view box; the chart is stretched to its container.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 120.0;

/// Deploys up to this many milliseconds after the end of a chart are still marked: a chart of minutes ends
/// slightly before the present.
const MAX_AHEAD: i64 = MINUTE;

/// Longest chart, and longest time since its end, of which clock times have no date, in milliseconds.
const CLOCK_ALONE: i64 = 2 * DAY;

/// Minimum number of points for a line. With fewer, only the table and a note that more data will follow are
/// shown.
const MIN_POINTS: usize = 2;

/// A chart, ready to render.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartView {
    /// Metric and time range.
    pub title: String,
    /// Regions that the only line is the mean of, if there are several.
    pub mean: Option<String>,
    /// True if there is too little data for lines.
    pub is_sparse: bool,
    /// Text alternative.
    pub summary: String,
    /// Lines.
    pub lines: Vec<ChartLine>,
    /// Area below the only line; empty if there are several lines.
    pub area: String,
    /// Positions and values of the scale's marks; highest first.
    pub marks: Vec<(String, String)>,
    /// Slowness thresholds.
    pub thresholds: Vec<ThresholdLine>,
    /// Deploys, oldest first.
    pub deploys: Vec<DeployMarker>,
    /// Labels of the time axis.
    pub ticks: Vec<FormattedTime>,
    /// Formats that the script uses for the ticks and for the times of the table.
    pub time_formats: (&'static str, &'static str),
    /// Same data as a table: one row per time, one value per line.
    pub table: Vec<(FormattedTime, Vec<String>)>,
}

/// A line of the chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChartLine {
    /// CSS class that sets color and pattern.
    pub class: String,
    /// Name.
    pub name: &'static str,
    /// SVG path.
    pub path: String,
    /// Minimum, median and maximum.
    pub figures: String,
}

/// A deploy's marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeployMarker {
    /// Position in percent of the width.
    pub x: String,
    /// CSS class of the label if it fits: on wide screens only, or on all.
    pub label: Option<&'static str>,
    /// True if the label is left of the mark.
    pub is_flipped: bool,
    /// Deployed version.
    pub version: String,
    /// Checked URL of the release.
    pub url: Option<String>,
    /// Note.
    pub note: Option<String>,
    /// Time.
    pub at: FormattedTime,
}

/// Builds the chart of the mean of the counted regions, with at most `table` table rows; `None` without data.
pub(super) fn mean_chart(
    view: &MonitorView,
    chart: &LatencyChart,
    deploys: &[Deploy],
    locale: PageLocale,
    table: usize,
) -> Option<ChartView> {
    let messages = locale.messages;
    let lines = vec![("mean".to_owned(), messages.response_time, chart.mean())];
    let chart_view = build_chart(view, chart, lines, deploys, (locale, table, chart.to))?;
    let counted: RegionSet = chart.regions.keys().copied().filter(|it| chart.counted.contains(*it)).collect();
    let mean = (counted.len() > 1).then(|| fill(messages.chart_mean, &[&messages.locale().regions(counted)]));
    Some(ChartView { mean, ..chart_view })
}

/// Builds the chart with a line per region; `None` without data.
pub(super) fn region_chart(
    view: &MonitorView,
    chart: &LatencyChart,
    deploys: &[Deploy],
    (locale, now): (PageLocale, Timestamp),
) -> Option<ChartView> {
    let lines = chart
        .regions
        .iter()
        .map(|(region, points)| (region_class(*region), locale.messages.locale().region(*region), points.clone()));
    build_chart(view, chart, lines.collect(), deploys, (locale, usize::MAX, now))
}

/// CSS class of a region's line.
pub(super) fn region_class(region: Region) -> String {
    format!("r{}", region.index())
}

fn build_chart(
    view: &MonitorView,
    chart: &LatencyChart,
    lines: Vec<(String, &'static str, Vec<Option<u32>>)>,
    deploys: &[Deploy],
    (locale, max_rows, now): (PageLocale, usize, Timestamp),
) -> Option<ChartView> {
    let messages = locale.messages;
    let values = lines.iter().flat_map(|(_, _, points)| points).filter_map(|point| *point);
    let max_value = values.max()?;
    // A threshold far above all values would flatten the lines.
    let is_near = |threshold: &u32| *threshold <= max_value.saturating_mul(3);
    let top = round_up(chart.thresholds.values().copied().filter(is_near).fold(max_value, u32::max));
    let y = |value: u32| HEIGHT - f64::from(value) / f64::from(top) * HEIGHT;
    let is_single = lines.len() == 1;
    let has_point = |at: &usize| lines.iter().any(|(_, _, points)| points.get(*at).is_some_and(Option::is_some));
    let is_sparse = (0..chart.buckets()).filter(has_point).count() < MIN_POINTS;
    let lines: Vec<_> = lines.into_iter().filter(|(_, _, points)| points.iter().any(Option::is_some)).collect();
    // A clock time alone says which day it is only of a short chart that has just ended.
    let is_short = chart.to.since(chart.from) <= CLOCK_ALONE;
    let has_date = !is_short || now.since(chart.to) > CLOCK_ALONE;
    let table = table(chart, &lines, (max_rows, has_date), locale);
    let mut area = String::new();
    let lines: Vec<ChartLine> = lines
        .into_iter()
        .map(|(class, name, points)| {
            let (path, area_path) = path(&points, y);
            if is_single {
                area = area_path;
            }
            ChartLine { class, name, path, figures: value_summary(&points, messages) }
        })
        .collect();
    let length = chart.to.since(chart.from).max(1);
    let is_on_chart = |deploy: &&Deploy| {
        let is_of_monitor = deploy.monitors.as_ref().is_none_or(|monitors| monitors.contains(&view.monitor.id));
        is_of_monitor && (chart.from..=chart.to + MAX_AHEAD).contains(&deploy.at)
    };
    let mut occupied = [0_i64; 2];
    let mut deploy_marker = |deploy: &Deploy| {
        let fraction = (deploy.at.since(chart.from) as f64 / length as f64).min(1.0);
        let (label, is_flipped) =
            place_label(&mut occupied, (fraction * 1000.0) as i64, deploy.version.chars().count());
        DeployMarker {
            x: coordinate(fraction * 100.0),
            label,
            is_flipped,
            version: deploy.version.clone(),
            url: deploy.url.as_deref().and_then(format::checked_link),
            note: deploy.note.clone(),
            at: format::format_time(deploy.at, locale),
        }
    };
    let values_text = if is_single {
        lines.first().map(|line| line.figures.clone()).unwrap_or_default()
    } else {
        let each = lines.iter().map(|line| format!("{}: {}", line.name, line.figures));
        each.collect::<Vec<_>>().join("; ")
    };
    let range = TimeRange::ALL.into_iter().find(|range| range.days() as i64 * DAY == length);
    let span =
        range.map_or_else(|| messages.locale().duration(length), |it| ranges::range_label(it, messages).to_owned());
    Some(ChartView {
        title: fill(messages.chart_title, &[&span]),
        mean: None,
        is_sparse,
        summary: fill(messages.chart_summary, &[&span, &values_text]),
        lines,
        area,
        marks: [top, top / 2]
            .iter()
            .map(|mark| (coordinate(y(*mark)), format::format_milliseconds(*mark, messages)))
            .collect(),
        thresholds: threshold_lines(
            chart,
            messages,
            |threshold| is_near(&threshold).then(|| coordinate(y(threshold))),
            is_sparse,
        ),
        deploys: deploys.iter().rev().filter(is_on_chart).map(&mut deploy_marker).collect(),
        ticks: ticks(chart, locale),
        time_formats: (if is_short { "c" } else { "d" }, if has_date { "t" } else { "c" }),
        table,
    })
}

/// Finds out if a label at `x` thousandths fits to the right of the previous ones, and on which side of its
/// mark.
fn place_label(occupied: &mut [i64; 2], x: i64, letters: usize) -> (Option<&'static str>, bool) {
    let is_flipped = x > LABEL_FLIP_AT;
    let letters = i64::try_from(letters).unwrap_or(i64::MAX / 100);
    let mut fits_on = [false; 2];
    for (((occupied, letter), mark), fits) in
        occupied.iter_mut().zip(LABEL_LETTER_WIDTH).zip(LABEL_MARK_WIDTH).zip(&mut fits_on)
    {
        let width = letters.saturating_mul(letter).saturating_add(mark);
        let (from, to) = if is_flipped { (x - width, x + mark / 2) } else { (x - mark / 2, x + width) };
        *fits = from >= *occupied - mark / 2 && to <= 1020;
        // The mark is shown in any case.
        *occupied = (*occupied).max(if *fits { to } else { x + mark / 2 });
    }
    match fits_on {
        [_, true] => (Some("tag"), is_flipped),
        [true, false] => (Some("tag wide"), is_flipped),
        [false, false] => (None, is_flipped),
    }
}

/// Builds the table of a chart, merging points so that there are at most `max_rows` rows, whose times may have a date.
fn table(
    chart: &LatencyChart,
    lines: &[(String, &'static str, Vec<Option<u32>>)],
    (max_rows, has_date): (usize, bool),
    locale: PageLocale,
) -> Vec<(FormattedTime, Vec<String>)> {
    let point_count = chart.buckets();
    let step = point_count.div_ceil(max_rows.max(1)).max(1);
    let width = chart.to.since(chart.from) / i64::try_from(point_count.max(1)).unwrap_or(i64::MAX);
    let mean = |points: &[Option<u32>]| {
        let values: Vec<u64> = points.iter().filter_map(|point| point.map(u64::from)).collect();
        let mean = values.iter().sum::<u64>().checked_div(values.len() as u64);
        mean.and_then(|mean| u32::try_from(mean).ok())
    };
    let row = |at: usize| {
        let start: Timestamp = chart.from + width * i64::try_from(at).unwrap_or(0);
        let value = |(_, _, points): &(String, &str, Vec<Option<u32>>)| {
            let end = points.len().min(at + step);
            let point = points.get(at..end).and_then(mean);
            point.map_or_else(
                || locale.messages.no_data.to_owned(),
                |point| format::format_milliseconds(point, locale.messages),
            )
        };
        let text = if has_date {
            format::format_date_time(start, locale, "%H:%M")
        } else {
            format::format_pattern(start, locale.zone, "%H:%M")
        };
        let time = FormattedTime { iso: start.to_string(), text };
        (time, lines.iter().map(value).collect())
    };
    (0..point_count).step_by(step).map(row).collect()
}

/// SVG paths of a line, interrupted where data is missing, and of the area below it.
fn path(points: &[Option<u32>], y: impl Fn(u32) -> f64) -> (String, String) {
    let step = WIDTH / points.len().max(1) as f64;
    let (mut line, mut area) = (String::new(), String::new());
    let mut segment_start: Option<f64> = None;
    let mut end = 0.0;
    for (at, point) in points.iter().enumerate() {
        let x = (at as f64 + 0.5) * step;
        // Writing to a string does not fail.
        match point {
            Some(value) => {
                let height = coordinate(y(*value));
                let (x_text, command) = (coordinate(x), if segment_start.is_some() { 'L' } else { 'M' });
                let _ = write!(line, "{command}{x_text} {height}");
                if segment_start.is_none() {
                    segment_start = Some(x);
                    let _ = write!(area, "M{x_text} {HEIGHT}");
                }
                let _ = write!(area, "L{x_text} {height}");
                end = x;
            }
            None => {
                if let Some(start) = segment_start.take() {
                    close_segment(&mut line, &mut area, start, end);
                }
            }
        }
    }
    if let Some(start) = segment_start {
        close_segment(&mut line, &mut area, start, end);
    }
    (line, area)
}

/// Ends a segment; a single point becomes a visible dash.
fn close_segment(line: &mut String, area: &mut String, start: f64, end: f64) {
    if end <= start {
        line.push_str("h2");
    }
    let _ = write!(area, "V{HEIGHT}z");
}

fn value_summary(points: &[Option<u32>], messages: &PageMessages) -> String {
    let mut values: Vec<u32> = points.iter().filter_map(|point| *point).collect();
    values.sort_unstable();
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(min), _, Some(max)) if min == max => format::format_milliseconds(*max, messages),
        (Some(min), Some(median), Some(max)) => {
            let (max, median) =
                (format::format_milliseconds(*max, messages), format::format_milliseconds(*median, messages));
            fill(messages.figures, &[&min.to_string(), &max, &median])
        }
        _ => messages.no_data.to_owned(),
    }
}

/// Next round number, so that the scale's marks are whole numbers.
fn round_up(max_value: u32) -> u32 {
    let mut unit = 10_u32;
    loop {
        for step in [1, 2, 3, 4, 5, 6, 8] {
            let top = unit.saturating_mul(step);
            if top >= max_value && top % 2 == 0 {
                return top;
            }
        }
        if unit >= 100_000_000 {
            return max_value.max(1);
        }
        unit *= 10;
    }
}

fn ticks(chart: &LatencyChart, locale: PageLocale) -> Vec<FormattedTime> {
    let length = chart.to.since(chart.from);
    let tick = |quarter: i64| {
        let at: Timestamp = chart.from + length / 4 * quarter;
        let text = if length <= CLOCK_ALONE {
            format::format_pattern(at, locale.zone, "%H:%M")
        } else {
            format::format_short_day(at, locale)
        };
        FormattedTime { iso: at.to_string(), text }
    };
    (0..=4).map(tick).collect()
}

/// Formats a coordinate with at most one decimal.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
