//! Screen of one maintenance window, with the form of its next update.

use chrono_tz::Tz;
use parallax_core::reminder::ReminderInterval;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::IncidentDetail;

use super::{IncidentContext, data};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, saved};
use crate::http::dashboard::page_screen::reply_with;
use crate::http::dashboard::see_other;
use crate::http::error::HandlerResult;
use crate::views::dashboard::Toast;
use crate::views::dashboard::incidents::{IncidentState, UpdateLine};
use crate::views::dashboard::window_times::{WindowTime, length, next_windows, sentence};
use crate::views::dashboard::windows::WindowScreen;

/// An update that isn't written yet.
pub(super) fn blank_form() -> (Form, Option<FormRefusal>) {
    (Form::default(), None)
}

/// Zone of a window: its series', or the page's.
pub(super) fn zone(incident: &IncidentContext) -> Tz {
    incident.detail.series.as_ref().map_or(incident.page_screen.page.timezone, |series| series.recurrence.zone)
}

/// Replies with the screen of a window.
pub(super) async fn reply(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    (form, refusal): (Form, Option<FormRefusal>),
) -> HandlerResult {
    let choices = data::choices(context, caller, &incident.page_screen).await?;
    let (page_screen, window) = (&incident.page_screen, &incident.detail.incident);
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let (zone, start) = (zone(&incident), window.planned_start());
    let end = window.ends_at.unwrap_or(start);
    let series = incident.detail.series.as_ref();
    let local_day = |at: parallax_core::time::Timestamp| at.to_utc().map(|at| at.with_timezone(&zone).date_naive());
    let repeats = series.map(|series| sentence(series.recurrence.frequency, local_day(series.recurrence.first)));
    let later = |series: &parallax_core::incident::series::Series| {
        next_windows(&series.recurrence, series.length, page_screen.now)
    };
    let frame = incident.frame(context, caller).await?;
    let is_editable = window.is_open() && frame.may_edit();
    let screen = WindowScreen {
        title: window.title.clone(),
        state: IncidentState::of(window, page_screen.now),
        time: WindowTime::of(start, end, zone),
        length: length(start, end),
        repeats: repeats.unwrap_or_default(),
        next: series.map(later).unwrap_or_default(),
        is_repeating: series.is_some_and(|series| series.stopped_at.is_none()),
        public: incident.public_url(context),
        is_running: window.is_open() && window.started_at <= page_screen.now,
        is_planned: window.is_open() && window.started_at > page_screen.now,
        monitors: data::affected(&incident, &choices),
        reminders: reminders(&window.remind),
        updates: UpdateLine::list(window, page_screen.now),
        form: view,
        is_editable,
        choices,
        postmortem: window.postmortem.as_deref().map(|text| parallax_markdown::render_article(text, &[])),
        href: incident.href.clone(),
        frame,
    };
    reply_with(&screen, status)
}

fn reminders(list: &[ReminderInterval]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Posts an update of a window.
pub(super) async fn post(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    submitted: SubmittedForm,
) -> HandlerResult {
    match save(context, caller, &incident, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => reply(context, caller, incident, (submitted.form, Some(refusal))).await,
    }
}

async fn save(context: &HttpContext, caller: &Caller, incident: &IncidentContext, submitted: &SubmittedForm) -> Saved {
    let post = body::read_update(FormBody::new(&submitted.form));
    let (page, id) = (incident.page_screen.page.id, incident.detail.incident.id);
    let count = data::notified(context, caller, page, &submitted.form).await;
    let path = Toast::address(&incident.href, "posted", count);
    let answer = |_: &IncidentDetail| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.incidents.post_update(caller, page, id, &post, &once).await, |_| path.clone())
}
