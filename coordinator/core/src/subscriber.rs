//! Visitors who asked to be told of a page's incidents and maintenance, and the news on its way to them.

use serde::{Deserialize, Serialize};

use crate::delivery::Mail;
use crate::destination::{Health, Secrets};
use crate::id::{BulletinId, IncidentId, MonitorId, PageId, SubscriberId};
use crate::time::{DAY, Timestamp};

/// Subscribers of one page: at most so many.
pub const MAX_SUBSCRIBERS: usize = 50_000;
/// Milliseconds that a request that was not confirmed is kept.
pub const UNCONFIRMED: i64 = 2 * DAY;
/// Milliseconds within which one address is written to once at most by those who are not confirmed.
pub const ASKED_AGAIN: i64 = DAY;

/// One who is told of a page's incidents and maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber {
    /// Its id.
    pub id: SubscriberId,
    /// The page.
    pub page: PageId,
    /// How it is reached.
    pub contact: Contact,
    /// What tells its contact from others of the page: the start of a hash over it.
    pub fingerprint: [u8; 16],
    /// Monitors that it hears of; none means the whole page. What names no monitor is told to everybody.
    pub monitors: Option<Vec<MonitorId>>,
    /// When it was shown that whoever asked is who is written to; none until then.
    pub confirmed_at: Option<Timestamp>,
    /// What its confirmation and its unsubscribing need: random, and in every mail to it.
    pub token: [u8; 16],
    /// When it was last asked to confirm.
    pub asked_at: Timestamp,
    /// How it fares.
    pub health: Health,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How a subscriber is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contact {
    /// A mailbox.
    Email(String),
    /// A signed POST of JSON.
    Webhook {
        /// Where to.
        url: String,
        /// What it is signed with.
        secret: Secrets,
    },
}

impl Contact {
    /// The name of its kind that the API uses.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Email(_) => "email",
            Self::Webhook { .. } => "webhook",
        }
    }
}

impl Subscriber {
    /// Whether it is to hear of what concerns these monitors; none named means the page.
    pub fn hears(&self, affected: &[MonitorId]) -> bool {
        self.confirmed_at.is_some()
            && self.health.off.is_none()
            && (affected.is_empty()
                || self.monitors.as_ref().is_none_or(|own| own.iter().any(|it| affected.contains(it))))
    }
}

/// News of a page that its subscribers get, made once. It goes out to them in slices, by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulletin {
    /// Its id.
    pub id: BulletinId,
    /// The page.
    pub page: PageId,
    /// The incident or window.
    pub incident: IncidentId,
    /// What it tells of, by name: `incident.created`.
    pub event: String,
    /// The event's number in the journal.
    pub seq: u64,
    /// Monitors that it concerns; none named means the page.
    pub affected: Vec<MonitorId>,
    /// For webhooks: the JSON that is signed and posted.
    pub json: Vec<u8>,
    /// For mailboxes; the line with the link that unsubscribes is added for each.
    pub mail: Mail,
    /// When it was made.
    pub created_at: Timestamp,
    /// The subscriber up to whom deliveries were made, in the order of ids; none at first.
    pub reached: Option<SubscriberId>,
    /// Whether every subscriber was reached.
    pub done: bool,
}
