//! A delivery attempt: decides whether and where to send, sends, and classifies the response.

use parallax_core::delivery::{
    Delivery, Letter, Mail, Outcome, Recipient, Stage, Try, excerpt, mailbox_name,
};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::id::DeliveryId;
use parallax_core::page::{NOBODY, Page};
use parallax_core::plan::Plan;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::Timestamp;
use tokio::time::{Instant, sleep};

use super::channel::{self, Envelope};
use super::note::{self, Came, Result as Tried};
use super::post::{Parcel, Posted};
use super::webhook::{Answer, Call};
use super::{DeliverError, House, RETRY};
use crate::letters::{self, challenge};
use crate::storage::{Read, Result, StoreError};

/// Event name of test deliveries, which only check that a destination can be reached.
const TEST: &str = "test";

/// Attempts a delivery and records the result.
pub(super) async fn attempt(house: &House, id: DeliveryId) -> Came {
    match prepared(house, id) {
        Ok(Prepared::Nothing(came)) => came,
        Ok(Prepared::Vain) => {
            super::upkeep::drop_all(house, [id].into()).await;
            Came { is_gone: true, ..Came::done() }
        }
        Ok(Prepared::Send { route, secrets, is_test, challenge }) => {
            let (at, began) = (house.clock.now(), Instant::now());
            let came = send(house, *route).await;
            let took_ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
            // A challenge is checked against the whole response, whatever its media type; on success its
            // value is stored.
            let is_good = |it: &String| challenge::is_answer(it, &came.answer);
            let answer = match challenge.filter(is_good) {
                Some(value) => value,
                None if !came.is_text => String::new(),
                None => secrets.iter().fold(came.answer, |text, secret| text.replace(secret.as_str(), "***")),
            };
            let log = Try { at, took_ms, status: came.status, error: came.error, answer: excerpt(&answer) };
            let counts = !is_test && !came.is_ours;
            note::note(house, id, Tried { log, outcome: came.outcome, counts, kind: came.kind }).await
        }
        Err(StoreError::Closed) => Came::later(house.clock.now()),
        Err(error) => {
            tracing::error!(%error, "can't read a delivery from the store; retrying");
            sleep(RETRY).await;
            Came::later(house.clock.now())
        }
    }
}

/// Host and port of a subscriber's requests; `None` for mail.
pub(super) fn host_of(contact: &Contact) -> Option<String> {
    match contact {
        Contact::Email(_) => None,
        Contact::Webhook { url, .. } => Some(channel::host_of(url)),
    }
}

/// Returns true if the receiver exists, is enabled, and uses a channel that its account's plan includes. A
/// page that is being deleted has no reachable receivers.
pub(super) fn is_reachable(house: &House, read: &dyn Read, to: Recipient) -> Result<bool> {
    let is_kept =
        |page| -> Result<bool> { Ok(read.page(page)?.is_some_and(|page| page.value.account != NOBODY)) };
    Ok(match to {
        Recipient::Destination(id) => match read.destination(id)? {
            Some(it) if it.value.enabled && it.value.health.off.is_none() => {
                is_kept(it.value.page)? && has_channel(read, &it.value)?
            }
            Some(_) | None => false,
        },
        Recipient::Subscriber(id) => match read.subscriber(id)? {
            Some(it) if it.value.health.off.is_none() => is_kept(it.value.page)?,
            Some(_) | None => false,
        },
        Recipient::Owner(id) => read.account(id)?.is_some(),
        Recipient::OperatorMail => house.settings.operator_mail.is_some(),
        Recipient::OperatorHook => house.settings.operator_hook.is_some(),
        Recipient::Asked(id) => match read.destination(id)? {
            Some(it) if it.value.asked_at().is_some() => is_kept(it.value.page)?,
            Some(_) | None => false,
        },
        Recipient::Visitor(id) => mailbox_of(house, read, id)?.is_some(),
    })
}

/// Returns true if the plan of the page's account includes the destination's channel.
fn has_channel(read: &dyn Read, destination: &Destination) -> Result<bool> {
    let Some(page) = read.page(destination.page)? else { return Ok(false) };
    let plan = read.account(page.value.account)?.map_or(Plan::Free, |account| account.value.plan);
    Ok(plan.has_channel(destination.channel.kind()))
}

