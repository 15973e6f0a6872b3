//! Visitors who asked to be told of a page's incidents and maintenance, and the news on its way to them.

pub mod ask;
pub mod asking;

use serde::{Deserialize, Serialize};

use crate::delivery::Mail;
use crate::destination::{Health, Secrets};
use crate::id::{BulletinId, IncidentId, MonitorId, PageId, SubscriberId};
use crate::late;
use crate::link;
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
    /// True where the page's owner asked for it, not a visitor. Older records end before this field.
    #[serde(deserialize_with = "late::or_default")]
    pub by_owner: bool,
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
    /// What its links carry: the 26 digits of its id, then its token in hex.
    pub fn link(&self) -> String {
        link::write(&self.id.to_string(), SubscriberId::PREFIX, self.token)
    }

    /// Where it confirms, and changes what it hears of; `page_url` is the page's public address.
    pub fn confirm_url(&self, page_url: &str) -> String {
        format!("{page_url}/confirm?t={}", self.link())
    }

    /// Where it unsubscribes, by one POST (RFC 8058); `page_url` is the page's public address.
    pub fn unsubscribe_url(&self, page_url: &str) -> String {
        format!("{page_url}/unsubscribe?t={}", self.link())
    }

    /// Whether it is a request that nobody confirmed in time.
    pub const fn is_stale(&self, now: Timestamp) -> bool {
        self.confirmed_at.is_none() && now.since(self.asked_at) >= UNCONFIRMED
    }

    /// Whether it is to hear of what concerns these monitors; none named means the page.
    pub fn hears(&self, affected: &[MonitorId]) -> bool {
        self.confirmed_at.is_some()
            && self.health.off.is_none()
            && (affected.is_empty()
                || self.monitors.as_ref().is_none_or(|own| own.iter().any(|it| affected.contains(it))))
    }
}

/// Reads what a link carries; none for what no link of ours carries.
pub fn read_link(text: &str) -> Option<(SubscriberId, [u8; 16])> {
    link::read(SubscriberId::PREFIX, text)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn subscriber() -> Subscriber {
        Subscriber {
            id: SubscriberId::new(Timestamp::from_millis(1_790_000_000_123), [7; 10]),
            page: PageId::from_u128(1),
            contact: Contact::Email("ann@example.com".to_owned()),
            fingerprint: [1; 16],
            monitors: None,
            confirmed_at: Some(Timestamp::from_millis(0)),
            token: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255],
            asked_at: Timestamp::from_millis(0),
            health: Health::default(),
            created_at: Timestamp::from_millis(0),
            by_owner: false,
        }
    }

    #[test]
    fn a_record_of_before_its_asker_is_read() {
        let bytes = postcard::to_stdvec(&(7_u64, subscriber())).unwrap();
        let read: (u64, Subscriber) = postcard::from_bytes(&bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(read, (7, subscriber()));
    }

    #[test]
    fn a_link_carries_who_it_is_for() {
        let subscriber = subscriber();
        let link = subscriber.link();
        assert_eq!(read_link(&link), Some((subscriber.id, subscriber.token)));
        assert_eq!(
            subscriber.confirm_url("https://a.example"),
            format!("https://a.example/confirm?t={link}")
        );
    }

    #[test]
    fn who_is_not_confirmed_or_chose_others_hears_nothing() {
        let [one, other] = [1, 2].map(MonitorId::from_u128);
        let page = subscriber();
        let chosen = Subscriber { monitors: Some(vec![one]), ..subscriber() };
        let asked = Subscriber { confirmed_at: None, ..subscriber() };
        for (who, affected, hears) in [
            (&page, &[one][..], true),
            (&page, &[], true),
            (&chosen, &[one, other], true),
            (&chosen, &[other], false),
            (&chosen, &[], true),
            (&asked, &[], false),
        ] {
            assert_eq!(who.hears(affected), hears, "{who:?} {affected:?}");
        }
        assert!(asked.is_stale(Timestamp::from_millis(UNCONFIRMED)));
        assert!(!asked.is_stale(Timestamp::from_millis(UNCONFIRMED - 1)));
        assert!(!page.is_stale(Timestamp::from_millis(UNCONFIRMED)));
    }
}
