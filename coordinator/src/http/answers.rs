//! Bytes of answers under way: how much of the service's memory readers can hold who take what they asked for slowly.
//!
//! A short answer passes free. A longer one counts for the account or the address that asked, from the moment it is written
//! until its last byte is sent; a document that all readers share counts once, for the first of them. A request of an
//! account that has its share under way is refused before its work begins; until it is answered it counts for a little
//! itself. A read that turns out too long waits a moment for room. A write is never refused once it is done, and nobody is
//! refused before the work because others have too much. Accounts, visitors and shared documents have a pool each.

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

/// Bytes of an answer that passes free.
pub(super) const SHORT: usize = 64 << 10;
/// Bytes of all answers of one pool under way, and of those of one account or address.
const MOST: usize = 256 << 20;
const MOST_OF_ONE: usize = 32 << 20;
/// Bytes that a request counts for until its answer is written: 256 of one account are under way at once.
const BEGUN: usize = 128 << 10;
/// How long a read waits for room, and how many of one pool wait at once: each holds its answer meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const WAITING: usize = 16;

/// The one for whom an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// Holders of keys of that account.
    Account(AccountId),
    /// A visitor's address, or its IPv6 network.
    Address(u128),
}

impl Reader {
    /// A visitor, by the address that the request counts for.
    pub(super) fn visitor(peer: Option<Peer>, headers: &HeaderMap) -> Self {
        Self::Address(visitor::of(peer, headers).map_or(0, |visitor| auth::place_of(visitor.address)))
    }
}

/// The answers under way. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    accounts: Arc<Pool>,
    visitors: Arc<Pool>,
    documents: Arc<Pool>,
}

/// Those of accounts, of visitors, or the documents that visitors share.
#[derive(Debug)]
struct Pool {
    sums: Mutex<Sums>,
    freed: Notify,
    waiting: Semaphore,
}

#[derive(Debug, Default)]
struct Sums {
    /// Bytes of all answers.
    all: usize,
    of: BTreeMap<Reader, Share>,
    /// Documents that readers share, by the address of their first byte: how many read each, and for whom it counts.
    copies: BTreeMap<usize, (usize, Reader)>,
}

/// The part of one reader: bytes of its answers, and its requests under way.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    bytes: usize,
    begun: usize,
}

/// A request under way, which counts until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    reader: Reader,
    pool: Arc<Pool>,
}

/// An answer that is counted until it is dropped.
#[derive(Debug)]
struct Counted {
    body: Bytes,
    reader: Reader,
    /// Set where all readers have this one copy.
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

    /// Refuses a request whose reader has its share of answers under way; else it counts for a little until dropped.
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

    /// Tells an answer that is counted from what passes free: what is short, and what is kept for good.
    pub(super) fn counts(reply: &Reply) -> bool {
        reply.body().len() > SHORT && !reply.is_lasting()
    }

    /// The answer to a visitor as it may go out.
    pub(super) async fn hold(&self, reader: Reader, is_read: bool, reply: Reply) -> Answer {
        let pool = if reply.is_shared() { &self.documents } else { self.pool(reader) };
        pool.hold(reader, is_read, reply).await
    }
}

impl Permit {
    /// The answer to the request as it may go out.
    pub(super) async fn hold(self, is_read: bool, reply: Reply) -> Answer {
        self.pool.hold(self.reader, is_read, reply).await
    }
}

impl Pool {
    /// The answer as it may go out: counted where it is long. A read waits for room; what a write did is said always.
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

    /// Counts an answer, where there is room or it must go out. One that is longer than a share is let through alone, and
    /// one that others read already takes no room.
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

    /// Every change under the lock is one step.
    fn locked(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    /// Changes the part of a reader, which is forgotten once it has none.
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
        assert!(matches!(hold(1, 3).await, Err(Refused::Overloaded)), "its share is taken");
        let second = hold(1, 2).await.unwrap();
        assert!(matches!(answers.begin(reader(1)), Err(Refused::Overloaded)));
        assert!(answers.begin(reader(2)).is_ok(), "another's is not");
        assert_eq!(hold(1, 0).await.unwrap().body().len(), 0, "what is short passes");
        let mut others = Vec::new();
        for n in 2..9 {
            others.push(hold(n, 32).await.unwrap());
        }
        assert!(answers.begin(reader(99)).is_ok(), "what others hold refuses nobody's request");
        assert!(matches!(hold(99, 1).await, Err(Refused::Overloaded)), "but a long read has no room");
        let written = answers.hold(reader(99), false, long(1)).await;
        assert!(written.is_ok(), "what is done is said");
        let visitor = answers.hold(Reader::Address(1), true, long(1)).await;
        assert!(visitor.is_ok(), "visitors have a pool of their own");
        drop((first, second, others, written, visitor));
        assert!(is_empty(&answers.accounts) && is_empty(&answers.visitors));
        assert!(hold(9, 40).await.is_ok(), "one longer than a share goes alone");
    }

    #[tokio::test]
    async fn a_request_under_way_counts_until_it_is_answered() {
        let answers = Answers::default();
        let begun: Vec<_> = std::iter::from_fn(|| answers.begin(reader(1)).ok()).take(1_000).collect();
        assert_eq!(begun.len(), MOST_OF_ONE / BEGUN);
        assert!(answers.begin(reader(2)).is_ok(), "another's do not");
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
        assert!(matches!(hold(2_000, &document(99)).await, Err(Refused::Overloaded)), "each another copy");
        held.push(hold(2_000, &one).await.unwrap());
        let own = answers.hold(Reader::Address(2_000), true, long(1)).await;
        assert!(own.is_ok(), "answers of one reader have a pool of their own");
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
        // Its body is what is counted, whatever becomes of the rest.
        drop(first.into_response());
        assert!(waiting.await.unwrap().is_ok());
    }
}
