//! Forms of an incident's details and of its post-mortem. Windows have their details in `window_form.rs`.

use std::sync::Arc;

use parallax_core::incident::IncidentKind;
use parallax_core::role::Permission;
use parallax_service::Caller;

use super::{IncidentContext, changes, data, window_form};
use crate::http::HttpContext;
use crate::http::dashboard::forms::{Form, FormRefusal, LOADED, SubmittedForm, loaded};
use crate::http::dashboard::page_screen::reply_with;
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::incident_forms::{EditIncidentScreen, PostmortemScreen};

/// `GET /app/pages/{page}/incidents/{incident}/edit`
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    call.caller.caller.require(Permission::Edit)?;
    if incident.detail.incident.kind == IncidentKind::Maintenance {
        return window_form::show_edit(&context, &call.caller.caller, incident).await;
    }
    let mut form = data::stored(&incident.detail.incident);
    form.set(LOADED, loaded(&data::current_values(&incident.detail.incident)));
    draw(&context, &call.caller.caller, incident, &form, None).await
}

/// `POST /app/pages/{page}/incidents/{incident}/edit`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    if incident.detail.incident.kind == IncidentKind::Maintenance {
        return window_form::save_edit(&context, caller, incident, &submitted).await;
    }
    let current = data::current_values(&incident.detail.incident);
    match changes::change(&context, caller, &incident, &submitted, &current).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = submitted.form.redrawn(&refusal, &current, &data::stored(&incident.detail.incident));
            draw(&context, caller, incident, &form, Some(refusal)).await
        }
    }
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let choices = data::choices(context, caller, &incident.page_screen).await?;
    let (view, status) = form.drawn(incident.page_screen.form_token(), refusal);
    let screen = EditIncidentScreen {
        title: incident.detail.incident.title.clone(),
        form: view,
        choices,
        frame: incident.frame(context, caller).await?,
        href: incident.href,
    };
    reply_with(&screen, status)
}

/// `GET /app/pages/{page}/incidents/{incident}/postmortem`
pub(super) async fn show_postmortem(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    call.caller.caller.require(Permission::Edit)?;
    let mut form = stored_postmortem(&incident);
    form.set(LOADED, loaded(&data::current_values(&incident.detail.incident)));
    draw_postmortem(&context, &call.caller.caller, incident, &form, None).await
}

/// `POST /app/pages/{page}/incidents/{incident}/postmortem`
pub(super) async fn save_postmortem(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let mut form = submitted.form.clone();
    if !form.text("act").is_empty() {
        form.remove("act");
        return draw_postmortem(&context, &call.caller.caller, incident, &form, None).await;
    }
    let current = data::current_values(&incident.detail.incident);
    match changes::change(&context, &call.caller.caller, &incident, &submitted, &current).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = form.redrawn(&refusal, &current, &stored_postmortem(&incident));
            draw_postmortem(&context, &call.caller.caller, incident, &form, Some(refusal)).await
        }
    }
}

fn stored_postmortem(incident: &IncidentContext) -> Form {
    Form::of([("postmortem", incident.detail.incident.postmortem.clone().unwrap_or_default())])
}

async fn draw_postmortem(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (view, status) = form.drawn(incident.page_screen.form_token(), refusal);
    let screen = PostmortemScreen {
        title: incident.detail.incident.title.clone(),
        is_published: incident.detail.incident.postmortem.is_some(),
        preview: parallax_markdown::render_article(form.text("postmortem"), &[]),
        form: view,
        frame: incident.frame(context, caller).await?,
        href: incident.href,
    };
    reply_with(&screen, status)
}
