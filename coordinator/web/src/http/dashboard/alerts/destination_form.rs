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
use crate::http::dashboard::confirm::confirm_path;
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
        confirm_href: String::new(),
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
    draw_stored(&context, &call.caller, scene, &destination, None).await
}

/// `POST /app/pages/{page}/destinations/{destination}`
pub(super) async fn save(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<DestinationId>("destination")?);
    let mut submitted = SubmittedForm::read(&mut call).await?;
    let destination = context.service.destinations.get(&call.caller.caller, page, id)?;
    keep_withheld(&mut submitted.form);
    let scene = PageScreen::read(&context, &call)?;
    let caller = &call.caller.caller;
    let current = current_values(&destination);
    match change(&context, caller, &scene, &destination, (&submitted, &current)).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => {
            let (mut refusal, mut current) = (refusal, current);
            let shows_secrets = sees_secrets(&context, &call.caller);
            if !shows_secrets {
                current.retain(|name, _| !is_secret(name));
                let is_conflict = refusal.is_conflict();
                let withheld = refusal.faults.iter_mut().filter(|fault| is_conflict && is_secret(&fault.field));
                withheld
                    .for_each(|fault| fault.text = "Someone else changed this. Save again to replace it.".to_owned());
            }
            let form = submitted.form.redrawn(&refusal, &current, &filled(&destination, shows_secrets));
            draw(&context, &call.caller, scene, &destination, (&form, Some(refusal))).await
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

/// Returns true for fields with a secret: tokens, keys, and URLs, by which chats and many receivers know the sender.
fn is_secret(name: &str) -> bool {
    ["url", "token", "key"].contains(&name)
}

/// Returns true if the person may see secrets now: they manage alerts, and confirmed their identity a moment ago.
pub(super) fn sees_secrets(context: &HttpContext, signed_in: &SignedIn) -> bool {
    let is_confirmed = context.service.people.require_confirmed(&signed_in.session).is_ok();
    is_confirmed && signed_in.caller.allows(Permission::ManageAlerts)
}

/// Removes the empty fields that were drawn without their secret, so that what is stored stays. A form that was drawn
/// with a secret has its fingerprint.
fn keep_withheld(form: &mut Form) {
    let drawn = form.text(LOADED).to_owned();
    let is_drawn = |name: &str| drawn.split(' ').any(|it| it.split_once('=').is_some_and(|(field, _)| field == name));
    for name in ["url", "token", "key"] {
        if form.text(name).trim().is_empty() && !is_drawn(name) {
            form.remove(name);
        }
    }
}

/// The form of a destination with its values; those of secrets only if they are shown.
fn filled(destination: &Destination, shows_secrets: bool) -> Form {
    let mut form = Form::of([("name", destination.name.as_str())]);
    let mut drawn = current_values(destination);
    drawn.retain(|name, _| shows_secrets || !is_secret(name));
    for (name, value) in channel_values(&destination.channel) {
        let value = value.filter(|_| shows_secrets || !is_secret(name));
        form.set(name, value.unwrap_or_default());
    }
    let kinds = destination.events.iter().flatten().map(|kind: &AlertKind| kind.name());
    kinds.for_each(|kind| form.add("events", kind));
    destination.monitors.iter().flatten().for_each(|id| form.add("monitorIds", id.to_string()));
    form.set("enabled", destination.enabled.to_string());
    form.set(LOADED, loaded(&drawn));
    form
}

/// Replies with the screen of a destination as it is stored.
pub(super) async fn draw_stored(
    context: &HttpContext,
    signed_in: &SignedIn,
    scene: PageScreen,
    destination: &Destination,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let form = filled(destination, sees_secrets(context, signed_in));
    draw(context, signed_in, scene, destination, (&form, refusal)).await
}

/// Replies with the screen of a destination. Only those who manage alerts see its address and its secret, and only for
/// ten minutes after a confirmation.
async fn draw(
    context: &HttpContext,
    signed_in: &SignedIn,
    scene: PageScreen,
    destination: &Destination,
    (form, refusal): (&Form, Option<FormRefusal>),
) -> HandlerResult {
    let caller = &signed_in.caller;
    let (names, _) = Names::read(context, caller, &scene).await?;
    let shows_secrets = sees_secrets(context, signed_in);
    if shows_secrets {
        context.service.destinations.log_shown_secrets(caller, scene.page.id, destination.id).await?;
    }
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
    let href = format!("{}/destinations/{}", scene.base, destination.id);
    let screen = DestinationScreen {
        confirm_href: if shows_secrets { String::new() } else { confirm_path(&href) },
        href,
        stored: Some(destination_row(destination, last, caller, &scene)),
        card: ChannelCard::of(destination.channel.kind()),
        form: view,
        monitors: names.monitors(),
        secret: secrets.filter(|_| shows_secrets).map(|secret| secret.newest.clone()),
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
