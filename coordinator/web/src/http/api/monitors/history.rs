//! History of a monitor: its checks, events and daily uptime; and checks on demand.

use std::sync::Arc;

use ::http::StatusCode;
use chrono::NaiveDate;
use parallax_core::id::MonitorId;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use parallax_service::Caller;
use parallax_service::monitors::history::{HistorySlice, JournalEvent};
use parallax_service::monitors::{CheckNowProgress, CheckNowReport};

use super::{body, history_view};
use crate::http::HttpContext;
use crate::http::api::{body_check, enveloped, enveloped_with_warnings, query_params, to_json};
use crate::http::error::HandlerResult;
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// Rule of the parameter `cursor`.
const CURSOR_RULE: &str = "must be a cursor of this list";

/// `GET /api/v1/pages/{page}/monitors/{monitor}/checks`
pub(in crate::http) async fn checks(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    context.service.monitors.check_access(&call.caller, page, monitor)?;
    let limit = query_params::limit(&call.query)?;
    let after = query_params::value(&call.query, "cursor", CURSOR_RULE, read_cursor)?;
    let slice = context.service.history.checks(&call.caller, (page, monitor), after, limit).await?;
    let checks: Vec<_> = slice.items.iter().map(|check| history_view::check(check, &slice.agents)).collect();
    let next = slice.next.map(|(due, region)| format!("{}-{}", due.as_millis(), region.index()));
    Ok(HttpResponse::json_bytes(StatusCode::OK, to_json(&history_view::CheckList { checks, next_cursor: next })))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}/events`
pub(in crate::http) async fn events(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    context.service.monitors.check_access(&call.caller, page, monitor)?;
    let limit = query_params::limit(&call.query)?;
    let before = query_params::value(&call.query, "cursor", CURSOR_RULE, |text| text.parse().ok())?;
    let slice = context.service.history.events(&call.caller, (page, monitor), before, limit).await?;
    Ok(event_list(slice))
}

/// `GET /api/v1/pages/{page}/events`
pub(in crate::http) async fn page_events(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (service, page) = (&context.service, call.page_id()?);
    service.pages.get(&call.caller, page)?;
    let limit = query_params::limit(&call.query)?;
    let before = query_params::value(&call.query, "cursor", CURSOR_RULE, |text| text.parse().ok())?;
    let read_id = |text: &str| text.parse::<MonitorId>().ok();
    let monitor = query_params::value(&call.query, "monitor", "must be the id of a monitor of this page", read_id)?;
    Ok(event_list(service.history.page_events(&call.caller, page, monitor, before, limit).await?))
}

fn event_list(slice: HistorySlice<JournalEvent, u64>) -> HttpResponse {
    let events: Vec<_> = slice.items.iter().filter_map(|event| history_view::event(event, &slice.agents)).collect();
    let next_cursor = slice.next.map(|seq| seq.to_string());
    HttpResponse::json_bytes(StatusCode::OK, to_json(&history_view::EventList { events, next_cursor }))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}/uptime`
pub(in crate::http) async fn uptime(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    context.service.monitors.check_access(&call.caller, page, monitor)?;
    let date = |name| query_params::value(&call.query, name, "must be a date such as 2026-11-28", read_date);
    let (from, to) = (date("from")?, date("to")?);
    let days = context.service.history.days(&call.caller, (page, monitor), from, to).await?;
    let days: Vec<_> = days.iter().map(history_view::day).collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("days", &days)))
}

/// `POST /api/v1/pages/{page}/monitors/{monitor}/check`
pub(in crate::http) async fn check_now(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (id, progress) = ((call.page_id()?, call.monitor_id()?), CheckNowProgress::default());
    let result = context.service.monitors.check_now(&call.caller, id, progress).await?;
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("regions", &region_results(&result))))
}

/// `POST /api/v1/pages/{page}/monitors/test`
pub(in crate::http) async fn test(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    service.pages.get(&call.caller, page)?;
    let (object, _) = call.json_object().await?;
    let (edit, warnings) = body_check::read_new(&object, &body::RULES, |body| body::read(body));
    let result = service.monitors.test(&call.caller, page, &edit, CheckNowProgress::default()).await?;
    let body = enveloped_with_warnings("regions", &region_results(&result), &warnings);
    Ok(HttpResponse::json_bytes(StatusCode::OK, body))
}

fn region_results(report: &CheckNowReport) -> Vec<history_view::CheckNowDocument> {
    report.outcomes.iter().map(|outcome| history_view::check_now_result(outcome, &report.agents)).collect()
}

/// Reads the cursor of a list of rounds: due time and region.
pub(in crate::http) fn read_cursor(text: &str) -> Option<(Timestamp, Region)> {
    let (due, region) = text.split_once('-')?;
    let due: u64 = due.parse().ok().filter(|due| *due < 1 << 48)?;
    let region = *Region::ALL.get(region.parse::<usize>().ok()?)?;
    Some((Timestamp::from_millis(i64::try_from(due).ok()?), region))
}

fn read_date(text: &str) -> Option<NaiveDate> {
    // Only one notation is accepted: four digits, two, two.
    (text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?
}
