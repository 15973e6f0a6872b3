//! Undo of a subscriber's removal, unless the subscriber said no meanwhile.
//!
//! A removal that can be undone leaves a note with the token of the subscriber's links: without the record itself, an
//! unsubscription in these minutes would find nothing, and the undo would bring it back against the reader's will.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::subscriber::{Contact, MAX_SUBSCRIBERS, Subscriber, decode_link};
use parallax_core::undo::{UNDO_WINDOW, UndoObstacle};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::SubscriberService;
use crate::ServiceResult;
use crate::hosts::hostname::url_host;
use crate::notifications::confirmation_requests::opt_out;

/// Note of a removed subscriber. It has no address.
#[derive(Debug, Serialize, Deserialize)]
struct RemovedSubscriber {
    /// Token of the subscriber's links.
    token: [u8; 16],
    page: PageId,
    /// The name under which the opt-out of its reader is stored.
    opt_out_key: String,
    is_mailbox: bool,
}

impl SubscriberService {
    /// Returns the write of the note that a subscriber was removed.
    pub(super) fn note_of_removal(&self, subscriber: &Subscriber) -> Option<Op> {
        let note = RemovedSubscriber {
            token: subscriber.token,
            page: subscriber.page,
            opt_out_key: self.key_of_opt_out(subscriber),
            is_mailbox: matches!(subscriber.contact, Contact::Email(_)),
        };
        let response = postcard::to_stdvec(&note).ok()?;
        let note = StoredResponse { fingerprint: [0; 32], response, expires_at: self.context.now() + UNDO_WINDOW };
        Some(Op::PutStoredResponse(note_key(subscriber.id), note))
    }

    /// Returns the write of a subscriber's opt-out: no undo brings it back, and no import asks a mailbox again.
    pub(super) fn opt_out_of(&self, subscriber: &Subscriber) -> Op {
        let is_mailbox = matches!(subscriber.contact, Contact::Email(_));
        Op::PutStoredResponse(self.key_of_opt_out(subscriber), opt_out(is_mailbox, self.context.now()))
    }

    /// Returns the page of a removed subscriber's link.
    pub(super) fn page_of_removed(&self, link: &str) -> ServiceResult<Option<PageId>> {
        Ok(self.note_by_link(link)?.map(|(_, _, note)| note.page))
    }

    /// Returns the batch after which the removal of a link's subscriber can't be undone; `None` if it can't anyway.
    pub(super) fn removal_without_undo(&self, link: &str) -> ServiceResult<Option<Batch>> {
        let Some((id, stored, note)) = self.note_by_link(link)? else { return Ok(None) };
        let mut batch = Batch::new();
        let now = self.context.now();
        batch.expect(Expect::StoredResponse(note_key(id), Presence::At(stored.revision)));
        // An undo at the same time brings it back: then it is deleted.
        batch.expect(Expect::Subscriber(id, Presence::Absent));
        batch.write(Op::PutStoredResponse(note_key(id), StoredResponse { expires_at: now, ..stored.value }));
        batch.write(Op::PutStoredResponse(note.opt_out_key, opt_out(note.is_mailbox, now)));
        Ok(Some(batch))
    }

    fn note_by_link(
        &self,
        link: &str,
    ) -> ServiceResult<Option<(SubscriberId, VersionedValue<StoredResponse>, RemovedSubscriber)>> {
        let Some((id, token)) = decode_link(link) else { return Ok(None) };
        let stored = self.context.store().reader().stored_response(&note_key(id))?;
        let Some(stored) = stored.filter(|stored| stored.value.expires_at > self.context.now()) else {
            return Ok(None);
        };
        let note = postcard::from_bytes::<RemovedSubscriber>(&stored.value.response).ok();
        Ok(note.filter(|note| bool::from(note.token.ct_eq(&token))).map(|note| (id, stored, note)))
    }

    /// Adds to the batch that a subscriber comes back who was removed at that revision. Returns what is in the way.
    pub(crate) async fn restore(
        &self,
        page: &Page,
        (subscriber, revision): (&Subscriber, u64),
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let name = match &subscriber.contact {
            Contact::Email(email) => email.clone(),
            Contact::Webhook { url, .. } => url_host(url).unwrap_or_else(|| "The webhook".to_owned()),
        };
        let reader = self.context.store().reader();
        let note = reader.stored_response(&note_key(subscriber.id))?;
        if note.is_none_or(|note| note.revision != revision) {
            return Ok(vec![UndoObstacle::new(name, "unsubscribed")]);
        }
        if reader.subscriber_by_contact(page.id, subscriber.fingerprint)?.is_some() {
            return Ok(vec![UndoObstacle::new(name, "was added again")]);
        }
        // Added again, and unsubscribed by a link of that subscription.
        let opt_out_key = self.key_of_opt_out(subscriber);
        let opt_out = reader.stored_response(&opt_out_key)?;
        let is_out =
            |it: &VersionedValue<StoredResponse>| it.revision > revision && it.value.expires_at > self.context.now();
        if opt_out.as_ref().is_some_and(is_out) {
            return Ok(vec![UndoObstacle::new(name, "unsubscribed")]);
        }
        let id = page.id;
        if self.context.store().read(move |store| store.subscribers_count(id)).await? >= MAX_SUBSCRIBERS {
            return Err(ValidationErrors::single("page", "has the maximum number of subscribers").into());
        }
        batch
            .expect(Expect::StoredResponse(note_key(subscriber.id), Presence::At(revision)))
            .expect(Expect::StoredResponse(
                opt_out_key,
                opt_out.map_or(Presence::Absent, |opt_out| Presence::At(opt_out.revision)),
            ))
            .expect(Expect::Subscriber(subscriber.id, Presence::Absent))
            .expect(Expect::SubscribersBelow(id, MAX_SUBSCRIBERS))
            .write(subscriber.clone());
        Ok(Vec::new())
    }

    /// The name under which the opt-out of a subscriber is stored.
    fn key_of_opt_out(&self, subscriber: &Subscriber) -> String {
        let address = match &subscriber.contact {
            Contact::Email(email) => SubscriberAddress::Email(email.clone()),
            Contact::Webhook { url, .. } => {
                SubscriberAddress::Webhook { url: url.clone(), host: url_host(url).unwrap_or_default() }
            }
        };
        self.context.opt_out_key(subscriber.page, &address)
    }

    /// Drops the page's cached counts.
    pub(crate) fn forget_counts(&self, page: PageId) {
        self.counts_cache.forget(page);
    }
}

/// The name under which the removal of a subscriber is noted.
fn note_key(id: SubscriberId) -> String {
    format!("removed/{id}")
}
