//! Requests that may be sent twice: the first answer is kept with the change that it reports, and given again.
//!
//! An answer of more than [`MAX_ANSWER`] bytes about a thing that can be shown again is not kept: its thing's id is, and a
//! repetition shows the thing as it is by then. One that changed nothing is kept too: done again later, it might undo what
//! came between. The store bounds the answers of each API key ([`MAX_REMEMBERED`](crate::storage::MAX_REMEMBERED)).

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

/// The name of the header, as refusals say it.
pub const HEADER: &str = "Idempotency-Key";
/// Bytes of an answer that is kept as it is.
pub const MAX_ANSWER: usize = 8 * 1024;
/// First byte of what is kept in place of a longer answer; no answer begins with it.
const LONG: u8 = 0;

/// A request that may be sent twice, or not.
pub struct Once<'a, T> {
    ticket: Option<Ticket>,
    answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync),
}

impl<T> std::fmt::Debug for Once<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// What a repeated request is known by.
#[derive(Debug, Clone)]
pub struct Ticket {
    name: String,
    fingerprint: [u8; 32],
}

/// What came of a request: something now, or the answer of its first sending.
#[derive(Debug, Clone)]
pub enum Done<T> {
    /// It was done now.
    Now(T),
    /// It was done before: the first answer.
    Before(Vec<u8>),
    /// It was done before, and its answer was too long to keep: the thing as it is now.
    Again(T),
}

/// A thing whose answers may be too long to keep.
pub trait Redrawn: Sized + Send {
    /// The id by which it can be shown again; none for what always has a short answer.
    fn id(&self) -> Option<u128> {
        None
    }

    /// Reads the thing of that page and id as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is gone.
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
    /// The ticket of a request: whose, the header's value, and all that makes the request this one and no other.
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
    /// A request with that ticket (none: it is done each time it is sent), whose answer is written by `answer`.
    pub fn new(ticket: Option<Ticket>, answer: &'a (dyn Fn(&T) -> Vec<u8> + Send + Sync)) -> Self {
        Self { ticket, answer }
    }
}

impl<T: Redrawn> Once<'_, T> {
    /// The bytes to keep: the answer, or the id of its thing where that is shorter by far.
    fn kept(&self, done: &T) -> Vec<u8> {
        let answer = (self.answer)(done);
        match done.id().filter(|_| answer.len() > MAX_ANSWER) {
            Some(id) => [&[LONG][..], &id.to_be_bytes()].concat(),
            None => answer,
        }
    }
}

/// The id that was kept in place of a long answer.
fn long(kept: &[u8]) -> Option<u128> {
    let (first, id) = kept.split_first()?;
    Some(u128::from_be_bytes(id.try_into().ok()?)).filter(|_| *first == LONG)
}

impl Service {
    /// Makes a change on a page, once, in the turn of the `thing` with that id.
    ///
    /// Refusals come in this order: of a key that may not write, of a page that it does not reach, of a ticket that was used
    /// for another request; then those of `make`, which gives the answer and what is to be written. A request that was done
    /// before is answered as it was then, whatever has become of the thing since, as long as its page is there; where that
    /// answer was too long to keep, with the thing as it is now.
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

    /// Keeps another answer of a request that was done now: what is only known once its change took effect. One that can't
    /// be kept leaves the first, which was committed with the change.
    pub(super) async fn remember_after<T: Redrawn>(&self, once: &Once<'_, T>, done: &T) {
        let Some(ticket) = &once.ticket else { return };
        let Ok(Some(found)) = self.store().reader().remembered(&ticket.name) else { return };
        let remembered = Remembered { answer: once.kept(done), ..found.value };
        let mut batch = Batch::new();
        batch.expect(Expect::Remembered(ticket.name.clone(), Is::At(found.revision)));
        batch.write(Op::Remember(ticket.name.clone(), remembered));
        if let Err(error) = self.store().commit(batch).await {
            tracing::debug!(%error, "the answer after a change was not kept for a repetition");
        }
    }

    /// The answer that the request had before, where it was done already.
    pub(super) fn answered<T>(&self, once: &Once<'_, T>) -> Result<Option<Vec<u8>>> {
        once.ticket.as_ref().map_or(Ok(None), |ticket| self.answer_of(ticket))
    }

    /// Whether a request with that ticket was done before, and will be answered as it was then.
    ///
    /// # Errors
    /// [`Error::Internal`] where the store can't be read.
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

    /// What is kept of a request: a fingerprint by a key of ours, since a password may be in its body.
    fn kept(&self, ticket: &Ticket) -> [u8; 32] {
        let mut kept = [0; 32];
        for (byte, sealed) in kept.iter_mut().zip(self.sealed(&[b"once", &ticket.fingerprint]).as_ref()) {
            *byte = *sealed;
        }
        kept
    }

    /// Adds to the batch that the request is done, with its answer; of two that are sent at once one is done.
    pub(super) fn remember<T: Redrawn>(&self, once: &Once<'_, T>, done: &T, batch: &mut Batch) -> Result<()> {
        let Some(ticket) = &once.ticket else { return Ok(()) };
        let now = self.now();
        let is = match self.store().reader().remembered(&ticket.name)? {
            // An expired one, which is written over.
            Some(found) if found.value.expires_at <= now => Is::At(found.revision),
            // Done by another sending since this one looked: it must not be done twice.
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
