//! Forms of destinations: a new one of a channel, and one that exists.

use std::sync::Arc;

use parallax_core::destination::{Channel, ChannelKind, Destination};
use parallax_core::event::AlertKind;
use parallax_core::id::{DeliveryId, DestinationId};
use parallax_core::role::Permission;
use parallax_service::Caller;
use parallax_service::deliveries::{DeliveryFilter, TEST_EVENT};
use parallax_service::idempotency::IdempotentRequest;
use serde_json::{Value, json};

use super::data::{Names, destination_row};
use crate::http::HttpContext;
use crate::http::api::destinations::body;
use crate::http::dashboard::forms::{
    Form, FormBody, FormRefusal, LOADED, Saved, SubmittedForm, changed, loaded, result_path, saved,
};
use crate::http::dashboard::page_screen::{PageScreen, reply_with};
use crate::http::dashboard::{SignedIn, see_other};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body::JsonObject;
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::alerts::{ChannelCard, DestinationScreen};
use crate::views::dashboard::deliveries::TestResult;
use crate::views::dashboard::{Section, Toast, time};

/// Deliveries that a destination's screen shows.
const SHOWN: usize = 10;

/// `GET /app/pages/{page}/destinations/new`
pub(super) async fn show_new(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &call)?;
    call.caller.caller.require(Permission::ManageAlerts)?;
    draw_new(&context, &call.caller.caller, scene, &Form::default(), None).await
}

/// `POST /app/pages/{page}/destinations/new`
pub(super) async fn create(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let scene = PageScreen::read(&context, &call)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    let edit = body::read_new(FormBody::new(&submitted.form));
    let path = |destination: &Destination| {
        Toast::address(&format!("{}/destinations/{}", scene.base, destination.id), "created", 1)
    };
    let answer = |destination: &Destination| path(destination).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    let refusal = match context.service.destinations.create(caller, scene.page.id, &edit, &once).await {
        Ok(outcome) => return Ok(see_other(&result_path(outcome, path))),
        Err(error) => FormRefusal::of(error)?,
    };
    draw_new(&context, caller, scene, &submitted.form, Some(refusal)).await
}

async fn draw_new(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let (names, _) = Names::read(context, caller, &scene).await?;
    let kind = ChannelKind::ALL.into_iter().find(|kind| kind.name() == scene.query.text("type"));
    let (view, status) = form.drawn(scene.form_token(), refusal);
    let screen = DestinationScreen {
        href: format!("{}/destinations/new", scene.base),
        stored: None,
        card: ChannelCard::of(kind.unwrap_or(ChannelKind::Email)),
        form: view,
        monitors: names.monitors(),
        secret: None,
        old_secret_until: None,
        is_signed: false,
        test: None,
        log: Vec::new(),
        frame: scene.frame(context, caller, Section::Alerts).await?,
    };
    reply_with(&screen, status)
}

/// `GET /app/pages/{page}/destinations/{destination}`
pub(super) async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DestinationId>("destination")?);
    let destination = context.service.destinations.get(&call.caller.caller, page, id)?;
    let scene = PageScreen::read(&context, &call)?;
    let form = filled(&destination);
    draw(&context, &call.caller.caller, scene, &destination, (&form, None)).await
}

/// `POST /app/pages/{page}/destinations/{destination}`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DestinationId>("destination")?);
    let submitted = SubmittedForm::read(&mut call).await?;
    let destination = context.service.destinations.get(&call.caller.caller, page, id)?;
    let scene = PageScreen::read(&context, &call)?;
    let caller = &call.caller.caller;
    let current = current_values(&destination);
    match change(&context, caller, &scene, &destination, (&submitted, &current)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let form = submitted.form.redrawn(&refusal, &current);
            draw(&context, caller, scene, &destination, (&form, Some(refusal))).await
        }
    }
}

