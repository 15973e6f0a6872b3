//! The record of an address's last confirmation request: one a day, over all pages and forms.

use parallax_core::subscriber::CONFIRMATION_INTERVAL;
use parallax_core::subscriber::request::SubscriberAddress;
use parallax_core::time::Timestamp;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse, VersionedValue};
use sha2::{Digest, Sha256};

use crate::ServiceResult;
use crate::context::ServiceContext;

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
