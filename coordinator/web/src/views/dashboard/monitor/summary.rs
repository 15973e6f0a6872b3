//! Summary of a monitor: headline, explanation, facts, response times, regions, newest rounds, settings.

use parallax_core::check::CheckKind;
use parallax_core::deploy::Deploy;
use parallax_core::event::RoundReport;
use parallax_core::explanation::{Explanation, ExplanationKind, StepLink, capitalized};
use parallax_core::observation::Reading;
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::page_view::{LatencyChart, MonitorView, TimeRange};
use parallax_core::plan::Plan;
use parallax_core::time::Timestamp;
use parallax_i18n::page_messages::{PageLocale, in_english};
use parallax_template::template_file;

use super::acknowledgement::AcknowledgementView;
use super::evidence::{ExplanationView, StepPaths};
use super::heading::MonitorHeading;
use super::outcome::VantageLabels;
use super::response_chart::ResponseChart;
use super::rounds::RoundRow;
use super::settings_words::{self, CheckPlan};
use super::waterfall::{self, RegionResult, WaterfallLine};
use crate::views::dashboard::{Frame, words};
use crate::views::format::{self, FormattedTime};
use crate::views::range_context::RangeContext;
use crate::views::uptime_bars::RegionBars;
use crate::views::{assets, chart, uptime_bars};

/// Input of a monitor's summary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SummaryInput<'a> {
    /// The page.
    pub page: &'a Page,
    /// Plan of its account.
    pub plan: Plan,
    /// The monitor with its history.
    pub view: &'a MonitorView,
    /// Where and how often it is checked.
    pub checked: CheckPlan,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// Range of chart and bars.
    pub range: TimeRange,
    /// Period to which the chart is zoomed: start and end as asked for, and its response times; none for the range.
    pub zoom: Option<((Timestamp, Timestamp), &'a LatencyChart)>,
    /// Outages, newest first.
    pub outages: &'a [Outage],
    /// Deploys, newest first.
    pub deploys: &'a [Deploy],
    /// Explanation of its state.
    pub explanation: &'a Explanation,
    /// Names of agents.
    pub labels: &'a VantageLabels,
    /// Newest rounds with their reports, newest first.
    pub rounds: &'a [(Reading, Option<RoundReport>)],
}

/// Result of a check on request, as the screen shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckNowView {
    /// Time.
    pub at: FormattedTime,
    /// One line a region.
    pub lines: Vec<WaterfallLine>,
    /// Address that all of them checked; empty if they differ.
    pub address: String,
    /// Reason that there is no result, as a sentence; empty if there is one.
    pub problem: String,
    /// Result as one sentence, for screen readers.
    pub verdict: String,
}

/// Headline of a state that isn't up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateHeadline {
    /// CSS class and icon.
    pub class: &'static str,
    /// Title.
    pub title: String,
    /// Sentence.
    pub text: String,
    /// Actions: address and text.
    pub actions: Vec<(String, &'static str)>,
    /// Person who works on the outage, and the button.
    pub acknowledgement: Option<AcknowledgementView>,
}

