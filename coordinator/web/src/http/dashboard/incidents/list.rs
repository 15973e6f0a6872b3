//! List of incidents, or of maintenance windows, with its filters.

use std::sync::Arc;

use parallax_core::id::MonitorId;
use parallax_core::incident::IncidentKind;
use parallax_service::Caller;
use parallax_service::incidents::{IncidentDetail, IncidentFilter};

use super::{data, section_of};
use crate::http::HttpContext;
use crate::http::dashboard::SignedIn;
use crate::http::dashboard::page_screen::{PageScreen, address_with, reply};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::incidents::{IncidentListScreen, IncidentRow};
use crate::views::dashboard::window_times::day;

/// Entries of one part of the list.
const SHOWN: usize = 50;
/// Open entries that are shown on top: as many as a page can have.
const OPEN: usize = 400;
/// States to filter by: name in the query, and text.
const STATES: [(&str, &str); 3] = [("", "All"), ("open", "Open"), ("past", "Past")];

/// `GET /app/pages/{page}/incidents`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let kind = if data::is_maintenance(&call.query) { IncidentKind::Maintenance } else { IncidentKind::Incident };
    let page_screen = PageScreen::read(&context, &call)?;
    let state =
        STATES.into_iter().find(|(name, _)| *name == page_screen.query.text("state")).map_or("", |(name, _)| name);
    let monitor = page_screen.query.id::<MonitorId>("monitor")?;
    let before = page_screen.query.id("before")?;
    let caller = &call.caller.caller;
    let filter = IncidentFilter { kind: Some(kind), monitor, ..IncidentFilter::default() };
    let open = match (state, before) {
        ("past", _) | (_, Some(_)) => Vec::new(),
        _ => list(&context, caller, &page_screen, IncidentFilter { open: true, limit: OPEN, ..filter }).await?.0,
    };
    let (mut past, next) = match state {
        "open" => (Vec::new(), None),
        _ => list(&context, caller, &page_screen, IncidentFilter { before, limit: SHOWN, ..filter }).await?,
    };
    past.retain(|detail| !detail.incident.is_open());
    let monitors = page_screen.monitor_choices(&context, caller).await?;
    let address = |state: &str, before: &str| address(&page_screen, kind, state, before);
    let view = IncidentListScreen {
        is_windows: kind == IncidentKind::Maintenance,
        open: sorted_open(open, kind).iter().map(|detail| row(detail, &page_screen)).collect(),
        days: by_day(&past, &page_screen),
        states: STATES.map(|(name, text)| (address(name, ""), text, name == state)).into(),
        state,
        monitors,
        monitor: monitor.map(|id| id.to_string()).unwrap_or_default(),
        older: next.map(|id| address(state, &id)),
        is_filtered: monitor.is_some() || !state.is_empty() || before.is_some(),
        frame: page_screen.frame(&context, caller, section_of(kind)).await?,
    };
    reply(&view)
}

async fn list(
    context: &HttpContext,
    caller: &Caller,
    page_screen: &PageScreen,
    filter: IncidentFilter,
) -> Result<(Vec<IncidentDetail>, Option<String>), ApiError> {
    let slice = context.service.incidents.list(caller, page_screen.page.id, filter).await?;
    Ok((slice.incidents, slice.next.map(|id| id.to_string())))
}

/// Newest incident first; the window that comes next first.
fn sorted_open(mut open: Vec<IncidentDetail>, kind: IncidentKind) -> Vec<IncidentDetail> {
    if kind == IncidentKind::Maintenance {
        open.sort_by_key(|detail| detail.incident.started_at);
    }
    open
}

fn row(detail: &IncidentDetail, page_screen: &PageScreen) -> IncidentRow {
    let zone = detail.series.as_ref().map_or(page_screen.page.timezone, |series| series.recurrence.zone);
    IncidentRow::of(&detail.clone().into(), &page_screen.base, zone, page_screen.now)
}

/// Groups past ones by the day on which they began, in the page's zone.
fn by_day(past: &[IncidentDetail], page_screen: &PageScreen) -> Vec<(String, Vec<IncidentRow>)> {
    let mut days: Vec<(String, Vec<IncidentRow>)> = Vec::new();
    for detail in past {
        let day = day(detail.incident.started_at, page_screen.page.timezone);
        match days.last_mut() {
            Some((last, rows)) if *last == day => rows.push(row(detail, page_screen)),
            _ => days.push((day, vec![row(detail, page_screen)])),
        }
    }
    days
}

/// Address of the list with these filters.
fn address(page_screen: &PageScreen, kind: IncidentKind, state: &str, before: &str) -> String {
    let kind = if kind == IncidentKind::Maintenance { kind.name() } else { "" };
    let pairs = [("kind", kind), ("state", state), ("monitor", page_screen.query.text("monitor")), ("before", before)];
    address_with(&format!("{}/incidents", page_screen.base), pairs)
}
