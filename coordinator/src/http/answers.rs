//! Bytes of answers under way: how much of the service's memory readers can hold who take what they asked for slowly.
//!
//! Short answers pass free, and so do documents of public pages, of which all readers share one copy. Any other counts
//! for the account or the address that asked, from the moment it is written until its last byte is sent. One that has its
//! share under way, or that comes when all is taken, is refused before its work begins; a read that turns out too long
//! waits a moment for room. A write is never refused once it is done.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
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
const SHORT: usize = 64 << 10;
/// Bytes of all answers under way, and of those of one account or address.
const MOST: usize = 256 << 20;
const MOST_OF_ONE: usize = 32 << 20;
/// How long a read waits for room, and how many wait at once: each holds its answer meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
const WAITING: usize = 16;

/// The one for whom an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// Whoever has keys of that account.
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
#[derive(Debug, Clone)]
pub(super) struct Answers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Bytes of all of them, beside those of each reader.
    all: AtomicUsize,
    of: Mutex<BTreeMap<Reader, usize>>,
    freed: Notify,
    waiting: Semaphore,
}

/// An answer that is counted until it is dropped.
#[derive(Debug)]
struct Counted {
    body: Bytes,
    reader: Reader,
    answers: Answers,
}

impl Default for Answers {
    fn default() -> Self {
        Self(Arc::new(Inner {
            all: AtomicUsize::new(0),
            of: Mutex::default(),
            freed: Notify::new(),
            waiting: Semaphore::new(WAITING),
        }))
    }
}

impl Answers {
    /// Refuses a request whose reader has its share of answers under way.
    pub(super) fn begin(&self, reader: Reader) -> Result<(), Refused> {
        let all = self.0.all.load(Ordering::Relaxed);
        if all < MOST_OF_ONE || (all < MOST && self.of(reader) < MOST_OF_ONE) {
            return Ok(());
        }
        Err(Refused::Overloaded)
    }

    /// Tells a long answer of one reader from what passes free.
    pub(super) fn counts(reply: &Reply) -> bool {
        reply.body().len() > SHORT && !reply.is_shared()
    }

    /// The answer as it may go out: counted where it is long. A read waits for room; what a write did is said always.
    pub(super) async fn hold(&self, reader: Reader, is_read: bool, reply: Reply) -> Answer {
        if !Self::counts(&reply) {
            return Ok(reply);
        }
        let bytes = reply.body().len();
        if !self.take(reader, bytes, !is_read) {
            let Ok(_place) = self.0.waiting.try_acquire() else { return Err(Refused::Overloaded) };
            let until = Instant::now() + PATIENCE;
            loop {
                let freed = self.0.freed.notified();
                if self.take(reader, bytes, false) {
                    break;
                }
                timeout_at(until, freed).await.map_err(|_| Refused::Overloaded)?;
            }
        }
        Ok(reply.with_body(|body| Bytes::from_owner(Counted { body, reader, answers: self.clone() })))
    }

    /// Counts an answer, where there is room or it must go out. One that is longer than a share is let through alone.
    fn take(&self, reader: Reader, bytes: usize, must: bool) -> bool {
        let mut of = self.locked();
        let own = of.get(&reader).copied().unwrap_or(0);
        let all = self.0.all.load(Ordering::Relaxed);
        let has_room = |taken: usize, most: usize| taken == 0 || taken.saturating_add(bytes) <= most;
        let is_taken = must || (has_room(own, MOST_OF_ONE) && has_room(all, MOST));
        if is_taken {
            of.insert(reader, own + bytes);
            self.0.all.store(all + bytes, Ordering::Relaxed);
        }
        is_taken
    }

    fn of(&self, reader: Reader) -> usize {
        self.locked().get(&reader).copied().unwrap_or(0)
    }

    /// Every change under the lock is one step.
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Reader, usize>> {
        self.0.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let (bytes, answers) = (self.body.len(), &self.answers);
        let mut of = answers.locked();
        let left = of.get(&self.reader).map_or(0, |own| own.saturating_sub(bytes));
        if left == 0 {
            of.remove(&self.reader);
        } else {
            of.insert(self.reader, left);
        }
        let all = answers.0.all.load(Ordering::Relaxed);
        answers.0.all.store(all.saturating_sub(bytes), Ordering::Relaxed);
        drop(of);
        answers.0.freed.notify_waiters();
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
        assert!(matches!(answers.begin(reader(99)), Err(Refused::Overloaded)), "all is taken");
        assert!(matches!(hold(99, 1).await, Err(Refused::Overloaded)));
        let written = answers.hold(reader(1), false, long(1)).await;
        assert!(written.is_ok(), "what is done is said");
        drop((first, second, others, written));
        assert_eq!((answers.0.all.load(Ordering::Relaxed), answers.locked().len()), (0, 0));
        assert!(hold(9, 40).await.is_ok(), "one longer than a share goes alone");
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
