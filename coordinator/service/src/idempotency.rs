//! Idempotency of requests: the first answer is stored with the change that it reports, and replayed for repetitions.
//!
//! An answer of more than `MAX_ANSWER` bytes about an object that can be read again is stored as the object's id,
//! and a repetition returns its current state; a long answer to a change of many monitors is stored as one code for
//! each. Answers of requests that changed nothing are stored too: executed again later, such a request might undo a
//! change made in between. The store bounds the answers of each caller (the store's `MAX_RESPONSES_PER_KEY`).
//!
//! The interface passes the function that writes the answer. It is called once the change is decided, since the answer
//! is stored in the batch of the change: with a second batch for the answer, a crash in between would leave a change
//! without one; and rendered again at a repetition, the answer would show later settings, links and secrets.

use std::future::Future;

use parallax_core::alert_settings::AlertSettings;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::id::PageId;
use parallax_core::page::Page;
use parallax_core::role::Permission;
use parallax_core::subscriber::Subscriber;
use parallax_core::time::DAY;
use parallax_store::{Batch, Expect, Op, Presence, StoredResponse};
use sha2::{Digest, Sha256};

use super::context::ServiceContext;
use super::undo_offer::UndoOffer;
use super::{ActorId, Caller, ServiceError, ServiceResult};

/// Name of the header, as written in errors.
pub const HEADER: &str = "Idempotency-Key";
/// Maximum bytes of an answer that is stored in full.
pub(crate) const MAX_ANSWER: usize = 8 * 1024;
/// First byte of the record that replaces a longer answer; no answer begins with it.
const LONG_ANSWER: u8 = 0;

/// A request with its optional idempotency key, and the function that writes its answer.
pub struct IdempotentRequest<'a, T> {
    key: Option<IdempotencyKey>,
    answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync),
    undo: Option<&'a UndoOffer>,
}

impl<T> std::fmt::Debug for IdempotentRequest<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdempotentRequest").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Identity of a repeatable request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    name: String,
    fingerprint: [u8; 32],
}

/// Result of a request: executed now, or replayed.
#[derive(Debug, Clone)]
pub enum RequestOutcome<T> {
    /// Executed now.
    Fresh(T),
    /// Executed before: the stored answer.
    Replayed(Vec<u8>),
    /// Executed before, and its answer was too long to store: the object's current state.
    Reread(T),
}

/// An object whose answers may be too long to store.
pub(super) trait Rereadable: Sized + Send {
    /// Returns the record that is stored in place of a long answer: the object's id, unless it has a record of its own.
    fn record(&self) -> Option<Vec<u8>> {
        self.id().map(|id| id.to_be_bytes().to_vec())
    }

    /// Restores the object from its record.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if it no longer exists, and [`ServiceError::Internal`] for an unreadable record.
    fn restore(
        context: &ServiceContext,
        page: PageId,
        record: &[u8],
    ) -> impl Future<Output = ServiceResult<Self>> + Send {
        let id = record.try_into().map(u128::from_be_bytes);
        async move { Self::reread(context, page, id.map_err(|_| unreadable_record())?).await }
    }

    /// Returns the id by which it can be read again; `None` for objects with short answers only.
    fn id(&self) -> Option<u128> {
        None
    }

    /// Reads the current state of the object with that page and id.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if it no longer exists.
    fn reread(_context: &ServiceContext, _page: PageId, _id: u128) -> impl Future<Output = ServiceResult<Self>> + Send {
        async { Err(ServiceError::NotFound) }
    }
}

impl Rereadable for () {}
impl Rereadable for Page {}
impl Rereadable for Deploy {}
impl Rereadable for Destination {}
impl Rereadable for Subscriber {}
impl Rereadable for AlertSettings {}

