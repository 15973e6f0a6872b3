//! A delivery attempt: decides whether and where to send, sends, and classifies the response.

use parallax_core::delivery::{
    AttemptOutcome, Delivery, DeliveryAttempt, DeliveryMessage, DeliveryState, MailMessage, Recipient, excerpt,
};
use parallax_core::destination::{ChannelKind, Destination};
use parallax_core::event::AlertKind;
use parallax_core::id::DeliveryId;
use parallax_core::page::Page;
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::Timestamp;
use parallax_store::{Result, StoreError, StoreRead};
use tokio::time::{Instant, sleep};

use super::channel::{self, AttemptMetadata};
use super::http_client::{ChannelRequest, ChannelResponse};
use super::outgoing_mail::{OutgoingMail, SendResult};
use super::receiver::{is_reachable, visitor_mailbox};
use super::record::{self, FinishedAttempt, TurnResult};
use super::{DeliveryContext, DeliveryError, STORE_RETRY, maintenance};
use crate::render::{self, challenge};

/// Event name of test deliveries, which only check that a destination can be reached.
const TEST_EVENT: &str = "test";

/// Attempts a delivery and records the result.
pub(super) async fn attempt(context: &DeliveryContext, id: DeliveryId) -> TurnResult {
    match prepare(context, id) {
        Ok(NextAction::NotDue(result)) => result,
        Ok(NextAction::Undeliverable) => {
            maintenance::drop_waiting(context, [id].into()).await;
            TurnResult { is_receiver_stale: true, ..TurnResult::finished() }
        }
        Ok(NextAction::Acknowledged) => {
            maintenance::drop_waiting(context, [id].into()).await;
            TurnResult::finished()
        }
        Ok(NextAction::Send { route, secrets, is_test, challenge }) => {
            let (at, started_at) = (context.clock.now(), Instant::now());
            let response = execute(context, *route).await;
            let duration_ms = u32::try_from(started_at.elapsed().as_millis()).unwrap_or(u32::MAX);
            // A challenge is checked against the whole response, whatever its media type; on success its
            // value is stored.
            let is_valid = |it: &String| challenge::is_valid_response(it, &response.body);
            let logged_body = match challenge.filter(is_valid) {
                Some(value) => value,
                None if !response.is_text => String::new(),
                None => secrets.iter().fold(response.body, |text, secret| text.replace(secret.as_str(), "***")),
            };
            let log_entry = DeliveryAttempt {
                at,
                duration_ms,
                status: response.status,
                error: response.error,
                response: excerpt(&logged_body),
            };
            let counts = !is_test && !response.is_our_fault;
            record::record_attempt(
                context,
                id,
                FinishedAttempt {
                    log_entry,
                    outcome: response.outcome,
                    counts_against_receiver: counts,
                    channel: response.kind,
                },
            )
            .await
        }
        Err(StoreError::Closed) => TurnResult::waiting_until(context.clock.now()),
        Err(error) => {
            tracing::error!(%error, "can't read a delivery from the store; retrying");
            sleep(STORE_RETRY).await;
            TurnResult::waiting_until(context.clock.now())
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

/// Next step for a delivery that was taken from the queue.
enum NextAction {
    /// Nothing to send now.
    NotDue(TurnResult),
    /// The receiver no longer exists, is disabled or is not part of the plan; the delivery is dropped.
    Undeliverable,
    /// A still-down alert of an outage that was acknowledged since; the delivery is dropped.
    Acknowledged,
    /// Ready to send.
    Send {
        route: Box<RouteResult>,
        /// Secrets that are redacted from the logged response.
        secrets: Vec<String>,
        is_test: bool,
        /// Expected response value, if the delivery is a challenge.
        challenge: Option<String>,
    },
}

/// Transport and content of one attempt.
enum AttemptRoute {
    Http(ChannelKind, ChannelRequest),
    Mail(OutgoingMail),
}

/// Response to one attempt.
struct AttemptResponse {
    kind: ChannelKind,
    outcome: AttemptOutcome,
    status: Option<u16>,
    error: Option<String>,
    body: String,
    /// False if the body must not be logged.
    is_text: bool,
    is_our_fault: bool,
}

fn prepare(context: &DeliveryContext, id: DeliveryId) -> Result<NextAction> {
    let (read, now) = (context.store.reader().as_ref(), context.clock.now());
    let Some(delivery) = read.delivery(id)? else { return Ok(NextAction::NotDue(TurnResult::finished())) };
    let delivery = delivery.value;
    match delivery.state {
        DeliveryState::Waiting(due) if due > now => {
            return Ok(NextAction::NotDue(TurnResult::waiting_until(due)));
        }
        DeliveryState::Waiting(_) => {}
        DeliveryState::Delivered(_) | DeliveryState::Failed(_) | DeliveryState::Dropped(_) => {
            return Ok(NextAction::NotDue(TurnResult::finished()));
        }
    }
    let is_test = delivery.event == TEST_EVENT;
    // A test may check whether a receiver that was switched off can be reached again.
    if !is_test && !is_reachable(context, read, delivery.to)? {
        return Ok(NextAction::Undeliverable);
    }
    if is_acknowledged_reminder(read, &delivery)? {
        return Ok(NextAction::Acknowledged);
    }
    let metadata = AttemptMetadata { delivery: id, at: now };
    let mut secrets = Vec::new();
    let mail = |to: &str, message: &DeliveryMessage| match message {
        DeliveryMessage::Mail(mail) => Some(AttemptRoute::Mail(outgoing_mail(&delivery, to, mail, None))),
        DeliveryMessage::Json(_) | DeliveryMessage::Bulletin(_) => None,
    };
    let route = match delivery.to {
        Recipient::Destination(to) => match read.destination(to)?.map(|it| it.value) {
            None => None,
            Some(it) if it.mailbox().is_some() => alert_mail(context, &delivery, &it).map(Ok),
            Some(Destination { channel, .. }) => {
                secrets.extend(channel::redacted_values(&channel).into_iter().map(str::to_owned));
                let bases = &context.settings.service_urls;
                json_body(&delivery.message).map(|body| {
                    match channel::channel_request(&channel, body, metadata, bases) {
                        Ok(Some(request)) => Ok(AttemptRoute::Http(channel.kind(), request)),
                        Ok(None) => Err((channel.kind(), DeliveryError::UnsupportedUrl)),
                        Err(error) => Err((channel.kind(), error)),
                    }
                })
            }
        },
        Recipient::Subscriber(to) => match read.subscriber(to)? {
            None => None,
            Some(subscriber) => subscriber_route(context, read, &subscriber.value, &delivery, metadata)?,
        },
        Recipient::Owner(to) => read.account(to)?.and_then(|it| mail(&it.value.email, &delivery.message)).map(Ok),
        Recipient::UnconfirmedDestination(to) => {
            // The mail is for one mailbox and one request for confirmation: a changed mailbox or a newer
            // request skips it.
            let is_current = |it: &Destination| it.confirmation_sent_at() == Some(delivery.created_at);
            let current = read.destination(to)?.map(|it| it.value).filter(is_current);
            current.as_ref().and_then(Destination::mailbox).and_then(|to| mail(to, &delivery.message)).map(Ok)
        }
        Recipient::OperatorMail => {
            context.settings.operator_mail.as_deref().and_then(|to| mail(to, &delivery.message)).map(Ok)
        }
        Recipient::Visitor(id) => {
            visitor_mailbox(context, read, id)?.and_then(|to| mail(&to, &delivery.message)).map(Ok)
        }
        Recipient::OperatorWebhook => match (&context.settings.operator_hook, json_body(&delivery.message)) {
            (Some((url, secret)), Some(body)) => Some(signed_webhook(url, secret, body, metadata)),
            _ => None,
        },
    };
    let challenge = challenge::challenge_value(&delivery);
    let send = |route| NextAction::Send { route: Box::new(route), secrets, is_test, challenge };
    Ok(route.map_or(NextAction::Undeliverable, send))
}

/// Returns true for a still-down alert of an acknowledged outage. It is read right before sending, so that no such alert
/// leaves after an acknowledgement was answered, unless it was being sent already.
fn is_acknowledged_reminder(read: &dyn StoreRead, delivery: &Delivery) -> Result<bool> {
    if delivery.event != AlertKind::StillDown.name() {
        return Ok(false);
    }
    let (Some(monitor), Some(outage)) = (delivery.monitor, delivery.outage_start) else { return Ok(false) };
    Ok(read.monitor(monitor)?.is_some_and(|monitor| monitor.value.acknowledgement_of(outage).is_some()))
}

/// Builds an alert mail with the link that lets its reader stop these alerts.
fn alert_mail(context: &DeliveryContext, delivery: &Delivery, destination: &Destination) -> Option<AttemptRoute> {
    let (Some(to), DeliveryMessage::Mail(mail)) = (destination.mailbox(), &delivery.message) else {
        return None;
    };
    let link = context.stop_links.for_destination(destination);
    let with_link = link.as_deref().map(|link| render::mail::with_stop(mail, link));
    Some(AttemptRoute::Mail(outgoing_mail(delivery, to, with_link.as_ref().unwrap_or(mail), link)))
}

type RouteResult = std::result::Result<AttemptRoute, (ChannelKind, DeliveryError)>;

/// Returns the route of an update to a subscriber; `None` if they no longer want it.
fn subscriber_route(
    context: &DeliveryContext,
    read: &dyn StoreRead,
    subscriber: &Subscriber,
    delivery: &Delivery,
    metadata: AttemptMetadata,
) -> Result<Option<RouteResult>> {
    let (json_with_link, mail_with_link);
    let (json, mail, unsubscribe) = match &delivery.message {
        DeliveryMessage::Json(body) => (Some(body), None, None),
        DeliveryMessage::Mail(mail) => (None, Some(mail), None),
        DeliveryMessage::Bulletin(id) => {
            let Some(stored) = read.bulletin(*id)? else { return Ok(None) };
            if subscriber.confirmed_at.is_none() {
                return Ok(None);
            }
            let Some(page) = read.page(subscriber.page)? else { return Ok(None) };
            let bulletin = stored.value;
            let unsubscribe = unsubscribe_url(context, &page.value, subscriber);
            json_with_link = render::incident_update::with_unsubscribe_url(&bulletin.json, &unsubscribe);
            mail_with_link = render::mail::with_unsubscribe(&bulletin.mail, &page.value, &unsubscribe);
            (Some(&json_with_link), Some(&mail_with_link), Some(unsubscribe))
        }
    };
    Ok(match (&subscriber.contact, json, mail) {
        (Contact::Webhook { url, secret }, Some(body), _) => Some(signed_webhook(url, secret, body, metadata)),
        (Contact::Email(to), _, Some(mail)) => {
            Some(Ok(AttemptRoute::Mail(outgoing_mail(delivery, to, mail, unsubscribe))))
        }
        (Contact::Webhook { .. } | Contact::Email(_), _, _) => None,
    })
}

fn outgoing_mail(delivery: &Delivery, to: &str, mail: &MailMessage, unsubscribe: Option<String>) -> OutgoingMail {
    // All mails about one outage form a thread, and so do those about one incident.
    let outage_thread = delivery.monitor.map(|id| match delivery.outage_start {
        Some(outage_start) => format!("{id}.{}", outage_start.as_millis()),
        None => id.to_string(),
    });
    let list = |name: &str| delivery.page.map(|page| format!("{name}.{page}"));
    OutgoingMail {
        delivery: delivery.id,
        date: delivery.created_at,
        thread_id: outage_thread.or_else(|| delivery.incident.map(|id| id.to_string())),
        list_id: match delivery.to {
            Recipient::Subscriber(_) => list("updates"),
            Recipient::Destination(_) => list("alerts"),
            Recipient::Owner(_)
            | Recipient::OperatorMail
            | Recipient::OperatorWebhook
            | Recipient::UnconfirmedDestination(_)
            | Recipient::Visitor(_) => None,
        },
        to: to.to_owned(),
        content: mail.clone(),
        unsubscribe_url: unsubscribe,
    }
}

/// Returns the URL where a subscriber unsubscribes.
fn unsubscribe_url(context: &DeliveryContext, page: &Page, subscriber: &Subscriber) -> String {
    let page_url = page.address(&context.settings.base_url, context.settings.root_domain.as_deref());
    subscriber.unsubscribe_url(&page_url)
}

fn signed_webhook(
    url: &str,
    secret: &parallax_core::destination::SigningSecrets,
    body: &[u8],
    metadata: AttemptMetadata,
) -> RouteResult {
    match channel::signed_request(url, secret, body, metadata) {
        Ok(request) => Ok(AttemptRoute::Http(ChannelKind::Webhook, request)),
        Err(error) => Err((ChannelKind::Webhook, error)),
    }
}

fn json_body(message: &DeliveryMessage) -> Option<&[u8]> {
    match message {
        DeliveryMessage::Json(bytes) => Some(bytes),
        DeliveryMessage::Mail(_) | DeliveryMessage::Bulletin(_) => None,
    }
}

async fn execute(context: &DeliveryContext, route: RouteResult) -> AttemptResponse {
    match route {
        Err((kind, error)) => failed_response(kind, &error),
        Ok(AttemptRoute::Http(kind, request)) => {
            let response = send_request(context, kind, &request).await;
            // Some channels need a second request. If either fails, both are sent again.
            match request.follow_up.as_deref() {
                Some(follow_up) if response.outcome == AttemptOutcome::Accepted => {
                    send_request(context, kind, follow_up).await
                }
                Some(_) | None => response,
            }
        }
        Ok(AttemptRoute::Mail(mail)) => {
            let SendResult { outcome, status, error, reply, is_our_fault } = context.mailer.send_mail(mail).await;
            AttemptResponse {
                kind: ChannelKind::Email,
                outcome,
                status,
                error,
                body: reply,
                is_text: true,
                is_our_fault,
            }
        }
    }
}

async fn send_request(context: &DeliveryContext, kind: ChannelKind, request: &ChannelRequest) -> AttemptResponse {
    match context.client.post(request).await {
        Ok(response) => classify_response(kind, response, context.clock.now()),
        Err(error) => failed_response(kind, &error),
    }
}

fn failed_response(kind: ChannelKind, error: &DeliveryError) -> AttemptResponse {
    AttemptResponse {
        kind,
        outcome: AttemptOutcome::Deferred(None),
        status: None,
        error: Some(error.to_string()),
        body: String::new(),
        is_text: true,
        is_our_fault: error.is_our_fault(),
    }
}

fn classify_response(kind: ChannelKind, response: ChannelResponse, now: Timestamp) -> AttemptResponse {
    let status = response.status.as_u16();
    let (outcome, error) = match status {
        200..=299 => (AttemptOutcome::Accepted, None),
        410 => (AttemptOutcome::Gone, Some("the receiver is permanently gone".to_owned())),
        300..=399 => (AttemptOutcome::Deferred(None), Some("redirects are not followed".to_owned())),
        429 | 503 => (
            AttemptOutcome::Deferred(channel::retry_after(kind, &response, now)),
            Some(format!("unexpected status {status}")),
        ),
        _ => (AttemptOutcome::Deferred(None), Some(format!("unexpected status {status}"))),
    };
    let ChannelResponse { body: text, is_text, .. } = response;
    AttemptResponse { kind, outcome, status: Some(status), error, body: text, is_text, is_our_fault: false }
}

#[cfg(test)]
mod tests;
