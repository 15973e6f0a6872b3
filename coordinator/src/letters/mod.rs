//! Rendering of notifications: bodies of webhooks, chat messages and mails, built only from domain values.
//!
//! A message is rendered when an event happens, so later changes don't affect it. Sending and signing are in
//! [`deliver`](crate::deliver).
//!
//! User-supplied text goes through `text`, which makes it one bounded line; each channel then escapes it for
//! its format.

pub mod challenge;
mod discord;
mod evidence;
pub mod mail;
mod markdown;
pub mod notice;
mod ntfy;
pub mod pagerduty;
pub mod payload;
mod person;
pub mod plan;
pub mod resource;
mod slack;
mod teams;
mod telegram;
mod text;
mod tongue;
pub mod update;
mod words;

use std::collections::BTreeMap;

use parallax_core::delivery::Letter;
use parallax_core::destination::ChannelKind;
use parallax_core::event::{AlertKind, Change};
use parallax_core::flapping::{Flapping, Steady};
use parallax_core::place::PlaceNo;
use parallax_core::time::Timestamp;
use serde_json::Value;

pub use self::notice::{Matter, OperatorNews, notice};
use self::payload::{Alert, Subject};
pub use self::person::{alerts_confirmation, confirmation, sign_in, switched_off, unjudged};
pub use self::update::{IncidentNews, Written, quiet, update};
use self::words::Story;

/// An alert to render.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    /// Kind of alert.
    pub kind: AlertKind,
    /// Monitor and page.
    pub subject: &'a Subject,
    /// Details of the change.
    pub change: &'a Change,
    /// Time of the change.
    pub at: Timestamp,
    /// Page's time zone, used in texts.
    pub zone: chrono_tz::Tz,
    /// Names of the agents in the evidence.
    pub places: &'a PlaceNames,
    /// True for a test alert.
    pub is_test: bool,
}

/// Agents' names by number.
pub type PlaceNames = BTreeMap<PlaceNo, PlaceName>;

/// An agent's display names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceName {
    /// The agent's name.
    pub name: String,
    /// Its network's label.
    pub network: String,
}

/// Renders an alert for a channel.
pub fn alert(channel: ChannelKind, news: &News<'_>) -> Letter {
    Letter::Json(match channel {
        ChannelKind::Email => return Letter::Mail(mail::alert(news)),
        ChannelKind::Webhook => Alert::new(news).bytes(),
        ChannelKind::PagerDuty => bytes(&pagerduty::body(news)),
        ChannelKind::Slack
        | ChannelKind::Discord
        | ChannelKind::Teams
        | ChannelKind::Telegram
        | ChannelKind::Ntfy => chat(channel, &Story::tell(news)),
    })
}

/// Renders the chat message that a monitor has started flapping. It replaces the alert of this change and of
/// those that follow.
pub fn flapping(channel: ChannelKind, news: &News<'_>, flapping: Flapping) -> Letter {
    Letter::Json(chat(channel, &Story::flapping(news, flapping)))
}

/// Renders the chat message that a monitor is stable again.
pub fn steady(
    channel: ChannelKind,
    subject: &Subject,
    steady: &Steady,
    at: Timestamp,
    zone: chrono_tz::Tz,
) -> Letter {
    Letter::Json(chat(channel, &Story::steady(subject, steady, at, zone)))
}

/// Body of a chat message; empty for channels that are not chats.
fn chat(channel: ChannelKind, story: &Story) -> Vec<u8> {
    match channel {
        ChannelKind::Slack => bytes(&slack::body(story)),
        ChannelKind::Discord => bytes(&discord::body(story)),
        ChannelKind::Teams => bytes(&teams::body(story)),
        ChannelKind::Telegram => bytes(&telegram::body(story)),
        ChannelKind::Ntfy => bytes(&ntfy::body(story)),
        ChannelKind::Email | ChannelKind::Webhook | ChannelKind::PagerDuty => Vec::new(),
    }
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