impl IdempotencyKey {
    /// Derives the identity from the caller, the header's value, and everything that distinguishes the request from
    /// others.
    pub fn new(owner: ActorId, value: &str, request: &[&[u8]]) -> Self {
        let mut fingerprint = Sha256::new();
        for part in request {
            fingerprint.update(part.len().to_be_bytes());
            fingerprint.update(part);
        }
        let name = format!("{owner}/{}", hex::encode(Sha256::digest(value.as_bytes())));
        Self { name, fingerprint: fingerprint.finalize().into() }
    }
}

impl<'a, T> IdempotentRequest<'a, T> {
    /// A request with that identity (without one it is executed each time), whose answer is written by `answer`.
    pub fn new(key: Option<IdempotencyKey>, answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync)) -> Self {
        Self { key, answer, undo: None }
    }

    /// The same request, whose change can be undone with that offer. The answer is written once it is known if the
    /// offer holds.
    #[must_use]
    pub fn undoable(self, undo: &'a UndoOffer) -> Self {
        Self { undo: Some(undo), ..self }
    }

    /// The offer to undo its change, if it has one.
    pub(super) const fn undo(&self) -> Option<&'a UndoOffer> {
        self.undo
    }

    /// Writes the answer.
    pub(super) fn answer(&self, outcome: &T) -> Vec<u8> {
        (self.answer)(outcome)
    }
}

/// Error of a record that this version can't read.
pub(super) fn unreadable_record() -> ServiceError {
    ServiceError::Internal("the record of a long answer can't be read".to_owned())
}

/// Returns the bytes to store: the answer, or the object's record if the answer is too long.
fn stored_answer<T: Rereadable>(once: &IdempotentRequest<'_, T>, outcome: &T) -> Vec<u8> {
    let answer = once.answer(outcome);
    if answer.len() <= MAX_ANSWER {
        return answer;
    }
    match outcome.record() {
        Some(record) => [&[LONG_ANSWER][..], &record].concat(),
        None => answer,
    }
}

/// Returns the record stored in place of a long answer.
fn long_answer_record(stored: &[u8]) -> Option<&[u8]> {
    let (first, record) = stored.split_first()?;
    Some(record).filter(|_| *first == LONG_ANSWER)
}

