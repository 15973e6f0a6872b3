//! The record of an address's last confirmation request: one a day, over all pages and forms. And the record of a
//! person who unsubscribed from a page, whom no import asks again.

use parallax_core::id::PageId;
use parallax_core::subscriber::CONFIRMATION_INTERVAL;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::{DAY, Timestamp};
use parallax_core::undo::UNDO_WINDOW;
use parallax_store::{self as storage, Batch, Expect, Op, Presence, StoreRead, StoredResponse, VersionedValue};
use sha2::{Digest, Sha256};

use crate::ServiceResult;
use crate::context::ServiceContext;

/// Milliseconds for which the opt-out of a mailbox counts.
const OPT_OUT_RETENTION: i64 = 1_100 * DAY;

impl ServiceContext {
    /// Lifts the limit of one confirmation request a day for an address whose reader has confirmed.
    pub(super) fn allow_next_request(&self, address: &SubscriberAddress, batch: &mut Batch) -> ServiceResult<()> {
        let name = request_key(address);
        if let Some(last) = self.store().reader().stored_response(&name)? {
            batch.expect(Expect::StoredResponse(name.clone(), Presence::At(last.revision)));
            batch.write(Op::PutStoredResponse(name, StoredResponse { expires_at: self.now(), ..last.value }));
        }
        Ok(())
    }

    /// Returns the key under which a person's opt-out from a page is stored: spellings of one mailbox have one. It has
    /// no address, but a keyed hash, so that nobody who reads the store finds the person. The store keeps a bounded
    /// number of those of a page, the newest.
    pub(super) fn opt_out_key(&self, page: PageId, address: &SubscriberAddress) -> String {
        let (number, mailbox) = (page.to_u128().to_be_bytes(), address.mailbox_key());
        let hash: [u8; 16] = self.mac_prefix(&[b"opt-out", &number, mailbox.as_bytes()]);
        format!("{page}/opted-out/{}", hex::encode(hash))
    }

    /// Ends the opt-out of a person who has confirmed again.
    pub(super) fn withdraw_opt_out(
        &self,
        page: PageId,
        address: &SubscriberAddress,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let name = self.opt_out_key(page, address);
        if let Some(known) = self.store().reader().stored_response(&name)? {
            batch.expect(Expect::StoredResponse(name.clone(), Presence::At(known.revision)));
            batch.write(Op::PutStoredResponse(name, StoredResponse { expires_at: self.now(), ..known.value }));
        }
        Ok(())
    }
}

/// Record of an opt-out, for [`ServiceContext::opt_out_key`]. That of a webhook, which no import asks, counts only while
/// an earlier removal can be undone.
pub(super) fn opt_out(is_mailbox: bool, now: Timestamp) -> StoredResponse {
    let retention = if is_mailbox { OPT_OUT_RETENTION } else { UNDO_WINDOW };
    StoredResponse { fingerprint: [0; 32], response: Vec::new(), expires_at: now + retention }
}

/// Returns true if an opt-out is stored under that name.
pub(super) fn is_opted_out(store: &dyn StoreRead, name: &str, now: Timestamp) -> storage::Result<bool> {
    Ok(store.stored_response(name)?.is_some_and(|it| it.value.expires_at > now))
}

/// Adds to the batch that an address got its confirmation request now. `name` is its [`request_key`], and `last` the
/// record as read: of two requests at the same time only one is committed.
pub(super) fn record_request(
    name: String,
    last: Option<&VersionedValue<StoredResponse>>,
    now: Timestamp,
    batch: &mut Batch,
) {
    let presence = last.map_or(Presence::Absent, |last| Presence::At(last.revision));
    batch.expect(Expect::StoredResponse(name.clone(), presence));
    let record = StoredResponse { fingerprint: [0; 32], response: Vec::new(), expires_at: now + CONFIRMATION_INTERVAL };
    batch.write(Op::DeleteExpiredResponses(now)).write(Op::PutStoredResponse(name, record));
}

/// The key under which an address's last confirmation request is stored, for all pages.
pub(super) fn request_key(address: &SubscriberAddress) -> String {
    format!("asked/{}", hex::encode(Sha256::digest(address.mailbox_key())))
}
