//! Monitor views: its row on the page, and its own page with a longer chart and its outages.

use parallax_core::deploy::Deploy;
use parallax_core::event::MonitorStatus;
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::page_view::{IncidentView, MonitorView, PageView, TimeRange, worst_first};
use parallax_core::time::Timestamp;
use parallax_template::template_file;

use super::assets;
use super::chart::{self, ChartView};
use super::format::{self, FormattedTime};
use super::incident::IncidentCard;
use super::link_preview::{LinkPreview, PreviewLocation};
use super::messages::{PageLocale, PageMessages, fill};
use super::page::{PageFrame, RangeLink, range_links};
use super::uptime::UptimeView;
use super::uptime_bars::{self, BarsContext, RegionBars, UptimeBars};

/// Maximum rows of the table behind a chart on the status page, which has many charts.
const MAX_TABLE_ROWS: usize = 24;
/// Number of past incidents and windows on a monitor's page.
const MAX_PAST: usize = 10;

/// State of a monitor as text, with CSS class and icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorStateLabel {
    /// CSS class and icon.
    pub class: &'static str,
    /// Text.
    pub text: String,
}

/// A monitor on the page.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorRow {
    /// Id.
    pub id: String,
    /// Path of its page, with the range.
    pub path: String,
    /// Name.
    pub name: String,
    /// Current state.
    pub state: MonitorStateLabel,
    /// Uptime over the range.
    pub uptime: UptimeView,
    /// Response time over the last 24 hours.
    pub latency: Option<String>,
    /// Uptime bars.
    pub bars: UptimeBars,
    /// Uptime bars by region; empty if the page doesn't show them.
    pub region_bars: Vec<RegionBars>,
    /// Response time chart.
    pub chart: Option<ChartView>,
    /// Error budget of the uptime target.
    pub budget: Option<ErrorBudgetView>,
    /// True if the details are expanded.
    pub is_open: bool,
}

/// An error budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBudgetView {
    /// Text.
    pub text: String,
    /// Remaining percent; zero if the budget is spent.
    pub left: String,
    /// CSS class.
    pub class: &'static str,
}

impl MonitorStateLabel {
    /// Returns a monitor's state; `is_stale` if no agent is checking any more.
    pub fn of(shown: &MonitorView, is_stale: bool, said: &PageMessages) -> Self {
        let state = |class, words: &str| Self { class, text: words.to_owned() };
        if shown.monitor.paused {
            return state("none", said.state_paused);
        }
        if shown.in_maintenance {
            return state("maint", said.state_maintenance);
        }
        match (shown.state.status, is_stale) {
            (MonitorStatus::Unknown, _) => state("none", said.state_no_data),
            (MonitorStatus::Up, true) => state("none", said.state_was_up),
            (MonitorStatus::Slow, true) => state("none", said.state_was_slow),
            (MonitorStatus::Down, true) => state("none", said.state_was_down),
            (MonitorStatus::Up, false) => state("up", said.state_up),
            (MonitorStatus::Slow, false) => match shown.state.slow_from {
                Some(regions) => {
                    let regions = said.locale().regions(regions);
                    state("slow", &fill(said.state_slow_from, &[&regions]))
                }
                None => state("slow", said.state_slow),
            },
            (MonitorStatus::Down, false) => match shown.state.down_from {
                Some(regions) => {
                    let regions = said.locale().regions(regions);
                    Self { class: "part", text: fill(said.state_down_from, &[&regions]) }
                }
                None => state("down", said.state_down),
            },
        }
    }
}