/// Summary screen.
#[template_file("dashboard/monitor.html")]
#[derive(Debug, Clone)]
pub(crate) struct MonitorSummary {
    frame: Frame,
    heading: MonitorHeading,
    headline: Option<StateHeadline>,
    /// Notice: CSS class, bold words, the rest.
    notices: Vec<(&'static str, String, String)>,
    explanation: ExplanationView,
    facts: Vec<(String, String, String)>,
    ranges: Vec<(String, &'static str, bool)>,
    chart: Option<ResponseChart>,
    /// Start and end of the period to which the chart is zoomed, with address and text of the link back.
    zoom: Option<(FormattedTime, FormattedTime, String, String)>,
    /// Address of this screen, to which the script adds a period.
    zoom_path: String,
    lanes: Vec<RegionBars>,
    rounds: Vec<RoundRow>,
    check: Option<CheckNowView>,
    settings: Vec<(&'static str, String)>,
    has_rounds: bool,
}

impl MonitorSummary {
    /// Builds the screen; `check` is the result of a check that was just requested.
    pub(crate) fn new(
        frame: Frame,
        heading: MonitorHeading,
        input: SummaryInput<'_>,
        check: Option<CheckNowView>,
    ) -> Self {
        let SummaryInput { page, view, now, range, .. } = input;
        let zone = page.timezone;
        let locale = PageLocale { zone, messages: in_english() };
        let context = RangeContext { range, now, is_stale: input.is_stale, locale };
        let page_path = format!("/app/pages/{}", page.id);
        let paths = StepPaths { monitor: &heading.path, page: &page_path };
        let times = input.zoom.map_or(&view.history.chart, |(_, times)| times);
        let lines = chart::region_chart(view, times, input.deploys, (locale, now));
        let range_path = |range: TimeRange| format!("{}?range={}", heading.path, range.name());
        let threshold = |reading: &Reading| view.monitor.slow_threshold(reading.region, input.plan);
        let row = |(reading, report): &(Reading, Option<RoundReport>)| {
            RoundRow::of(reading, report.as_ref(), threshold(reading), input.labels, (now, zone))
        };
        Self {
            headline: headline(&input, (&heading, &page_path), frame.may_edit()),
            notices: notices(&input),
            explanation: ExplanationView::new(
                input.explanation,
                input.outages.first(),
                input.labels,
                (now, zone),
                paths,
            ),
            facts: facts(&input),
            ranges: TimeRange::ALL
                .into_iter()
                .map(|it| (range_path(it), short_range(it), it == range && input.zoom.is_none()))
                .collect(),
            chart: lines.map(|lines| ResponseChart::new(lines, times, input.outages, now)),
            zoom: input.zoom.map(|((from, to), _)| {
                let [from, to] = [from, to].map(|at| format::format_time(at, locale));
                (from, to, range_path(range), format!("Back to {}", short_range(range)))
            }),
            zoom_path: range_path(range),
            lanes: uptime_bars::build_region_bars(view, context),
            rounds: input.rounds.iter().map(row).collect(),
            check,
            settings: settings_words::settings(&view.monitor, input.checked),
            has_rounds: view.monitor.check.kind() != CheckKind::Heartbeat,
            frame,
            heading,
        }
    }
}

impl CheckNowView {
    /// Builds the result of a check on request.
    pub(crate) fn new(at: FormattedTime, results: &[RegionResult<'_>], labels: &VantageLabels) -> Self {
        if results.is_empty() {
            return Self::refused(at, "No agent answered in time. Try again.".to_owned());
        }
        let (lines, address) = waterfall::with_shared_address(waterfall::waterfall(results, labels));
        let verdict = format!("Checked: passed in {}.", waterfall::passed_regions(results).1);
        Self { at, lines, address, problem: String::new(), verdict }
    }

    /// Reports that there was no check, and why.
    pub(crate) fn refused(at: FormattedTime, problem: String) -> Self {
        Self { at, lines: Vec::new(), address: String::new(), verdict: problem.clone(), problem }
    }
}

/// CSS class of a kind of explanation.
pub(crate) const fn kind_class(kind: ExplanationKind) -> &'static str {
    match kind {
        ExplanationKind::Up => "up",
        ExplanationKind::Down
        | ExplanationKind::PingMissing
        | ExplanationKind::JobFailed
        | ExplanationKind::VendorDown => "down",
        ExplanationKind::Slow | ExplanationKind::VendorDegraded => "slow",
        ExplanationKind::Unconfirmed => "part",
        ExplanationKind::Disputed | ExplanationKind::DisputedRound | ExplanationKind::Maintenance => "maint",
        ExplanationKind::NoFreshResult
        | ExplanationKind::Unjudged
        | ExplanationKind::NotYetChecked
        | ExplanationKind::NoPingYet
        | ExplanationKind::Paused => "none",
    }
}

/// Link to the incident of an outage, or to a new one.
fn tell_visitors(explanation: &Explanation, page_path: &str) -> (String, &'static str) {
    let incident = explanation.steps.iter().find_map(|step| match step.link {
        Some(StepLink::Incident(id)) => Some(id),
        _ => None,
    });
    incident.map_or_else(
        || (format!("{page_path}/incidents/new"), "Report incident"),
        |id| (format!("{page_path}/incidents/{id}"), "Post update"),
    )
}

/// Headline of a state that needs one.
pub(crate) fn headline(
    input: &SummaryInput<'_>,
    (heading, page_path): (&MonitorHeading, &str),
    may_edit: bool,
) -> Option<StateHeadline> {
    let (explanation, kind) = (input.explanation, input.explanation.kind);
    let actions = if kind.is_outage() && may_edit { vec![tell_visitors(explanation, page_path)] } else { Vec::new() };
    kind.needs_headline().then(|| StateHeadline {
        class: kind_class(kind),
        title: explanation.title.clone(),
        text: capitalized(&explanation.detail),
        actions,
        acknowledgement: AcknowledgementView::of(
            input.view.monitor_and_state(),
            (&heading.path, may_edit),
            (&heading.form_token, heading.acknowledge_once.clone()),
            input.now,
        )
        .filter(|_| kind.is_outage()),
    })
}

/// Notices about the state: CSS class, bold words, the rest.
pub(crate) fn notices(input: &SummaryInput<'_>) -> Vec<(&'static str, String, String)> {
    let mut notices = Vec::new();
    let explanation = input.explanation;
    match explanation.kind {
        ExplanationKind::NotYetChecked => {
            let text = "The first check starts within 5 s; this page shows each region as it answers.";
            notices.push(("none", "Not checked yet.".to_owned(), text.to_owned()));
        }
        ExplanationKind::NoPingYet => {
            let text = "Request the address below once and this page shows it within a second.";
            let text = match input.view.state.last_ping_at {
                Some(_) => explanation.detail.clone(),
                None => text.to_owned(),
            };
            notices.push(("none", format!("{}.", explanation.title), text));
        }
        ExplanationKind::Paused => notices.push(("none", "Paused.".to_owned(), explanation.detail.clone())),
        _ => {}
    }
    let state = &input.view.state;
    let is_checked = !input.view.monitor.paused && input.view.monitor.check.kind() != CheckKind::Heartbeat;
    if state.unconfirmable && is_checked && explanation.kind != ExplanationKind::Unconfirmed {
        let place = input.view.monitor.pinned_region.map_or_else(
            || "All agents that check it are on one network.".to_owned(),
            |region| format!("Checked from {0} only, and {0} has one network.", region.title()),
        );
        notices.push(("slow", place, "Outages can't be confirmed.".to_owned()));
    }
    if let Some(flapping) = &state.flapping {
        let text = format!("{} changes so far. Single changes send no alerts.", flapping.changes);
        notices.push(("slow", "It goes up and down again and again.".to_owned(), text));
    }
    notices
}

const fn short_range(range: TimeRange) -> &'static str {
    match range {
        TimeRange::Day => "24 h",
        TimeRange::Week => "7 d",
        TimeRange::Month => "30 d",
        TimeRange::Quarter => "90 d",
    }
}

/// Facts: figure, unit, label.
pub(crate) fn facts(input: &SummaryInput<'_>) -> Vec<(String, String, String)> {
    let messages = in_english();
    let view = input.view;
    let uptime =
        |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), |it| format::format_percent(it, messages));
    let fact = |figure: String, unit: &str, label: &str| (figure, unit.to_owned(), label.to_owned());
    let mut facts = vec![
        fact(uptime(view.uptime_in(TimeRange::Day)), "", "uptime, 24 hours"),
        fact(uptime(view.uptime_in(TimeRange::Month)), "", "uptime, 30 days"),
    ];
    if view.monitor.check.kind().has_latency() {
        let latency = view.latency_ms.map_or_else(|| "–".to_owned(), |it| format::format_milliseconds(it, messages));
        facts.push(fact(latency, "", "response time, 24 hours"));
    }
    if view.monitor.check.kind() == CheckKind::Heartbeat {
        let run = view.state.last_run_ms.map_or_else(|| "–".to_owned(), words::elapsed);
        facts.push(fact(run, "", "newest run"));
    }
    if let Some(expiry) = view.state.expires_at {
        let days = expiry.since(input.now) / parallax_core::time::DAY;
        facts.push(fact(days.max(0).to_string(), "days", "until it ends"));
    }
    if let Some(budget) = input.page.uptime_target.and_then(|target| view.error_budget(target)) {
        let allowed = format::format_minutes(budget.allowed_minutes, messages);
        let left = budget.left_minutes();
        facts.push(if left < 0.0 {
            fact(format::format_minutes(-left, messages), &format!("over {allowed}"), "error budget, 30 days")
        } else {
            fact(format::format_whole_minutes(left, messages), &format!("of {allowed} left"), "error budget, 30 days")
        });
    }
    facts
}
