//! A destination as the API returns it: complete to a write key, masked to a read key and in lists.

use parallax_core::destination::{Channel, Destination, SECRET_OVERLAP};
use parallax_core::event::AlertKind;
use parallax_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::api::mask;
use crate::http::openapi::value_schemas;

/// A destination of a page's alerts. Fields that do not apply to its type are null.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Destination")]
pub(in crate::http) struct DestinationDocument {
    /// Destination id.
    id: String,
    /// Page it belongs to.
    page_id: String,
    /// Name.
    name: String,
    /// Channel.
    #[serde(rename = "type")]
    #[schemars(with = "value_schemas::DestinationType")]
    kind: &'static str,
    /// webhook, slack, discord, teams, ntfy: URL to send to. Masked in lists and for a read key.
    url: Option<String>,
    /// email: address to send to. Masked for a read key.
    to: Option<String>,
    /// telegram, ntfy: token. Masked in lists and for a read key.
    token: Option<String>,
    /// telegram: chat.
    chat: Option<String>,
    /// pagerduty: integration key. Masked in lists and for a read key.
    key: Option<String>,
    /// webhook: signing secret; the new one while secretPending. Null in lists and for a read key.
    secret: Option<String>,
    /// webhook: a new secret waits to be activated. `webhook-signature` has one signature for the new secret and
    /// one for the old; `X-Service-Signature` uses the old one.
    secret_pending: bool,
    /// webhook: creation time of the pending secret; null if none is pending.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    secret_rotated_at: Option<String>,
    /// webhook: time at which the pending secret replaces the old one automatically; null if none is pending.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    old_secret_until: Option<String>,
    /// Alerts to send; null means all.
    #[schemars(with = "Option<Vec<value_schemas::AlertEvent>>")]
    events: Option<Vec<&'static str>>,
    /// Monitors to send alerts for; null means all of the page.
    monitor_ids: Option<Vec<String>>,
    /// True if its owner has enabled it.
    enabled: bool,
    /// True if alerts of outages have a link that shows the evidence without sign-in, for 7 days.
    evidence_link: bool,
    /// `active` gets alerts if it is enabled; `pending` is a mailbox that has not been confirmed yet and gets
    /// nothing; `disabled` was switched off by the service.
    #[schemars(with = "value_schemas::DestinationStatus")]
    status: &'static str,
    /// Time since which every delivery has failed; null while deliveries succeed.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    failing_since: Option<String>,
    /// Time at which the service switched it off; any change switches it on again unless the plan is the reason.
    /// For a pending destination, the time its confirmation was sent.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    off_since: Option<String>,
    /// Reason it is off: it answered 410, all deliveries failed for five days, its mail server rejected the mailbox
    /// permanently, the mailbox has not been confirmed, or the account's plan does not include its type.
    #[schemars(with = "Option<value_schemas::OffReason>")]
    off_reason: Option<&'static str>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

/// Builds the complete document, including secrets.
pub(in crate::http) fn full_document(destination: &Destination, now: Timestamp) -> DestinationDocument {
    let mut document = base_document(destination, now);
    let some = |text: &String| Some(text.clone());
    match &destination.channel {
        Channel::Email { to } => document.to = some(to),
        Channel::Webhook { url, secret } => {
            (document.url, document.secret) = (some(url), some(&secret.newest));
        }
        Channel::Slack { url } | Channel::Discord { url } | Channel::Teams { url } => document.url = some(url),
        Channel::Telegram { token, chat } => (document.token, document.chat) = (some(token), some(chat)),
        Channel::Ntfy { url, token } => (document.url, document.token) = (some(url), token.clone()),
        Channel::PagerDuty { key } => document.key = some(key),
    }
    document
}

/// Builds the document without anything that would allow its reader to write to the receiver. A write key sees
/// mailboxes.
pub(in crate::http) fn masked_document(destination: &Destination, writes: bool, now: Timestamp) -> DestinationDocument {
    let mut document = full_document(destination, now);
    let all = |_: String| mask::FULL_MASK.to_owned();
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
    match destination.health.disabled {
        _ if destination.confirmation_sent_at().is_some() => "pending",
        Some(_) => "off",
        None => "active",
    }
}

fn base_document(destination: &Destination, now: Timestamp) -> DestinationDocument {
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
        secret_rotated_at: pending_until.map(|until| (until - SECRET_OVERLAP).to_string()),
        old_secret_until: pending_until.map(|until| until.to_string()),
        events: events.map(|kinds| kinds.iter().copied().map(AlertKind::name).collect()),
        monitor_ids: monitors.map(|ids| ids.iter().map(ToString::to_string).collect()),
        enabled: destination.enabled,
        evidence_link: destination.evidence_link,
        status: status(destination),
        failing_since: health.failing_since.map(|at| at.to_string()),
        off_since: health.disabled.map(|(at, _)| at.to_string()),
        off_reason: health.disabled.map(|(_, reason)| reason.name()),
        created_at: destination.created_at.to_string(),
    }
}
