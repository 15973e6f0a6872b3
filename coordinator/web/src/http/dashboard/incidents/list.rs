//! List of incidents, or of maintenance windows, with its filters.

use std::sync::Arc;

use parallax_core::id::MonitorId;
use parallax_core::incident::IncidentKind;
use parallax_service::Caller;
use parallax_service::incidents::{IncidentDetail, IncidentFilter};

use super::{data, section_of};
use crate::http::HttpContext;
use crate::http::dashboard::SignedIn;
use crate::http::dashboard::page_screen::{PageScreen, reply};
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
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let kind = if data::is_maintenance(&call.query) { IncidentKind::Maintenance } else { IncidentKind::Incident };
    let scene = PageScreen::read(&context, &mut call, section_of(kind)).await?;
    let state = STATES.into_iter().find(|(name, _)| *name == scene.query.text("state")).map_or("", |(name, _)| name);
    let monitor = scene.query.id::<MonitorId>("monitor")?;
    let before = scene.query.id("before")?;
    let caller = &call.caller.caller;
    let filter = IncidentFilter { kind: Some(kind), monitor, ..IncidentFilter::default() };
    let open = match (state, before) {
        ("past", _) | (_, Some(_)) => Vec::new(),
        _ => list(&context, caller, &scene, IncidentFilter { open: true, limit: OPEN, ..filter }).await?.0,
    };
    let (mut past, next) = match state {
        "open" => (Vec::new(), None),
        _ => list(&context, caller, &scene, IncidentFilter { before, limit: SHOWN, ..filter }).await?,
    };
    past.retain(|detail| !detail.incident.is_open());
    let monitors = context.service.monitors.list(caller, scene.page.id).await?;
    let address = |state: &str, before: &str| address(&scene, kind, state, before);
    let view = IncidentListScreen {
        is_windows: kind == IncidentKind::Maintenance,
        open: sorted_open(open, kind).iter().map(|detail| row(detail, &scene)).collect(),
        days: by_day(&past, &scene),
        states: STATES.map(|(name, text)| (address(name, ""), text, name == state)).into(),
        state,
        monitors: monitors.iter().map(|it| (it.monitor.id.to_string(), it.monitor.name.clone())).collect(),
        monitor: monitor.map(|id| id.to_string()).unwrap_or_default(),
        older: next.map(|id| address(state, &id)),
        is_filtered: monitor.is_some() || !state.is_empty() || before.is_some(),
        frame: scene.frame.clone(),
    };
    reply(&view)
}

async fn list(
    context: &HttpContext,
    caller: &Caller,
    scene: &PageScreen,
    filter: IncidentFilter,
) -> Result<(Vec<IncidentDetail>, Option<String>), ApiError> {
    let slice = context.service.incidents.list(caller, scene.page.id, filter).await?;
    Ok((slice.incidents, slice.next.map(|id| id.to_string())))
}

/// Newest incident first; the window that comes next first.
fn sorted_open(mut open: Vec<IncidentDetail>, kind: IncidentKind) -> Vec<IncidentDetail> {
    if kind == IncidentKind::Maintenance {
        open.sort_by_key(|detail| detail.incident.started_at);
    }
    open
}

fn row(detail: &IncidentDetail, scene: &PageScreen) -> IncidentRow {
    let zone = detail.series.as_ref().map_or(scene.page.timezone, |series| series.recurrence.zone);
    IncidentRow::of(&detail.clone().into(), &scene.base, zone, scene.now)
}

/// Groups past ones by the day on which they began, in the page's zone.
fn by_day(past: &[IncidentDetail], scene: &PageScreen) -> Vec<(String, Vec<IncidentRow>)> {
    let mut days: Vec<(String, Vec<IncidentRow>)> = Vec::new();
    for detail in past {
        let day = day(detail.incident.started_at, scene.page.timezone);
        match days.last_mut() {
            Some((last, rows)) if *last == day => rows.push(row(detail, scene)),
            _ => days.push((day, vec![row(detail, scene)])),
        }
    }
    days
}

/// Address of the list with these filters.
fn address(scene: &PageScreen, kind: IncidentKind, state: &str, before: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if kind == IncidentKind::Maintenance {
        query.append_pair("kind", kind.name());
    }
    let monitor = scene.query.text("monitor");
    for (name, value) in [("state", state), ("monitor", monitor), ("before", before)] {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{}/incidents{separator}{query}", scene.base)
}