/// Next step for a delivery whose turn it is.
enum Prepared {
    /// Nothing to send now.
    Nothing(Came),
    /// The receiver is gone, disabled or not part of the plan; the delivery is dropped.
    Vain,
    /// Ready to send.
    Send {
        route: Box<Routed>,
        /// Secrets that are redacted from the logged response.
        secrets: Vec<String>,
        is_test: bool,
        /// Expected response value, if the delivery is a challenge.
        challenge: Option<String>,
    },
}

/// Transport and content of one attempt.
enum Route {
    Call(ChannelKind, Call),
    Mail(Parcel),
}

/// Response to one attempt.
struct Back {
    kind: ChannelKind,
    outcome: Outcome,
    status: Option<u16>,
    error: Option<String>,
    answer: String,
    /// False if the body must not be logged.
    is_text: bool,
    is_ours: bool,
}

fn prepared(house: &House, id: DeliveryId) -> Result<Prepared> {
    let (read, now) = (house.store.reader().as_ref(), house.clock.now());
    let Some(delivery) = read.delivery(id)? else { return Ok(Prepared::Nothing(Came::done())) };
    let delivery = delivery.value;
    match delivery.stage {
        Stage::Waiting(due) if due > now => return Ok(Prepared::Nothing(Came::later(due))),
        Stage::Waiting(_) => {}
        Stage::Delivered(_) | Stage::Failed(_) | Stage::Dropped(_) => {
            return Ok(Prepared::Nothing(Came::done()));
        }
    }
    let is_test = delivery.event == TEST;
    // A test may check whether a receiver that was switched off can be reached again.
    if !is_test && !is_reachable(house, read, delivery.to)? {
        return Ok(Prepared::Vain);
    }
    let envelope = Envelope { delivery: id, at: now };
    let mut secrets = Vec::new();
    let mail = |to: &str, letter: &Letter| match letter {
        Letter::Mail(mail) => Some(Route::Mail(parcel(&delivery, to, mail, None))),
        Letter::Json(_) | Letter::Bulletin(_) => None,
    };
    let route = match delivery.to {
        Recipient::Destination(to) => match read.destination(to)?.map(|it| it.value) {
            None => None,
            Some(it) if it.mailbox().is_some() => alert_mail(house, &delivery, &it).map(Ok),
            Some(Destination { channel, .. }) => {
                secrets.extend(channel::secrets(&channel).into_iter().map(str::to_owned));
                let bases = &house.settings.bases;
                json(&delivery.letter).map(|letter| match channel::call(&channel, letter, envelope, bases) {
                    Ok(Some(call)) => Ok(Route::Call(channel.kind(), call)),
                    Ok(None) => Err((channel.kind(), DeliverError::NotWeb)),
                    Err(error) => Err((channel.kind(), error)),
                })
            }
        },
        Recipient::Subscriber(to) => match read.subscriber(to)? {
            None => None,
            Some(subscriber) => told(house, read, &subscriber.value, &delivery, envelope)?,
        },
        Recipient::Owner(to) => {
            read.account(to)?.and_then(|it| mail(&it.value.email, &delivery.letter)).map(Ok)
        }
        Recipient::Asked(to) => {
            // The mail is for one mailbox and one request for confirmation: a changed mailbox or a newer
            // request skips it.
            let is_it = |it: &Destination| it.asked_at() == Some(delivery.created_at);
            let asked = read.destination(to)?.map(|it| it.value).filter(is_it);
            asked.as_ref().and_then(Destination::mailbox).and_then(|to| mail(to, &delivery.letter)).map(Ok)
        }
        Recipient::OperatorMail => {
            house.settings.operator_mail.as_deref().and_then(|to| mail(to, &delivery.letter)).map(Ok)
        }
        Recipient::Visitor(id) => {
            mailbox_of(house, read, id)?.and_then(|to| mail(&to, &delivery.letter)).map(Ok)
        }
        Recipient::OperatorHook => match (&house.settings.operator_hook, json(&delivery.letter)) {
            (Some((url, secret)), Some(letter)) => Some(hook(url, secret, letter, envelope)),
            _ => None,
        },
    };
    let challenge = challenge::value(&delivery);
    let send = |route| Prepared::Send { route: Box::new(route), secrets, is_test, challenge };
    Ok(route.map_or(Prepared::Vain, send))
}

