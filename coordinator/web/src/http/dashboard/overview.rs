//! Overview: the first screen after sign-in, for all pages or one.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::condition::{self, Condition};
use parallax_core::headline::Indicator;
use parallax_core::id::PageId;
use parallax_core::maintenance_window::MaintenanceWindow;
use parallax_core::page::Page;
use parallax_core::role::Permission;
use parallax_core::time::Timestamp;
use parallax_core::vantage::RegionSet;
use parallax_i18n::page_messages::in_english;
use parallax_service::dashboard::{PageState, RecentChange};
use parallax_service::monitors::MonitorWithState;
use parallax_service::public_pages::overview::PageOverview;

use super::frame::{frame, without_scheme};
use super::next_steps;
use super::{SignedIn, screen};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::{
    self, AlertFigures, AttentionRow, ChangeRow, HeadlineText, MeshText, MonitorStatusInput, NextMaintenance,
    OverviewParts, OverviewScreen, PLAN, PageRow, Section, StateText, Tile,
};
use crate::views::headline::indicator_class;

/// Routes of the overview.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    let show = || vec![(Method::GET, signed_in_route(|context, call| show(context, call).boxed()))];
    let dismiss = vec![(Method::POST, signed_in_route(|context, call| next_steps::dismiss(context, call).boxed()))];
    vec![("/app", show()), ("/app/pages/{page}", show()), ("/app/next-steps/dismiss", dismiss)]
}

/// `GET /app` and `GET /app/pages/{page}`
async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = if call.params.is_empty() { None } else { Some(call.page_id()?) };
    let frame = frame(&context, &mut call, page, Section::Overview).await?;
    let (service, caller) = (&context.service, call.caller);
    let shown = frame.pages.iter().map(|entry| entry.id).filter(|id| page.is_none_or(|only| only == *id));
    let mut states = Vec::new();
    let ids: Vec<PageId> = shown.collect();
    for id in &ids {
        let state = service.dashboard.page_state(&caller.caller, &service.public_pages, (*id, ids.len()));
        states.push(state.await?);
    }
    let mut parts = parts(&context, &caller, &states);
    let changes = service.dashboard.recent_changes(&states).await?;
    let now = service.now();
    parts.changes = changes.iter().filter_map(|change| change_row(change, now)).collect();
    if let Some(headline) = parts.headline.as_mut().filter(|headline| headline.class == "up") {
        headline.text = last_change(&changes, now);
    }
    parts.next_steps = next_steps::rows(service.dashboard.next_steps(&caller.caller).await?, &frame);
    let usage = service.accounts.usage(&caller.caller).await?;
    let limit = usize::try_from(usage.limits.monitors(usage.plan)).unwrap_or(usize::MAX);
    // Owners see every limit and what follows when one is reached.
    let action = match caller.caller.allows(Permission::ManageAccount) {
        true => (PLAN.to_owned(), "Plan"),
        false => (frame.path("monitors"), "Monitors"),
    };
    parts.attention.extend(AttentionRow::of_limit(usage.plan.name(), (usage.monitors, limit), action));
    Ok(screen(dashboard::render(&OverviewScreen::new(frame, parts))?))
}

fn parts(context: &HttpContext, caller: &SignedIn, states: &[PageState]) -> OverviewParts {
    let now = context.service.now();
    let monitors: usize = states.iter().map(|state| state.overview.monitors.len()).sum();
    let troubled = states.iter().flat_map(|state| &state.conditions).filter(|it| it.needs_attention()).count();
    let durations = states.iter().flat_map(|state| state.deliveries.durations_ms.iter().copied()).collect();
    let destinations = || states.iter().flat_map(|state| &state.destinations);
    let failing = destinations().filter(|it| condition::is_failing(it)).count();
    let sum = |number: fn(&PageState) -> usize| states.iter().map(number).sum();
    OverviewParts {
        headline: if monitors == 0 { None } else { headline(states, now, caller.role.allows(Permission::Edit)) },
        attention: attention(states, now, caller.is_operator),
        monitors: (monitors, troubled),
        regions: states.iter().map(|state| state.overview.regions.len()).max().unwrap_or_default(),
        mesh: Some(mesh(context)),
        alerts: AlertFigures::of(
            sum(|state| state.deliveries.delivered),
            sum(|state| state.deliveries.undelivered),
            durations,
            (destinations().count(), failing),
        ),
        maintenance: next_maintenance(states, now),
        pages: states.iter().map(|state| page_row(state, now)).collect(),
        changes: Vec::new(),
        next_steps: Vec::new(),
    }
}

