//! A destination as the API shows it: whole to whoever may change it, masked to others and in lists.

use parallax_core::destination::{Channel, Destination, OLD_SECRET};
use parallax_core::event::AlertKind;
use parallax_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::api::mask;
use crate::http::openapi::words;

/// Where a page's alerts go. Fields that do not belong to its type are null.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Destination")]
pub(in crate::http) struct DestinationDocument {
    /// Destination id.
    id: String,
    /// The page whose alerts it gets.
    page_id: String,
    /// What it is called.
    name: String,
    /// How it is reached.
    #[serde(rename = "type")]
    #[schemars(with = "words::DestinationType")]
    kind: &'static str,
    /// webhook, slack, discord, teams, ntfy: where to. Masked in lists and for a read key.
    url: Option<String>,
    /// email: the mailbox. Masked for a read key.
    to: Option<String>,
    /// telegram, ntfy: the token. Masked in lists and for a read key.
    token: Option<String>,
    /// telegram: the chat.
    chat: Option<String>,
    /// pagerduty: the integration key. Masked in lists and for a read key.
    key: Option<String>,
    /// webhook: what deliveries are signed with; while secretPending, the new one. Null in lists and for a read key.
    secret: Option<String>,
    /// webhook: a new secret waits to be activated. `webhook-signature` has one signature by it and one by the secret
    /// before it; `X-Service-Signature` is made with the secret before it.
    secret_pending: bool,
    /// webhook: when the pending secret was made; null where none waits.
    #[schemars(with = "Option<words::Moment>")]
    secret_rotated_at: Option<String>,
    /// webhook: when the pending secret becomes the active one by itself, and the one before it ends; null where none
    /// waits.
    #[schemars(with = "Option<words::Moment>")]
    old_secret_until: Option<String>,
    /// Alerts that it gets; null means all.
    #[schemars(with = "Option<Vec<words::AlertEvent>>")]
    events: Option<Vec<&'static str>>,
    /// Monitors whose alerts it gets; null means all of the page.
    monitor_ids: Option<Vec<String>>,
    /// Whether its owner wants it to be used.
    enabled: bool,
    /// `active` gets alerts where it is enabled; `pending` is a mailbox whose reader was asked and has not confirmed, and
    /// gets nothing before; `off` was switched off by the service.
    #[schemars(with = "words::DestinationStatus")]
    status: &'static str,
    /// Since when every delivery failed; null while they are taken.
    #[schemars(with = "Option<words::Moment>")]
    failing_since: Option<String>,
    /// Since when it is switched off by the service, which any change ends but where the plan is the reason; of a pending
    /// one when its mailbox was asked.
    #[schemars(with = "Option<words::Moment>")]
    off_since: Option<String>,
    /// Why it is switched off: it answered 410, five days of nothing but failures, its mail server refused the mailbox for
    /// good, the mailbox's reader has not confirmed, or the account's plan does not have its type.
    #[schemars(with = "Option<words::OffReason>")]
    off_reason: Option<&'static str>,
    /// When it was made.
    #[schemars(with = "words::Moment")]
    created_at: String,
}

/// All of it, secrets too.
pub(in crate::http) fn whole(destination: &Destination, now: Timestamp) -> DestinationDocument {
    let mut document = blank(destination, now);
    let some = |text: &String| Some(text.clone());
    match &destination.channel {
        Channel::Email { to } => document.to = some(to),
        Channel::Webhook { url, secret } => {
            (document.url, document.secret) = (some(url), some(&secret.present));
        }
        Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => {
            document.url = some(url)
        }
        Channel::Telegram { token, chat } => (document.token, document.chat) = (some(token), some(chat)),
        Channel::Ntfy { url, token } => (document.url, document.token) = (some(url), token.clone()),
        Channel::PagerDuty { key } => document.key = some(key),
    }
    document
}

/// The same without what would let its reader write to the receiver. Who may write sees mailboxes.
pub(in crate::http) fn listed(
    destination: &Destination,
    writes: bool,
    now: Timestamp,
) -> DestinationDocument {
    let mut document = whole(destination, now);
    let all = |_: String| mask::ALL.to_owned();
    document.url = document.url.map(|url| mask::url(&url));
    document.token = document.token.map(all);
    document.key = document.key.map(all);
    document.secret = None;
    if !writes {
        document.to = document.to.map(|to| mask::email(&to));
    }
    document
}

fn status(destination: &Destination) -> &'static str {
    match destination.health.off {
        _ if destination.asked_at().is_some() => "pending",
        Some(_) => "off",
        None => "active",
    }
}

fn blank(destination: &Destination, now: Timestamp) -> DestinationDocument {
    let health = &destination.health;
    let pending_until = destination.secrets().and_then(|secrets| secrets.pending_until(now));
    let events = destination.events.as_ref();
    let monitors = destination.monitors.as_ref();
    DestinationDocument {
        id: destination.id.to_string(),
        page_id: destination.page.to_string(),
        name: destination.name.clone(),
        kind: destination.channel.kind().name(),
        url: None,
        to: None,
        token: None,
        chat: None,
        key: None,
        secret: None,
        secret_pending: pending_until.is_some(),
        secret_rotated_at: pending_until.map(|until| (until - OLD_SECRET).to_string()),
        old_secret_until: pending_until.map(|until| until.to_string()),
        events: events.map(|kinds| kinds.iter().copied().map(AlertKind::name).collect()),
        monitor_ids: monitors.map(|ids| ids.iter().map(ToString::to_string).collect()),
        enabled: destination.enabled,
        status: status(destination),
        failing_since: health.failing_since.map(|at| at.to_string()),
        off_since: health.off.map(|(at, _)| at.to_string()),
        off_reason: health.off.map(|(_, reason)| reason.name()),
        created_at: destination.created_at.to_string(),
    }
}
