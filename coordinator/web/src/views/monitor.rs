//! Monitor views: its row on the page, and its own page with a longer chart and its outages.

use parallax_core::event::MonitorStatus;
use parallax_core::outage::Outage;
use parallax_core::page_view::{IncidentView, MonitorView, PageView, worst_first};
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, PageMessages, fill};
use parallax_template::template_file;

use super::assets;
use super::chart::{self, ChartView};
use super::format::{self, FormattedTime};
use super::frame::PageFrame;
use super::incident_card::IncidentCard;
use super::link_preview::{LinkPreview, PreviewLocation};
use super::monitor_detail::MonitorDetailView;
use super::monitor_state::MonitorStateLabel;
use super::range_context::RangeContext;
use super::ranges::{self, RangeLink, range_links};
use super::uptime::UptimeView;
use super::uptime_bars::{self, RegionBars, UptimeBars};

/// Maximum rows of the table behind a chart on the status page, which has many charts.
const MAX_TABLE_ROWS: usize = 24;
/// Number of past incidents and windows on a monitor's page.
const MAX_PAST: usize = 10;

/// A monitor on the page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MonitorRow {
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
pub(crate) struct ErrorBudgetView {
    /// Text.
    pub text: String,
    /// Remaining percent; zero if the budget is spent.
    pub left: String,
    /// CSS class.
    pub class: &'static str,
}

impl MonitorRow {
    /// Builds the row of a monitor on the page.
    pub(crate) fn of(view: &MonitorView, page_view: &PageView, root: &str, incidents: &[Timestamp]) -> Self {
        let page = &page_view.page;
        let query = if page_view.is_range_chosen { ranges::range_query(page_view.range) } else { String::new() };
        let locale = PageLocale::of(page);
        let messages = locale.messages;
        let context = RangeContext::of_page(page_view);
        Self {
            id: view.monitor.id.to_string(),
            path: format!("{root}/monitors/{}{query}", view.monitor.id),
            name: view.monitor.name.clone(),
            state: MonitorStateLabel::of(view, context.is_stale, messages),
            uptime: UptimeView::of(view, context),
            latency: view.latency_ms.map(|it| format::format_milliseconds(it, messages)),
            bars: uptime_bars::build_bars(view, context, incidents),
            region_bars: if page.show_locations { uptime_bars::build_region_bars(view, context) } else { Vec::new() },
            chart: chart::mean_chart(view, &view.history.chart, &page_view.deploys, locale, MAX_TABLE_ROWS),
            budget: page.uptime_target.and_then(|target| error_budget(view, target, messages)),
            is_open: matches!(view.state.status, MonitorStatus::Down | MonitorStatus::Slow),
        }
    }

    /// Label of the collapsed details, if there are any.
    pub(crate) fn details_label(&self, messages: &'static PageMessages) -> Option<&'static str> {
        match (&self.chart, self.region_bars.is_empty(), &self.budget) {
            (Some(_), true, _) => Some(messages.response_time),
            (Some(_), false, _) => Some(messages.regions_and_time),
            (None, false, _) => Some(messages.regions_only),
            (None, true, Some(_)) => Some(messages.budget),
            (None, true, None) => None,
        }
    }
}

fn error_budget(view: &MonitorView, target: f64, messages: &PageMessages) -> Option<ErrorBudgetView> {
    let budget = view.error_budget(target)?;
    let used = if budget.allowed_minutes > 0.0 { budget.used_minutes / budget.allowed_minutes } else { 1.0 };
    let left = budget.left_minutes();
    let target_text = messages.locale().number(&target.to_string());
    let text = if left < 0.0 {
        fill(messages.budget_spent, &[&format::format_minutes(-left, messages), &target_text])
    } else {
        // Rounded down: never shows more than is left.
        let left = format::format_whole_minutes(left, messages);
        fill(messages.budget_left, &[&left, &format::format_minutes(budget.allowed_minutes, messages), &target_text])
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
pub(crate) struct MonitorPage {
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
    bars: UptimeBars,
    /// Label of the bars' unit, as a title.
    units: String,
    /// Bars as a list, newest first, each with the URL of the month if incidents began in it.
    bar_lines: Vec<(uptime_bars::UptimeBar, Option<String>)>,
    region_bars: Vec<RegionBars>,
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

impl MonitorPage {
    /// Builds the page of a monitor on a status page that is served at `location`.
    pub(crate) fn new(detail: &MonitorDetailView<'_>, location: PreviewLocation<'_>) -> Self {
        let MonitorDetailView { page, root, now, view, range, .. } = *detail;
        let (locale, chart) = (PageLocale::of(page), &view.history.chart);
        let messages = locale.messages;
        let incident_starts: Vec<Timestamp> = detail.incidents.iter().filter_map(IncidentView::outage_start).collect();
        let context = RangeContext::of_monitor(detail);
        let bars = uptime_bars::build_bars(view, context, &incident_starts);
        let month = |bar: &uptime_bars::UptimeBar| {
            let date = bar.key.get(..10).unwrap_or_default();
            let month = date.get(..7).filter(|_| bar.incidents > 0)?;
            Some(format!("{root}/history/{month}#d{date}"))
        };
        let card = |incident_view: &IncidentView| IncidentCard::of(incident_view, root, locale, now, true);
        Self {
            frame: PageFrame::new(page, root, &view.monitor.name, now)
                .with_preview(LinkPreview::of_monitor(detail, location)),
            name: view.monitor.name.clone(),
            group: view.monitor.group.clone(),
            state: MonitorStateLabel::of(view, detail.is_stale, messages),
            since: view.state.since.filter(|_| !view.in_maintenance).map(|since| format::format_time(since, locale)),
            checked: view.state.last_check.as_ref().map(|check| format::format_time(check.at, locale)),
            is_stale: detail.is_stale,
            ranges: range_links(&format!("{root}/monitors/{}", view.monitor.id), range, messages),
            uptimes: UptimeView::of_each(view, context)
                .into_iter()
                .map(|(range, uptime)| (ranges::range_label(range, messages), uptime))
                .collect(),
            latency: view.latency_ms.map(|it| format::format_milliseconds(it, messages)),
            budget: page.uptime_target.and_then(|target| error_budget(view, target, messages)),
            open: worst_first(detail.open).into_iter().map(card).collect(),
            past: detail.closed_incidents().take(MAX_PAST).map(card).collect(),
            units: format::capitalize(bars.units),
            bar_lines: bars.bars.iter().rev().map(|bar| (bar.clone(), month(bar))).collect(),
            bars,
            region_bars: if page.show_locations { uptime_bars::build_region_bars(view, context) } else { Vec::new() },
            chart: if page.show_locations {
                chart::region_chart(view, chart, detail.deploys, (locale, now))
            } else {
                chart::mean_chart(view, chart, detail.deploys, locale, usize::MAX)
            },
            outages: detail.outages.iter().map(|outage| outage_row(outage, locale, now)).collect(),
        }
    }
}

fn outage_row(outage: &Outage, locale: PageLocale, now: Timestamp) -> OutageRow {
    let messages = locale.messages;
    let mut reason = match &outage.reason {
        Some(failure) => messages.locale().failure_text(failure),
        None => messages.unknown_reason.to_owned(),
    };
    if let Some(regions) = outage.regions {
        reason = fill(messages.reason_from, &[&reason, &messages.locale().regions(regions)]);
    }
    OutageRow {
        from: format::format_time(outage.from, locale),
        to: outage.to.map(|to| format::format_time(to, locale)),
        length: messages.locale().duration(outage.to.unwrap_or(now).since(outage.from)),
        reason,
    }
}
