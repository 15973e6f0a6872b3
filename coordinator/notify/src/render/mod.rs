//! Rendering of notifications: bodies of webhooks, chat messages and mails, built only from domain values.
//!
//! A message is rendered when an event happens, so later changes don't affect it. Sending and signing are in
//! [`deliver`](crate::deliver).
//!
//! User-supplied text goes through `text`, which makes it one bounded line; each channel then escapes it for
//! its format.

mod alert_evidence;
pub mod alert_payload;
mod alert_text;
pub mod challenge;
mod discord;
pub mod incident_resource;
pub mod incident_update;
pub(crate) mod mail;
mod member_mail;
mod ntfy;
pub(crate) mod operator_alert;
pub(crate) mod pagerduty;
mod personal_mail;
pub mod plan_change;
mod region_schema;
mod slack;
mod teams;
mod telegram;
mod text;
mod time_format;

use std::collections::BTreeMap;

use parallax_core::delivery::DeliveryMessage;
use parallax_core::destination::ChannelKind;
use parallax_core::event::{AlertKind, StatusChange};
use parallax_core::flapping::{Aspect, Flapping, FlappingEnd};
use parallax_core::time::Timestamp;
use parallax_core::vantage::VantageNo;
use serde_json::Value;

use self::alert_payload::{AlertPayload, AlertSubject};
use self::alert_text::AlertText;
pub(crate) use self::incident_update::{IncidentNotification, RenderedUpdate, owner_reminder};
pub use self::member_mail::{member_invitation, password_reset};
pub(crate) use self::personal_mail::monitor_unjudged;
pub use self::personal_mail::{
    alerts_confirmation, dashboard_sign_in, destination_switched_off, sign_in, subscription_confirmation,
};

/// An alert to render.
#[derive(Debug, Clone, Copy)]
pub struct Alert<'a> {
    /// Kind of alert.
    pub kind: AlertKind,
    /// Monitor and page.
    pub subject: &'a AlertSubject,
    /// Details of the change.
    pub change: &'a StatusChange,
    /// Time of the change.
    pub at: Timestamp,
    /// Page's time zone, used in texts.
    pub zone: chrono_tz::Tz,
    /// Names of the agents in the evidence.
    pub agents: &'a AgentLabels,
    /// Link to the evidence of an outage, which works without sign-in; `None` if the destination wants none. Alerts
    /// about speed don't show it.
    pub evidence_url: Option<&'a str>,
    /// True for a test alert.
    pub is_test: bool,
}

impl<'a> Alert<'a> {
    /// Returns the evidence link of an alert about an outage; `None` for one about speed.
    fn outage_evidence_url(&self) -> Option<&'a str> {
        self.evidence_url.filter(|_| Aspect::of(self.kind) == Aspect::Availability)
    }
}

/// Agents' names by number.
pub type AgentLabels = BTreeMap<VantageNo, AgentLabel>;

/// An agent's display names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLabel {
    /// The agent's name.
    pub name: String,
    /// Its network's label.
    pub network: String,
}

/// Renders an alert for a channel.
pub fn render_alert(channel: ChannelKind, alert: &Alert<'_>) -> DeliveryMessage {
    DeliveryMessage::Json(match channel {
        ChannelKind::Email => return DeliveryMessage::Mail(mail::alert_mail(alert)),
        ChannelKind::Webhook => AlertPayload::new(alert).to_json(),
        ChannelKind::PagerDuty => json_bytes(&pagerduty::body(alert)),
        ChannelKind::Slack | ChannelKind::Discord | ChannelKind::Teams | ChannelKind::Telegram | ChannelKind::Ntfy => {
            chat_body(channel, &AlertText::for_alert(alert))
        }
    })
}

/// Renders the chat message that a monitor has started flapping. It replaces the alert of this change and of
/// those that follow.
pub(crate) fn render_flapping(channel: ChannelKind, alert: &Alert<'_>, flapping: Flapping) -> DeliveryMessage {
    DeliveryMessage::Json(chat_body(channel, &AlertText::flapping(alert, flapping)))
}

/// Renders the chat message that a monitor is stable again.
pub(crate) fn render_stable(
    channel: ChannelKind,
    subject: &AlertSubject,
    end: &FlappingEnd,
    at: Timestamp,
    zone: chrono_tz::Tz,
) -> DeliveryMessage {
    DeliveryMessage::Json(chat_body(channel, &AlertText::stable(subject, end, at, zone)))
}

/// Body of a chat message; empty for channels that are not chats.
fn chat_body(channel: ChannelKind, alert_text: &AlertText) -> Vec<u8> {
    match channel {
        ChannelKind::Slack => json_bytes(&slack::body(alert_text)),
        ChannelKind::Discord => json_bytes(&discord::body(alert_text)),
        ChannelKind::Teams => json_bytes(&teams::body(alert_text)),
        ChannelKind::Telegram => json_bytes(&telegram::body(alert_text)),
        ChannelKind::Ntfy => json_bytes(&ntfy::body(alert_text)),
        ChannelKind::Email | ChannelKind::Webhook | ChannelKind::PagerDuty => Vec::new(),
    }
}

fn json_bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
