//! Subscribers: visitors who get notified of a page's incidents and maintenance, and the bulletins sent to
//! them.

pub mod confirmation_limit;
pub mod import;
pub mod request;

use serde::{Deserialize, Serialize};

use self::request::SubscriberAddress;
use crate::compat;
use crate::delivery::MailMessage;
use crate::destination::{DeliveryHealth, MASK, SigningSecrets, masked_email, masked_url};
use crate::id::{BulletinId, IncidentId, MonitorId, PageId, SubscriberId};
use crate::link_token;
use crate::time::{DAY, Timestamp};

/// Maximum number of subscribers of one page.
pub const MAX_SUBSCRIBERS: usize = 50_000;
/// Milliseconds for which an unconfirmed subscription is kept.
pub const UNCONFIRMED_RETENTION: i64 = 2 * DAY;
/// Milliseconds for which an imported address waits to be asked: mails to addresses that may not want them are spread.
pub const QUEUED_RETENTION: i64 = 60 * DAY;
/// Milliseconds within which an address gets at most one confirmation request.
pub const CONFIRMATION_INTERVAL: i64 = DAY;

/// A subscriber of a page's incidents and maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber {
    /// Its id.
    pub id: SubscriberId,
    /// The page.
    pub page: PageId,
    /// Email address or webhook.
    pub contact: Contact,
    /// Hash prefix of the contact, which identifies it among the page's subscribers.
    pub fingerprint: [u8; 16],
    /// Monitors subscribed to; none means the whole page. An incident without monitors goes to everybody.
    pub monitors: Option<Vec<MonitorId>>,
    /// Time of confirmation by the owner of the contact; none before it.
    pub confirmed_at: Option<Timestamp>,
    /// Secret for confirming and unsubscribing: random, and part of every mail to the subscriber.
    pub token: [u8; 16],
    /// Time of the last confirmation request.
    pub confirmation_sent_at: Timestamp,
    /// Delivery health.
    pub health: DeliveryHealth,
    /// Creation time.
    pub created_at: Timestamp,
    /// True if the page's owner added it, rather than a visitor. Older records end before this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub by_owner: bool,
    /// Time at which an import added it, as long as it waits to be asked. Older records end before this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub queued_at: Option<Timestamp>,
}

/// The contact of a subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contact {
    /// Email address.
    Email(String),
    /// A signed POST of JSON.
    Webhook {
        /// Target URL.
        url: String,
        /// Signing secrets.
        secret: SigningSecrets,
    },
}

impl Contact {
    /// Name of its kind in the API.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Email(_) => "email",
            Self::Webhook { .. } => "webhook",
        }
    }

    /// Its mailbox; `None` for a webhook.
    pub fn mailbox(&self) -> Option<SubscriberAddress> {
        match self {
            Self::Email(email) => Some(SubscriberAddress::Email(email.clone())),
            Self::Webhook { .. } => None,
        }
    }
}

impl Subscriber {
    /// The same without what a reader may not use: of a mailbox the first character and the domain stay, of a URL its
    /// scheme and host.
    #[must_use]
    pub fn masked(self) -> Self {
        let contact = match self.contact {
            Contact::Email(email) => Contact::Email(masked_email(&email)),
            Contact::Webhook { url, .. } => {
                let secret = SigningSecrets { newest: MASK.to_owned(), previous: None };
                Contact::Webhook { url: masked_url(&url), secret }
            }
        };
        Self { contact, token: [0; 16], ..self }
    }

    /// Parameter of its links: the 26 digits of its id, followed by its token in hex.
    pub fn link_token(&self) -> String {
        link_token::encode(&self.id.to_string(), SubscriberId::PREFIX, self.token)
    }

    /// URL for confirming and for changing the monitors; `page_url` is the page's public address.
    pub fn confirm_url(&self, page_url: &str) -> String {
        format!("{page_url}/confirm?t={}", self.link_token())
    }

    /// URL for unsubscribing with one POST (RFC 8058); `page_url` is the page's public address.
    pub fn unsubscribe_url(&self, page_url: &str) -> String {
        format!("{page_url}/unsubscribe?t={}", self.link_token())
    }

    /// Returns true for a subscription that was not confirmed in time, or could not be asked in time.
    pub const fn is_expired(&self, now: Timestamp) -> bool {
        match (self.confirmed_at, self.queued_at) {
            (Some(_), _) => false,
            (None, Some(at)) => now.since(at) >= QUEUED_RETENTION,
            (None, None) => now.since(self.confirmation_sent_at) >= UNCONFIRMED_RETENTION,
        }
    }

    /// Returns true if it was imported and waits to be asked.
    pub const fn is_queued(&self) -> bool {
        self.confirmed_at.is_none() && self.queued_at.is_some()
    }

