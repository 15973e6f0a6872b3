//! Undo of a destination's deletion, unless the reader of its mailbox stopped the alerts meanwhile.
//!
//! A deletion that can be undone leaves a note of the mailbox: without the record itself, the link of an alert would
//! find nothing in these minutes, and the undo would send alerts again against the reader's will.

use parallax_core::destination::{Destination, MAX_DESTINATIONS};
use parallax_core::id::{DestinationId, PageId};
use parallax_core::link_token;
use parallax_core::page::{NO_ACCOUNT, Page};
use parallax_core::plan::PlanLimitError;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::undo::{UNDO_WINDOW, UndoObstacle};
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::DestinationService;
use super::mailbox_confirmation::LinkedDestination;
use crate::notifications::confirmation_requests::{record_request, request_key};
use crate::{ServiceError, ServiceResult};

/// Note of a deleted destination.
#[derive(Debug, Serialize, Deserialize)]
struct DeletedMailbox {
    page: PageId,
    mailbox: String,
    /// True once its reader stopped the alerts.
    is_stopped: bool,
}

/// A note that a link belongs to, as stored.
struct LinkedNote {
    id: DestinationId,
    page: Page,
    note: DeletedMailbox,
    revision: u64,
    stored: StoredResponse,
}

impl DestinationService {
    /// Returns the write of the note that a destination was deleted; `None` without a mailbox.
    pub(super) fn note_of_deletion(&self, destination: &Destination) -> Option<Op> {
        let mailbox = destination.mailbox()?.to_owned();
        let note = DeletedMailbox { page: destination.page, mailbox, is_stopped: false };
        let response = postcard::to_stdvec(&note).ok()?;
        let note = StoredResponse { fingerprint: [0; 32], response, expires_at: self.context.now() + UNDO_WINDOW };
        Some(Op::PutStoredResponse(note_key(destination.id), note))
    }

    /// Returns the destination of a link whose deletion may still be undone.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if there is none.
    pub(super) fn deleted_by_stop_link(&self, link: &str) -> ServiceResult<LinkedDestination> {
        let LinkedNote { page, note, .. } = self.note_by_stop_link(link)?;
        Ok(LinkedDestination { page, mailbox: note.mailbox, is_confirmed: !note.is_stopped })
    }

    /// Returns the batch after which the deletion of a link's destination can't be undone; `None` if that is so.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] as for [`Self::deleted_by_stop_link`].
    pub(super) fn deletion_without_undo(&self, link: &str) -> ServiceResult<(LinkedDestination, Option<Batch>)> {
        let LinkedNote { id, page, mut note, revision, stored } = self.note_by_stop_link(link)?;
        let target = LinkedDestination { page, mailbox: note.mailbox.clone(), is_confirmed: false };
        if note.is_stopped {
            return Ok((target, None));
        }
        note.is_stopped = true;
        let response = postcard::to_stdvec(&note)
            .map_err(|error| ServiceError::Internal(format!("a note of a deletion can't be encoded: {error}")))?;
        let mut batch = Batch::new();
        batch.expect(Expect::StoredResponse(note_key(id), Presence::At(revision)));
        // An undo at the same time brings it back: then its alerts are stopped.
        batch.expect(Expect::Destination(id, Presence::Absent));
        // This mailbox gets no other confirmation mail on the same day.
        let name = request_key(&SubscriberAddress::Email(note.mailbox));
        let last = self.context.store().reader().stored_response(&name)?;
        record_request(name, last.as_ref(), self.context.now(), &mut batch);
        batch.write(Op::PutStoredResponse(note_key(id), StoredResponse { response, ..stored }));
        Ok((target, Some(batch)))
    }

    fn note_by_stop_link(&self, link: &str) -> ServiceResult<LinkedNote> {
        let (id, token) =
            link_token::decode::<DestinationId>(DestinationId::PREFIX, link).ok_or(ServiceError::NotFound)?;
        let reader = self.context.store().reader();
        let stored = reader.stored_response(&note_key(id))?.ok_or(ServiceError::NotFound)?;
        let note: DeletedMailbox = postcard::from_bytes(&stored.value.response).map_err(|_| ServiceError::NotFound)?;
        let page = reader.page(note.page)?.ok_or(ServiceError::NotFound)?.value;
        let is_valid = bool::from(self.stop_token(id, &note.mailbox).ct_eq(&token))
            && stored.value.expires_at > self.context.now()
            && page.account != NO_ACCOUNT;
        if !is_valid {
            return Err(ServiceError::NotFound);
        }
        Ok(LinkedNote { id, page, note, revision: stored.revision, stored: stored.value })
    }

    /// Adds to the batch that a destination comes back that was deleted at that revision. Returns what is in the way.
    ///
    /// # Errors
    /// [`ServiceError::PlanLimit`] for a channel that the plan does not include any more, or a full page.
    pub(crate) fn restore(
        &self,
        page: &Page,
        (destination, revision): (&Destination, u64),
        batch: &mut Batch,
    ) -> ServiceResult<Vec<UndoObstacle>> {
        let (plan, kind) = (self.context.account_of(page)?.plan, destination.channel.kind());
        if !plan.has_channel(kind) {
            return Err(PlanLimitError::ChannelNeedsHobby { plan, kind }.into());
        }
        let reader = self.context.store().reader();
        if let Some(mailbox) = destination.mailbox() {
            let note = reader.stored_response(&note_key(destination.id))?;
            if note.is_none_or(|note| note.revision != revision) {
                return Ok(vec![UndoObstacle::new(format!("The reader of {mailbox}"), "stopped the alerts")]);
            }
            batch.expect(Expect::StoredResponse(note_key(destination.id), Presence::At(revision)));
        }
        if reader.destinations_of(page.id)?.len() >= MAX_DESTINATIONS {
            return Err(PlanLimitError::DestinationsFull.into());
        }
        batch.expect(Expect::Destination(destination.id, Presence::Absent));
        batch.expect(Expect::DestinationsBelow(page.id, MAX_DESTINATIONS)).write(destination.clone());
        Ok(Vec::new())
    }
}

/// The name under which the deletion of a destination is noted.
fn note_key(id: DestinationId) -> String {
    format!("deleted/{id}")
}
