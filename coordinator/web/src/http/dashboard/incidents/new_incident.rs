//! Form of a new incident.

use std::sync::Arc;

use parallax_core::incident::IncidentStatus;
use parallax_core::locale::Locale;
use parallax_core::page::branding::Language;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::data;
use super::editor::{apply_template, chosen, chosen_names};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, saved};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::HandlerResult;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::incident_forms::NewIncidentScreen;
use crate::views::dashboard::incidents::{IncidentPreview, UpdateLine, impact_class};
use crate::views::dashboard::{Section, Toast};

/// `GET /app/pages/{page}/incidents/new`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    call.caller.caller.require(parallax_core::role::Permission::Edit)?;
    let mut form = Form::of([
        ("status", IncidentStatus::Investigating.name()),
        ("impact", "partial"),
        ("timezone", page_screen.page.timezone.name()),
    ]);
    for monitor in page_screen.query.all("monitor") {
        form.add("monitors", monitor);
    }
    draw(&context, &call.caller.caller, page_screen, &form, None).await
}

/// `POST /app/pages/{page}/incidents/new`: opens the incident, or draws the form again.
pub(super) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let mut form = submitted.form.clone();
    let act = form.text("act").to_owned();
    form.remove("act");
    if !act.is_empty() {
        if let Some(name) = act.strip_prefix("template:") {
            let choices = data::choices(&context, caller, &page_screen).await?;
            let names: Vec<String> = chosen(&form, &choices).map(|monitor| monitor.name.clone()).collect();
            apply_template(&mut form, name, &page_screen.page, &names);
        }
        return draw(&context, caller, page_screen, &form, None).await;
    }
    match save(&context, caller, &page_screen, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => draw(&context, caller, page_screen, &form, Some(refusal)).await,
    }
}

async fn save(context: &HttpContext, caller: &Caller, page_screen: &PageScreen, submitted: &SubmittedForm) -> Saved {
    let form = data::normalize(&submitted.form);
    let edit = body::read_new(FormBody::new(&form));
    let count = if form.text("resolvedAt").is_empty() {
        data::notified(context, caller, page_screen.page.id, &form).await
    } else {
        1
    };
    let path = |detail: &IncidentDetail| {
        Toast::address(&format!("{}/incidents/{}", page_screen.base, detail.incident.id), "posted", count)
    };
    let answer = |detail: &IncidentDetail| path(detail).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.incidents.open(caller, page_screen.page.id, &edit, &once).await, path)
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let choices = data::choices(context, caller, &page_screen).await?;
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let impact = data::impact_of(form);
    let title = Some(form.text("title")).filter(|title| !title.trim().is_empty()).unwrap_or("Title");
    let meta = format!("{} · {}", Locale::of(Language::En).impact(impact), chosen_names(form, &choices));
    let updates = vec![UpdateLine::draft(form.text("status"), message_or_default(form, &page_screen))];
    let screen = NewIncidentScreen {
        href: format!("{}/incidents/new", page_screen.base),
        form: view,
        preview: IncidentPreview { title: title.to_owned(), class: impact_class(impact), meta, updates },
        choices,
        zones: data::zones(page_screen.page.timezone, form.text("timezone"), page_screen.now),
        frame: page_screen.frame(context, caller, Section::Incidents).await?,
    };
    reply_with(&screen, status)
}

/// The typed message, or the text that the service writes where none is typed.
fn message_or_default<'a>(form: &'a Form, page_screen: &PageScreen) -> &'a str {
    let typed = form.text("message");
    if !typed.trim().is_empty() {
        return typed;
    }
    let status = IncidentStatus::OF_NEW.into_iter().find(|status| status.name() == form.text("status"));
    Locale::of(page_screen.page.language).default_message(status.unwrap_or(IncidentStatus::Investigating))
}
