//! A monitor: its row on the page, and a page of its own with longer charts and its outages.

use std::collections::BTreeMap;

use askama::Template;
use chrono::NaiveDate;
use chrono_tz::Tz;
use parallax_core::board::{Board, Outage, Shown};
use parallax_core::deploy::Deploy;
use parallax_core::event::Status;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;

use super::assets;
use super::chart::{self, Drawing};
use super::page::Frame;
use super::strip::{self, Cell, Lane};
use super::words::{self, Moment};

/// Spans of days that a strip and its uptime may be shown for, longest first.
pub const SPANS: [usize; 3] = [90, 30, 7];

/// A monitor's state in words, with its class and icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Class and icon.
    pub class: &'static str,
    /// The words.
    pub words: String,
}

/// A monitor on the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its address on the page.
    pub path: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: State,
    /// Uptime over each of [`SPANS`].
    pub uptimes: Vec<(usize, String)>,
    /// Response time over the last 24 hours.
    pub latency: Option<String>,
    /// Its days.
    pub cells: Vec<Cell>,
    /// Its regions' days; empty where the page does not show them.
    pub lanes: Vec<Lane>,
    /// Its response times.
    pub chart: Option<Drawing>,
    /// What its uptime target allows and has used.
    pub budget: Option<Budget>,
    /// Whether what is folded away is shown at once.
    pub is_open: bool,
}

/// An error budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// What is said of it.
    pub text: String,
    /// Used part of a hundred, at most all.
    pub used: String,
    /// Its class: whether it is spent.
    pub class: &'static str,
}

impl State {
    /// A monitor's state; `is_stale` where nobody looks any more.
    pub fn of(shown: &Shown, is_stale: bool) -> Self {
        let state = |class, words: &str| Self { class, words: words.to_owned() };
        if shown.monitor.paused {
            return state("none", "Paused");
        }
        if shown.covered {
            return state("maint", "In maintenance");
        }
        match (shown.view.status, is_stale) {
            (Status::Unknown, _) => state("none", "No data"),
            (Status::Up, true) => state("none", "Was up"),
            (Status::Slow, true) => state("none", "Was slow"),
            (Status::Down, true) => state("none", "Was down"),
            (Status::Up, false) => state("up", "Up"),
            (Status::Slow, false) => state("slow", "Slow"),
            (Status::Down, false) => match shown.view.down_from {
                Some(regions) => {
                    Self { class: "part", words: format!("Down from {}", words::regions(regions)) }
                }
                None => state("down", "Down"),
            },
        }
    }
}

impl Row {
    /// The row of a monitor on that page.
    pub fn of(shown: &Shown, board: &Board, root: &str, incidents: &BTreeMap<NaiveDate, usize>) -> Self {
        let page = &board.page;
        let lanes = if page.show_locations { strip::lanes(shown) } else { Vec::new() };
        Self {
            id: shown.monitor.id.to_string(),
            path: format!("{root}/monitors/{}", shown.monitor.id),
            name: shown.monitor.name.clone(),
            state: State::of(shown, board.is_stale()),
            uptimes: uptimes(shown),
            latency: shown.latency_ms.map(words::milliseconds),
            cells: strip::cells(shown, incidents),
            lanes,
            chart: chart::of_page(shown, &shown.past.chart, &board.deploys, page.timezone),
            budget: page.uptime_target.and_then(|target| budget(shown, target, board.now)),
            is_open: matches!(shown.view.status, Status::Down | Status::Slow),
        }
    }

    /// Whether anything is folded away below it.
    pub fn has_more(&self) -> bool {
        self.chart.is_some() || !self.lanes.is_empty() || self.budget.is_some()
    }
}

fn uptimes(shown: &Shown) -> Vec<(usize, String)> {
    let said = |days| shown.uptime_over(days).map_or_else(|| "no data".to_owned(), words::percent);
    SPANS.iter().map(|days| (*days, said(*days))).collect()
}

