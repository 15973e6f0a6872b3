//! A monitor: its row on the page, and a page of its own with a longer chart and its outages.

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

/// Lines of the table behind a chart of the page itself, where there are many charts.
const FEW_LINES: usize = 24;
/// Incidents and windows of the past that a monitor's own page names.
const PAST: usize = 10;

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
    pub uptime: Uptime,
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
    /// How much of a hundred is left; nothing where it is spent.
    pub left: String,
    /// Its class: whether it is spent.
    pub class: &'static str,
}

impl State {
    /// A monitor's state; `is_stale` where nobody looks any more.
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
    /// The row of a monitor on that page.
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

    /// What is folded away below it, where anything is.
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
        // Nobody is promised a minute that is not there.
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

/// The page of one monitor.
#[derive(Debug, Clone, Template)]
#[template(path = "public/monitor.html")]
pub struct MonitorPage {
    frame: Frame,
    name: String,
    group: Option<String>,
    state: State,
    /// Since when it is so; none while a window covers it, which is another matter.
    since: Option<Moment>,
    checked: Option<Moment>,
    is_stale: bool,
    ranges: Vec<Choice>,
    /// Uptime over each range by its length; none of those that go back to before it.
    uptimes: Vec<(&'static str, Option<Uptime>)>,
    latency: Option<String>,
    budget: Option<Budget>,
    /// What is wrong with it or planned for it, and what was.
    open: Vec<Card>,
    past: Vec<Card>,
    strip: Strip,
    /// What the cells are, as a title.
    units: String,
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
    /// Its open incidents, and its maintenance that is under way or near.
    pub open: &'a [Notice],
    /// Its incidents and windows that began, newest first.
    pub notices: &'a [Notice],
    /// Newest first.
    pub outages: &'a [Outage],
    /// Deploy markers, newest first.
    pub deploys: &'a [Deploy],
}

impl Close<'_> {
    /// Its incidents and windows that are over, newest first.
    pub fn over(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(|notice| !notice.incident.is_open())
    }
}

impl MonitorPage {
    /// The page of a monitor, of a status page that is found there.
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

/// Query string of a range that the visitor chose. Without one, a page opens with the range that its age fills.
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
