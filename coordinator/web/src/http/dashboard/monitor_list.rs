//! The list of a page's monitors, and what is done with many of them at once.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::event::MonitorStatus;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::patch::PatchField;
use parallax_service::idempotency::{IdempotencyKey, IdempotentRequest};
use parallax_service::monitors::MonitorWithState;
use parallax_service::{Caller, ServiceError};

use super::forms::{Form, ONCE, SubmittedForm, new_key};
use super::frame::frame;
use super::overview::inputs;
use super::{SignedIn, screen, see_other};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::{self, BulkScreen, ListFilter, MonitorListScreen, RowInput, Section, Toast};

/// Maximum monitors of one form: a plan's largest number with its vendor components.
const MAX_SELECTED: usize = 1000;

/// Maximum monitors that an address names.
const MAX_IN_ADDRESS: usize = 100;

/// Routes of the list.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![
        (
            "/app/pages/{page}/monitors",
            vec![(Method::GET, signed_in_route(|context, call| list(context, call).boxed()))],
        ),
        (
            "/app/pages/{page}/monitors/bulk",
            vec![(Method::POST, signed_in_route(|context, call| bulk(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/pages/{page}/monitors`
async fn list(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = call.page_id()?;
    let filter = ListFilter::read(&call.query);
    let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
    let (service, caller) = (&context.service, call.caller.caller);
    let listed = service.dashboard.monitor_list(&caller, &service.public_pages, page).await?;
    let usage = service.accounts.usage(&caller).await?;
    let limit = usage.limits.monitors(usage.plan);
    let lead = format!("{} of {limit} monitors used in this account. Vendor components do not count.", usage.monitors);
    let statuses = inputs(&listed.overview, &listed.conditions, service.now());
    let figures = listed.overview.monitors.iter().zip(&listed.slices);
    let rows: Vec<RowInput<'_>> = statuses
        .into_iter()
        .zip(figures)
        .map(|(status, (it, slices))| RowInput {
            status,
            uptime: it.statistics.uptime,
            latency_ms: it.statistics.latency_ms,
            slices,
        })
        .collect();
    Ok(screen(dashboard::render(&MonitorListScreen::new(frame, &rows, filter, lead, new_key()))?))
}

/// Act of a form on its monitors.
enum BulkAct {
    Edit(Box<MonitorEdit>, &'static str),
    Delete,
    Maintenance,
}

/// `POST /app/pages/{page}/monitors/bulk`
async fn bulk(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = call.page_id()?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let form = &submitted.form;
    let (act, ids) = read_act(form)?;
    let caller = call.caller.caller.clone();
    let named = named(&context, &caller, page, &ids).await?;
    let list = format!("/app/pages/{page}/monitors");
    if named.is_empty() {
        return Ok(see_other(&list));
    }
    if matches!(act, BulkAct::Maintenance) {
        return Ok(see_other(&maintenance_path(page, &named)));
    }
    let down: Vec<String> = named.iter().filter(|it| it.is_down).map(|it| it.name.clone()).collect();
    if act.pauses() && !down.is_empty() && form.text("confirm") != "pause" {
        let ids = named.iter().map(|it| it.id).collect();
        let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
        return Ok(screen(dashboard::render(&BulkScreen::ask_to_pause(frame, ids, down, new_key()))?));
    }
    if matches!(act, BulkAct::Delete) && form.text("confirm").trim() != BulkScreen::word(named.len()) {
        let is_wrong = form.has("confirm");
        let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
        let named = named.into_iter().map(|it| (it.id, it.name)).collect();
        return Ok(screen(dashboard::render(&BulkScreen::ask(frame, named, is_wrong, new_key()))?));
    }
    let (mut changed, mut refused) = (0, Vec::new());
    for ChosenMonitor { id, name, .. } in named {
        match apply(&context, &caller, (page, id), &act, form.text(ONCE)).await {
            Ok(()) => changed += 1,
            Err(error) => refused.push((name, reason(error)?)),
        }
    }
    if refused.is_empty() {
        let toast = match act {
            BulkAct::Edit(_, toast) => toast,
            BulkAct::Delete | BulkAct::Maintenance => "monitors-deleted",
        };
        return Ok(see_other(&Toast::address(&list, toast, changed)));
    }
    let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
    Ok(screen(dashboard::render(&BulkScreen::refused(frame, changed, refused))?))
}

/// Reads what to do, and with which monitors: those that are ticked, or the one of a row's menu.
fn read_act(form: &Form) -> Result<(BulkAct, Vec<MonitorId>), ApiError> {
    let paused =
        |is_paused: bool| Box::new(MonitorEdit { paused: PatchField::Value(is_paused), ..MonitorEdit::default() });
    let not_found = || ApiError::Service(ServiceError::NotFound);
    let one = |name: &str| form.text(name).parse().map(|id| vec![id]).map_err(|_| not_found());
    if form.has("pause") {
        return Ok((BulkAct::Edit(paused(true), "monitors-paused"), one("pause")?));
    }
    if form.has("resume") {
        return Ok((BulkAct::Edit(paused(false), "monitors-resumed"), one("resume")?));
    }
    let act = match form.text("do") {
        "pause" => BulkAct::Edit(paused(true), "monitors-paused"),
        "resume" => BulkAct::Edit(paused(false), "monitors-resumed"),
        "delete" => BulkAct::Delete,
        "maintenance" => BulkAct::Maintenance,
        "group" => {
            let group = form.text("group").trim();
            let group = if group.is_empty() { PatchField::Null } else { PatchField::Value(group.to_owned()) };
            BulkAct::Edit(Box::new(MonitorEdit { group, ..MonitorEdit::default() }), "monitors-grouped")
        }
        _ => return Err(not_found()),
    };
    let ids = form.all("id").take(MAX_SELECTED).map(|id| id.parse().map_err(|_| not_found()));
    Ok((act, ids.collect::<Result<_, _>>()?))
}

/// Address of the form for maintenance of some monitors. A longer list than an address holds means the whole page.
fn maintenance_path(page: PageId, chosen: &[ChosenMonitor]) -> String {
    let listed = if chosen.len() > MAX_IN_ADDRESS { &[] } else { chosen };
    let monitors: String = listed.iter().map(|it| format!("&monitor={}", it.id)).collect();
    format!("/app/pages/{page}/incidents/new?kind=maintenance{monitors}")
}

/// A monitor that a form names.
struct ChosenMonitor {
    id: MonitorId,
    name: String,
    is_down: bool,
}

impl BulkAct {
    /// Returns true if it pauses monitors.
    fn pauses(&self) -> bool {
        matches!(self, Self::Edit(edit, _) if edit.paused == PatchField::Value(true))
    }
}

/// Returns the chosen monitors of the page, in page order.
async fn named(
    context: &HttpContext,
    caller: &Caller,
    page: PageId,
    ids: &[MonitorId],
) -> Result<Vec<ChosenMonitor>, ApiError> {
    let monitors = context.service.monitors.list(caller, page).await?;
    let chosen = |it: &MonitorWithState| ids.contains(&it.monitor.id);
    let named = |it: MonitorWithState| ChosenMonitor {
        id: it.monitor.id,
        is_down: it.view.status == MonitorStatus::Down && !it.monitor.paused,
        name: it.monitor.name,
    };
    Ok(monitors.into_iter().filter(chosen).map(named).collect())
}

/// Changes or deletes one monitor. The form's key and the monitor's id are the identity of the change.
async fn apply(
    context: &HttpContext,
    caller: &Caller,
    (page, id): (PageId, MonitorId),
    act: &BulkAct,
    key: &str,
) -> Result<(), ServiceError> {
    let monitors = &context.service.monitors;
    let once = Some(key).filter(|key| !key.is_empty()).map(|key| {
        let request = [&page.to_u128().to_be_bytes()[..], &id.to_u128().to_be_bytes()];
        IdempotencyKey::new(caller.limit_id(), &format!("{key}/{id}"), &request)
    });
    match act {
        BulkAct::Edit(edit, _) => {
            let once = IdempotentRequest::new(once, &|_: &MonitorWithState| Vec::new());
            monitors.edit(caller, page, id, edit, &once).await.map(|_| ())
        }
        BulkAct::Delete => {
            let once = IdempotentRequest::new(once, &|(): &()| Vec::new());
            monitors.delete(caller, page, id, false, &once).await.map(|_| ())
        }
        BulkAct::Maintenance => Ok(()),
    }
}

/// Returns the reason for which one monitor was refused.
///
/// # Errors
/// An error that concerns all of them: the caller may not do it, or the store fails.
fn reason(error: ServiceError) -> Result<String, ApiError> {
    match error {
        ServiceError::RoleForbids { .. } | ServiceError::Internal(_) | ServiceError::DiskFull => Err(error.into()),
        // Deleted meanwhile.
        ServiceError::NotFound => Ok("It no longer exists.".to_owned()),
        ServiceError::Invalid(errors) => {
            let rules = errors.iter().map(|error| FieldFault::sentence(&error.rule));
            Ok(rules.collect::<Vec<_>>().join(" "))
        }
        other => Ok(FieldFault::sentence(&other.to_string())),
    }
}
