//! Monitors of a page: list, create, show, edit, delete.

pub(in crate::http) mod acknowledgement;
pub(in crate::http) mod body;
pub(in crate::http) mod bulk;
pub(in crate::http) mod history;
pub(in crate::http) mod history_view;
pub(in crate::http) mod latency;
pub(in crate::http) mod order;
pub(in crate::http) mod pings;
mod unjudged_warning;
pub(in crate::http) mod view;

use std::sync::Arc;

use ::http::StatusCode;
use parallax_core::event::MonitorStatus;
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::patch::PatchField;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::MonitorWithState;
use parallax_service::{Caller, Services};

use super::body_check::{self, ChangeBody};
use super::{
    created_reply, enveloped, enveloped_with_warnings, idempotency_key, query_params, read_object, write_reply,
};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;
use crate::http::routed_request::RoutedRequest;

/// Rule for the list's parameter `status`.
const STATUSES_RULE: &str = "must be one or more of up, slow, down, unknown, separated by commas";

/// Warning for the sender of `paused: false` if that does not resume checks.
const STILL_PAUSED: &str = "the monitor stays paused: the account's plan has no component monitors";

/// Reads a comma-separated list of statuses.
pub(in crate::http) fn parse_statuses(text: &str) -> Option<Vec<MonitorStatus>> {
    text.split(',').map(|name| MonitorStatus::ALL.into_iter().find(|status| status.name() == name.trim())).collect()
}

/// `GET /api/v1/pages/{page}/monitors`
pub(in crate::http) async fn list(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    service.pages.get(&call.caller, page)?;
    let statuses = query_params::value(&call.query, "status", STATUSES_RULE, parse_statuses)?;
    let monitors = service.monitors.list(&call.caller, page).await?;
    let is_wanted = |monitor: &&MonitorWithState| {
        statuses.as_ref().is_none_or(|statuses: &Vec<MonitorStatus>| statuses.contains(&monitor.view.status))
    };
    let monitors: Vec<_> = monitors
        .iter()
        .filter(is_wanted)
        .map(|monitor| view::document(monitor, service.monitors.ping_url(&call.caller, &monitor.monitor)))
        .collect();
    Ok(HttpResponse::json_bytes(StatusCode::OK, enveloped("monitors", &monitors)))
}

/// `POST /api/v1/pages/{page}/monitors`
pub(in crate::http) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let page = call.page_id()?;
    service.pages.get(&call.caller, page)?;
    let (object, idempotency_key) = call.json_object().await?;
    let (edit, warnings) = body_check::read_new(&object, &body::RULES, |body| body::read(body));
    let caller = &call.caller;
    let answer = |monitor: &MonitorWithState| saved_response(service, caller, monitor, &warnings);
    let new = service.monitors.create(caller, page, &edit, &IdempotentRequest::new(idempotency_key, &answer)).await?;
    Ok(created_reply(&format!("/api/v1/pages/{page}/monitors"), "monitor", new, answer))
}

/// `GET /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn show(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let monitor = service.monitors.get(&call.caller, call.page_id()?, call.monitor_id()?).await?;
    let ping_url = service.monitors.ping_url(&call.caller, &monitor.monitor);
    let body = enveloped_with_warnings("monitor", &view::document(&monitor, ping_url), &view::warnings(&monitor));
    Ok(HttpResponse::json_bytes(StatusCode::OK, body))
}

/// `PATCH /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn edit(context: Arc<HttpContext>, mut call: RoutedRequest<Caller>) -> HandlerResult {
    let service = &context.service;
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    let reached = service.monitors.check_access(&call.caller, page, monitor);
    let (mut object, idempotency_key) = read_object(&context, &mut call, reached).await?;
    let caller = &call.caller;
    // If it was deleted, the response is a replay or 404.
    let before = service.monitors.get(caller, page, monitor).await.ok();
    let before = before.and_then(|monitor_view| {
        body_check::to_value(&view::document(&monitor_view, service.monitors.ping_url(caller, &monitor_view.monitor)))
    });
    let ChangeBody { edit, errors: field_errors, warnings } =
        body_check::read_change(&mut object, before.as_ref(), &body::RULES, |body| body::read_change(body));
    let edit = MonitorEdit { read_only_errors: field_errors, ..edit };
    let resumes = matches!(edit.paused, PatchField::Value(false) | PatchField::Null);
    let answer = |monitor_view: &MonitorWithState| {
        let still_paused = (resumes && monitor_view.paused_by_plan).then(|| STILL_PAUSED.to_owned());
        saved_response(service, caller, monitor_view, &warnings.iter().cloned().chain(still_paused).collect::<Vec<_>>())
    };
    let changed =
        service.monitors.edit(caller, page, monitor, &edit, &IdempotentRequest::new(idempotency_key, &answer)).await?;
    Ok(write_reply(StatusCode::OK, changed, answer))
}

/// `DELETE /api/v1/pages/{page}/monitors/{monitor}`
pub(in crate::http) async fn delete(context: Arc<HttpContext>, call: RoutedRequest<Caller>) -> HandlerResult {
    let (page, monitor) = (call.page_id()?, call.monitor_id()?);
    let answer = |(): &()| Vec::new();
    let reaches = || context.service.monitors.check_access(&call.caller, page, monitor);
    let idempotency_key = idempotency_key(&call, reaches)?;
    let notify = query_params::flag(&call.query, "notify");
    let notify = notify.or_else(|fault| reaches().map_err(ApiError::from).and(Err(fault.into())))?;
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let notify = notify.unwrap_or(false);
    let deleted = context.service.monitors.delete(&call.caller, page, monitor, notify, &once).await?;
    Ok(write_reply(StatusCode::NO_CONTENT, deleted, answer))
}

/// Writes the response for a saved monitor, with warnings about it and about the body.
fn saved_response(service: &Services, caller: &Caller, monitor: &MonitorWithState, of_body: &[String]) -> Vec<u8> {
    let document = view::document(monitor, service.monitors.ping_url(caller, &monitor.monitor));
    let mut warnings = view::warnings(monitor);
    warnings.extend(of_body.iter().cloned());
    warnings.extend(unjudged_warning::unjudged_warning(monitor));
    enveloped_with_warnings("monitor", &document, &warnings)
}
