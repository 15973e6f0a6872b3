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

use super::client_ip::{self, PeerAddress, address_key};
use crate::http::error::{ApiError, HandlerResult};
use crate::http::response::HttpResponse;

/// Size up to which a response is not counted, in bytes.
pub(super) const UNCOUNTED_BYTES: usize = 64 << 10;
/// Limits of one pool, and of one account or address in it, in bytes.
const MAX_POOL_BYTES: usize = 256 << 20;
const MAX_OWNER_BYTES: usize = 32 << 20;
/// Reservation of a request until its response is rendered, in bytes: allows 256 concurrent requests of one account.
const RESERVED_BYTES: usize = 128 << 10;
/// Longest wait of a read for memory, and concurrent waiters of one pool: each holds its response meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(2);
const MAX_WAITERS: usize = 16;

/// Account or address that a response counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum ResponseOwner {
    /// Any key of this account.
    Account(AccountId),
    /// A visitor's IPv4 address or IPv6 /64.
    Address(u128),
}

impl ResponseOwner {
    /// Returns the owner for a visitor's request: its client IP.
    pub(in crate::http) fn from_request(peer: Option<PeerAddress>, headers: &HeaderMap) -> Self {
        Self::Address(client_ip::client_ip(peer, headers).map_or(0, |visitor| address_key(visitor.address)))
    }
}

/// Memory accounting of responses in flight. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct ResponseMemory {
    accounts: Arc<MemoryPool>,
    visitors: Arc<MemoryPool>,
    shared_documents: Arc<MemoryPool>,
}

/// Memory pool: for accounts, for visitors, or for documents that visitors share.
#[derive(Debug)]
struct MemoryPool {
    usage: Mutex<PoolUsage>,
    released: Notify,
    waiting: Semaphore,
}

#[derive(Debug, Default)]
struct PoolUsage {
    /// Bytes of all responses.
    total_bytes: usize,
    owners: BTreeMap<ResponseOwner, OwnerUsage>,
    /// Shared documents, by the memory address of their first byte: number of readers, and the owner they count for.
    shared: BTreeMap<usize, (usize, ResponseOwner)>,
}

/// Usage of one owner: bytes of its responses, and its requests in progress.
#[derive(Debug, Default, Clone, Copy)]
struct OwnerUsage {
    bytes: usize,
    reservations: usize,
}

/// Reservation of a request in progress; released when dropped.
#[derive(Debug)]
pub(in crate::http) struct RequestReservation {
    owner: ResponseOwner,
    pool: Arc<MemoryPool>,
}

/// Response body that is counted until it is dropped.
#[derive(Debug)]
struct CountedBody {
    body: Bytes,
    owner: ResponseOwner,
    /// True if all readers share this copy.
    is_shared: bool,
    pool: Arc<MemoryPool>,
}

impl Default for MemoryPool {
    fn default() -> Self {
        Self { usage: Mutex::default(), released: Notify::new(), waiting: Semaphore::new(MAX_WAITERS) }
    }
}

impl ResponseMemory {
    const fn pool(&self, reader: ResponseOwner) -> &Arc<MemoryPool> {
        match reader {
            ResponseOwner::Account(_) => &self.accounts,
            ResponseOwner::Address(_) => &self.visitors,
        }
    }

    /// Reserves memory for a request; refuses it if its owner is already at its limit.
    pub(in crate::http) fn reserve(&self, reader: ResponseOwner) -> Result<RequestReservation, ApiError> {
        let pool = self.pool(reader);
        let mut sums = pool.lock();
        let usage = sums.owners.entry(reader).or_default();
        if usage.bytes + usage.reservations * RESERVED_BYTES >= MAX_OWNER_BYTES {
            return Err(ApiError::Overloaded);
        }
        usage.reservations += 1;
        drop(sums);
        Ok(RequestReservation { owner: reader, pool: Arc::clone(pool) })
    }

    /// Returns true if the response is counted: it is neither short nor permanently cached.
    pub(in crate::http) fn is_counted(reply: &HttpResponse) -> bool {
        reply.body().len() > UNCOUNTED_BYTES && !reply.is_permanent()
    }

