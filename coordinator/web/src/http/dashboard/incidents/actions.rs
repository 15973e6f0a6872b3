//! Buttons of incidents and windows: start maintenance now, end, extend, cancel, stop repeating, and delete.

use std::sync::Arc;

use parallax_core::incident::edit::IncidentEdit;
use parallax_core::incident::{IncidentKind, IncidentStatus, UpdatePost};
use parallax_core::patch::PatchField;
use parallax_core::role::Permission;
use parallax_core::time::MINUTE;
use parallax_core::validation::ValidationErrors;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::{IncidentContext, window};
use crate::http::HttpContext;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, result_path, saved};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;
use crate::views::dashboard::incident_forms::DeleteScreen;

/// Longest maintenance that starts at once, in minutes: 7 days.
const MAX_MINUTES: i64 = 7 * 24 * 60;
/// Minutes by which one press lengthens a window.
const EXTENSION: i64 = 30;

/// `POST /app/pages/{page}/incidents/start`: maintenance that begins now.
pub(super) async fn start(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    // Before the form is judged: the service judges its incident only.
    call.caller.caller.require(Permission::Edit)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let minutes = submitted.form.text("minutes").parse().ok().filter(|minutes| (1..=MAX_MINUTES).contains(minutes));
    let rule = || ValidationErrors::single("minutes", format!("must be a whole number from 1 to {MAX_MINUTES}"));
    let minutes: i64 = minutes.ok_or_else(rule)?;
    let mut form = submitted.form.clone();
    form.set("kind", IncidentKind::Maintenance.name());
    form.set("title", "Maintenance");
    form.set("startsAt", page_screen.now.to_string());
    form.set("endsAt", (page_screen.now + minutes * MINUTE).to_string());
    let edit = crate::http::api::incidents::body::read_new(FormBody::new(&form));
    let count = form.all("monitorIds").count();
    let path = |detail: &IncidentDetail| {
        Toast::address(&format!("{}/incidents/{}", page_screen.base, detail.incident.id), "maintenance-started", count)
    };
    let answer = |detail: &IncidentDetail| path(detail).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let opened = context.service.incidents.open(&call.caller.caller, page_screen.page.id, &edit, &once).await?;
    Ok(see_other(&result_path(opened, path)))
}

/// `POST /app/pages/{page}/incidents/{incident}/end`: ends a running window, or cancels a planned one.
pub(super) async fn end(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let post = UpdatePost {
        status: PatchField::Value(IncidentStatus::Completed.name().to_owned()),
        message: PatchField::Absent,
        notify: PatchField::Value(incident.detail.incident.notify),
    };
    let path = Toast::address(&incident.href, "saved", 1);
    let answer = |_: &IncidentDetail| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let (page, id) = (incident.page_screen.page.id, incident.detail.incident.id);
    let ended = context.service.incidents.post_update(&call.caller.caller, page, id, &post, &once).await;
    finish(&context, &call.caller.caller, incident, saved(ended, |_| path.clone())).await
}

/// `POST /app/pages/{page}/incidents/{incident}/extend`: lengthens a window.
pub(super) async fn extend(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let window = &incident.detail.incident;
    let end = window.ends_at.unwrap_or(window.started_at).max(incident.page_screen.now) + EXTENSION * MINUTE;
    let edit = IncidentEdit { ends_at: PatchField::Value(end.to_string()), ..IncidentEdit::default() };
    let saved = edit_by_button(&context, &call.caller.caller, &incident, &edit, submitted).await;
    finish(&context, &call.caller.caller, incident, saved).await
}

/// `POST /app/pages/{page}/incidents/{incident}/stop`: stops the series of a window.
pub(super) async fn stop(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let edit = IncidentEdit { repeat: PatchField::Null, ..IncidentEdit::default() };
    let saved = edit_by_button(&context, &call.caller.caller, &incident, &edit, submitted).await;
    finish(&context, &call.caller.caller, incident, saved).await
}

async fn edit_by_button(
    context: &HttpContext,
    caller: &Caller,
    incident: &IncidentContext,
    edit: &IncidentEdit,
    submitted: SubmittedForm,
) -> Saved {
    let path = Toast::address(&incident.href, "saved", 1);
    let answer = |_: &IncidentDetail| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer);
    let (page, id) = (incident.page_screen.page.id, incident.detail.incident.id);
    saved(context.service.incidents.edit(caller, page, id, edit, &once).await, |_| path.clone())
}

/// Goes to the result of a button, or shows on the window's screen why it was refused.
async fn finish(context: &HttpContext, caller: &Caller, incident: IncidentContext, saved: Saved) -> HandlerResult {
    match saved? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => window::reply(context, caller, incident, (Form::default(), Some(refusal))).await,
    }
}

/// `GET /app/pages/{page}/incidents/{incident}/delete`
pub(super) async fn ask_delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    call.caller.caller.require(Permission::Edit)?;
    draw_delete(&context, &call.caller.caller, incident, &Form::default(), None).await
}

/// `POST /app/pages/{page}/incidents/{incident}/delete`: deletes it if its title was typed.
pub(super) async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let submitted = SubmittedForm::read(&mut call).await?;
    let list = format!("/app/pages/{}/incidents", call.page_id()?);
    let (page, id) = (call.page_id()?, super::incident_id(&call)?);
    let answer = |(): &()| Toast::address(&list, "deleted", 1).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    let caller = &call.caller.caller.clone();
    // A repetition finds nothing any more, and is answered as the first request was.
    if let Ok(incident) = IncidentContext::read(&context, &mut call).await {
        caller.require(Permission::Edit)?;
        if submitted.form.text("confirm").trim() != incident.detail.incident.title.trim() {
            let refusal =
                FormRefusal::of(ValidationErrors::single("confirm", "must be the title, as it stands above").into())?;
            return draw_delete(&context, caller, incident, &submitted.form, Some(refusal)).await;
        }
    }
    let deleted = context.service.incidents.delete(caller, page, id, &once).await?;
    Ok(see_other(&result_path(deleted, |()| Toast::address(&list, "deleted", 1))))
}

async fn draw_delete(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let stored = &incident.detail.incident;
    let (view, status) = form.drawn(incident.page_screen.form_token(), refusal);
    let is_window = stored.kind == IncidentKind::Maintenance;
    let updates = stored.updates.len();
    let mut loss = format!(
        "It disappears from the page and its history, with {updates} update{}",
        if updates == 1 { "" } else { "s" }
    );
    loss.push_str(if stored.postmortem.is_some() { " and its post-mortem." } else { "." });
    if is_window {
        loss.push_str(" The time counts for uptime again.");
    }
    let screen = DeleteScreen {
        href: format!("{}/delete", incident.href),
        kind: if is_window { "window" } else { "incident" },
        title: stored.title.clone(),
        loss,
        form: view,
        frame: incident.frame(context, caller).await?,
        back: incident.href,
    };
    reply_with(&screen, status)
}
