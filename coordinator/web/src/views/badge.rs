//! Badges: the status of a page or monitor as a small SVG image and in the Shields endpoint format.

use std::collections::BTreeMap;

use parallax_core::headline::Indicator;
use parallax_core::id::MonitorId;
use parallax_core::page_view::{MonitorView, PageView};
use parallax_i18n::page_messages::in_english;
use parallax_template::template_file;

use super::headline::{HeadlineStatus, indicator_class};
use super::link_preview::PreviewContent;
use super::monitor_state::MonitorStateLabel;
use super::{RenderError, format, render};

/// Maximum length of a label in characters.
pub(crate) const MAX_LABEL: usize = 64;
/// Supported uptime periods in days.
pub(crate) const UPTIME_DAYS: [usize; 4] = [1, 7, 30, 90];
/// Cache time in seconds of a badge rendered elsewhere (the minimum that Shields accepts).
const CACHE_SECONDS: u32 = 300;

/// Metric that a badge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadgeMetric {
    /// Current status.
    Status,
    /// Uptime over a number of days, one of [`UPTIME_DAYS`].
    Uptime(usize),
    /// Response time over the last 24 hours.
    Response,
}

/// Style of a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BadgeStyle {
    /// Rounded corners.
    Flat,
    /// Square corners.
    Square,
    /// Large, uppercase.
    Large,
}

/// Data of a page's badges, so that rendering one needs no store access, and the key of its preview image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BadgeData {
    preview_key: Box<str>,
    page: BadgeValues,
    monitors: BTreeMap<MonitorId, BadgeValues>,
}

/// Badge data of the page or a monitor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BadgeValues {
    class: &'static str,
    status: Box<str>,
    /// Uptime over each of [`UPTIME_DAYS`] in percent.
    uptimes: [Option<f64>; UPTIME_DAYS.len()],
    latency_ms: Option<u32>,
}

/// Overall status in words that fit into a badge.
const fn indicator_text(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Unknown => "no data",
        Indicator::Operational => "operational",
        Indicator::Degraded => "degraded",
        Indicator::Partial => "partial outage",
        Indicator::Major => "major outage",
        Indicator::Maintenance => "maintenance",
    }
}

impl BadgeData {
    /// Extracts the badge data from a page view.
    pub(crate) fn from_page(page_view: &PageView) -> Self {
        let is_stale = page_view.is_stale();
        let monitors: BTreeMap<_, _> =
            page_view.monitors.iter().map(|view| (view.monitor.id, monitor_values(view, is_stale))).collect();
        let (indicator, text) = match HeadlineStatus::of(page_view) {
            _ if is_stale => (Indicator::Unknown, "no data"),
            HeadlineStatus::MostlyUnknown => (Indicator::Unknown, "mostly no data"),
            HeadlineStatus::Known(indicator) => (indicator, indicator_text(indicator)),
        };
        let class = indicator_class(indicator);
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let uptime_over = |at: usize| {
            mean(
                monitors
                    .values()
                    .filter_map(|values: &BadgeValues| values.uptimes.get(at).copied().flatten())
                    .collect(),
            )
        };
        let latency = mean(monitors.values().filter_map(|values| values.latency_ms).map(f64::from).collect());
        let page = BadgeValues {
            class,
            status: text.into(),
            uptimes: std::array::from_fn(uptime_over),
            latency_ms: latency.map(|mean| mean.round() as u32),
        };
        Self { preview_key: PreviewContent::of(page_view).key().into(), page, monitors }
    }

    /// Key of the preview image for shared links.
    pub(crate) fn preview_key(&self) -> &str {
        &self.preview_key
    }

    /// Badge data of a monitor or the page; `None` if the monitor doesn't exist.
    pub(crate) fn values(&self, monitor: Option<MonitorId>) -> Option<&BadgeValues> {
        match monitor {
            None => Some(&self.page),
            Some(id) => self.monitors.get(&id),
        }
    }

    /// Approximate memory use in bytes.
    pub(crate) fn memory_use(&self) -> usize {
        let all = self.monitors.values().chain([&self.page]);
        let monitors_bytes: usize = all.map(|values| size_of::<(MonitorId, BadgeValues)>() + values.status.len()).sum();
        monitors_bytes + self.preview_key.len()
    }
}

fn monitor_values(view: &MonitorView, is_stale: bool) -> BadgeValues {
    let state = MonitorStateLabel::of(view, is_stale, in_english());
    let uptime_over = |days: usize| if days == 1 { view.uptime_24h } else { view.uptime_over(days) };
    BadgeValues {
        class: state.class,
        status: lowercase_first(&state.text).into(),
        uptimes: UPTIME_DAYS.map(uptime_over),
        latency_ms: view.latency_ms,
    }
}

fn lowercase_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// A badge, ready to render.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Badge {
    label: String,
    message: String,
    class: &'static str,
    is_error: bool,
}