/// Address of a page's screens.
fn root(page: PageId) -> String {
    format!("/app/pages/{page}")
}

/// Returns the monitors of a page, ready for its views.
pub(super) fn inputs<'a>(
    overview: &'a PageOverview,
    conditions: &[Condition],
    now: Timestamp,
) -> Vec<MonitorStatusInput<'a>> {
    let windows = overview.maintenance.iter().filter_map(|it| MaintenanceWindow::of(&it.incident));
    let running: Vec<MaintenanceWindow> = windows.filter(|window| window.span.contains(now)).collect();
    let until = |id| running.iter().filter(|window| window.covers(id)).map(|window| window.span.to).max();
    let monitors = overview.monitors.iter().zip(conditions);
    let input = |(it, condition): (&'a MonitorWithState, &Condition)| MonitorStatusInput {
        monitor: &it.monitor,
        view: &it.view,
        condition: *condition,
        maintenance_until: until(it.monitor.id),
        paused_by_plan: it.paused_by_plan,
        now,
    };
    monitors.map(input).collect()
}

fn attention(states: &[PageState], now: Timestamp, is_operator: bool) -> Vec<AttentionRow> {
    let mut rows: Vec<(Condition, AttentionRow)> = Vec::new();
    for state in states {
        let root = root(state.overview.page.id);
        for input in inputs(&state.overview, &state.conditions, now) {
            rows.extend(AttentionRow::of_monitor(input, &root, is_operator).map(|row| (input.condition, row)));
            rows.extend(AttentionRow::of_end(input, &root).map(|row| (Condition::NoData, row)));
        }
        let others = state.destinations.iter().filter_map(|it| AttentionRow::of_destination(it, &root, now));
        let incidents = state.overview.incidents.iter();
        let incidents = incidents.filter_map(|it| AttentionRow::of_incident(&it.incident, &root, now));
        rows.extend(others.map(|row| (Condition::Outdated, row)));
        rows.extend(incidents.map(|row| (Condition::Unconfirmed, row)));
        rows.extend(AttentionRow::of_domain(&state.overview.page, &root).map(|row| (Condition::NoData, row)));
    }
    // The worst first; among equals the order of the pages stays.
    rows.sort_by_key(|(condition, _)| *condition);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Headline of the worst page as its visitors see it.
fn headline(states: &[PageState], now: Timestamp, may_edit: bool) -> Option<HeadlineText> {
    const WORST: [Indicator; 6] = [
        Indicator::Major,
        Indicator::Partial,
        Indicator::Degraded,
        Indicator::Unknown,
        Indicator::Maintenance,
        Indicator::Operational,
    ];
    let place = |state: &&PageState| WORST.iter().position(|it| *it == state.overview.indicator);
    let worst = states.iter().filter(|state| !state.overview.monitors.is_empty()).min_by_key(place)?;
    let all: usize = states.iter().map(|state| state.overview.monitors.len()).sum();
    let overview = &worst.overview;
    if overview.indicator == Indicator::Operational {
        let up = states.iter().flat_map(|state| &state.conditions).filter(|it| **it == Condition::Up).count();
        let title =
            if up == all { format!("All {all} monitors are up") } else { format!("{up} of {all} monitors are up") };
        let title = if all == 1 && up == 1 { "The monitor is up".to_owned() } else { title };
        return Some(HeadlineText { class: "up", title, text: String::new(), actions: Vec::new() });
    }
    let root = root(overview.page.id);
    let inputs = inputs(overview, &worst.conditions, now);
    let troubled = inputs.iter().filter(|input| input.condition.needs_attention());
    let newest = troubled.min_by_key(|input| (input.condition, std::cmp::Reverse(input.view.since)));
    let visitors = format!("Visitors of {} see this headline.", overview.page.name);
    let text = newest.map_or_else(String::new, |input| {
        format!("Newest: {}, {}. ", input.monitor.name, lowercase(&StateText::of(*input).sentence()))
    });
    let mut actions = Vec::new();
    if may_edit {
        let incident = overview.incidents.first();
        actions.push(match incident {
            Some(it) => (format!("{root}/incidents/{}", it.incident.id), "Post update"),
            None => (format!("{root}/incidents/new"), "Report incident"),
        });
    }
    actions.extend(newest.map(|input| (format!("{root}/monitors/{}", input.monitor.id), "See why")));
    let class = indicator_class(overview.indicator);
    Some(HeadlineText { class, title: overview.headline.clone(), text: format!("{text}{visitors}"), actions })
}

fn lowercase(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn mesh(context: &HttpContext) -> MeshText {
    let history = &context.service.history;
    let regions: RegionSet = history.agents_in_service().iter().map(|agent| agent.region).collect();
    let (confirming, messages) = (history.confirming_networks(), in_english());
    let named = regions.iter().map(|region| (messages.locale().region(region), confirming.in_region(region)));
    MeshText::of(&named.collect::<Vec<_>>(), &confirming)
}

fn next_maintenance(states: &[PageState], now: Timestamp) -> Option<NextMaintenance> {
    let planned = states.iter().flat_map(|state| state.overview.maintenance.iter().chain(&state.overview.later));
    let next = planned.min_by_key(|it| it.incident.started_at)?;
    let window = &next.incident;
    let monitors = match next.monitors.len() {
        0 => "the whole page".to_owned(),
        some => dashboard::count(some, "monitor", "monitors"),
    };
    let end = window.ends_at.map(|at| format!(" to {}", dashboard::time(at, now).text)).unwrap_or_default();
    let start =
        if window.started_at <= now { "Running".to_owned() } else { dashboard::time(window.started_at, now).text };
    Some(NextMaintenance {
        href: format!("{}/incidents/{}", root(window.page), window.id),
        title: window.title.clone(),
        text: format!("{start}{end}, {monitors}."),
    })
}

fn page_row(state: &PageState, now: Timestamp) -> PageRow {
    let page = &state.overview.page;
    let root = root(page.id);
    let tile = |input: MonitorStatusInput<'_>| {
        let text = StateText::of(input);
        Tile {
            class: text.class,
            icon: if text.class == "up" { "" } else { text.icon },
            href: format!("{root}/monitors/{}", input.monitor.id),
            label: format!("{}: {}", input.monitor.name, text.sentence()),
        }
    };
    let subscribers = dashboard::count(state.subscribers, "subscriber", "subscribers");
    PageRow {
        id: page.id,
        name: page.name.clone(),
        facts: format!("{} · {} · {subscribers}", without_scheme(&state.url), access(page)),
        tiles: inputs(&state.overview, &state.conditions, now).into_iter().map(tile).collect(),
    }
}

const fn access(page: &Page) -> &'static str {
    match (page.private, page.password_hash.is_some()) {
        (true, _) => "private",
        (false, true) => "with a password",
        (false, false) => "public",
    }
}

fn change_row(change: &RecentChange, now: Timestamp) -> Option<ChangeRow> {
    ChangeRow::of(&change.event, change.page, change.monitor, &change.name, now)
}

/// The newest change as a sentence: "Last change 3 h ago: Image CDN recovered."
fn last_change(changes: &[RecentChange], now: Timestamp) -> String {
    let described = changes.iter().find_map(|change| Some((change, change_row(change, now)?)));
    described.map_or_else(String::new, |(change, row)| {
        format!("Last change {} ago: {}.", dashboard::duration(now.since(change.event.at)), row.title)
    })
}
