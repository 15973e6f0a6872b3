//! Badges: the status of a page or monitor as a small SVG image and in the Shields endpoint format.

use std::collections::BTreeMap;

use askama::Template;
use parallax_core::board::{Board, Shown};
use parallax_core::headline::Indicator;
use parallax_core::id::MonitorId;

use super::headline::Whole;
use super::monitor::State;
use super::share::Sight;
use super::tongue::in_english;
use super::{Unprintable, print, words};

/// Maximum length of a label in characters.
pub const MAX_LABEL: usize = 64;
/// Supported uptime periods in days.
pub const DAYS: [usize; 4] = [1, 7, 30, 90];
/// Cache time in seconds of a badge rendered elsewhere (the minimum that Shields accepts).
const KEPT_ELSEWHERE: u32 = 300;

/// Metric that a badge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Current status.
    Status,
    /// Uptime over a number of days, one of [`DAYS`].
    Uptime(usize),
    /// Response time over the last 24 hours.
    Response,
}

/// Style of a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Rounded corners.
    Flat,
    /// Square corners.
    Square,
    /// Large, uppercase.
    Large,
}

/// Data of a page's badges, so that rendering one needs no store access, and the key of its preview image.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    picture: Box<str>,
    page: Mark,
    monitors: BTreeMap<MonitorId, Mark>,
}

/// Badge data of the page or a monitor.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    class: &'static str,
    words: Box<str>,
    /// Uptime over each of [`DAYS`] in percent.
    uptimes: [Option<f64>; DAYS.len()],
    latency_ms: Option<u32>,
}

impl Facts {
    /// Extracts the badge data from a page view.
    pub fn of(board: &Board) -> Self {
        let is_stale = board.is_stale();
        let monitors: BTreeMap<_, _> =
            board.monitors.iter().map(|shown| (shown.monitor.id, mark(shown, is_stale))).collect();
        let (class, words) = match Whole::of(board) {
            _ if is_stale => ("none", "no data"),
            Whole::HardlySeen => ("none", "mostly no data"),
            Whole::Seen(Indicator::Unknown) => ("none", "no data"),
            Whole::Seen(Indicator::Operational) => ("up", "operational"),
            Whole::Seen(Indicator::Degraded) => ("slow", "degraded"),
            Whole::Seen(Indicator::Partial) => ("part", "partial outage"),
            Whole::Seen(Indicator::Major) => ("down", "major outage"),
            Whole::Seen(Indicator::Maintenance) => ("maint", "maintenance"),
        };
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let over = |at: usize| {
            mean(
                monitors.values().filter_map(|mark: &Mark| mark.uptimes.get(at).copied().flatten()).collect(),
            )
        };
        let latency = mean(monitors.values().filter_map(|mark| mark.latency_ms).map(f64::from).collect());
        let page = Mark {
            class,
            words: words.into(),
            uptimes: std::array::from_fn(over),
            latency_ms: latency.map(|mean| mean.round() as u32),
        };
        Self { picture: Sight::of(board).key().into(), page, monitors }
    }

    /// Key of the preview image for shared links.
    pub fn picture(&self) -> &str {
        &self.picture
    }

    /// Badge data of a monitor or the page; `None` if the monitor doesn't exist.
    pub fn mark(&self, monitor: Option<MonitorId>) -> Option<&Mark> {
        match monitor {
            None => Some(&self.page),
            Some(id) => self.monitors.get(&id),
        }
    }

    /// Approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        let all = self.monitors.values().chain([&self.page]);
        let marks: usize = all.map(|mark| size_of::<(MonitorId, Mark)>() + mark.words.len()).sum();
        marks + self.picture.len()
    }
}

fn mark(shown: &Shown, is_stale: bool) -> Mark {
    let state = State::of(shown, is_stale, in_english());
    let over = |days: usize| if days == 1 { shown.uptime_24h } else { shown.uptime_over(days) };
    Mark {
        class: state.class,
        words: decapitalised(&state.words).into(),
        uptimes: DAYS.map(over),
        latency_ms: shown.latency_ms,
    }
}

fn decapitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// A badge, ready to render.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Badge {
    label: String,
    message: String,
    class: &'static str,
    is_error: bool,
}

