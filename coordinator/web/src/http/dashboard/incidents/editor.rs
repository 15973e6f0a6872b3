//! Form of an incident's next update: posts it together with what it changes of the incident, or previews it.

use std::sync::Arc;

use parallax_core::delivery::DeliveryState;
use parallax_core::incident::{Incident, IncidentKind, UpdateTemplate};
use parallax_core::locale::Locale;
use parallax_core::page::Page;
use parallax_core::page::branding::Language;
use parallax_service::Caller;
use parallax_service::deliveries::DeliveryFilter;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::{IncidentContext, data, window};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{
    Form, FormBody, FormRefusal, LOADED, Saved, SubmittedForm, changed, loaded, saved,
};
use crate::http::dashboard::page_screen::reply_with;
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::Toast;
use crate::views::dashboard::delivery_text::delivery_event_text;
use crate::views::dashboard::incidents::{
    AffectedMonitorChoice, IncidentChoices, IncidentPreview, IncidentScreen, IncidentState, UpdateLine, impact_class,
    monitors_text,
};
use crate::views::dashboard::time;

/// Deliveries that the summary of an update counts.
const COUNTED_DELIVERIES: usize = 2000;

/// The form of an update as it is drawn.
#[derive(Debug)]
pub(super) struct UpdateEditor {
    form: Form,
    refusal: Option<FormRefusal>,
    /// True if the preview shows what is typed.
    is_draft: bool,
}

impl UpdateEditor {
    /// The form as it first appears: the incident's values and an empty message.
    pub(super) fn blank(incident: &IncidentContext) -> Self {
        let stored = &incident.detail.incident;
        let mut form = Form::of([("status", stored.status.name()), ("message", "")]);
        data::fill(&mut form, stored);
        form.set(LOADED, loaded(&data::current_values(stored)));
        Self { form, refusal: None, is_draft: false }
    }

    /// Replies with the screen of the incident.
    pub(super) async fn reply(
        self,
        context: &HttpContext,
        caller: &Caller,
        incident: IncidentContext,
    ) -> HandlerResult {
        let choices = data::choices(context, caller, &incident.page_screen).await?;
        let (page_screen, stored) = (&incident.page_screen, &incident.detail.incident);
        let (form, status) = self.form.drawn(page_screen.form_token(), self.refusal);
        let preview = preview(&incident, self.is_draft.then_some(&self.form), &choices);
        let frame = incident.frame(context, caller).await?;
        let is_editable = stored.is_open() && frame.may_edit();
        let view = IncidentScreen {
            title: stored.title.clone(),
            state: IncidentState::of(stored, page_screen.now),
            began: time(stored.started_at, page_screen.now),
            is_automatic: stored.automatic,
            public: incident.public_url(context),
            form: is_editable.then_some(form),
            monitors: data::affected(&incident, &choices),
            sent: sent_so_far(context, caller, &incident.detail).await?,
            postmortem: stored.postmortem.as_deref().map(|text| parallax_markdown::render_article(text, &[])),
            is_over: !stored.is_open(),
            is_draft: self.is_draft,
            preview,
            choices,
            frame,
            href: incident.href.clone(),
        };
        reply_with(&view, status)
    }
}

/// The incident as readers see it; with what is typed, if the form is a draft.
fn preview(incident: &IncidentContext, draft: Option<&Form>, choices: &IncidentChoices) -> IncidentPreview {
    let stored = &incident.detail.incident;
    let now = incident.page_screen.now;
    let mut updates = UpdateLine::list(stored, now);
    let (mut title, mut impact, mut monitors) = (stored.title.clone(), stored.impact, monitors_text(&incident.view()));
    if let Some(form) = draft {
        if !form.text("message").trim().is_empty() {
            updates.insert(0, UpdateLine::draft(form.text("status"), form.text("message")));
        }
        if form.has("title") {
            title = form.text("title").to_owned();
            impact = data::impact_of(form);
            monitors = chosen_names(form, choices);
        }
    }
    let since = IncidentState::of(stored, now).why;
    let meta = format!("{} · {since} · {monitors}", Locale::of(Language::En).impact(impact));
    IncidentPreview { title, class: impact_class(impact), meta, updates }
}

/// Returns the monitors that a form has chosen; a value is an id, with an impact after it if one is named.
pub(super) fn chosen<'a>(
    form: &'a Form,
    choices: &'a IncidentChoices,
) -> impl Iterator<Item = &'a AffectedMonitorChoice> {
    let is_chosen = move |id: &str| form.all("monitors").any(|value| value.split(' ').next() == Some(id));
    choices.monitors.iter().filter(move |monitor| is_chosen(&monitor.id))
}

