//! Subscribers of a page: list, search, add, remove.

use std::sync::Arc;

use ::http::Method;
use futures_util::FutureExt;
use parallax_core::id::SubscriberId;
use parallax_core::role::Permission;
use parallax_core::subscriber::{CONFIRMATION_INTERVAL, Contact, Subscriber};
use parallax_core::time::Timestamp;
use parallax_service::Caller;
use parallax_service::idempotency::IdempotentRequest;
use parallax_service::subscribers::{SubscriberCounts, SubscriberFilter, SubscriberState};
use parallax_service::undo_offer::UndoOffer;

use super::forms::{Form, FormBody, FormRefusal, Saved, SubmittedForm, result_path, saved};
use super::page_screen::{PageScreen, address_with, names_of, reply_with};
use super::{SignedIn, see_other};
use crate::http::HttpContext;
use crate::http::api::{mask, subscribers as api};
use crate::http::error::HandlerResult;
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::views::dashboard::subscribers::{AskAgain, SubscriberRow, SubscribersScreen, day, gets, lead};
use crate::views::dashboard::{Section, Toast};

/// Subscribers of one part of the list.
const SHOWN: usize = 50;
/// Longest search, in characters: an email address.
const MAX_SEARCH: usize = 254;

/// Routes of these screens.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    vec![
        (
            "/app/pages/{page}/subscribers",
            vec![
                (GET, signed_in_route(|context, call| show(context, call).boxed())),
                (POST, signed_in_route(|context, call| add(context, call).boxed())),
            ],
        ),
        (
            "/app/pages/{page}/subscribers/{subscriber}/delete",
            vec![(POST, signed_in_route(|context, call| delete(context, call).boxed()))],
        ),
    ]
}

/// `GET /app/pages/{page}/subscribers`
async fn show(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    draw(&context, &call.caller.caller, page_screen, &Form::default(), None).await
}

/// `POST /app/pages/{page}/subscribers`: asks a mailbox.
async fn add(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let page_screen = PageScreen::read(&context, &call)?;
    // Before the form is judged.
    call.caller.caller.require(Permission::Edit)?;
    let submitted = SubmittedForm::read(&mut call).await?;
    let caller = &call.caller.caller;
    match save(&context, caller, &page_screen, &submitted).await? {
        Ok(path) => Ok(see_other(&path)),
        Err(refusal) => draw(&context, caller, page_screen, &submitted.form, Some(refusal)).await,
    }
}

async fn save(context: &HttpContext, caller: &Caller, page_screen: &PageScreen, submitted: &SubmittedForm) -> Saved {
    let ask = match api::validate(&api::read(FormBody::new(&submitted.form))) {
        Ok(ask) => ask,
        Err(faults) => return Ok(Err(FormRefusal::of(faults.into())?)),
    };
    let path = Toast::address(&format!("{}/subscribers", page_screen.base), "sent", 1);
    let answer = |_: &Subscriber| path.clone().into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key.clone(), &answer);
    saved(
        context
            .service
            .subscribers
            .add(caller, page_screen.page.id, &ask, &once)
            .await
            .map_err(api::with_api_field_names),
        |_| path.clone(),
    )
}

async fn draw(
    context: &HttpContext,
    caller: &Caller,
    page_screen: PageScreen,
    form: &Form,
    refusal: Option<FormRefusal>,
) -> HandlerResult {
    let page = page_screen.page.id;
    let may_search = caller.allows(Permission::Edit);
    let state = SubscriberState::ALL.into_iter().find(|state| state.name() == page_screen.query.text("state"));
    let search: String = page_screen.query.text("q").trim().chars().take(MAX_SEARCH).collect();
    let search = if may_search { search } else { String::new() };
    let filter =
        SubscriberFilter { search: search.clone(), state, after: page_screen.query.id("after")?, limit: SHOWN };
    let counts = context.service.subscribers.counts(caller, page).await?;
    let slice = context.service.subscribers.search(caller, page, filter).await?;
    let monitors = page_screen.monitor_choices(context, caller).await?;
    let (view, status) = form.drawn(page_screen.form_token(), refusal);
    let screen = SubscribersScreen {
        href: format!("{}/subscribers", page_screen.base),
        lead: lead(counts.email, counts.webhook),
        total: counts.total(),
        states: states(&page_screen, &counts, state, &search),
        state: state.map_or("", SubscriberState::name).to_owned(),
        next: slice.next.map(|id| address(&page_screen, state, &search, &id.to_string())),
        rows: slice.subscribers.iter().map(|it| row(it, &monitors, may_search, &page_screen)).collect(),
        search,
        may_search,
        may_export: caller.allows(Permission::ExportSubscribers),
        form: view,
        monitors,
        page_url: context.service.pages.url(&page_screen.page),
        frame: page_screen.frame(context, caller, Section::Subscribers).await?,
    };
    reply_with(&screen, status)
}