fn budget(shown: &Shown, target: f64, now: Timestamp) -> Option<Budget> {
    let budget = shown.budget(target, now)?;
    let used = if budget.allowed_minutes > 0.0 { budget.used_minutes / budget.allowed_minutes } else { 1.0 };
    let left = budget.left_minutes();
    let text = if left < 0.0 {
        format!("spent, and {} more,", words::minutes(-left))
    } else {
        format!("{} of {} left", words::minutes(left), words::minutes(budget.allowed_minutes))
    };
    Some(Budget {
        text: format!("{text} in 30 days at {target} %"),
        used: format!("{:.1}", (used * 100.0).clamp(0.0, 100.0)),
        class: if left < 0.0 {
            "down"
        } else if used > 0.75 {
            "slow"
        } else {
            "up"
        },
    })
}

/// The page of one monitor.
#[derive(Debug, Clone, Template)]
#[template(path = "public/monitor.html")]
pub struct MonitorPage {
    frame: Frame,
    name: String,
    group: Option<String>,
    state: State,
    since: Option<Moment>,
    checked: Option<Moment>,
    uptimes: Vec<(usize, String)>,
    latency: Option<String>,
    cells: Vec<Cell>,
    lanes: Vec<Lane>,
    charts: Vec<(&'static str, Drawing)>,
    outages: Vec<OutageRow>,
}

/// An outage, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OutageRow {
    from: Moment,
    to: Option<Moment>,
    length: String,
    reason: String,
}

/// What a monitor's page is made of.
#[derive(Debug)]
pub struct Close<'a> {
    /// The page it is on.
    pub page: &'a Page,
    /// What the page's paths begin with.
    pub root: &'a str,
    /// When it was looked at.
    pub now: Timestamp,
    /// Whether nobody looks any more.
    pub is_stale: bool,
    /// The monitor.
    pub shown: &'a Shown,
    /// Charts, shortest first.
    pub charts: &'a [parallax_core::board::Chart],
    /// Newest first.
    pub outages: &'a [Outage],
    /// Deploy markers, newest first.
    pub deploys: &'a [Deploy],
}

impl MonitorPage {
    /// The page of a monitor.
    pub fn new(close: &Close<'_>) -> Self {
        let Close { page, root, now, shown, .. } = *close;
        let zone = page.timezone;
        let drawn = |(name, chart): (&'static str, _)| {
            let drawing = if page.show_locations {
                chart::by_region(shown, chart, close.deploys, zone)
            } else {
                chart::of_page(shown, chart, close.deploys, zone)
            };
            Some((name, drawing?))
        };
        let names = ["24 hours", "7 days", "30 days", "90 days"];
        Self {
            frame: Frame::new(page, root, &shown.monitor.name, now),
            name: shown.monitor.name.clone(),
            group: shown.monitor.group.clone(),
            state: State::of(shown, close.is_stale),
            since: shown.view.since.map(|since| words::moment(since, zone)),
            checked: shown.view.last_check.as_ref().map(|check| words::moment(check.at, zone)),
            uptimes: uptimes(shown),
            latency: shown.latency_ms.map(words::milliseconds),
            cells: strip::cells(shown, &BTreeMap::new()),
            lanes: if page.show_locations { strip::lanes(shown) } else { Vec::new() },
            charts: names.into_iter().zip(close.charts).filter_map(drawn).collect(),
            outages: close.outages.iter().map(|outage| row(outage, zone, now)).collect(),
        }
    }
}

fn row(outage: &Outage, zone: Tz, now: Timestamp) -> OutageRow {
    let mut reason = outage.reason.clone().unwrap_or_else(|| "not known".to_owned());
    if let Some(regions) = outage.regions {
        reason.push_str(", from ");
        reason.push_str(&words::regions(regions));
    }
    OutageRow {
        from: words::moment(outage.from, zone),
        to: outage.to.map(|to| words::moment(to, zone)),
        length: words::length(outage.to.unwrap_or(now).since(outage.from)),
        reason,
    }
}