/// Builds an alert mail with the link that lets its reader stop these alerts.
fn alert_mail(house: &House, delivery: &Delivery, destination: &Destination) -> Option<Route> {
    let (Some(to), Letter::Mail(mail)) = (destination.mailbox(), &delivery.letter) else { return None };
    let link = house.stop_links.of(destination);
    let finished = link.as_deref().map(|link| letters::mail::with_stop(mail, link));
    Some(Route::Mail(parcel(delivery, to, finished.as_ref().unwrap_or(mail), link)))
}

/// Returns the mailbox of a visitor until the stored address expires.
fn mailbox_of(house: &House, read: &dyn Read, id: DeliveryId) -> Result<Option<String>> {
    let found = read.remembered(&mailbox_name(id))?.map(|found| found.value);
    let found = found.filter(|found| found.expires_at > house.clock.now());
    Ok(found.and_then(|found| String::from_utf8(found.answer).ok()))
}

type Routed = std::result::Result<Route, (ChannelKind, DeliverError)>;

/// Returns the route of an update to a subscriber; `None` if they no longer want it.
fn told(
    house: &House,
    read: &dyn Read,
    subscriber: &Subscriber,
    delivery: &Delivery,
    envelope: Envelope,
) -> Result<Option<Routed>> {
    let (posted, finished);
    let (json, mail, unsubscribe) = match &delivery.letter {
        Letter::Json(letter) => (Some(letter), None, None),
        Letter::Mail(mail) => (None, Some(mail), None),
        Letter::Bulletin(id) => {
            let Some(found) = read.bulletin(*id)? else { return Ok(None) };
            if subscriber.confirmed_at.is_none() {
                return Ok(None);
            }
            let Some(page) = read.page(subscriber.page)? else { return Ok(None) };
            let news = found.value;
            let unsubscribe = unsubscribe_at(house, &page.value, subscriber);
            posted = letters::update::with_unsubscribe_url(&news.json, &unsubscribe);
            finished = letters::mail::with_unsubscribe(&news.mail, &page.value, &unsubscribe);
            (Some(&posted), Some(&finished), Some(unsubscribe))
        }
    };
    Ok(match (&subscriber.contact, json, mail) {
        (Contact::Webhook { url, secret }, Some(letter), _) => Some(hook(url, secret, letter, envelope)),
        (Contact::Email(to), _, Some(mail)) => Some(Ok(Route::Mail(parcel(delivery, to, mail, unsubscribe)))),
        (Contact::Webhook { .. } | Contact::Email(_), _, _) => None,
    })
}

fn parcel(delivery: &Delivery, to: &str, mail: &Mail, unsubscribe: Option<String>) -> Parcel {
    // All mails about one outage form a thread, and so do those about one incident.
    let outage = delivery.monitor.map(|id| match delivery.began {
        Some(began) => format!("{id}.{}", began.as_millis()),
        None => id.to_string(),
    });
    let list = |name: &str| delivery.page.map(|page| format!("{name}.{page}"));
    Parcel {
        delivery: delivery.id,
        date: delivery.created_at,
        thread: outage.or_else(|| delivery.incident.map(|id| id.to_string())),
        list: match delivery.to {
            Recipient::Subscriber(_) => list("updates"),
            Recipient::Destination(_) => list("alerts"),
            Recipient::Owner(_)
            | Recipient::OperatorMail
            | Recipient::OperatorHook
            | Recipient::Asked(_)
            | Recipient::Visitor(_) => None,
        },
        to: to.to_owned(),
        mail: mail.clone(),
        unsubscribe,
    }
}

/// Returns the URL where a subscriber unsubscribes.
fn unsubscribe_at(house: &House, page: &Page, subscriber: &Subscriber) -> String {
    let page_url = page.address(&house.settings.base_url, house.settings.root_domain.as_deref());
    subscriber.unsubscribe_url(&page_url)
}

fn hook(
    url: &str,
    secret: &parallax_core::destination::Secrets,
    letter: &[u8],
    envelope: Envelope,
) -> Routed {
    match channel::signed(url, secret, letter, envelope) {
        Ok(call) => Ok(Route::Call(ChannelKind::Webhook, call)),
        Err(error) => Err((ChannelKind::Webhook, error)),
    }
}

