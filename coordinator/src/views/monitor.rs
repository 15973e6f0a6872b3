//! Monitor views: its row on the page, and its own page with a longer chart and its outages.

use askama::Template;
use parallax_core::board::{Board, Notice, Range, Shown, worst_first};
use parallax_core::deploy::Deploy;
use parallax_core::event::Status;
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;

use super::assets;
use super::chart::{self, Drawing};
use super::incident::Card;
use super::page::{Choice, Frame, choices};
use super::share::{Found, Share};
use super::strip::{self, Glance, Lane, Strip};
use super::tongue::{Voice, Words, fill};
use super::uptime::Uptime;
use super::words::{self, Moment};

/// Maximum rows of the table behind a chart on the status page, which has many charts.
const FEW_LINES: usize = 24;
/// Number of past incidents and windows on a monitor's page.
const PAST: usize = 10;

/// State of a monitor as text, with CSS class and icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// CSS class and icon.
    pub class: &'static str,
    /// Text.
    pub words: String,
}

/// A monitor on the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Id.
    pub id: String,
    /// Path of its page, with the range.
    pub path: String,
    /// Name.
    pub name: String,
    /// Current state.
    pub state: State,
    /// Uptime over the range.
    pub uptime: Uptime,
    /// Response time over the last 24 hours.
    pub latency: Option<String>,
    /// Uptime bars.
    pub strip: Strip,
    /// Uptime bars by region; empty if the page doesn't show them.
    pub lanes: Vec<Lane>,
    /// Response time chart.
    pub chart: Option<Drawing>,
    /// Error budget of the uptime target.
    pub budget: Option<Budget>,
    /// True if the details are expanded.
    pub is_open: bool,
}

/// An error budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Text.
    pub text: String,
    /// Remaining percent; zero if the budget is spent.
    pub left: String,
    /// CSS class.
    pub class: &'static str,
}

impl State {
    /// Returns a monitor's state; `is_stale` if no agent is checking any more.
    pub fn of(shown: &Shown, is_stale: bool, said: &Words) -> Self {
        let state = |class, words: &str| Self { class, words: words.to_owned() };
        if shown.monitor.paused {
            return state("none", said.state_paused);
        }
        if shown.covered {
            return state("maint", said.state_maintenance);
        }
        match (shown.view.status, is_stale) {
            (Status::Unknown, _) => state("none", said.state_no_data),
            (Status::Up, true) => state("none", said.state_was_up),
            (Status::Slow, true) => state("none", said.state_was_slow),
            (Status::Down, true) => state("none", said.state_was_down),
            (Status::Up, false) => state("up", said.state_up),
            (Status::Slow, false) => match shown.view.slow_from {
                Some(regions) => {
                    let regions = said.tongue().regions(regions);
                    state("slow", &fill(said.state_slow_from, &[&regions]))
                }
                None => state("slow", said.state_slow),
            },
            (Status::Down, false) => match shown.view.down_from {
                Some(regions) => {
                    let regions = said.tongue().regions(regions);
                    Self { class: "part", words: fill(said.state_down_from, &[&regions]) }
                }
                None => state("down", said.state_down),
            },
        }
    }
}

impl Row {
    /// Builds the row of a monitor on the page.
    pub fn of(shown: &Shown, board: &Board, root: &str, incidents: &[Timestamp]) -> Self {
        let page = &board.page;
        let query = if board.is_chosen { query(board.range) } else { String::new() };
        let voice = Voice::of(page);
        let said = voice.words;
        let glance = Glance::of_board(board);
        Self {
            id: shown.monitor.id.to_string(),
            path: format!("{root}/monitors/{}{query}", shown.monitor.id),
            name: shown.monitor.name.clone(),
            state: State::of(shown, glance.is_stale, said),
            uptime: Uptime::of(shown, glance),
            latency: shown.latency_ms.map(|it| words::milliseconds(it, said)),
            strip: strip::strip(shown, glance, incidents),
            lanes: if page.show_locations { strip::lanes(shown, glance) } else { Vec::new() },
            chart: chart::of_page(shown, &shown.past.chart, &board.deploys, voice, FEW_LINES),
            budget: page.uptime_target.and_then(|target| budget(shown, target, said)),
            is_open: matches!(shown.view.status, Status::Down | Status::Slow),
        }
    }

