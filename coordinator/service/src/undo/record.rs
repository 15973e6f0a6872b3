//! The stored record of an undo: its name, and its place in the batch of the change.

use parallax_core::undo::{InverseChange, MAX_INVERSE, UNDO_WINDOW};
use parallax_store::{Batch, Op, StoredResponse};
use sha2::{Digest, Sha256};

use crate::Caller;
use crate::context::ServiceContext;
use crate::idempotency::IdempotentRequest;

/// Characters of a token, at most.
const MAX_TOKEN: usize = 64;

/// Content of a record.
#[derive(Debug)]
pub(super) enum UndoRecord {
    /// The change can be undone.
    Pending(InverseChange),
    /// It was undone.
    Used,
}

impl UndoRecord {
    /// Reads a record; `None` for one that this version can't read.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::Used);
        }
        postcard::from_bytes(bytes).ok().map(Self::Pending)
    }

    /// The record after the undo.
    pub(super) const fn used() -> Vec<u8> {
        Vec::new()
    }
}

/// Returns true if a text can be a token.
pub(super) fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The name of a person's record: it can't be found by anybody else, and does not reveal the token.
pub(super) fn record_name(caller: &Caller, token: &str) -> String {
    let person = caller.limit_id().to_string();
    let hash = Sha256::new().chain_update(person).chain_update(b"/").chain_update(token).finalize();
    format!("{}/undo/{}", caller.account, hex::encode(hash))
}

impl ServiceContext {
    /// Adds to the batch of a change how it is undone, if the request offers that. An inverse of nothing or of too many
    /// bytes is not stored, and the offer does not hold.
    pub(crate) fn record_undo<T>(
        &self,
        caller: &Caller,
        once: &IdempotentRequest<'_, T>,
        inverse: impl FnOnce() -> InverseChange,
        batch: &mut Batch,
    ) {
        let Some(offer) = once.undo() else { return };
        let inverse = inverse();
        let bytes = postcard::to_stdvec(&inverse).unwrap_or_default();
        let is_recorded = !inverse.is_empty() && (1..=MAX_INVERSE).contains(&bytes.len());
        offer.set_recorded(is_recorded);
        if is_recorded {
            let now = self.now();
            let record = StoredResponse { fingerprint: [0; 32], response: bytes, expires_at: now + UNDO_WINDOW };
            let name = record_name(caller, offer.new_token());
            batch.write(Op::DeleteExpiredResponses(now)).write(Op::PutStoredResponse(name, record));
        }
    }
}
