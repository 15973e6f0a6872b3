//! Limits the memory held by responses in flight, so that slow readers can't exhaust it.
//!
//! Short responses are not counted. A longer one counts against the account or address that requested it, from when it
//! is rendered until its last byte is sent; a document shared by all readers counts once, for the first of them. A
//! request is refused before its work begins only if its own account is over its share; until its response is ready it
//! reserves a small amount. A read whose response does not fit waits briefly for memory. A completed write is never
//! refused. Accounts, visitors and shared documents have a pool each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use parallax_core::id::AccountId;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::error::Refused;
use super::reply::Reply;
use super::route::Answer;
use super::{Peer, auth, visitor};

/// Size up to which a response is not counted, in bytes.
pub(super) const SHORT: usize = 64 << 10;
/// Limits of one pool, and of one account or address in it, in bytes.
const MOST: usize = 256 << 20;
const MOST_OF_ONE: usize = 32 << 20;
/// Reservation of a request until its response is rendered, in bytes: allows 256 concurrent requests of one account.
const BEGUN: usize = 128 << 10;
/// Longest wait of a read for memory, and concurrent waiters of one pool: each holds its response meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const WAITING: usize = 16;

/// Account or address that a response counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// Any key of this account.
    Account(AccountId),
    /// A visitor's IPv4 address or IPv6 /64.
    Address(u128),
}

impl Reader {
    /// Returns the owner for a visitor's request: its client IP.
    pub(super) fn visitor(peer: Option<Peer>, headers: &HeaderMap) -> Self {
        Self::Address(visitor::of(peer, headers).map_or(0, |visitor| auth::place_of(visitor.address)))
    }
}

/// Memory accounting of responses in flight. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    accounts: Arc<Pool>,
    visitors: Arc<Pool>,
    documents: Arc<Pool>,
}

/// Memory pool: for accounts, for visitors, or for documents that visitors share.
#[derive(Debug)]
struct Pool {
    sums: Mutex<Sums>,
    freed: Notify,
    waiting: Semaphore,
}

#[derive(Debug, Default)]
struct Sums {
    /// Bytes of all responses.
    all: usize,
    of: BTreeMap<Reader, Share>,
    /// Shared documents, by the memory address of their first byte: number of readers, and the owner they count for.
    copies: BTreeMap<usize, (usize, Reader)>,
}

/// Usage of one owner: bytes of its responses, and its requests in progress.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    bytes: usize,
    begun: usize,
}

/// Reservation of a request in progress; released when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    reader: Reader,
    pool: Arc<Pool>,
}

/// Response body that is counted until it is dropped.
#[derive(Debug)]
struct Counted {
    body: Bytes,
    reader: Reader,
    /// True if all readers share this copy.
    is_copy: bool,
    pool: Arc<Pool>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { sums: Mutex::default(), freed: Notify::new(), waiting: Semaphore::new(WAITING) }
    }
}

impl Answers {
    const fn pool(&self, reader: Reader) -> &Arc<Pool> {
        match reader {
            Reader::Account(_) => &self.accounts,
            Reader::Address(_) => &self.visitors,
        }
    }

    /// Reserves memory for a request; refuses it if its owner is already at its limit.
    pub(super) fn begin(&self, reader: Reader) -> Result<Permit, Refused> {
        let pool = self.pool(reader);
        let mut sums = pool.locked();
        let own = sums.of.entry(reader).or_default();
        if own.bytes + own.begun * BEGUN >= MOST_OF_ONE {
            return Err(Refused::Overloaded);
        }
        own.begun += 1;
        drop(sums);
        Ok(Permit { reader, pool: Arc::clone(pool) })
    }

    /// Returns true if the response is counted: it is neither short nor permanently cached.
    pub(super) fn counts(reply: &Reply) -> bool {
        reply.body().len() > SHORT && !reply.is_lasting()
    }

