//! Destinations, delivery log and settings on one screen.

use std::sync::Arc;

use parallax_core::alert_settings::AlertSettings;
use parallax_core::delivery::DeliveryState;
use parallax_core::id::{DeliveryId, DestinationId, MonitorId};
use parallax_core::validation::ValidationErrors;
use parallax_service::Caller;
use parallax_service::deliveries::DeliveryFilter;
use parallax_service::idempotency::IdempotentRequest;
use serde_json::json;
use url::form_urlencoded;

use super::data::{Names, destination_row, last_attempts};
use crate::http::HttpContext;
use crate::http::api::alerts;
use crate::http::dashboard::forms::{Form, FormRefusal, LOADED, Saved, SubmittedForm, changed, loaded, saved};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::{AlertsScreen, repeats};
use crate::views::dashboard::deliveries::DeliveryFilters;
use crate::views::dashboard::{Section, Toast};

/// Deliveries of one part of the log.
const SHOWN: usize = 50;
/// States to filter by: name in the query, and text.
const STATES: [(&str, &str); 4] =
    [("", "All"), ("waiting", "Waiting"), ("failed", "Failed"), ("delivered", "Delivered")];

/// `GET /app/pages/{page}/alerts`
pub(super) async fn show(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::Alerts).await?;
    let settings = context.service.alert_settings.get(&call.caller.caller, scene.page.id)?;
    let form = settings_form(&settings);
    draw(&context, &call.caller.caller, scene, &form, None).await
}

/// `POST /app/pages/{page}/alerts`: saves the settings.
pub(super) async fn save_settings(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &mut call, Section::Alerts).await?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let current = current_values(&context.service.alert_settings.get(caller, scene.page.id)?);
    match save(&context, caller, &scene, &submitted, &current).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = submitted.form.redrawn(&refusal, &current);
            draw(&context, caller, scene, &form, Some(refusal)).await
        }
    }
}

async fn save(
    context: &HttpContext,
    caller: &Caller,
    scene: &PageScreen,
    submitted: &SubmittedForm,
    current: &JsonObject,
) -> Saved {
    let edit = match changed(&submitted.form, current, |fields| alerts::read(fields)) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let path = Toast::address(&format!("{}/alerts", scene.base), "saved", 1);
    let answer = |_: &AlertSettings| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.alert_settings.edit(caller, scene.page.id, &edit, &once).await, |_| path.clone())
}

fn current_values(settings: &AlertSettings) -> JsonObject {
    let values = [
        ("repeatMinutes", json!(settings.repeat_minutes)),
        ("automaticIncidents", json!(settings.automatic_incidents)),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn settings_form(settings: &AlertSettings) -> Form {
    let minutes = settings.repeat_minutes.map(|minutes| minutes.to_string()).unwrap_or_default();
    let mut form = Form::of([("repeatMinutes", minutes)]);
    form.set("automaticIncidents", settings.automatic_incidents.to_string());
    form.set(LOADED, loaded(&current_values(settings)));
    form
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (settings, status) = form.drawn(scene.form_token(), refusal);
    let (names, destinations) = Names::read(context, caller, &scene).await?;
    let last = last_attempts(context, caller, &scene).await?;
    let filter = read_filter(&scene.query)?;
    let slice = context.service.deliveries.list(caller, scene.page.id, filter).await?;
    let filters = DeliveryFilters {
        states: STATES.map(|(name, text)| (address(&scene, name, ""), text, name == scene.query.text("status"))).into(),
        status: scene.query.text("status").to_owned(),
        destinations: destinations.iter().map(|it| (it.id.to_string(), it.name.clone())).collect(),
        destination: scene.query.text("destination").to_owned(),
        monitors: names.monitors(),
        monitor: scene.query.text("monitor").to_owned(),
        test: scene.query.text("test").to_owned(),
    };
    let screen = AlertsScreen {
        destinations: destinations.iter().map(|it| destination_row(it, last.get(&it.id), caller, &scene)).collect(),
        buttons: Form::default().view(scene.form_token()),
        log: slice.deliveries.iter().map(|delivery| names.row(delivery, &scene)).collect(),
        filters,
        older: slice.next.map(|id| address(&scene, scene.query.text("status"), &id.to_string())),
        repeats: repeats(settings.value("repeatMinutes").parse().ok()),
        settings,
        frame: scene.frame.clone(),
    };
    reply_with(&screen, status)
}

/// Reads the filters of the log.
fn read_filter(query: &Form) -> Result<DeliveryFilter, ApiError> {
    let wrong = |name: &str| ValidationErrors::single(name, "must be one of the choices");
    let status = match query.text("status") {
        "" => None,
        name => Some(DeliveryState::NAMES.into_iter().find(|known| *known == name).ok_or_else(|| wrong("status"))?),
    };
    let test = match query.text("test") {
        "" => None,
        "true" => Some(true),
        "false" => Some(false),
        _ => return Err(wrong("test").into()),
    };
    Ok(DeliveryFilter {
        destination: query.id::<DestinationId>("destination")?,
        status,
        monitor: query.id::<MonitorId>("monitor")?,
        test,
        to_destinations: true,
        before: query.id::<DeliveryId>("before")?,
        limit: SHOWN,
        ..DeliveryFilter::default()
    })
}

/// Address of the log with that state, and the present other filters.
fn address(scene: &PageScreen, status: &str, before: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let kept = ["destination", "monitor", "test"].map(|name| (name, scene.query.text(name)));
    for (name, value) in kept.into_iter().chain([("status", status), ("before", before)]) {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{}/alerts{separator}{query}", scene.base)
}
