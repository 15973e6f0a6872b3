//! Undo of a subscriber's removal, unless the subscriber said no meanwhile.
//!
//! A removal that can be undone leaves a note with the token of the subscriber's links: without the record itself, an
//! unsubscription in these minutes would find nothing, and the undo would bring it back against the reader's will.

use parallax_core::id::{PageId, SubscriberId};
use parallax_core::page::Page;
use parallax_core::subscriber::{Contact, MAX_SUBSCRIBERS, Subscriber, decode_link};
use parallax_core::undo::{UNDO_WINDOW, UndoObstacle};
use parallax_core::validation::ValidationErrors;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse};
use subtle::ConstantTimeEq;

use super::SubscriberService;
use crate::ServiceResult;
use crate::hosts::hostname::url_host;

impl SubscriberService {
    /// Returns the write of the note that a subscriber was removed.
    pub(super) fn note_of_removal(&self, subscriber: &Subscriber) -> Op {
        let note = StoredResponse {
            fingerprint: [0; 32],
            response: subscriber.token.to_vec(),
            expires_at: self.context.now() + UNDO_WINDOW,
        };
        Op::PutStoredResponse(note_key(subscriber.id), note)
    }

    /// Returns the batch after which the removal of a link's subscriber can't be undone; `None` if it can't anyway.
    pub(super) fn removal_without_undo(&self, link: &str) -> ServiceResult<Option<Batch>> {
        let Some((id, token)) = decode_link(link) else { return Ok(None) };
        let note = self.context.store().reader().stored_response(&note_key(id))?;
        let Some(note) = note.filter(|note| bool::from(note.value.response.as_slice().ct_eq(&token))) else {
            return Ok(None);
        };
        let mut batch = Batch::new();
        let now = self.context.now();
        batch.expect(Expect::StoredResponse(note_key(id), Presence::At(note.revision)));
        batch.write(Op::PutStoredResponse(note_key(id), StoredResponse { expires_at: now, ..note.value }));
        Ok(Some(batch))
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
        let id = page.id;
        if self.context.store().read(move |store| store.subscribers_count(id)).await? >= MAX_SUBSCRIBERS {
            return Err(ValidationErrors::single("page", "has the maximum number of subscribers").into());
        }
        batch
            .expect(Expect::StoredResponse(note_key(subscriber.id), Presence::At(revision)))
            .expect(Expect::Subscriber(subscriber.id, Presence::Absent))
            .expect(Expect::SubscribersBelow(id, MAX_SUBSCRIBERS))
            .write(subscriber.clone());
        Ok(Vec::new())
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