/// Names of the monitors that a form has chosen.
pub(super) fn chosen_names(form: &Form, choices: &IncidentChoices) -> String {
    let names: Vec<&str> = chosen(form, choices).map(|monitor| monitor.name.as_str()).collect();
    if names.is_empty() { "No monitors named".to_owned() } else { names.join(", ") }
}

/// A sentence about the newest messages to subscribers; empty if there were none.
async fn sent_so_far(context: &HttpContext, caller: &Caller, detail: &IncidentDetail) -> Result<String, ApiError> {
    let incident = &detail.incident;
    let filter = DeliveryFilter { incident: Some(incident.id), limit: COUNTED_DELIVERIES, ..DeliveryFilter::default() };
    let deliveries = context.service.deliveries.list(caller, incident.page, filter).await?.deliveries;
    let Some(event) = deliveries.first().map(|newest| newest.event.clone()) else { return Ok(String::new()) };
    let (mut delivered, mut waiting, mut failed) = (0, 0, 0);
    for delivery in deliveries.iter().filter(|delivery| delivery.event == event) {
        match delivery.state {
            DeliveryState::Delivered(_) => delivered += 1,
            DeliveryState::Waiting(_) => waiting += 1,
            DeliveryState::Failed(_) | DeliveryState::Dropped(_) => failed += 1,
        }
    }
    let total = delivered + waiting + failed;
    let mut text =
        format!("Last message ({}): {delivered} of {total} subscribers reached", delivery_event_text(&event));
    for (number, what) in [(waiting, "still on their way"), (failed, "failed")] {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    text.push('.');
    Ok(text)
}

/// Writes the text of a template into a form, and the status that goes with it. What was typed stays above it.
pub(super) fn apply_template(form: &mut Form, name: &str, page: &Page, names: &[String]) {
    let Some(template) = UpdateTemplate::of(name) else { return };
    let locale = Locale::of(page.language);
    let about = |names: &[String]| UpdateTemplate::ALL.map(|template| locale.template(template, names));
    let names = if names.is_empty() { vec![page.name.clone()] } else { names.to_vec() };
    let text = locale.template(template, &names);
    let typed = form.text("message").trim().to_owned();
    // Another template's text is replaced.
    let is_template = about(&names).contains(&typed);
    let message = if typed.is_empty() || is_template { text } else { format!("{typed}\n\n{text}") };
    form.set("message", message);
    form.set("status", template.status().name());
}

/// `POST /app/pages/{page}/incidents/{incident}`: posts an update, or draws the form again.
pub(super) async fn post(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let incident = IncidentContext::read(&context, &mut call).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    if incident.detail.incident.kind == IncidentKind::Maintenance {
        return window::post(&context, &call.caller.caller, incident, submitted).await;
    }
    let caller = &call.caller.caller;
    let mut form = submitted.form.clone();
    let act = form.text("act").to_owned();
    form.remove("act");
    if !act.is_empty() {
        if let Some(name) = act.strip_prefix("template:") {
            let names: Vec<String> = incident.detail.monitors.iter().map(|(_, name, _)| name.clone()).collect();
            apply_template(&mut form, name, &incident.page_screen.page, &names);
        }
        let editor = UpdateEditor { form, refusal: None, is_draft: true };
        return editor.reply(&context, caller, incident).await;
    }
    match save(&context, caller, &incident.detail.incident, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let stored = &incident.detail.incident;
            let form = form.redrawn(&refusal, &data::current_values(stored), &data::stored(stored));
            let editor = UpdateEditor { form, refusal: Some(refusal), is_draft: true };
            editor.reply(&context, caller, incident).await
        }
    }
}

/// Posts the update with the form's changes of the incident; returns where to go.
async fn save(context: &HttpContext, caller: &Caller, incident: &Incident, submitted: &SubmittedForm) -> Saved {
    let form = data::normalize(&submitted.form);
    let current = data::current_values(incident);
    let edit = match changed(&form, &current, |fields| body::read_change(fields)) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let post = body::read_update(FormBody::new(&form));
    let path = format!("/app/pages/{}/incidents/{}", incident.page, incident.id);
    let count = data::notified(context, caller, incident.page, &form).await;
    let answer = |_: &IncidentDetail| Toast::address(&path, "posted", count).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    let posted = context.service.incidents.edit_and_post(caller, (incident.page, incident.id), &edit, &post, &once);
    saved(posted.await, |_| Toast::address(&path, "posted", count))
}