    /// Counts the response to a visitor's request; see [`Permit::hold`].
    pub(super) async fn hold(&self, reader: Reader, is_read: bool, reply: Reply) -> Answer {
        let pool = if reply.is_shared() { &self.documents } else { self.pool(reader) };
        pool.hold(reader, is_read, reply).await
    }
}

impl Permit {
    /// Counts the response to the request. A read waits for memory if it has to.
    pub(super) async fn hold(self, is_read: bool, reply: Reply) -> Answer {
        self.pool.hold(self.reader, is_read, reply).await
    }
}

impl Pool {
    /// Counts a long response. A read waits for memory; the response to a write is always sent.
    async fn hold(self: &Arc<Self>, reader: Reader, is_read: bool, reply: Reply) -> Answer {
        if !Answers::counts(&reply) {
            return Ok(reply);
        }
        let (body, is_copy) = (reply.body(), reply.is_shared());
        if !self.take(reader, body, is_copy, !is_read) {
            let Ok(_place) = self.waiting.try_acquire() else { return Err(Refused::Overloaded) };
            let until = Instant::now() + PATIENCE;
            loop {
                let freed = self.freed.notified();
                if self.take(reader, body, is_copy, false) {
                    break;
                }
                timeout_at(until, freed).await.map_err(|_| Refused::Overloaded)?;
            }
        }
        let pool = Arc::clone(self);
        Ok(reply.with_body(|body| Bytes::from_owner(Counted { body, reader, is_copy, pool })))
    }

    /// Counts a response if it fits or `must` be sent, and returns true if so. A response larger than the limit of an
    /// owner is admitted if it is the only one; a shared document that is already counted takes no more memory.
    fn take(&self, reader: Reader, body: &[u8], is_copy: bool, must: bool) -> bool {
        let mut sums = self.locked();
        let copy = body.as_ptr().addr();
        if is_copy && let Some((readers, _)) = sums.copies.get_mut(&copy) {
            *readers += 1;
            return true;
        }
        let bytes = body.len();
        let own = sums.of.get(&reader).map_or(0, |own| own.bytes);
        let has_room = |taken: usize, most: usize| taken == 0 || taken.saturating_add(bytes) <= most;
        let is_taken = must || (has_room(own, MOST_OF_ONE) && has_room(sums.all, MOST));
        if is_taken {
            sums.of.entry(reader).or_default().bytes += bytes;
            sums.all += bytes;
            if is_copy {
                sums.copies.insert(copy, (1, reader));
            }
        }
        is_taken
    }

