//! Idempotent requests: the first answer is stored with the change that it reports, and replayed for repetitions.
//!
//! An answer of more than [`MAX_ANSWER`] bytes about an object that can be read again is stored as the object's id,
//! and a repetition returns its current state. Answers of requests that changed nothing are stored too: executed
//! again later, such a request might undo a change made in between. The store bounds the answers of each API key
//! ([`MAX_REMEMBERED`](crate::storage::MAX_REMEMBERED)).

use std::future::Future;

use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::id::{KeyId, PageId};
use parallax_core::page::Page;
use parallax_core::subscriber::Subscriber;
use parallax_core::telling::Telling;
use parallax_core::time::DAY;
use sha2::{Digest, Sha256};

use super::{Caller, Error, Result, Service};
use crate::storage::{Batch, Expect, Is, Op, Remembered};

/// Name of the header, as written in errors.
pub const HEADER: &str = "Idempotency-Key";
/// Maximum bytes of an answer that is stored in full.
pub const MAX_ANSWER: usize = 8 * 1024;
/// First byte of the record that replaces a longer answer; no answer begins with it.
const LONG: u8 = 0;

/// A request with its optional idempotency key, and the function that writes its answer.
pub struct Once<'a, T> {
    ticket: Option<Ticket>,
    answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync),
}

impl<T> std::fmt::Debug for Once<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// Identity of a repeatable request.
#[derive(Debug, Clone)]
pub struct Ticket {
    name: String,
    fingerprint: [u8; 32],
}

/// Result of a request: executed now, or replayed.
#[derive(Debug, Clone)]
pub enum Done<T> {
    /// Executed now.
    Now(T),
    /// Executed before: the stored answer.
    Before(Vec<u8>),
    /// Executed before, and its answer was too long to store: the object's current state.
    Again(T),
}

/// An object whose answers may be too long to store.
pub trait Redrawn: Sized + Send {
    /// Returns the id by which it can be read again; `None` for objects with short answers only.
    fn id(&self) -> Option<u128> {
        None
    }

    /// Reads the current state of the object with that page and id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it no longer exists.
    fn redraw(_service: &Service, _page: PageId, _id: u128) -> impl Future<Output = Result<Self>> + Send {
        async { Err(Error::NotFound) }
    }
}

impl Redrawn for () {}
impl Redrawn for Page {}
impl Redrawn for Deploy {}
impl Redrawn for Destination {}
impl Redrawn for Subscriber {}
impl Redrawn for Telling {}
impl Redrawn for super::monitors::Shown {}
impl Redrawn for super::deliveries::Opened {}

impl Ticket {
    /// Derives the identity from the API key, the header's value, and everything that distinguishes the request from
    /// others.
    pub fn new(key: KeyId, value: &str, request: &[&[u8]]) -> Self {
        let mut fingerprint = Sha256::new();
        for part in request {
            fingerprint.update(part.len().to_be_bytes());
            fingerprint.update(part);
        }
        let value: [u8; 32] = Sha256::digest(value.as_bytes()).into();
        let name = value.iter().fold(format!("{key}/"), |name, byte| name + &format!("{byte:02x}"));
        Self { name, fingerprint: fingerprint.finalize().into() }
    }
}

impl<'a, T> Once<'a, T> {
    /// A request with that identity (without one it is executed each time), whose answer is written by `answer`.
    pub fn new(ticket: Option<Ticket>, answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync)) -> Self {
        Self { ticket, answer }
    }
}

impl<T: Redrawn> Once<'_, T> {
    /// Returns the bytes to store: the answer, or the object's id if the answer is too long.
    fn kept(&self, done: &T) -> Vec<u8> {
        let answer = (self.answer)(done);
        match done.id().filter(|_| answer.len() > MAX_ANSWER) {
            Some(id) => [&[LONG][..], &id.to_be_bytes()].concat(),
            None => answer,
        }
    }
}

/// Returns the id stored in place of a long answer.
fn long(kept: &[u8]) -> Option<u128> {
    let (first, id) = kept.split_first()?;
    Some(u128::from_be_bytes(id.try_into().ok()?)).filter(|_| *first == LONG)
}

impl Service {
    /// Makes a change on a page, once, under the lock of the `thing` with that id.
    ///
    /// Errors are checked in this order: a key without write access, a page that it can't access, an idempotency key
    /// used for another request; then those of `make`, which returns the answer and the batch. A request that was
    /// executed before is answered with the stored answer, whatever has changed since, as long as its page exists; if
    /// that answer was too long to store, with the object's current state.
    pub(super) async fn change_on<T, F, M>(
        &self,
        caller: &Caller,
        page: PageId,
        thing: u128,
        once: &Once<'_, T>,
        make: M,
    ) -> Result<Done<T>>
    where
        T: Redrawn,
        M: Fn(Page) -> F,
        F: Future<Output = Result<(T, Batch)>>,
    {
        caller.writes()?;
        let make = &make;
        self.change(thing, || async move {
            let page = self.page(caller, page)?;
            if let Some(answer) = self.answered(once)? {
                let done = match long(&answer) {
                    Some(id) => Done::Again(T::redraw(self, page.id, id).await?),
                    None => Done::Before(answer),
                };
                return Ok((done, None));
            }
            let (made, mut batch) = make(page).await?;
            self.remember(once, &made, &mut batch)?;
            Ok((Done::Now(made), (!batch.is_empty()).then_some(batch)))
        })
        .await
    }