impl MonitorRow {
    /// Builds the row of a monitor on the page.
    pub fn of(shown: &MonitorView, board: &PageView, root: &str, incidents: &[Timestamp]) -> Self {
        let page = &board.page;
        let query = if board.is_range_chosen { range_query(board.range) } else { String::new() };
        let voice = PageLocale::of(page);
        let said = voice.messages;
        let glance = BarsContext::of_board(board);
        Self {
            id: shown.monitor.id.to_string(),
            path: format!("{root}/monitors/{}{query}", shown.monitor.id),
            name: shown.monitor.name.clone(),
            state: MonitorStateLabel::of(shown, glance.is_stale, said),
            uptime: UptimeView::of(shown, glance),
            latency: shown.latency_ms.map(|it| format::format_milliseconds(it, said)),
            bars: uptime_bars::build_bars(shown, glance, incidents),
            region_bars: if page.show_locations { uptime_bars::build_region_bars(shown, glance) } else { Vec::new() },
            chart: chart::mean_chart(shown, &shown.history.chart, &board.deploys, voice, MAX_TABLE_ROWS),
            budget: page.uptime_target.and_then(|target| error_budget(shown, target, said)),
            is_open: matches!(shown.state.status, MonitorStatus::Down | MonitorStatus::Slow),
        }
    }