    /// Counts the response to a visitor's request; see [`RequestReservation::admit`].
    pub(in crate::http) async fn admit(
        &self,
        reader: ResponseOwner,
        is_read: bool,
        reply: HttpResponse,
    ) -> HandlerResult {
        let pool = if reply.is_shared() { &self.shared_documents } else { self.pool(reader) };
        pool.admit(reader, is_read, reply).await
    }
}

impl RequestReservation {
    /// Counts the response to the request. A read waits for memory if it has to.
    pub(in crate::http) async fn admit(self, is_read: bool, reply: HttpResponse) -> HandlerResult {
        self.pool.admit(self.owner, is_read, reply).await
    }
}

impl MemoryPool {
    /// Counts a long response. A read waits for memory; the response to a write is always sent.
    async fn admit(self: &Arc<Self>, reader: ResponseOwner, is_read: bool, reply: HttpResponse) -> HandlerResult {
        if !ResponseMemory::is_counted(&reply) {
            return Ok(reply);
        }
        let (body, is_copy) = (reply.body(), reply.is_shared());
        if !self.try_count(reader, body, is_copy, !is_read) {
            let Ok(_place) = self.waiting.try_acquire() else { return Err(ApiError::Overloaded) };
            let until = Instant::now() + MAX_WAIT;
            loop {
                let released = self.released.notified();
                if self.try_count(reader, body, is_copy, false) {
                    break;
                }
                timeout_at(until, released).await.map_err(|_| ApiError::Overloaded)?;
            }
        }
        let pool = Arc::clone(self);
        Ok(reply.map_body(|body| Bytes::from_owner(CountedBody { body, owner: reader, is_shared: is_copy, pool })))
    }

    /// Counts a response if it fits or `must` be sent, and returns true if so. A response larger than the limit of an
    /// owner is admitted if it is the only one; a shared document that is already counted takes no more memory.
    fn try_count(&self, reader: ResponseOwner, body: &[u8], is_copy: bool, must: bool) -> bool {
        let mut sums = self.lock();
        let copy = body.as_ptr().addr();
        if is_copy && let Some((readers, _)) = sums.shared.get_mut(&copy) {
            *readers += 1;
            return true;
        }
        let bytes = body.len();
        let usage = sums.owners.get(&reader).map_or(0, |usage| usage.bytes);
        let has_room = |used: usize, limit: usize| used == 0 || used.saturating_add(bytes) <= limit;
        let is_taken = must || (has_room(usage, MAX_OWNER_BYTES) && has_room(sums.total_bytes, MAX_POOL_BYTES));
        if is_taken {
            sums.owners.entry(reader).or_default().bytes += bytes;
            sums.total_bytes += bytes;
            if is_copy {
                sums.shared.insert(copy, (1, reader));
            }
        }
        is_taken
    }

    /// Locks the usage. A poisoned lock is safe to use: each change is a single step.
    fn lock(&self) -> MutexGuard<'_, PoolUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolUsage {
    /// Updates the usage of an owner, and removes the entry when it is zero.
    fn update_owner(&mut self, reader: ResponseOwner, change: impl FnOnce(&mut OwnerUsage)) {
        let Some(usage) = self.owners.get_mut(&reader) else { return };
        change(usage);
        if usage.bytes == 0 && usage.reservations == 0 {
            self.owners.remove(&reader);
        }
    }
}

impl Drop for RequestReservation {
    fn drop(&mut self) {
        self.pool.lock().update_owner(self.owner, |usage| usage.reservations = usage.reservations.saturating_sub(1));
    }
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        let bytes = self.body.len();
        let mut sums = self.pool.lock();
        let mut reader = self.owner;
        if self.is_shared {
            let copy = self.body.as_ptr().addr();
            match sums.shared.get_mut(&copy) {
                Some((readers, _)) if *readers > 1 => {
                    *readers -= 1;
                    return;
                }
                Some((_, first)) => reader = *first,
                None => {}
            }
            sums.shared.remove(&copy);
        }
        sums.update_owner(reader, |usage| usage.bytes = usage.bytes.saturating_sub(bytes));
        sums.total_bytes = sums.total_bytes.saturating_sub(bytes);
        drop(sums);
        self.pool.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use ::http::StatusCode;

    use super::*;

    fn long(mebibytes: usize) -> HttpResponse {
        HttpResponse::json_bytes(StatusCode::OK, vec![b'x'; mebibytes << 20])
    }

