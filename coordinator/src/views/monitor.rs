//! A monitor: its row on the page, and a page of its own with a longer chart and its outages.

use askama::Template;
use chrono_tz::Tz;
use parallax_core::board::{Board, Notice, Outage, Range, Shown};
use parallax_core::deploy::Deploy;
use parallax_core::event::Status;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;

use super::assets;
use super::chart::{self, Drawing};
use super::page::{Choice, Frame, choices};
use super::strip::{self, Lane, Strip};
use super::words::{self, Moment};

/// Lines of the table behind a chart of the page itself, where there are many charts.
const FEW_LINES: usize = 24;

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
    /// Its address on the page, with the range.
    pub path: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: State,
    /// Uptime over the range.
    pub uptime: String,
    /// Response time over the last 24 hours.
    pub latency: Option<String>,
    /// Its past.
    pub strip: Strip,
    /// Its regions' past; empty where the page does not show them.
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
    pub fn of(shown: &Shown, board: &Board, root: &str, incidents: &[Timestamp]) -> Self {
        let (page, range) = (&board.page, board.range);
        let lanes = if page.show_locations { strip::lanes(shown, range) } else { Vec::new() };
        Self {
            id: shown.monitor.id.to_string(),
            path: format!("{root}/monitors/{}{}", shown.monitor.id, query(range)),
            name: shown.monitor.name.clone(),
            state: State::of(shown, board.is_stale()),
            uptime: uptime(shown, range),
            latency: shown.latency_ms.map(words::milliseconds),
            strip: strip::strip(shown, range, incidents, page.timezone),
            lanes,
            chart: chart::of_page(shown, &shown.past.chart, &board.deploys, page.timezone, FEW_LINES),
            budget: page.uptime_target.and_then(|target| budget(shown, target, board.now)),
            is_open: matches!(shown.view.status, Status::Down | Status::Slow),
        }
    }

    /// Whether anything is folded away below it.
    pub fn has_more(&self) -> bool {
        self.chart.is_some() || !self.lanes.is_empty() || self.budget.is_some()
    }
}

fn uptime(shown: &Shown, range: Range) -> String {
    shown.uptime_in(range).map_or_else(|| "no data".to_owned(), words::percent)
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
    is_stale: bool,
    ranges: Vec<Choice>,
    uptimes: Vec<(&'static str, String)>,
    latency: Option<String>,
    strip: Strip,
    /// Cells as lines, newest first, each with the address of the month where incidents began in it.
    lines: Vec<(strip::Cell, Option<String>)>,
    lanes: Vec<Lane>,
    chart: Option<Drawing>,
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
    /// How far back its strip and its chart go.
    pub range: Range,
    /// Its incidents and windows, newest first.
    pub notices: &'a [Notice],
    /// Newest first.
    pub outages: &'a [Outage],
    /// Deploy markers, newest first.
    pub deploys: &'a [Deploy],
}

impl MonitorPage {
    /// The page of a monitor.
    pub fn new(close: &Close<'_>) -> Self {
        let Close { page, root, now, shown, range, .. } = *close;
        let (zone, chart) = (page.timezone, &shown.past.chart);
        let began: Vec<Timestamp> = close.notices.iter().filter_map(Notice::trouble).collect();
        let strip = strip::strip(shown, range, &began, zone);
        let month = |cell: &strip::Cell| {
            let date = cell.key.get(..10).unwrap_or_default();
            let month = date.get(..7).filter(|_| cell.incidents > 0)?;
            Some(format!("{root}/history/{month}#d{date}"))
        };
        Self {
            frame: Frame::new(page, root, &shown.monitor.name, now),
            name: shown.monitor.name.clone(),
            group: shown.monitor.group.clone(),
            state: State::of(shown, close.is_stale),
            since: shown.view.since.map(|since| words::moment(since, zone)),
            checked: shown.view.last_check.as_ref().map(|check| words::moment(check.at, zone)),
            is_stale: close.is_stale,
            ranges: choices(&format!("{root}/monitors/{}", shown.monitor.id), range),
            uptimes: Range::ALL.iter().map(|it| (strip::length(*it), uptime(shown, *it))).collect(),
            latency: shown.latency_ms.map(words::milliseconds),
            lines: strip.cells.iter().rev().map(|cell| (cell.clone(), month(cell))).collect(),
            strip,
            lanes: if page.show_locations { strip::lanes(shown, range) } else { Vec::new() },
            chart: if page.show_locations {
                chart::by_region(shown, chart, close.deploys, zone)
            } else {
                chart::of_page(shown, chart, close.deploys, zone, usize::MAX)
            },
            outages: close.outages.iter().map(|outage| row(outage, zone, now)).collect(),
        }
    }
}

/// What an address says of a range: nothing of the usual one.
pub fn query(range: Range) -> String {
    if range == Range::default() { String::new() } else { format!("?range={}", range.name()) }
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
