//! The list of a page's monitors, and what is done with many of them at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use ::http::{Method, StatusCode};
use futures_util::FutureExt;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::bulk_edit::{MAX_BULK_MONITORS, MonitorBulkEdit};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_service::idempotency::{IdempotentRequest, RequestOutcome};
use parallax_service::monitors::MonitorWithState;
use parallax_service::monitors::bulk::{BulkReport, BulkResult};
use parallax_service::undo_offer::UndoOffer;
use parallax_service::{Caller, ServiceError};
use serde::{Deserialize, Serialize};

use super::forms::{Form, FormRefusal, FormStatus, ONCE, SubmittedForm, new_key};
use super::frame::{frame, query_param, with_undo};
use super::overview::inputs;
use super::{SignedIn, screen, see_other};
use super::{monitor_bulk_edit, monitor_order};
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::form::FieldFault;
use crate::views::dashboard::{self, BulkScreen, ListFilter, MonitorListScreen, RowInput, Section, Toast};

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
    if query_param(&call.query, "order").as_deref() == Some("edit") {
        return monitor_order::show(context, call).await;
    }
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
    /// Draws the form whose fields are to be set.
    AskFields,
    /// Sets the fields of that form; none if no field is filled.
    SetFields(Option<Box<MonitorEdit>>),
    Delete,
    Maintenance,
}

/// `POST /app/pages/{page}/monitors/bulk`
async fn bulk(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page = call.page_id()?;
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let (act, ids) = read_act(&form)?;
    let caller = call.caller.caller.clone();
    let named = named(&context, &caller, page, &ids).await?;
    caller.require(Permission::Edit)?;
    let list = format!("/app/pages/{page}/monitors");
    if ids.is_empty() {
        return Ok(see_other(&list));
    }
    let max = if matches!(act, BulkAct::Maintenance) { MAX_IN_ADDRESS } else { MAX_BULK_MONITORS };
    if ids.len() > max {
        let problem = format!("Choose at most {max} monitors. You chose {}.", ids.len());
        return refuse(&context, &mut call, page, (problem, StatusCode::BAD_REQUEST.into())).await;
    }
    if matches!(act, BulkAct::Maintenance) {
        // A form without monitors would plan for the whole page.
        let address = if named.is_empty() { list } else { maintenance_path(page, &named) };
        return Ok(see_other(&address));
    }
    if matches!(act, BulkAct::AskFields | BulkAct::SetFields(None)) {
        if named.is_empty() {
            return Ok(see_other(&list));
        }
        let refusal = matches!(act, BulkAct::SetFields(_)).then(|| FormRefusal {
            status: StatusCode::BAD_REQUEST.into(),
            faults: Vec::new(),
            problem: Some("Fill in at least one field.".to_owned()),
        });
        return draw_fields(&context, &mut call, (page, named), &form, refusal).await;
    }
    if act.pauses() && form.text("confirm") != "pause" {
        let ending = context.service.monitors.ending_incidents(&caller, page, &ids).await?;
        if !ending.is_empty() {
            let ids = named.iter().map(|it| it.id).collect();
            let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
            return Ok(screen(dashboard::render(&BulkScreen::ask_to_pause(frame, ids, ending, new_key()))?));
        }
    }
    // The number of the form, not of those that are left: after a second click none is.
    if matches!(act, BulkAct::Delete) && form.text("confirm").trim() != BulkScreen::word(ids.len()) {
        if named.is_empty() {
            return Ok(see_other(&list));
        }
        let is_wrong = form.has("confirm");
        let frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
        let named = named.into_iter().map(|it| (it.id, it.name)).collect();
        return Ok(screen(dashboard::render(&BulkScreen::ask(frame, named, is_wrong, new_key()))?));
    }
    let undo = UndoOffer::default();
    let write = |report: &BulkReport| BulkAnswer::of(report, &undo).write();
    let once = IdempotentRequest::new(idempotency_key, &write).undoable(&undo);
    let answer = match context.service.monitors.change_many(&caller, page, &act.edit(&ids), &once).await {
        Ok(RequestOutcome::Fresh(report) | RequestOutcome::Reread(report)) => BulkAnswer::of(&report, &undo),
        Ok(RequestOutcome::Replayed(answer)) => BulkAnswer::read(&answer)?,
        Err(error) if matches!(act, BulkAct::SetFields(_)) => {
            let refusal = FormRefusal::of(error)?;
            return draw_fields(&context, &mut call, (page, named), &form, Some(refusal)).await;
        }
        Err(error) => {
            let FormRefusal { status, faults, problem } = FormRefusal::of(error)?;
            let problem = problem.into_iter().chain(faults.into_iter().map(|fault| fault.text));
            let problem = problem.collect::<Vec<_>>().join(" ");
            return refuse(&context, &mut call, page, (problem, status)).await;
        }
    };
    if answer.refused.is_empty() {
        return Ok(see_other(&Toast::address_with_undo(&list, act.toast(), answer.changed, answer.undo.as_deref())));
    }
    let name = |id: &str| named.iter().find(|it| it.id.to_string() == id).map(|it| it.name.clone());
    let refused = answer.refused.into_iter().map(|(id, reason)| (name(&id).unwrap_or(id), reason)).collect();
    let mut frame = frame(&context, &mut call, Some(page), Section::Monitors).await?;
    if let (Some(token), Some(toast)) = (&answer.undo, Toast::of(act.toast(), answer.changed)) {
        frame.toast = Some(with_undo(&context, &call.caller, toast, (token, &list)));
    }
    Ok(screen(dashboard::render(&BulkScreen::refused(frame, answer.changed, refused))?))
}

