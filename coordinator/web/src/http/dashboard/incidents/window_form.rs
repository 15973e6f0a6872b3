//! Form that plans a maintenance window, or changes one: in the window's own zone, with its next dates.

use std::sync::Arc;

use chrono_tz::Tz;
use parallax_core::incident::{Incident, IncidentKind};
use parallax_core::recurrence::{Frequency, Recurrence, local_to_timestamp};
use parallax_core::role::Permission;
use parallax_core::time::{HOUR, MINUTE, Timestamp};
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::incidents::{IncidentDetail, IncidentFilter};
use serde_json::{Value, json};

use super::{IncidentContext, changes, data, window};
use crate::http::HttpContext;
use crate::http::api::incidents::body;
use crate::http::dashboard::forms::{Form, FormBody, FormRefusal, LOADED, Saved, SubmittedForm, loaded, saved};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::window_times::{WindowTime, input_value, length, next_windows, repetitions, sentence};
use crate::views::dashboard::windows::WindowFormScreen;
use crate::views::dashboard::{Section, Toast};

/// Windows that are compared with the one that is typed.
const COMPARED: usize = 200;
/// Overlapping windows that are named.
const NAMED_OVERLAPS: usize = 3;

/// `GET /app/pages/{page}/incidents/new?kind=maintenance`: with `monitor`, once for each, it offers to start at once.
pub(super) async fn show_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &call)?;
    call.caller.caller.require(Permission::Edit)?;
    let zone = scene.page.timezone;
    // The next full hour but one: early enough to be announced.
    let start = Timestamp::from_millis((scene.now.hour() + 2) * HOUR);
    let mut form = Form::of([("timezone", zone.name().to_owned()), ("repeat", String::new())]);
    form.set("startsAt", input_value(start, zone));
    form.set("endsAt", input_value(start + HOUR, zone));
    for monitor in scene.query.all("monitor") {
        form.add("monitorIds", monitor);
    }
    draw(&context, &call.caller.caller, scene, &form, (None, None)).await
}

/// `POST /app/pages/{page}/incidents/new?kind=maintenance`
pub(super) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let form = &with_reminders(&submitted.form);
    if !form.text("act").is_empty() {
        let mut form = form.clone();
        form.remove("act");
        return draw(&context, caller, scene, &form, (None, None)).await;
    }
    match plan(&context, caller, &scene, (form, &submitted)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => draw(&context, caller, scene, form, (Some(refusal), None)).await,
    }
}

async fn plan(
    context: &HttpContext,
    caller: &Caller,
    scene: &PageScreen,
    (form, submitted): (&Form, &SubmittedForm),
) -> Saved {
    let edit = body::read_new(FormBody::new(form));
    let count = data::notified(context, caller, scene.page.id, form).await;
    let path = |detail: &IncidentDetail| {
        Toast::address(&format!("{}/incidents/{}", scene.base, detail.incident.id), "posted", count)
    };
    let answer = |detail: &IncidentDetail| path(detail).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.incidents.open(caller, scene.page.id, &edit, &once).await, path)
}

/// Replies with the form of an existing window.
pub(super) async fn show_edit(context: &HttpContext, caller: &Caller, incident: IncidentContext) -> HandlerResult {
    let zone = window::zone(&incident);
    let stored = &incident.detail.incident;
    let mut form = stored_form(stored, zone);
    form.set(LOADED, loaded(&current_values(stored)));
    let changes = (stored.title.clone(), incident.href);
    draw(context, caller, incident.page_screen, &form, (None, Some(changes))).await
}

/// Form of a stored window, with its times in a zone.
fn stored_form(stored: &Incident, zone: Tz) -> Form {
    let mut form = Form::of([("title", stored.title.as_str()), ("timezone", zone.name())]);
    form.set("startsAt", input_value(stored.started_at, zone));
    form.set("endsAt", stored.ends_at.map(|end| input_value(end, zone)).unwrap_or_default());
    stored.affected.iter().for_each(|affected| form.add("monitorIds", affected.monitor.to_string()));
    stored.remind.iter().for_each(|remind| form.add("remind", remind.to_string()));
    form
}

