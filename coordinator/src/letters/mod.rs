//! What is written to programs and people: bodies of webhooks, chats and mails, made of the domain's values alone.
//!
//! A letter is finished when something happened, so that nothing that changes later shows in it. How it is sent, and
//! what proves who sent it, is the affair of [`deliver`](crate::deliver).
//!
//! Text from outside comes in by `text`, which makes a bounded line of it; each channel escapes it for its own form.

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

/// An alert that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    /// What happened.
    pub kind: AlertKind,
    /// To which monitor of which page.
    pub subject: &'a Subject,
    /// With what is known of it.
    pub change: &'a Change,
    /// When.
    pub at: Timestamp,
    /// The page's time zone, for what people read.
    pub zone: chrono_tz::Tz,
    /// Names of the places that looked.
    pub places: &'a PlaceNames,
    /// Whether it only shows what one would look like.
    pub is_test: bool,
}

/// Names of places by their numbers.
pub type PlaceNames = BTreeMap<PlaceNo, PlaceName>;

/// A place by the words that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceName {
    /// The agent's name.
    pub name: String,
    /// Its network's label.
    pub network: String,
}

/// The letter that tells of an alert by that channel.
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

/// Message to a chat: a monitor flaps from now on. It takes the place of that change and of those that follow.
pub fn flapping(channel: ChannelKind, news: &News<'_>, flapping: Flapping) -> Letter {
    Letter::Json(chat(channel, &Story::flapping(news, flapping)))
}

/// Message to a chat: a monitor is steady again.
pub fn steady(
    channel: ChannelKind,
    subject: &Subject,
    steady: &Steady,
    at: Timestamp,
    zone: chrono_tz::Tz,
) -> Letter {
    Letter::Json(chat(channel, &Story::steady(subject, steady, at, zone)))
}

/// Body that is posted to a chat. Other channels get none of these.
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