/// Replies with the form whose fields are set on the chosen monitors.
async fn draw_fields(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    (page, chosen): (PageId, Vec<ChosenMonitor>),
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let mut form = form.clone();
    if refusal.is_none() {
        // That of the list, and the field of its group.
        form.keep(&[]);
        form.remove(ONCE);
    }
    let frame = frame(context, call, Some(page), Section::Monitors).await?;
    let named = chosen.into_iter().map(|it| (it.id, it.name)).collect();
    monitor_bulk_edit::draw(frame, named, &form, refusal)
}

/// Replies that nothing was changed, and why.
async fn refuse(
    context: &HttpContext,
    call: &mut RoutedRequest<SignedIn>,
    page: PageId,
    (problem, status): (String, FormStatus),
) -> HandlerResult {
    let frame = frame(context, call, Some(page), Section::Monitors).await?;
    Ok(status.apply(screen(dashboard::render(&BulkScreen::unchanged(frame, problem))?)))
}

/// Reads what to do, and with which monitors: those that are ticked, each once, or the one of a row's menu.
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
        "edit" => BulkAct::AskFields,
        "change" => BulkAct::SetFields(monitor_bulk_edit::read(form).map(Box::new)),
        "group" => {
            let group = form.text("group").trim();
            let group = if group.is_empty() { PatchField::Null } else { PatchField::Value(group.to_owned()) };
            BulkAct::Edit(Box::new(MonitorEdit { group, ..MonitorEdit::default() }), "monitors-grouped")
        }
        _ => return Err(not_found()),
    };
    let mut known = BTreeSet::new();
    let ids = form.all("id").map(|id| id.parse().map_err(|_| not_found()));
    let mut ids = ids.collect::<Result<Vec<MonitorId>, _>>()?;
    ids.retain(|id| known.insert(*id));
    Ok((act, ids))
}

/// Address of the form for maintenance of some monitors.
fn maintenance_path(page: PageId, chosen: &[ChosenMonitor]) -> String {
    let monitors: String = chosen.iter().map(|it| format!("&monitor={}", it.id)).collect();
    format!("/app/pages/{page}/incidents/new?kind=maintenance{monitors}")
}

/// A monitor that a form names.
struct ChosenMonitor {
    id: MonitorId,
    name: String,
}

impl BulkAct {
    /// Returns true if it pauses monitors.
    fn pauses(&self) -> bool {
        matches!(self, Self::Edit(edit, _) if edit.paused == PatchField::Value(true))
    }

    /// The toast after it.
    const fn toast(&self) -> &'static str {
        match self {
            Self::Edit(_, toast) => toast,
            Self::AskFields | Self::SetFields(_) => "monitors-edited",
            Self::Delete | Self::Maintenance => "monitors-deleted",
        }
    }

    /// The change to those monitors, as the API would read it.
    fn edit(&self, ids: &[MonitorId]) -> MonitorBulkEdit {
        let (set, delete) = match self {
            Self::Edit(edit, _) | Self::SetFields(Some(edit)) => {
                (PatchField::Value(MonitorEdit::clone(edit)), PatchField::Absent)
            }
            Self::Delete => (PatchField::Absent, PatchField::Value(true)),
            Self::Maintenance | Self::AskFields | Self::SetFields(None) => (PatchField::Absent, PatchField::Absent),
        };
        let monitor_ids = PatchField::Value(ids.iter().map(ToString::to_string).collect());
        MonitorBulkEdit { monitor_ids, set, delete, notify: PatchField::Absent }
    }
}

/// Result of a form, which is stored for its repetition.
#[derive(Debug, Serialize, Deserialize)]
struct BulkAnswer {
    changed: usize,
    /// Id of each monitor that was refused, with the reason.
    refused: Vec<(String, String)>,
    /// Token by which the changes are undone. Answers of older versions lack it.
    #[serde(default)]
    undo: Option<String>,
}

impl BulkAnswer {
    fn of(report: &BulkReport, undo: &UndoOffer) -> Self {
        let refused = |it: &BulkResult| it.outcome.as_ref().err().map(|error| (it.id.clone(), reason(error)));
        let refused: Vec<_> = report.results.iter().filter_map(refused).collect();
        Self { changed: report.results.len() - refused.len(), refused, undo: undo.token().map(str::to_owned) }
    }

    fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn read(answer: &[u8]) -> Result<Self, ServiceError> {
        serde_json::from_slice(answer).map_err(|error| ServiceError::Internal(error.to_string()))
    }
}

/// Returns the chosen monitors of the page, in page order.
async fn named(
    context: &HttpContext,
    caller: &Caller,
    page: PageId,
    ids: &[MonitorId],
) -> Result<Vec<ChosenMonitor>, ApiError> {
    let ids: BTreeSet<&MonitorId> = ids.iter().collect();
    let monitors = context.service.monitors.list(caller, page).await?;
    let chosen = |it: &MonitorWithState| ids.contains(&it.monitor.id);
    let named = |it: MonitorWithState| ChosenMonitor { id: it.monitor.id, name: it.monitor.name };
    Ok(monitors.into_iter().filter(chosen).map(named).collect())
}

/// Returns the reason for which one monitor was refused.
fn reason(error: &ServiceError) -> String {
    match error {
        // Deleted meanwhile.
        ServiceError::NotFound => "It no longer exists.".to_owned(),
        ServiceError::Invalid(errors) => {
            let rules = errors.iter().map(|error| FieldFault::sentence(&error.rule));
            rules.collect::<Vec<_>>().join(" ")
        }
        other => FieldFault::sentence(&other.to_string()),
    }
}