/// States to filter by, with their numbers.
fn states(
    page_screen: &PageScreen,
    counts: &SubscriberCounts,
    chosen: Option<SubscriberState>,
    search: &str,
) -> Vec<(String, String, bool)> {
    let all = [
        (None, "All".to_owned()),
        (Some(SubscriberState::Confirmed), format!("Confirmed {}", counts.confirmed())),
        (Some(SubscriberState::Asked), format!("Asked {}", counts.asked)),
        (Some(SubscriberState::Queued), format!("To be asked {}", counts.queued)),
        (Some(SubscriberState::Off), format!("Off {}", counts.off)),
    ];
    let is_shown =
        |it: &Option<SubscriberState>| *it != Some(SubscriberState::Queued) || counts.queued > 0 || *it == chosen;
    all.into_iter()
        .filter(|(it, _)| is_shown(it))
        .map(|(state, text)| (address(page_screen, state, search, ""), text, state == chosen))
        .collect()
}

fn address(page_screen: &PageScreen, state: Option<SubscriberState>, search: &str, after: &str) -> String {
    let state = state.map_or("", SubscriberState::name);
    address_with(&format!("{}/subscribers", page_screen.base), [("state", state), ("q", search), ("after", after)])
}

fn row(
    subscriber: &Subscriber,
    monitors: &[(String, String)],
    may_edit: bool,
    page_screen: &PageScreen,
) -> SubscriberRow {
    let (icon, channel) = match &subscriber.contact {
        Contact::Email(_) => ("mail", "email"),
        Contact::Webhook { .. } => ("hook", "webhook"),
    };
    let chosen = subscriber.monitors.as_ref().map(|ids| names_of(ids, monitors));
    let state = match (subscriber.confirmed_at, subscriber.health.disabled) {
        (None, _) if subscriber.is_queued() => ("none", "Imported, to be asked", day(subscriber.created_at)),
        (None, _) => ("none", "Asked, not confirmed", day(subscriber.confirmation_sent_at)),
        (Some(_), Some((at, _))) => ("down", "Off, deliveries fail", format!("since {}", day(at))),
        (Some(at), None) => ("up", "Confirmed", day(at)),
    };
    SubscriberRow {
        remove: format!("{}/subscribers/{}/delete", page_screen.base, subscriber.id),
        icon,
        address: shown_address(&subscriber.contact),
        channel,
        gets: gets(chosen.as_deref()),
        state,
        ask: may_edit.then(|| ask_again(subscriber, monitors, page_screen.now)).flatten(),
    }
}

/// Address of a subscriber: of a webhook the host alone. The service masks mailboxes for those who may not edit.
fn shown_address(contact: &Contact) -> String {
    match contact {
        Contact::Email(email) => email.clone(),
        Contact::Webhook { url, .. } => mask::url(url),
    }
}

/// Returns the request that asks a mailbox again, for the monitors that were chosen; `None` if it was asked within a day,
/// or if none of its monitors exists any more.
fn ask_again(subscriber: &Subscriber, on_page: &[(String, String)], now: Timestamp) -> Option<AskAgain> {
    let Contact::Email(email) = &subscriber.contact else { return None };
    let is_due = subscriber.confirmed_at.is_none()
        && !subscriber.is_queued()
        && now.since(subscriber.confirmation_sent_at) >= CONFIRMATION_INTERVAL;
    let chosen = subscriber.monitors.iter().flatten().map(ToString::to_string);
    let monitors: Vec<String> = chosen.filter(|id| on_page.iter().any(|(known, _)| known == id)).collect();
    let has_choice = subscriber.monitors.is_none() || !monitors.is_empty();
    (is_due && has_choice).then(|| AskAgain { email: email.clone(), monitors })
}

/// `POST /app/pages/{page}/subscribers/{subscriber}/delete`
async fn delete(context: Arc<HttpContext>, mut call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (page, id) = (call.page_id()?, call.id::<SubscriberId>("subscriber")?);
    let submitted = SubmittedForm::read(&mut call).await?;
    let undo = UndoOffer::default();
    let list = format!("/app/pages/{page}/subscribers");
    let path = |(): &()| Toast::address_with_undo(&list, "subscriber-removed", 1, undo.token());
    let answer = |done: &()| path(done).into_bytes();
    let once = IdempotentRequest::new(submitted.idempotency_key, &answer).undoable(&undo);
    let deleted = context.service.subscribers.delete(&call.caller.caller, page, id, &once).await?;
    Ok(see_other(&result_path(deleted, path)))
}