impl Badge {
    /// Builds a badge; without a label it gets the metric's default label.
    pub fn of(mark: &Mark, metric: Metric, label: Option<String>) -> Self {
        let (message, class) = match metric {
            Metric::Status => (mark.words.to_string(), mark.class),
            Metric::Uptime(days) => {
                let at = DAYS.iter().position(|known| *known == days);
                match at.and_then(|at| mark.uptimes.get(at).copied().flatten()) {
                    Some(share) => (words::percent(share, in_english()), graded(share)),
                    None => ("no data".to_owned(), "none"),
                }
            }
            Metric::Response => match mark.latency_ms {
                Some(latency) => (
                    words::milliseconds(latency, in_english()),
                    // Without current data this is an old value, so it isn't colored.
                    if matches!(mark.class, "up" | "slow") { mark.class } else { "none" },
                ),
                None => ("no data".to_owned(), "none"),
            },
        };
        Self { label: label.unwrap_or_else(|| named(metric)), message, class, is_error: false }
    }

    /// Builds the badge of a page or monitor that doesn't exist.
    pub fn of_nothing(metric: Metric, label: Option<String>) -> Self {
        let label = label.unwrap_or_else(|| named(metric));
        Self { label, message: "not found".to_owned(), class: "none", is_error: true }
    }

    /// Renders the badge as SVG.
    ///
    /// # Errors
    /// If the template fails, which it doesn't.
    pub fn svg(&self, style: Style) -> Result<Vec<u8>, Unprintable> {
        let raised = |text: &str| match style {
            Style::Large => text.to_uppercase(),
            Style::Flat | Style::Square => text.to_owned(),
        };
        let (label, message) = (raised(&plain(&self.label)), raised(&plain(&self.message)));
        let (pad, height, size, corner) = match style {
            Style::Flat => (6, 20, 11, 3),
            Style::Square => (6, 20, 11, 0),
            Style::Large => (11, 28, 11, 0),
        };
        let (text, said) = (width(&label), width(&message));
        let left = if label.is_empty() { 0 } else { text + 2 * pad };
        let right = said + 2 * pad;
        print(&Picture {
            title: if label.is_empty() { message.clone() } else { format!("{label}: {message}") },
            width: left + right,
            height,
            corner,
            left,
            right,
            colour: colour(self.class),
            size,
            base: height / 2 + 4,
            label_at: left / 2,
            message_at: left + right / 2,
            label_length: text,
            message_length: said,
            label,
            message,
        })
    }

    /// Renders the badge in the Shields endpoint format (schema version 1).
    pub fn shields(&self) -> serde_json::Value {
        let colour = match self.class {
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
            "color": colour,
            "isError": self.is_error,
            "cacheSeconds": KEPT_ELSEWHERE,
        })
    }
}

#[derive(Debug, Template)]
#[template(path = "feeds/badge.svg")]
struct Picture {
    title: String,
    width: usize,
    height: usize,
    corner: usize,
    left: usize,
    right: usize,
    colour: &'static str,
    size: usize,
    base: usize,
    label_at: usize,
    message_at: usize,
    label_length: usize,
    message_length: usize,
    label: String,
    message: String,
}

fn named(metric: Metric) -> String {
    match metric {
        Metric::Status => "status".to_owned(),
        Metric::Uptime(days) => format!("uptime {days}d"),
        Metric::Response => "response time".to_owned(),
    }
}

fn graded(share: f64) -> &'static str {
    match share {
        share if share >= 99.9 => "up",
        share if share >= 99.0 => "slow",
        share if share >= 95.0 => "part",
        _ => "down",
    }
}

/// Colors of the page on which white text is readable.
fn colour(class: &str) -> &'static str {
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
fn plain(text: &str) -> String {
    let is_shown = |sign: &char| {
        !sign.is_control()
            && !matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    super::feeds::xml(text).chars().filter(is_shown).collect()
}

/// Approximate width of a text in pixels in 11 px Verdana. The SVG states the same width, so viewers stretch
/// narrower text.
fn width(text: &str) -> usize {
    let tenths = |sign: char| match sign {
        'i' | 'j' | 'l' | '\'' => 32,
        ' ' | 'f' | 'I' | '.' | ',' | ';' | ':' | '|' | '!' => 42,
        't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 48,
        'c' | 's' | 'z' => 57,
        'w' => 90,
        'm' | 'M' | 'W' | '%' | '@' => 108,
        'A'..='Z' => 78,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ff60}' => 115,
        '\u{1f000}'..='\u{1faff}' => 140,
        _ => 68,
    };
    text.chars().map(tenths).sum::<usize>().div_ceil(10)
}

#[cfg(test)]
mod tests;