    /// Locks the usage. A poisoned lock is safe to use: each change is a single step.
    fn locked(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    /// Updates the usage of an owner, and removes the entry when it is zero.
    fn change(&mut self, reader: Reader, change: impl FnOnce(&mut Share)) {
        let Some(own) = self.of.get_mut(&reader) else { return };
        change(own);
        if own.bytes == 0 && own.begun == 0 {
            self.of.remove(&reader);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.locked().change(self.reader, |own| own.begun = own.begun.saturating_sub(1));
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let bytes = self.body.len();
        let mut sums = self.pool.locked();
        let mut reader = self.reader;
        if self.is_copy {
            let copy = self.body.as_ptr().addr();
            match sums.copies.get_mut(&copy) {
                Some((readers, _)) if *readers > 1 => {
                    *readers -= 1;
                    return;
                }
                Some((_, first)) => reader = *first,
                None => {}
            }
            sums.copies.remove(&copy);
        }
        sums.change(reader, |own| own.bytes = own.bytes.saturating_sub(bytes));
        sums.all = sums.all.saturating_sub(bytes);
        drop(sums);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use ::http::StatusCode;

    use super::*;

    fn long(mebibytes: usize) -> Reply {
        Reply::written(StatusCode::OK, vec![b'x'; mebibytes << 20])
    }

    fn reader(n: u128) -> Reader {
        Reader::Account(AccountId::from_u128(n))
    }

    fn is_empty(pool: &Pool) -> bool {
        let sums = pool.locked();
        sums.all == 0 && sums.of.is_empty() && sums.copies.is_empty()
    }

    #[tokio::test]
    async fn one_reader_has_a_share_and_all_have_a_bound() {
        let answers = Answers::default();
        let hold = async |n, mebibytes| answers.hold(reader(n), true, long(mebibytes)).await;
        let first = hold(1, 30).await.unwrap();
        assert!(answers.begin(reader(1)).is_ok());
        assert!(matches!(hold(1, 3).await, Err(Refused::Overloaded)), "its share is in use");
        let second = hold(1, 2).await.unwrap();
        assert!(matches!(answers.begin(reader(1)), Err(Refused::Overloaded)));
        assert!(answers.begin(reader(2)).is_ok(), "another account's is not");
        assert_eq!(hold(1, 0).await.unwrap().body().len(), 0, "short responses are not counted");
        let mut others = Vec::new();
        for n in 2..9 {
            others.push(hold(n, 32).await.unwrap());
        }
        assert!(answers.begin(reader(99)).is_ok(), "usage of others refuses no request");
        assert!(matches!(hold(99, 1).await, Err(Refused::Overloaded)), "but a long read does not fit");
        let written = answers.hold(reader(99), false, long(1)).await;
        assert!(written.is_ok(), "a completed write is always reported");
        let visitor = answers.hold(Reader::Address(1), true, long(1)).await;
        assert!(visitor.is_ok(), "visitors have their own pool");
        drop((first, second, others, written, visitor));
        assert!(is_empty(&answers.accounts) && is_empty(&answers.visitors));
        assert!(hold(9, 40).await.is_ok(), "one larger than a share is admitted alone");
    }

    #[tokio::test]
    async fn a_request_under_way_counts_until_it_is_answered() {
        let answers = Answers::default();
        let begun: Vec<_> = std::iter::from_fn(|| answers.begin(reader(1)).ok()).take(1_000).collect();
        assert_eq!(begun.len(), MOST_OF_ONE / BEGUN);
        assert!(answers.begin(reader(2)).is_ok(), "another account's do not");
        drop(begun);
        assert!(answers.begin(reader(1)).is_ok());
        assert!(is_empty(&answers.accounts));
    }

    #[tokio::test]
    async fn a_document_that_many_read_counts_once_and_many_documents_are_bounded() {
        let answers = Answers::default();
        let document = |n: u8| Bytes::from(vec![n; 4 << 20]);
        let hold = async |n, body: &Bytes| {
            answers.hold(Reader::Address(n), true, Reply::bytes("text/html", body.clone()).shared()).await
        };
        let one = document(0);
        let mut held = Vec::new();
        for n in 0..1_000 {
            held.push(hold(n, &one).await.unwrap());
        }
        assert_eq!(answers.documents.locked().all, 4 << 20);
        for n in 1..64 {
            held.push(hold(u128::from(n), &document(n)).await.unwrap());
        }
        assert!(
            matches!(hold(2_000, &document(99)).await, Err(Refused::Overloaded)),
            "each is a separate copy"
        );
        held.push(hold(2_000, &one).await.unwrap());
        let own = answers.hold(Reader::Address(2_000), true, long(1)).await;
        assert!(own.is_ok(), "responses to single visitors have their own pool");
        drop((held, own));
        assert!(is_empty(&answers.documents) && is_empty(&answers.visitors));
    }

    #[tokio::test]
    async fn a_read_waits_for_room() {
        let answers = Answers::default();
        let first = answers.hold(reader(1), true, long(32)).await.unwrap();
        let waiting = tokio::spawn({
            let answers = answers.clone();
            async move { answers.hold(reader(1), true, long(1)).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        // The body is counted, not the rest of the response.
        drop(first.into_response());
        assert!(waiting.await.unwrap().is_ok());
    }
}