/// Saves the form of an existing window.
pub(super) async fn save_edit(
    context: &HttpContext,
    caller: &Caller,
    incident: IncidentContext,
    submitted: &SubmittedForm,
) -> HandlerResult {
    let form = with_reminders(&submitted.form);
    let zone = form.text("timezone").parse().unwrap_or_else(|_| window::zone(&incident));
    let current = current_values(&incident.detail.incident);
    let changes = Some((incident.detail.incident.title.clone(), incident.href.clone()));
    if !form.text("act").is_empty() {
        let mut form = form;
        form.remove("act");
        return draw(context, caller, incident.page_screen, &form, (None, changes)).await;
    }
    let read = with_instants(&form, &incident.detail.incident, zone);
    let submitted = SubmittedForm { form: read, idempotency_key: submitted.idempotency_key.clone() };
    match changes::change(context, caller, &incident, &submitted, &current).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(mut refusal) => {
            in_zone(&mut refusal, &incident.detail.incident, zone);
            let form = form.redrawn(&refusal, &current, &stored_form(&incident.detail.incident, zone));
            draw(context, caller, incident.page_screen, &form, (Some(refusal), changes)).await
        }
    }
}

/// Times of a window and their fields.
fn times(window: &Incident) -> [(&'static str, Option<Timestamp>); 2] {
    [("startsAt", Some(window.started_at)), ("endsAt", window.ends_at)]
}

/// Writes a time as the form compares it: its minute in UTC. The form has no seconds, and its zone may change.
fn instant(at: Timestamp) -> String {
    Timestamp::from_millis(at.as_millis().div_euclid(MINUTE) * MINUTE).to_string()
}

/// The form with its local times as instants. A time that is as it was drawn means the instant that it was drawn of: a
/// clock change repeats local times. Text that isn't a time stays, which its reader refuses.
fn with_instants(form: &Form, window: &Incident, zone: Tz) -> Form {
    let mut read = form.clone();
    for (name, stored) in times(window) {
        let typed = form.text(name).trim();
        let local = || local_to_timestamp(zone, Timestamp::parse_local(typed)?);
        if let Some(at) = stored.filter(|at| input_value(*at, zone) == typed).or_else(local) {
            read.set(name, instant(at));
        }
    }
    read
}

/// Writes the instants of a refusal in the form's zone.
fn in_zone(refusal: &mut FormRefusal, window: &Incident, zone: Tz) {
    for (name, at) in times(window) {
        let Some(at) = at else { continue };
        for fault in refusal.faults.iter_mut().filter(|fault| fault.field == name) {
            fault.text = fault.text.replace(&instant(at), &input_value(at, zone).replace('T', " "));
        }
    }
}

/// Values of the fields that the form of a window changes, as the API's body has them.
fn current_values(window: &Incident) -> JsonObject {
    let ids: Vec<Value> = window.affected.iter().map(|affected| json!(affected.monitor.to_string())).collect();
    let mut values = data::current_values(window);
    values.remove("monitors");
    values.insert("monitorIds".to_owned(), if ids.is_empty() { Value::Null } else { Value::Array(ids) });
    values.extend(times(window).map(|(name, at)| (name.to_owned(), json!(at.map(instant)))));
    values
}

/// Adds the reminders of the text field to the chosen ones.
fn with_reminders(form: &Form) -> Form {
    let mut form = form.clone();
    if form.has("remindOther") {
        let others = form.text("remindOther").to_owned();
        form.add("remind", others);
        form.remove("remindOther");
        data::split_list(&mut form, "remind");
    }
    form
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    (refusal, changes): (Option<FormRefusal>, Option<(String, String)>),
) -> HandlerResult {
    let choices = data::choices(context, caller, &scene).await?;
    let (view, status) = form.drawn(scene.form_token(), refusal);
    let typed = TypedWindow::of(form, scene.page.timezone);
    let is_chosen = |id: &str| scene.query.all("monitor").any(|it| it == id);
    let quick = choices.monitors.iter().filter(|monitor| is_chosen(&monitor.id)).cloned().collect();
    let (changes, back) = match changes {
        Some((title, href)) => (Some(title), href),
        None => (None, format!("{}/incidents?kind=maintenance", scene.base)),
    };
    let screen = WindowFormScreen {
        href: match &changes {
            Some(_) => format!("{back}/edit"),
            None => format!("{}/incidents/new?kind=maintenance", scene.base),
        },
        length: typed.as_ref().map(|it| length(it.start, it.end)).unwrap_or_default(),
        sentence: typed.as_ref().and_then(TypedWindow::sentence).unwrap_or_default(),
        next: typed.as_ref().map(|it| it.next(scene.now)).unwrap_or_default(),
        overlaps: match &typed {
            Some(typed) => overlaps(context, caller, &scene, typed, &back).await?,
            None => Vec::new(),
        },
        repetitions: repetitions(Timestamp::parse_local(form.text("startsAt"))),
        zones: data::zones(scene.page.timezone, form.text("timezone"), scene.now),
        back,
        changes,
        form: view,
        choices,
        quick,
        frame: scene.frame(context, caller, Section::Maintenance).await?,
    };
    reply_with(&screen, status)
}

/// A window as typed, where its times are readable.
#[derive(Debug, Clone, Copy)]
struct TypedWindow {
    start: Timestamp,
    end: Timestamp,
    zone: Tz,
    every: Option<Frequency>,
}

impl TypedWindow {
    fn of(form: &Form, page_zone: Tz) -> Option<Self> {
        let zone = form.text("timezone").parse().unwrap_or(page_zone);
        let read = |name: &str| local_to_timestamp(zone, Timestamp::parse_local(form.text(name))?);
        let (start, end) = (read("startsAt")?, read("endsAt")?);
        let every = Frequency::ALL.into_iter().find(|every| every.name() == form.text("repeat"));
        (end > start).then_some(Self { start, end, zone, every })
    }

    fn sentence(&self) -> Option<String> {
        let date = self.start.to_utc()?.with_timezone(&self.zone).date_naive();
        self.every.map(|every| sentence(every, Some(date)))
    }

    /// The window, or the next ones if it repeats.
    fn next(&self, now: Timestamp) -> Vec<WindowTime> {
        match self.every {
            None => vec![WindowTime::of(self.start, self.end, self.zone)],
            Some(frequency) => {
                let recurrence = Recurrence { frequency, zone: self.zone, first: self.start };
                next_windows(&recurrence, self.end.since(self.start), now)
            }
        }
    }
}

/// Windows of the page that overlap the typed one: title and time.
async fn overlaps(
    context: &HttpContext,
    caller: &Caller,
    scene: &PageScreen,
    typed: &TypedWindow,
    own: &str,
) -> Result<Vec<(String, String)>, ApiError> {
    let filter = IncidentFilter {
        open: true,
        kind: Some(IncidentKind::Maintenance),
        limit: COMPARED,
        ..IncidentFilter::default()
    };
    let windows = context.service.incidents.list(caller, scene.page.id, filter).await?.incidents;
    let overlapping = windows.iter().map(|detail| &detail.incident).filter(|window| {
        let end = window.ends_at.unwrap_or(window.started_at);
        window.started_at < typed.end && end > typed.start && !own.ends_with(&window.id.to_string())
    });
    let named = overlapping.take(NAMED_OVERLAPS).map(|window| {
        let end = window.ends_at.unwrap_or(window.started_at);
        (window.title.clone(), WindowTime::of(window.started_at, end, typed.zone).line())
    });
    Ok(named.collect())
}
