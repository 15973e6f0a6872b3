//! Pause, resume and deletion of a monitor.

use std::sync::Arc;

use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::edit::MonitorEdit;
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_core::validation::ValidationErrors;
use parallax_service::ServiceError;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::monitors::MonitorWithState;
use parallax_service::undo_offer::UndoOffer;

use super::super::forms::{Form, FormRefusal, SubmittedForm, result_path};
use super::super::{SignedIn, see_other};
use super::screen::{self, MonitorCall};
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;
use crate::views::dashboard::monitor::confirm::MonitorQuestion;

/// Acts that ask first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Pause,
    Delete,
}

/// `GET /app/pages/{page}/monitors/{monitor}/pause`
pub(super) async fn ask_pause(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    ask(&context, &call, Act::Pause, Form::default(), None).await
}

/// `GET /app/pages/{page}/monitors/{monitor}/delete`
pub(super) async fn ask_delete(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let call = MonitorCall::new(call)?;
    ask(&context, &call, Act::Delete, Form::default(), None).await
}

/// `POST /app/pages/{page}/monitors/{monitor}/pause`
///
/// A monitor whose pause ends an automatic incident is paused only by the form of the question, which has the field
/// `asked`: mails that leave then can't be undone.
pub(super) async fn pause(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let (page, id) = (call.page, call.monitor_id()?);
    let ending = context.service.monitors.ending_incidents(&call.caller.caller, page, &[id]).await?;
    if !ending.is_empty() && !submitted.form.is_on("asked") {
        return ask(&context, &call, Act::Pause, Form::default(), None).await;
    }
    set_paused(&context, &call, (page, id), submitted, true).await
}

/// `POST /app/pages/{page}/monitors/{monitor}/resume`
pub(super) async fn resume(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let ids = (call.page, call.monitor_id()?);
    set_paused(&context, &call, ids, submitted, false).await
}

async fn set_paused(
    context: &HttpContext,
    call: &MonitorCall,
    (page, id): (PageId, MonitorId),
    SubmittedForm { form, idempotency_key }: SubmittedForm,
    is_paused: bool,
) -> HandlerResult {
    let edit = MonitorEdit {
        paused: PatchField::Value(is_paused),
        notify: PatchField::Value(is_paused && form.is_on("notify")),
        ..MonitorEdit::default()
    };
    let toast = if is_paused { "monitors-paused" } else { "monitors-resumed" };
    let undo = UndoOffer::default();
    let monitor = format!("/app/pages/{page}/monitors/{id}");
    let path = |_: &MonitorWithState| Toast::address_with_undo(&monitor, toast, 1, undo.token());
    let answer = |changed: &MonitorWithState| path(changed).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer).undoable(&undo);
    let outcome = context.service.monitors.edit(&call.caller.caller, page, id, &edit, &once).await?;
    Ok(see_other(&result_path(outcome, path)))
}

/// `POST /app/pages/{page}/monitors/{monitor}/delete`
pub(super) async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let SubmittedForm { form, idempotency_key } = SubmittedForm::read(&mut call).await?;
    let call = MonitorCall::new(call)?;
    let (page, id) = (call.page, call.monitor_id()?);
    let caller = &call.caller.caller;
    let path = |(): &()| Toast::address(&format!("/app/pages/{page}/monitors"), "monitors-deleted", 1);
    // If it is gone already, the deletion is a repetition or a 404.
    let name = context.service.monitors.get(caller, page, id).await.ok().map(|it| it.monitor.name);
    if name.as_ref().is_some_and(|name| name.trim() != form.text("name").trim()) {
        caller.require(Permission::Edit)?;
        let errors = ValidationErrors::single("name", "must be the name of the monitor");
        let refusal = FormRefusal::of(ServiceError::Invalid(errors))?;
        return ask(&context, &call, Act::Delete, form, Some(refusal)).await;
    }
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(idempotency_key, &answer);
    let deleted = context.service.monitors.delete(caller, page, id, form.is_on("notify"), &once).await?;
    Ok(see_other(&result_path(deleted, path)))
}

async fn ask(
    context: &HttpContext,
    call: &MonitorCall,
    act: Act,
    form: Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (service, signed_in) = (&context.service, &call.caller);
    let page = service.pages.get(&signed_in.caller, call.page)?.id;
    let current = service.monitors.get(&signed_in.caller, page, call.monitor_id()?).await?;
    signed_in.caller.require(Permission::Edit)?;
    let ending = service.monitors.ending_incidents(&signed_in.caller, page, &[current.monitor.id]).await?;
    let incident = ending.into_iter().next();
    let path = format!("/app/pages/{page}/monitors/{}", current.monitor.id);
    if act == Act::Pause && incident.is_none() {
        // There is nothing to ask: such a pause can be undone.
        return Ok(see_other(&path));
    }
    let frame = screen::frame(context, signed_in, page, &call.query).await?;
    let (view, status) = form.drawn(&signed_in.form_token, refusal);
    let name = current.monitor.name.clone();
    // Also while no agent reports: then the outage that was announced still runs.
    let is_down = current.view.outage_since.is_some();
    let ends = incident.as_ref().map(|title| format!(" This resolves “{title}”.")).unwrap_or_default();
    let (title, text, button, rest) = match act {
        Act::Pause => (
            format!("Pause {name}?"),
            // Without such an incident nothing is asked, and a pause can be undone.
            format!(
                "It is {}. Paused, it is not checked and sends no alerts.{ends} It can’t be undone.",
                status_word(is_down)
            ),
            "Pause",
            "pause",
        ),
        Act::Delete => (
            format!("Delete {name}?"),
            format!("Its history, its figures and its badge are deleted. This can't be undone.{ends}"),
            "Delete monitor",
            "delete",
        ),
    };
    let question = MonitorQuestion {
        frame,
        action: format!("{path}/{rest}"),
        title,
        text,
        maintenance: is_down
            .then(|| format!("/app/pages/{page}/incidents/new?kind=maintenance&monitor={}", current.monitor.id)),
        notify: incident.map(|title| format!("Notify subscribers that “{title}” is resolved")),
        asks_name: act == Act::Delete,
        button,
        form: view,
        name,
        path,
    };
    screen::reply_with(&question, status)
}

const fn status_word(is_down: bool) -> &'static str {
    if is_down { "down" } else { "not down" }
}
