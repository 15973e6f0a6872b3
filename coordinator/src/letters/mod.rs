//! What is written to programs and people: bodies of webhooks, chats and mails, made of the domain's values alone.
//!
//! A letter is finished when something happened, so that nothing that changes later shows in it. How it is sent, and
//! what proves who sent it, is the affair of [`deliver`](crate::deliver).

pub mod payload;

use std::collections::BTreeMap;

use parallax_core::delivery::Letter;
use parallax_core::destination::ChannelKind;
use parallax_core::event::{AlertKind, Change};
use parallax_core::place::PlaceNo;
use parallax_core::time::Timestamp;

use self::payload::{Alert, Subject};

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
    pub places: &'a BTreeMap<PlaceNo, PlaceName>,
    /// Whether it only shows what one would look like.
    pub is_test: bool,
}

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
    match channel {
        ChannelKind::Webhook
        | ChannelKind::Email
        | ChannelKind::Slack
        | ChannelKind::Discord
        | ChannelKind::Teams
        | ChannelKind::Telegram
        | ChannelKind::Ntfy
        | ChannelKind::PagerDuty => {
            Letter::Json(Alert::new(news.kind, news.subject, news.change, news.at).bytes())
        }
    }
}
