//! Mailboxes among a page's subscribers: imports ask each once, whatever its spelling, and none that unsubscribed.

use std::collections::BTreeSet;

use parallax_core::id::PageId;
use parallax_core::subscriber::{MAX_SUBSCRIBERS, Subscriber};
use parallax_store::{self as storage, StoreRead};

use super::administration::{SubscriberCounts, scan};

/// Counts of a page's subscribers, with those of some mailboxes that are among them.
#[derive(Debug, Default)]
pub(super) struct PageMailboxes {
    pub(super) counts: SubscriberCounts,
    pub(super) found: BTreeSet<String>,
}

impl PageMailboxes {
    /// Looks for mailboxes among a page's subscribers.
    pub(super) fn search(store: &dyn StoreRead, page: PageId, wanted: &BTreeSet<String>) -> storage::Result<Self> {
        let mut mailboxes = Self::default();
        scan(store, page, None, MAX_SUBSCRIBERS, |subscriber| {
            mailboxes.counts.add(&subscriber);
            mailboxes.found.extend(mailbox_key(&subscriber).filter(|key| wanted.contains(key)));
            true
        })?;
        Ok(mailboxes)
    }
}

/// Returns the mailboxes of a page that were asked: of all subscribers but those that wait for it.
pub(super) fn asked_mailboxes(store: &dyn StoreRead, page: PageId) -> storage::Result<BTreeSet<String>> {
    let mut asked = BTreeSet::new();
    scan(store, page, None, MAX_SUBSCRIBERS, |subscriber| {
        asked.extend(mailbox_key(&subscriber).filter(|_| !subscriber.is_queued()));
        true
    })?;
    Ok(asked)
}

fn mailbox_key(subscriber: &Subscriber) -> Option<String> {
    subscriber.contact.mailbox().map(|mailbox| mailbox.mailbox_key())
}