impl ServiceContext {
    /// Makes a change on a page, once, under the lock with the id `lock_id`.
    ///
    /// Errors are checked in this order: a caller who may not edit, a page that they can't access, an idempotency key
    /// used for another request; then those of `make`, which returns the answer and the batch. A request that was
    /// executed before is answered with the stored answer, whatever has changed since, as long as its page exists; if
    /// that answer was too long to store, with the object's current state.
    pub(super) async fn change_page_once<T, F, M>(
        &self,
        caller: &Caller,
        page: PageId,
        lock_id: u128,
        once: &IdempotentRequest<'_, T>,
        make: M,
    ) -> ServiceResult<RequestOutcome<T>>
    where
        T: Rereadable,
        M: Fn(Page) -> F,
        F: Future<Output = ServiceResult<(T, Batch)>>,
    {
        caller.require(Permission::Edit)?;
        let make = &make;
        self.commit_change(lock_id, || async move {
            let page = self.page(caller, page)?;
            if let Some(answer) = self.replayed_answer(once)? {
                let outcome = match long_answer_record(&answer) {
                    Some(record) => RequestOutcome::Reread(T::restore(self, page.id, record).await?),
                    None => RequestOutcome::Replayed(answer),
                };
                return Ok((outcome, None));
            }
            let (created, mut batch) = make(page).await?;
            self.note_editor(caller, &mut batch);
            self.log_change(caller, &mut batch)?;
            self.store_answer(once, &created, &mut batch)?;
            Ok((RequestOutcome::Fresh(created), (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    /// Replaces the stored answer of a request executed now with one that is known only after its change took effect.
    /// If that fails, the first answer remains, which was committed with the change.
    pub(super) async fn replace_answer<T: Rereadable>(&self, once: &IdempotentRequest<'_, T>, outcome: &T) {
        let Some(key) = &once.key else { return };
        let Ok(Some(stored)) = self.store().reader().stored_response(&key.name) else { return };
        let remembered = StoredResponse { response: stored_answer(once, outcome), ..stored.value };
        let mut batch = Batch::new();
        batch.expect(Expect::StoredResponse(key.name.clone(), Presence::At(stored.revision)));
        batch.write(Op::PutStoredResponse(key.name.clone(), remembered));
        if let Err(error) = self.store().commit(batch).await {
            tracing::debug!(%error, "the answer after a change was not stored for repetitions");
        }
    }

    /// Returns the stored answer if the request was executed before.
    pub(super) fn replayed_answer<T>(&self, once: &IdempotentRequest<'_, T>) -> ServiceResult<Option<Vec<u8>>> {
        once.key.as_ref().map_or(Ok(None), |key| self.answer_for_key(key))
    }

    /// Returns true if that request was executed before and will be replayed.
    ///
    /// # Errors
    /// [`ServiceError::Internal`] if the store can't be read.
    pub(super) fn is_replay(&self, key: &IdempotencyKey) -> ServiceResult<bool> {
        match self.answer_for_key(key) {
            Ok(answer) => Ok(answer.is_some()),
            Err(ServiceError::IdempotencyKeyReused) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn answer_for_key(&self, key: &IdempotencyKey) -> ServiceResult<Option<Vec<u8>>> {
        let stored = self.store().reader().stored_response(&key.name)?;
        match stored.filter(|stored| stored.value.expires_at > self.now()) {
            None => Ok(None),
            Some(stored) if stored.value.fingerprint == self.stored_fingerprint(key) => Ok(Some(stored.value.response)),
            Some(_) => Err(ServiceError::IdempotencyKeyReused),
        }
    }

    /// Computes the stored fingerprint of a request: an HMAC, since the body may contain a password.
    fn stored_fingerprint(&self, key: &IdempotencyKey) -> [u8; 32] {
        self.mac_prefix(&[b"once", &key.fingerprint])
    }

    /// Adds the request's answer to the batch; of two sent at once only one is executed.
    pub(super) fn store_answer<T: Rereadable>(
        &self,
        once: &IdempotentRequest<'_, T>,
        outcome: &T,
        batch: &mut Batch,
    ) -> ServiceResult<()> {
        let Some(key) = &once.key else { return Ok(()) };
        let now = self.now();
        let presence = match self.store().reader().stored_response(&key.name)? {
            // An expired record is overwritten.
            Some(stored) if stored.value.expires_at <= now => Presence::At(stored.revision),
            // Executed by a concurrent repetition since this one checked: it must not be executed twice.
            Some(_) | None => Presence::Absent,
        };
        let remembered = StoredResponse {
            fingerprint: self.stored_fingerprint(key),
            response: stored_answer(once, outcome),
            expires_at: now + DAY,
        };
        batch.expect(Expect::StoredResponse(key.name.clone(), presence));
        batch.write(Op::DeleteExpiredResponses(now)).write(Op::PutStoredResponse(key.name.clone(), remembered));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::id::KeyId;
    use parallax_store::StoreError;

    use super::*;
    use crate::test_world::world;

    #[tokio::test]
    async fn a_concurrent_repetition_is_not_executed_twice() {
        let world = world().await;
        let service = &world.service;
        let key = IdempotencyKey::new(ActorId::Key(KeyId::new(service.now(), [1; 10])), "once", &[b"POST"]);
        let answer = |(): &()| b"first".to_vec();
        let once = IdempotentRequest::new(Some(key), &answer);
        assert_eq!(service.context.replayed_answer(&once), Ok(None));
        let batch = || {
            let mut batch = Batch::new();
            service.context.store_answer(&once, &(), &mut batch).unwrap();
            batch
        };
        service.context.store().commit(batch()).await.unwrap();
        assert!(matches!(service.context.store().commit(batch()).await, Err(StoreError::Conflict(_))));
        assert_eq!(service.context.replayed_answer(&once), Ok(Some(b"first".to_vec())));
        // A day later it is a new request.
        world.clock.set(service.now() + DAY);
        service.context.store().commit(batch()).await.unwrap();
    }
}