    /// Replaces the stored answer of a request executed now with one that is known only after its change took effect.
    /// If that fails, the first answer remains, which was committed with the change.
    pub(super) async fn remember_after<T: Redrawn>(&self, once: &Once<'_, T>, done: &T) {
        let Some(ticket) = &once.ticket else { return };
        let Ok(Some(found)) = self.store().reader().remembered(&ticket.name) else { return };
        let remembered = Remembered { answer: once.kept(done), ..found.value };
        let mut batch = Batch::new();
        batch.expect(Expect::Remembered(ticket.name.clone(), Is::At(found.revision)));
        batch.write(Op::Remember(ticket.name.clone(), remembered));
        if let Err(error) = self.store().commit(batch).await {
            tracing::debug!(%error, "the answer after a change was not stored for repetitions");
        }
    }

    /// Returns the stored answer if the request was executed before.
    pub(super) fn answered<T>(&self, once: &Once<'_, T>) -> Result<Option<Vec<u8>>> {
        once.ticket.as_ref().map_or(Ok(None), |ticket| self.answer_of(ticket))
    }

    /// Returns true if that request was executed before and will be replayed.
    ///
    /// # Errors
    /// [`Error::Internal`] if the store can't be read.
    pub fn is_answered(&self, ticket: &Ticket) -> Result<bool> {
        match self.answer_of(ticket) {
            Ok(answer) => Ok(answer.is_some()),
            Err(Error::KeyReused) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn answer_of(&self, ticket: &Ticket) -> Result<Option<Vec<u8>>> {
        let found = self.store().reader().remembered(&ticket.name)?;
        match found.filter(|found| found.value.expires_at > self.now()) {
            None => Ok(None),
            Some(found) if found.value.fingerprint == self.kept(ticket) => Ok(Some(found.value.answer)),
            Some(_) => Err(Error::KeyReused),
        }
    }

    /// Computes the stored fingerprint of a request: an HMAC, since the body may contain a password.
    fn kept(&self, ticket: &Ticket) -> [u8; 32] {
        let mut kept = [0; 32];
        for (byte, sealed) in kept.iter_mut().zip(self.sealed(&[b"once", &ticket.fingerprint]).as_ref()) {
            *byte = *sealed;
        }
        kept
    }

    /// Adds the request's answer to the batch; of two sent at once only one is executed.
    pub(super) fn remember<T: Redrawn>(&self, once: &Once<'_, T>, done: &T, batch: &mut Batch) -> Result<()> {
        let Some(ticket) = &once.ticket else { return Ok(()) };
        let now = self.now();
        let is = match self.store().reader().remembered(&ticket.name)? {
            // An expired record is overwritten.
            Some(found) if found.value.expires_at <= now => Is::At(found.revision),
            // Executed by a concurrent repetition since this one checked: it must not be executed twice.
            Some(_) | None => Is::Absent,
        };
        let remembered =
            Remembered { fingerprint: self.kept(ticket), answer: once.kept(done), expires_at: now + DAY };
        batch.expect(Expect::Remembered(ticket.name.clone(), is));
        batch.write(Op::ForgetExpired(now)).write(Op::Remember(ticket.name.clone(), remembered));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::tests::world;
    use crate::storage::StoreError;

    #[tokio::test]
    async fn what_another_sending_did_since_this_one_looked_is_not_done_twice() {
        let world = world().await;
        let service = &world.service;
        let ticket = Ticket::new(KeyId::new(service.now(), [1; 10]), "once", &[b"POST"]);
        let answer = |(): &()| b"first".to_vec();
        let once = Once::new(Some(ticket), &answer);
        assert_eq!(service.answered(&once), Ok(None));
        let batch = || {
            let mut batch = Batch::new();
            service.remember(&once, &(), &mut batch).unwrap();
            batch
        };
        service.store().commit(batch()).await.unwrap();
        assert!(matches!(service.store().commit(batch()).await, Err(StoreError::Conflict(_))));
        assert_eq!(service.answered(&once), Ok(Some(b"first".to_vec())));
        // A day later it is a new request.
        world.clock.set(service.now() + DAY);
        service.store().commit(batch()).await.unwrap();
    }
}