    /// Label of the collapsed details, if there are any.
    pub fn folded(&self, said: &'static Words) -> Option<&'static str> {
        match (&self.chart, self.lanes.is_empty(), &self.budget) {
            (Some(_), true, _) => Some(said.response_time),
            (Some(_), false, _) => Some(said.regions_and_time),
            (None, false, _) => Some(said.regions_alone),
            (None, true, Some(_)) => Some(said.budget),
            (None, true, None) => None,
        }
    }
}

fn budget(shown: &Shown, target: f64, said: &Words) -> Option<Budget> {
    let budget = shown.budget(target)?;
    let used = if budget.allowed_minutes > 0.0 { budget.used_minutes / budget.allowed_minutes } else { 1.0 };
    let left = budget.left_minutes();
    let goal = said.tongue().number(&target.to_string());
    let text = if left < 0.0 {
        fill(said.budget_spent, &[&words::minutes(-left, said), &goal])
    } else {
        // Rounded down: never shows more than is left.
        let left = words::whole_minutes(left, said);
        fill(said.budget_left, &[&left, &words::minutes(budget.allowed_minutes, said), &goal])
    };
    Some(Budget {
        text,
        left: format!("{:.1}", ((1.0 - used) * 1000.0 + 1e-6).floor().clamp(0.0, 1000.0) / 10.0),
        class: if left < 0.0 {
            "down"
        } else if used > 0.75 {
            "slow"
        } else {
            "up"
        },
    })
}

/// Page of one monitor.
#[derive(Debug, Clone, Template)]
#[template(path = "public/monitor.html")]
pub struct MonitorPage {
    frame: Frame,
    name: String,
    group: Option<String>,
    state: State,
    /// Start of the state; `None` during maintenance.
    since: Option<Moment>,
    checked: Option<Moment>,
    is_stale: bool,
    ranges: Vec<Choice>,
    /// Uptime by range; `None` for ranges that began before the monitor existed.
    uptimes: Vec<(&'static str, Option<Uptime>)>,
    latency: Option<String>,
    budget: Option<Budget>,
    /// Open incidents and upcoming maintenance; below, past ones.
    open: Vec<Card>,
    past: Vec<Card>,
    strip: Strip,
    /// Label of the bars' unit, as a title.
    units: String,
    /// Bars as a list, newest first, each with the URL of the month if incidents began in it.
    lines: Vec<(strip::Cell, Option<String>)>,
    lanes: Vec<Lane>,
    chart: Option<Drawing>,
    outages: Vec<OutageRow>,
}

/// An outage, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OutageRow {
    from: Moment,
    to: Option<Moment>,
    length: String,
    reason: String,
}

/// Input of a monitor's page.
#[derive(Debug)]
pub struct Close<'a> {
    /// The page.
    pub page: &'a Page,
    /// Path prefix of the page.
    pub root: &'a str,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// The monitor.
    pub shown: &'a Shown,
    /// Range of its uptime bars and chart.
    pub range: Range,
    /// Its open incidents, and its current or upcoming maintenance.
    pub open: &'a [Notice],
    /// Its incidents and windows that have begun, newest first.
    pub notices: &'a [Notice],
    /// Outages, newest first.
    pub outages: &'a [Outage],
    /// Deploys, newest first.
    pub deploys: &'a [Deploy],
}

impl Close<'_> {
    /// Its closed incidents and windows, newest first.
    pub fn over(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(|notice| !notice.incident.is_open())
    }
}

impl MonitorPage {
    /// Builds the page of a monitor on a status page that is served at `found`.
    pub fn new(close: &Close<'_>, found: Found<'_>) -> Self {
        let Close { page, root, now, shown, range, .. } = *close;
        let (voice, chart) = (Voice::of(page), &shown.past.chart);
        let said = voice.words;
        let began: Vec<Timestamp> = close.notices.iter().filter_map(Notice::trouble).collect();
        let glance = Glance::of_monitor(close);
        let strip = strip::strip(shown, glance, &began);
        let month = |cell: &strip::Cell| {
            let date = cell.key.get(..10).unwrap_or_default();
            let month = date.get(..7).filter(|_| cell.incidents > 0)?;
            Some(format!("{root}/history/{month}#d{date}"))
        };
        let card = |notice: &Notice| Card::of(notice, root, voice, now, true);
        Self {
            frame: Frame::new(page, root, &shown.monitor.name, now)
                .shared_as(Share::of_monitor(close, found)),
            name: shown.monitor.name.clone(),
            group: shown.monitor.group.clone(),
            state: State::of(shown, close.is_stale, said),
            since: shown.view.since.filter(|_| !shown.covered).map(|since| words::moment(since, voice)),
            checked: shown.view.last_check.as_ref().map(|check| words::moment(check.at, voice)),
            is_stale: close.is_stale,
            ranges: choices(&format!("{root}/monitors/{}", shown.monitor.id), range, said),
            uptimes: Uptime::of_each(shown, glance)
                .into_iter()
                .map(|(range, uptime)| (strip::length(range, said), uptime))
                .collect(),
            latency: shown.latency_ms.map(|it| words::milliseconds(it, said)),
            budget: page.uptime_target.and_then(|target| budget(shown, target, said)),
            open: worst_first(close.open).into_iter().map(card).collect(),
            past: close.over().take(PAST).map(card).collect(),
            units: words::title(strip.units),
            lines: strip.cells.iter().rev().map(|cell| (cell.clone(), month(cell))).collect(),
            strip,
            lanes: if page.show_locations { strip::lanes(shown, glance) } else { Vec::new() },
            chart: if page.show_locations {
                chart::by_region(shown, chart, close.deploys, voice)
            } else {
                chart::of_page(shown, chart, close.deploys, voice, usize::MAX)
            },
            outages: close.outages.iter().map(|outage| row(outage, voice, now)).collect(),
        }
    }
}

/// Query string of a range that the visitor chose. Without one, a page shows the range that its age fills.
pub fn query(range: Range) -> String {
    format!("?range={}", range.name())
}

fn row(outage: &Outage, voice: Voice, now: Timestamp) -> OutageRow {
    let said = voice.words;
    let mut reason = match &outage.reason {
        Some(failure) => said.tongue().failure(failure),
        None => said.not_known.to_owned(),
    };
    if let Some(regions) = outage.regions {
        reason = fill(said.reason_from, &[&reason, &said.tongue().regions(regions)]);
    }
    OutageRow {
        from: words::moment(outage.from, voice),
        to: outage.to.map(|to| words::moment(to, voice)),
        length: said.tongue().length(outage.to.unwrap_or(now).since(outage.from)),
        reason,
    }
}