fn json(letter: &Letter) -> Option<&[u8]> {
    match letter {
        Letter::Json(bytes) => Some(bytes),
        Letter::Mail(_) | Letter::Bulletin(_) => None,
    }
}

async fn send(house: &House, route: Routed) -> Back {
    match route {
        Err((kind, error)) => unanswered(kind, &error),
        Ok(Route::Call(kind, call)) => {
            let back = post(house, kind, &call).await;
            // Some channels need a second request. If either fails, both are sent again.
            match call.then.as_deref() {
                Some(then) if back.outcome == Outcome::Taken => post(house, kind, then).await,
                Some(_) | None => back,
            }
        }
        Ok(Route::Mail(parcel)) => {
            let Posted { outcome, status, error, answer, is_ours } = house.post.post(parcel).await;
            Back { kind: ChannelKind::Email, outcome, status, error, answer, is_text: true, is_ours }
        }
    }
}

async fn post(house: &House, kind: ChannelKind, call: &Call) -> Back {
    match house.client.post(call).await {
        Ok(answer) => answered(kind, answer, house.clock.now()),
        Err(error) => unanswered(kind, &error),
    }
}

fn unanswered(kind: ChannelKind, error: &DeliverError) -> Back {
    Back {
        kind,
        outcome: Outcome::NotNow(None),
        status: None,
        error: Some(error.to_string()),
        answer: String::new(),
        is_text: true,
        is_ours: error.is_ours(),
    }
}

fn answered(kind: ChannelKind, answer: Answer, now: Timestamp) -> Back {
    let status = answer.status.as_u16();
    let (outcome, error) = match status {
        200..=299 => (Outcome::Taken, None),
        410 => (Outcome::Gone, Some("the receiver is permanently gone".to_owned())),
        300..=399 => (Outcome::NotNow(None), Some("redirects are not followed".to_owned())),
        429 | 503 => {
            (Outcome::NotNow(channel::pause(kind, &answer, now)), Some(format!("unexpected status {status}")))
        }
        _ => (Outcome::NotNow(None), Some(format!("unexpected status {status}"))),
    };
    let Answer { text, is_text, .. } = answer;
    Back { kind, outcome, status: Some(status), error, answer: text, is_text, is_ours: false }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn each_answer_has_its_meaning() {
        let now = Timestamp::from_millis(1_795_783_560_000);
        let of = |kind, status: u16, retry_after: Option<&str>, text: &str| {
            let retry_after = retry_after.map(str::to_owned);
            let status = StatusCode::from_u16(status).unwrap();
            let text = text.to_owned();
            answered(kind, Answer { status, retry_after, text, is_text: true }, now).outcome
        };
        let told = r#"{"ok":false,"parameters":{"retry_after":5}}"#;
        let hook = ChannelKind::Webhook;
        for (kind, status, retry_after, text, outcome) in [
            (hook, 200, None, "", Outcome::Taken),
            (hook, 204, Some("7"), "", Outcome::Taken),
            (hook, 302, None, "", Outcome::NotNow(None)),
            (hook, 404, Some("7"), "", Outcome::NotNow(None)),
            (hook, 410, None, "", Outcome::Gone),
            (hook, 429, Some("7"), "", Outcome::NotNow(Some(7_000))),
            (hook, 503, Some(" 12 "), "", Outcome::NotNow(Some(12_000))),
            (hook, 503, Some("Fri, 27 Nov 2026 12:46:30 GMT"), "", Outcome::NotNow(Some(30_000))),
            (hook, 503, Some("Fri, 27 Nov 2020 12:46:30 GMT"), "", Outcome::NotNow(Some(0))),
            (hook, 429, Some("soon"), "", Outcome::NotNow(None)),
            (hook, 429, Some("-7"), "", Outcome::NotNow(Some(0))),
            (hook, 429, None, told, Outcome::NotNow(None)),
            (ChannelKind::Telegram, 429, None, told, Outcome::NotNow(Some(5_000))),
        ] {
            assert_eq!(of(kind, status, retry_after, text), outcome, "{status} {retry_after:?} {text}");
        }
    }
}