impl Badge {
    /// Builds a badge; without a label it gets the metric's default label.
    pub(crate) fn of(values: &BadgeValues, metric: BadgeMetric, label: Option<String>) -> Self {
        let (message, class) = match metric {
            BadgeMetric::Status => (values.status.to_string(), values.class),
            BadgeMetric::Uptime(days) => {
                let at = UPTIME_DAYS.iter().position(|known| *known == days);
                match at.and_then(|at| values.uptimes.get(at).copied().flatten()) {
                    Some(percent) => (format::format_percent(percent, in_english()), uptime_class(percent)),
                    None => ("no data".to_owned(), "none"),
                }
            }
            BadgeMetric::Response => match values.latency_ms {
                Some(latency) => (
                    format::format_milliseconds(latency, in_english()),
                    // Without current data this is an old value, so it isn't colored.
                    if matches!(values.class, "up" | "slow") { values.class } else { "none" },
                ),
                None => ("no data".to_owned(), "none"),
            },
        };
        Self { label: label.unwrap_or_else(|| default_label(metric)), message, class, is_error: false }
    }

    /// Builds the badge of a page or monitor that doesn't exist.
    pub(crate) fn not_found(metric: BadgeMetric, label: Option<String>) -> Self {
        let label = label.unwrap_or_else(|| default_label(metric));
        Self { label, message: "not found".to_owned(), class: "none", is_error: true }
    }

    /// Renders the badge as SVG.
    ///
    /// # Errors
    /// If the template fails, which it doesn't.
    pub(crate) fn svg(&self, style: BadgeStyle) -> Result<Vec<u8>, RenderError> {
        let cased = |text: &str| match style {
            BadgeStyle::Large => text.to_uppercase(),
            BadgeStyle::Flat | BadgeStyle::Square => text.to_owned(),
        };
        let (label, message) = (cased(&sanitize(&self.label)), cased(&sanitize(&self.message)));
        let (pad, height, size, corner) = match style {
            BadgeStyle::Flat => (6, 20, 11, 3),
            BadgeStyle::Square => (6, 20, 11, 0),
            BadgeStyle::Large => (11, 28, 11, 0),
        };
        let (text, message_width) = (text_width(&label), text_width(&message));
        let left = if label.is_empty() { 0 } else { text + 2 * pad };
        let right = message_width + 2 * pad;
        render(&BadgeSvg {
            title: if label.is_empty() { message.clone() } else { format!("{label}: {message}") },
            width: left + right,
            height,
            corner,
            left,
            right,
            color: color(self.class),
            size,
            base: height / 2 + 4,
            label_at: left / 2,
            message_at: left + right / 2,
            label_length: text,
            message_length: message_width,
            label,
            message,
        })
    }

    /// Renders the badge in the Shields endpoint format (schema version 1).
    pub(crate) fn shields(&self) -> serde_json::Value {
        let color = match self.class {
            "up" => "brightgreen",
            "slow" => "yellow",
            "part" => "orange",
            "down" => "red",
            "maint" => "blue",
            _ => "lightgrey",
        };
        serde_json::json!({
            "schemaVersion": 1,
            "label": self.label,
            "message": self.message,
            "color": color,
            "isError": self.is_error,
            "cacheSeconds": CACHE_SECONDS,
        })
    }
}

#[template_file("feeds/badge.svg")]
#[derive(Debug)]
struct BadgeSvg {
    title: String,
    width: usize,
    height: usize,
    corner: usize,
    left: usize,
    right: usize,
    color: &'static str,
    size: usize,
    base: usize,
    label_at: usize,
    message_at: usize,
    label_length: usize,
    message_length: usize,
    label: String,
    message: String,
}

fn default_label(metric: BadgeMetric) -> String {
    match metric {
        BadgeMetric::Status => "status".to_owned(),
        BadgeMetric::Uptime(days) => format!("uptime {days}d"),
        BadgeMetric::Response => "response time".to_owned(),
    }
}

fn uptime_class(percent: f64) -> &'static str {
    match percent {
        percent if percent >= 99.9 => "up",
        percent if percent >= 99.0 => "slow",
        percent if percent >= 95.0 => "part",
        _ => "down",
    }
}

/// Colors of the page on which white text is readable.
fn color(class: &str) -> &'static str {
    match class {
        "up" => "#0f7a56",
        "slow" => "#8f5c00",
        "part" => "#b2461a",
        "down" => "#b82a1b",
        "maint" => "#3557bb",
        _ => "#59606b",
    }
}

/// Removes control characters and bidirectional marks, and characters that XML doesn't allow.
fn sanitize(text: &str) -> String {
    let is_visible = |character: &char| {
        !character.is_control()
            && !matches!(
                character,
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            )
    };
    super::feeds::xml_text(text).chars().filter(is_visible).collect()
}

/// Approximate width of a text in pixels in 11 px Verdana. The SVG states the same width, so viewers stretch
/// narrower text.
fn text_width(text: &str) -> usize {
    let tenths = |character: char| match character {
        'i' | 'j' | 'l' | '\'' => 32,
        ' ' | 'f' | 'I' | '.' | ',' | ';' | ':' | '|' | '!' => 42,
        't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 48,
        'c' | 's' | 'z' => 57,
        'w' => 90,
        'm' | 'M' | 'W' | '%' | '@' => 108,
        'A'..='Z' => 78,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' => 115,
        '\u{1f000}'..='\u{1faff}' => 140,
        _ => 68,
    };
    text.chars().map(tenths).sum::<usize>().div_ceil(10)
}

#[cfg(test)]
mod tests;