    fn reader(n: u128) -> ResponseOwner {
        ResponseOwner::Account(AccountId::from_u128(n))
    }

    fn is_empty(pool: &MemoryPool) -> bool {
        let sums = pool.lock();
        sums.total_bytes == 0 && sums.owners.is_empty() && sums.shared.is_empty()
    }

    #[tokio::test]
    async fn memory_is_limited_per_client_and_in_total() {
        let memory = ResponseMemory::default();
        let hold = async |n, mebibytes| memory.admit(reader(n), true, long(mebibytes)).await;
        let first = hold(1, 30).await.unwrap();
        assert!(memory.reserve(reader(1)).is_ok());
        assert!(matches!(hold(1, 3).await, Err(ApiError::Overloaded)), "its share is in use");
        let second = hold(1, 2).await.unwrap();
        assert!(matches!(memory.reserve(reader(1)), Err(ApiError::Overloaded)));
        assert!(memory.reserve(reader(2)).is_ok(), "another account's is not");
        assert_eq!(hold(1, 0).await.unwrap().body().len(), 0, "short responses are not counted");
        let mut other_responses = Vec::new();
        for n in 2..9 {
            other_responses.push(hold(n, 32).await.unwrap());
        }
        assert!(memory.reserve(reader(99)).is_ok(), "usage of others refuses no request");
        assert!(matches!(hold(99, 1).await, Err(ApiError::Overloaded)), "but a long read does not fit");
        let response = memory.admit(reader(99), false, long(1)).await;
        assert!(response.is_ok(), "a completed write is always reported");
        let visitor = memory.admit(ResponseOwner::Address(1), true, long(1)).await;
        assert!(visitor.is_ok(), "visitors have their own pool");
        drop((first, second, other_responses, response, visitor));
        assert!(is_empty(&memory.accounts) && is_empty(&memory.visitors));
        assert!(hold(9, 40).await.is_ok(), "one larger than a share is admitted alone");
    }

    #[tokio::test]
    async fn a_running_request_is_counted_until_it_is_answered() {
        let memory = ResponseMemory::default();
        let reservations: Vec<_> = std::iter::from_fn(|| memory.reserve(reader(1)).ok()).take(1_000).collect();
        assert_eq!(reservations.len(), MAX_OWNER_BYTES / RESERVED_BYTES);
        assert!(memory.reserve(reader(2)).is_ok(), "another account's do not");
        drop(reservations);
        assert!(memory.reserve(reader(1)).is_ok());
        assert!(is_empty(&memory.accounts));
    }

    #[tokio::test]
    async fn a_shared_document_counts_once_and_many_documents_are_limited() {
        let memory = ResponseMemory::default();
        let document = |n: u8| Bytes::from(vec![n; 4 << 20]);
        let hold = async |n, body: &Bytes| {
            memory.admit(ResponseOwner::Address(n), true, HttpResponse::bytes("text/html", body.clone()).shared()).await
        };
        let one = document(0);
        let mut responses = Vec::new();
        for n in 0..1_000 {
            responses.push(hold(n, &one).await.unwrap());
        }
        assert_eq!(memory.shared_documents.lock().total_bytes, 4 << 20);
        for n in 1..64 {
            responses.push(hold(u128::from(n), &document(n)).await.unwrap());
        }
        assert!(matches!(hold(2_000, &document(99)).await, Err(ApiError::Overloaded)), "each is a separate copy");
        responses.push(hold(2_000, &one).await.unwrap());
        let response = memory.admit(ResponseOwner::Address(2_000), true, long(1)).await;
        assert!(response.is_ok(), "responses to single visitors have their own pool");
        drop((responses, response));
        assert!(is_empty(&memory.shared_documents) && is_empty(&memory.visitors));
    }

    #[tokio::test]
    async fn a_read_waits_for_memory() {
        let memory = ResponseMemory::default();
        let first = memory.admit(reader(1), true, long(32)).await.unwrap();
        let waiting = tokio::spawn({
            let memory = memory.clone();
            async move { memory.admit(reader(1), true, long(1)).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        // The body is counted, not the rest of the response.
        drop(first.into_response());
        assert!(waiting.await.unwrap().is_ok());
    }
}