    /// Label of the collapsed details, if there are any.
    pub fn details_label(&self, said: &'static PageMessages) -> Option<&'static str> {
        match (&self.chart, self.region_bars.is_empty(), &self.budget) {
            (Some(_), true, _) => Some(said.response_time),
            (Some(_), false, _) => Some(said.regions_and_time),
            (None, false, _) => Some(said.regions_alone),
            (None, true, Some(_)) => Some(said.budget),
            (None, true, None) => None,
        }
    }
}

fn error_budget(shown: &MonitorView, target: f64, said: &PageMessages) -> Option<ErrorBudgetView> {
    let budget = shown.error_budget(target)?;
    let used = if budget.allowed_minutes > 0.0 { budget.used_minutes / budget.allowed_minutes } else { 1.0 };
    let left = budget.left_minutes();
    let goal = said.locale().number(&target.to_string());
    let text = if left < 0.0 {
        fill(said.budget_spent, &[&format::format_minutes(-left, said), &goal])
    } else {
        // Rounded down: never shows more than is left.
        let left = format::format_whole_minutes(left, said);
        fill(said.budget_left, &[&left, &format::format_minutes(budget.allowed_minutes, said), &goal])
    };
    Some(ErrorBudgetView {
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
#[template_file("public/monitor.html")]
#[derive(Debug, Clone)]
pub struct MonitorPage {
    frame: PageFrame,
    name: String,
    group: Option<String>,
    state: MonitorStateLabel,
    /// Start of the state; `None` during maintenance.
    since: Option<FormattedTime>,
    checked: Option<FormattedTime>,
    is_stale: bool,
    ranges: Vec<RangeLink>,
    /// Uptime by range; `None` for ranges that began before the monitor existed.
    uptimes: Vec<(&'static str, Option<UptimeView>)>,
    latency: Option<String>,
    budget: Option<ErrorBudgetView>,
    /// Open incidents and upcoming maintenance; below, past ones.
    open: Vec<IncidentCard>,
    past: Vec<IncidentCard>,
    strip: UptimeBars,
    /// Label of the bars' unit, as a title.
    units: String,
    /// Bars as a list, newest first, each with the URL of the month if incidents began in it.
    lines: Vec<(uptime_bars::UptimeBar, Option<String>)>,
    lanes: Vec<RegionBars>,
    chart: Option<ChartView>,
    outages: Vec<OutageRow>,
}

/// An outage, ready to render.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OutageRow {
    from: FormattedTime,
    to: Option<FormattedTime>,
    length: String,
    reason: String,
}

/// Input of a monitor's page.
#[derive(Debug)]
pub struct MonitorDetailView<'a> {
    /// The page.
    pub page: &'a Page,
    /// Path prefix of the page.
    pub root: &'a str,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// The monitor.
    pub shown: &'a MonitorView,
    /// Range of its uptime bars and chart.
    pub range: TimeRange,
    /// Its open incidents, and its current or upcoming maintenance.
    pub open: &'a [IncidentView],
    /// Its incidents and windows that have begun, newest first.
    pub notices: &'a [IncidentView],
    /// Outages, newest first.
    pub outages: &'a [Outage],
    /// Deploys, newest first.
    pub deploys: &'a [Deploy],
}

impl MonitorDetailView<'_> {
    /// Its closed incidents and windows, newest first.
    pub fn closed_incidents(&self) -> impl Iterator<Item = &IncidentView> {
        self.notices.iter().filter(|notice| !notice.incident.is_open())
    }
}

impl MonitorPage {
    /// Builds the page of a monitor on a status page that is served at `found`.
    pub fn new(close: &MonitorDetailView<'_>, found: PreviewLocation<'_>) -> Self {
        let MonitorDetailView { page, root, now, shown, range, .. } = *close;
        let (voice, chart) = (PageLocale::of(page), &shown.history.chart);
        let said = voice.messages;
        let began: Vec<Timestamp> = close.notices.iter().filter_map(IncidentView::outage_start).collect();
        let glance = BarsContext::of_monitor(close);
        let strip = uptime_bars::build_bars(shown, glance, &began);
        let month = |cell: &uptime_bars::UptimeBar| {
            let date = cell.key.get(..10).unwrap_or_default();
            let month = date.get(..7).filter(|_| cell.incidents > 0)?;
            Some(format!("{root}/history/{month}#d{date}"))
        };
        let card = |notice: &IncidentView| IncidentCard::of(notice, root, voice, now, true);
        Self {
            frame: PageFrame::new(page, root, &shown.monitor.name, now)
                .with_preview(LinkPreview::of_monitor(close, found)),
            name: shown.monitor.name.clone(),
            group: shown.monitor.group.clone(),
            state: MonitorStateLabel::of(shown, close.is_stale, said),
            since: shown.state.since.filter(|_| !shown.in_maintenance).map(|since| format::format_time(since, voice)),
            checked: shown.state.last_check.as_ref().map(|check| format::format_time(check.at, voice)),
            is_stale: close.is_stale,
            ranges: range_links(&format!("{root}/monitors/{}", shown.monitor.id), range, said),
            uptimes: UptimeView::of_each(shown, glance)
                .into_iter()
                .map(|(range, uptime)| (uptime_bars::range_label(range, said), uptime))
                .collect(),
            latency: shown.latency_ms.map(|it| format::format_milliseconds(it, said)),
            budget: page.uptime_target.and_then(|target| error_budget(shown, target, said)),
            open: worst_first(close.open).into_iter().map(card).collect(),
            past: close.closed_incidents().take(MAX_PAST).map(card).collect(),
            units: format::capitalize(strip.units),
            lines: strip.bars.iter().rev().map(|cell| (cell.clone(), month(cell))).collect(),
            strip,
            lanes: if page.show_locations { uptime_bars::build_region_bars(shown, glance) } else { Vec::new() },
            chart: if page.show_locations {
                chart::region_chart(shown, chart, close.deploys, voice)
            } else {
                chart::mean_chart(shown, chart, close.deploys, voice, usize::MAX)
            },
            outages: close.outages.iter().map(|outage| outage_row(outage, voice, now)).collect(),
        }
    }
}

/// Query string of a range that the visitor chose. Without one, a page shows the range that its age fills.
pub fn range_query(range: TimeRange) -> String {
    format!("?range={}", range.name())
}

fn outage_row(outage: &Outage, voice: PageLocale, now: Timestamp) -> OutageRow {
    let said = voice.messages;
    let mut reason = match &outage.reason {
        Some(failure) => said.locale().failure_text(failure),
        None => said.not_known.to_owned(),
    };
    if let Some(regions) = outage.regions {
        reason = fill(said.reason_from, &[&reason, &said.locale().regions(regions)]);
    }
    OutageRow {
        from: format::format_time(outage.from, voice),
        to: outage.to.map(|to| format::format_time(to, voice)),
        length: said.locale().duration(outage.to.unwrap_or(now).since(outage.from)),
        reason,
    }
}
