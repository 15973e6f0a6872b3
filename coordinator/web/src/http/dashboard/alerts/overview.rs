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

use super::data::{Names, destination_row, last_attempts};
use crate::http::HttpContext;
use crate::http::api::alerts;
use crate::http::dashboard::forms::{Form, FormRefusal, LOADED, Saved, SubmittedForm, changed, loaded, saved};
use crate::http::dashboard::page_screen::{PageScreen, address_with, reply_with};
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
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let settings = context.service.alert_settings.get(&call.caller.caller, page_screen.page.id)?;
    let form = settings_form(&settings);
    draw(&context, &call.caller.caller, page_screen, &form, None).await
}

/// `POST /app/pages/{page}/alerts`: saves the settings.
pub(super) async fn save_settings(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let settings = context.service.alert_settings.get(caller, page_screen.page.id)?;
    let current = current_values(&settings);
    match save(&context, caller, &page_screen, &submitted, &current).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = submitted.form.redrawn(&refusal, &current, &settings_form(&settings));
            draw(&context, caller, page_screen, &form, Some(refusal)).await
        }
    }
}

async fn save(
    context: &HttpContext,
    caller: &Caller,
    page_screen: &PageScreen,
    submitted: &SubmittedForm,
    current: &JsonObject,
) -> Saved {
    let edit = match changed(&submitted.form, current, |fields| alerts::read(fields)) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let path = Toast::address(&format!("{}/alerts", page_screen.base), "saved", 1);
    let answer = |_: &AlertSettings| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.alert_settings.edit(caller, page_screen.page.id, &edit, &once).await, |_| path.clone())
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
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (settings, status) = form.drawn(page_screen.form_token(), refusal);
    let (names, destinations) = Names::read(context, caller, &page_screen).await?;
    let last = last_attempts(context, caller, &page_screen).await?;
    let filter = read_filter(&page_screen.query)?;
    let slice = context.service.deliveries.list(caller, page_screen.page.id, filter).await?;
    let filters = DeliveryFilters {
        states: STATES
            .map(|(name, text)| (address(&page_screen, name, ""), text, name == page_screen.query.text("status")))
            .into(),
        status: page_screen.query.text("status").to_owned(),
        destinations: destinations.iter().map(|it| (it.id.to_string(), it.name.clone())).collect(),
        destination: page_screen.query.text("destination").to_owned(),
        monitors: names.monitors(),
        monitor: page_screen.query.text("monitor").to_owned(),
        test: page_screen.query.text("test").to_owned(),
    };
    let screen = AlertsScreen {
        destinations: destinations
            .iter()
            .map(|it| destination_row(it, last.get(&it.id), caller, &page_screen))
            .collect(),
        buttons: Form::default().view(page_screen.form_token()),
        log: slice.deliveries.iter().map(|delivery| names.row(delivery, &page_screen)).collect(),
        filters,
        older: slice.next.map(|id| address(&page_screen, page_screen.query.text("status"), &id.to_string())),
        repeats: repeats(settings.value("repeatMinutes").parse().ok()),
        settings,
        frame: page_screen.frame(context, caller, Section::Alerts).await?,
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
fn address(page_screen: &PageScreen, status: &str, before: &str) -> String {
    let kept = ["destination", "monitor", "test"].map(|name| (name, page_screen.query.text(name)));
    let pairs = kept.into_iter().chain([("status", status), ("before", before)]);
    address_with(&format!("{}/alerts", page_screen.base), pairs)
}
