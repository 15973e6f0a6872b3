//! The subscriber that a request creates, or the update of a known one.

use parallax_core::destination::{DeliveryHealth, SigningSecrets};
use parallax_core::id::SubscriberId;
use parallax_core::page::Page;
use parallax_core::subscriber::request::{SubscriberAddress, ValidSubscription};
use parallax_core::subscriber::{Contact, Subscriber};
use parallax_core::time::Timestamp;

use super::contact_fingerprint;
use crate::destinations::format_secret;

/// Values for a new subscriber, whether used or not.
pub(super) struct NewSubscriber {
    pub(super) id: SubscriberId,
    pub(super) by_owner: bool,
    pub(super) token: [u8; 16],
    pub(super) secret: String,
    pub(super) challenge: String,
}

impl NewSubscriber {
    pub(super) fn new(now: Timestamp, by_owner: bool) -> Self {
        Self {
            id: SubscriberId::new(now, rand::random()),
            by_owner,
            token: rand::random(),
            secret: format_secret(rand::random()),
            challenge: hex::encode(rand::random::<[u8; 16]>()),
        }
    }

    pub(super) fn subscriber(&self, page: &Page, valid: &ValidSubscription, now: Timestamp) -> Subscriber {
        let contact = match &valid.address {
            SubscriberAddress::Email(email) => Contact::Email(email.clone()),
            SubscriberAddress::Webhook { url, .. } => {
                let secret = SigningSecrets { newest: self.secret.clone(), previous: None };
                Contact::Webhook { url: url.clone(), secret }
            }
        };
        Subscriber {
            id: self.id,
            page: page.id,
            contact,
            fingerprint: contact_fingerprint(&valid.address),
            monitors: valid.monitors.clone(),
            confirmed_at: None,
            token: self.token,
            confirmation_sent_at: now,
            health: DeliveryHealth::default(),
            created_at: now,
            by_owner: self.by_owner,
            queued_at: None,
        }
    }

    pub(super) fn link(&self) -> String {
        let id = self.id.to_string();
        format!("{}{}", id.strip_prefix(SubscriberId::PREFIX).unwrap_or_default(), hex::encode(self.token))
    }
}

/// Returns the subscriber to store when a confirmation request is sent, or `None` if none is: `before` is the stored
/// subscriber of that contact, `new` the one to create, `is_lately` true if the contact got a request within the last
/// day, for any page.
pub(super) fn subscriber_after_request(
    before: Option<&Subscriber>,
    new: Subscriber,
    is_lately: bool,
) -> Option<Subscriber> {
    if is_lately {
        return None;
    }
    let Some(before) = before else { return Some(new) };
    let is_mail = matches!(before.contact, Contact::Email(_));
    match (before.health.disabled, before.confirmed_at) {
        (Some(_), _) => None,
        // The mail links its reader to the current choice; the request itself changes nothing of it.
        (None, Some(_)) => {
            is_mail.then(|| Subscriber { confirmation_sent_at: new.confirmation_sent_at, ..before.clone() })
        }
        // Links in earlier mails stay valid.
        (None, None) => is_mail.then_some(Subscriber {
            id: before.id,
            token: before.token,
            created_at: before.created_at,
            by_owner: before.by_owner || new.by_owner,
            ..new
        }),
    }
}