async fn change(
    context: &HttpContext,
    caller: &Caller,
    scene: &PageScreen,
    destination: &Destination,
    (submitted, current): (&SubmittedForm, &JsonObject),
) -> Saved {
    let edit = match changed(&submitted.form, current, |fields| body::read(fields)) {
        Ok(edit) => edit,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let path = Toast::address(&format!("{}/destinations/{}", scene.base, destination.id), "saved", 1);
    let answer = |_: &Destination| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(context.service.destinations.edit(caller, scene.page.id, destination.id, &edit, &once).await, |_| {
        path.clone()
    })
}

/// Values of the fields that the form changes, as the API's body has them.
fn current_values(destination: &Destination) -> JsonObject {
    let mut values: JsonObject = channel_values(&destination.channel)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.map_or(Value::Null, Value::from)))
        .collect();
    let events = destination.events.as_ref();
    let monitors = destination.monitors.as_ref();
    for (name, value) in [
        ("name", json!(destination.name)),
        ("events", json!(events.map(|kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>()))),
        ("monitorIds", json!(monitors.map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>()))),
        ("enabled", json!(destination.enabled)),
    ] {
        values.insert(name.to_owned(), value);
    }
    values
}

/// Fields of a channel with their values.
fn channel_values(channel: &Channel) -> Vec<(&'static str, Option<String>)> {
    let some = |text: &String| Some(text.clone());
    match channel {
        Channel::Email { to } => vec![("to", some(to))],
        Channel::Webhook { url, .. } | Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => {
            vec![("url", some(url))]
        }
        Channel::Telegram { token, chat } => vec![("token", some(token)), ("chat", some(chat))],
        Channel::Ntfy { url, token } => vec![("url", some(url)), ("token", token.clone())],
        Channel::PagerDuty { key } => vec![("key", some(key))],
    }
}

/// The form of a destination with its values.
fn filled(destination: &Destination) -> Form {
    let mut form = Form::of([("name", destination.name.as_str())]);
    for (name, value) in channel_values(&destination.channel) {
        form.set(name, value.unwrap_or_default());
    }
    let kinds = destination.events.iter().flatten().map(|kind: &AlertKind| kind.name());
    kinds.for_each(|kind| form.add("events", kind));
    destination.monitors.iter().flatten().for_each(|id| form.add("monitorIds", id.to_string()));
    form.set("enabled", destination.enabled.to_string());
    form.set(LOADED, loaded(&current_values(destination)));
    form
}

/// Replies with the screen of a destination. Who may not manage alerts sees neither its address nor its secret.
pub(super) async fn draw(
    context: &HttpContext,
    caller: &Caller,
    scene: PageScreen,
    destination: &Destination,
    (form, refusal): (&Form, Option<FormRefusal>),
) -> HandlerResult {
    let (names, _) = Names::read(context, caller, &scene).await?;
    let manages = caller.allows(Permission::ManageAlerts);
    let blank = Form::default();
    let (view, status) = if manages { form } else { &blank }.drawn(scene.form_token(), refusal);
    let filter = DeliveryFilter { destination: Some(destination.id), limit: SHOWN, ..DeliveryFilter::default() };
    let log = context.service.deliveries.list(caller, scene.page.id, filter).await?.deliveries;
    let last = log.iter().find_map(|delivery| delivery.attempt_log.last());
    let secrets = match &destination.channel {
        Channel::Webhook { secret, .. } => Some(secret),
        _ => None,
    };
    let screen = DestinationScreen {
        href: format!("{}/destinations/{}", scene.base, destination.id),
        stored: Some(destination_row(destination, last, caller, &scene)),
        card: ChannelCard::of(destination.channel.kind()),
        form: view,
        monitors: names.monitors(),
        secret: secrets.filter(|_| manages).map(|secret| secret.newest.clone()),
        old_secret_until: secrets.and_then(|secret| secret.pending_until(scene.now)).map(|at| time(at, scene.now)),
        is_signed: secrets.is_some(),
        test: test_result(context, caller, &scene)?,
        log: log.iter().map(|delivery| names.row(delivery, &scene)).collect(),
        frame: scene.frame(context, caller, Section::Alerts).await?,
    };
    reply_with(&screen, status)
}

/// Result of the test that the query names.
fn test_result(context: &HttpContext, caller: &Caller, scene: &PageScreen) -> Result<Option<TestResult>, ApiError> {
    let Ok(id) = scene.query.text("test").parse::<DeliveryId>() else { return Ok(None) };
    let delivery = context.service.deliveries.get(caller, scene.page.id, id)?.delivery;
    let href = format!("{}/deliveries/{id}", scene.base);
    Ok((delivery.event == TEST_EVENT).then(|| TestResult::of(&delivery, href, scene.now)))
}
