//! The record of an address's last confirmation request: one a day, over all pages and forms.

use parallax_core::subscriber::request::SubscriberAddress;
use sha2::{Digest, Sha256};

use crate::service::ServiceResult;
use crate::service::context::ServiceContext;
use crate::storage::{Batch, Expect, Op, Presence, StoredResponse};

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

/// The key under which an address's last confirmation request is stored, for all pages.
pub(super) fn request_key(address: &SubscriberAddress) -> String {
    format!("asked/{}", hex::encode(Sha256::digest(address.mailbox_key())))
}