    /// Returns true if it is notified about these monitors; an empty list means the whole page.
    pub fn receives(&self, affected: &[MonitorId]) -> bool {
        self.confirmed_at.is_some()
            && self.health.disabled.is_none()
            && (affected.is_empty()
                || self.monitors.as_ref().is_none_or(|own| own.iter().any(|it| affected.contains(it))))
    }
}

/// Decodes a link's parameter; none if it is malformed.
pub fn decode_link(text: &str) -> Option<(SubscriberId, [u8; 16])> {
    link_token::decode(SubscriberId::PREFIX, text)
}

/// A bulletin: one message to all subscribers of a page, rendered once and sent out in batches by subscriber
/// id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulletin {
    /// Its id.
    pub id: BulletinId,
    /// The page.
    pub page: PageId,
    /// The incident or window.
    pub incident: IncidentId,
    /// Name of the event: `incident.created`.
    pub event: String,
    /// Sequence number of the event in the journal.
    pub seq: u64,
    /// Affected monitors; empty means the whole page.
    pub affected: Vec<MonitorId>,
    /// Body for webhooks: signed JSON.
    pub json: Vec<u8>,
    /// Mail; a line with the unsubscribe link is added for each recipient.
    pub mail: MailMessage,
    /// Creation time.
    pub created_at: Timestamp,
    /// Last subscriber, by id, with a delivery created; none at first.
    pub last_reached: Option<SubscriberId>,
    /// True once every subscriber has a delivery.
    pub is_complete: bool,
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
            confirmation_sent_at: Timestamp::from_millis(0),
            health: DeliveryHealth::default(),
            created_at: Timestamp::from_millis(0),
            by_owner: false,
            queued_at: None,
        }
    }

    #[test]
    fn a_subscriber_record_without_its_last_fields_is_read() {
        let bytes = postcard::to_stdvec(&(7_u64, subscriber())).unwrap();
        for missing in 1..=2 {
            let read: (u64, Subscriber) = postcard::from_bytes(&bytes[..bytes.len() - missing]).unwrap();
            assert_eq!(read, (7, subscriber()));
        }
    }

    #[test]
    fn a_masked_subscriber_keeps_enough_to_distinguish_and_no_secret() {
        for (url, masked) in [
            ("https://hooks.example.com:8443/T0/secret?x=y", "https://hooks.example.com:8443/***"),
            ("http://user:secret@[2001:db8::1]/x", "http://[2001:db8::1]/***"),
            ("https://a.example?secret", "https://a.example/***"),
        ] {
            let previous = Some(("whsec_old".to_owned(), Timestamp::from_millis(1)));
            let secret = SigningSecrets { newest: "whsec_secret".to_owned(), previous };
            let read =
                Subscriber { contact: Contact::Webhook { url: url.to_owned(), secret }, ..subscriber() }.masked();
            let hidden = SigningSecrets { newest: MASK.to_owned(), previous: None };
            assert_eq!(read.contact, Contact::Webhook { url: masked.to_owned(), secret: hidden });
        }
        let read = subscriber().masked();
        assert_eq!((read.contact, read.token), (Contact::Email("a***@example.com".to_owned()), [0; 16]));
    }

    #[test]
    fn a_link_token_carries_its_subscriber() {
        let subscriber = subscriber();
        let link = subscriber.link_token();
        assert_eq!(decode_link(&link), Some((subscriber.id, subscriber.token)));
        assert_eq!(subscriber.confirm_url("https://a.example"), format!("https://a.example/confirm?t={link}"));
    }

    #[test]
    fn unconfirmed_subscribers_and_other_monitors_get_no_updates() {
        let [one, other] = [1, 2].map(MonitorId::from_u128);
        let page = subscriber();
        let chosen = Subscriber { monitors: Some(vec![one]), ..subscriber() };
        let unconfirmed = Subscriber { confirmed_at: None, ..subscriber() };
        for (subscriber, affected, receives) in [
            (&page, &[one][..], true),
            (&page, &[], true),
            (&chosen, &[one, other], true),
            (&chosen, &[other], false),
            (&chosen, &[], true),
            (&unconfirmed, &[], false),
        ] {
            assert_eq!(subscriber.receives(affected), receives, "{subscriber:?} {affected:?}");
        }
        assert!(unconfirmed.is_expired(Timestamp::from_millis(UNCONFIRMED_RETENTION)));
        assert!(!unconfirmed.is_expired(Timestamp::from_millis(UNCONFIRMED_RETENTION - 1)));
        assert!(!page.is_expired(Timestamp::from_millis(UNCONFIRMED_RETENTION)));
    }
}
