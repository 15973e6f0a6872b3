//! Protects HTTP/2 connections against clients that stall responses, reset streams in masses, or stay idle.
//!
//! HTTP/1.1 has one request at a time, and an unread response shows at the socket (see `WriteTimeoutStream`). With
//! HTTP/2 a client can stall a response by never widening its window (RFC 9113, section 5.2) while the socket makes
//! progress, or open and reset streams as fast as the line allows (rapid reset, CVE-2023-44487), at the price of one
//! frame each.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// Number of reset streams from which a connection is closed if more than half of its streams were reset.
const MAX_FREE_RESETS: u64 = 128;
/// Size of one chunk of a response body, in bytes. A chunk must be sent before the next is taken, however small the
/// client's window is.
const CHUNK_BYTES: usize = 16 * 1024;

/// Reason to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum H2CloseReason {
    /// A response made no progress for too long.
    Stalled,
    /// The client reset most of its streams.
    RapidReset,
    /// The connection was without a request for too long.
    Idle,
}

/// Open streams of one connection, limited by its number of concurrent streams.
#[derive(Debug, Clone)]
pub(super) struct H2Guard(Arc<Mutex<ConnectionStreams>>);

#[derive(Debug)]
struct ConnectionStreams {
    opened: u64,
    /// Each open stream, with the time since which data of its response waits to be sent; `None` while there is nothing
    /// to send.
    open: BTreeMap<u64, Option<Instant>>,
    cancelled: u64,
    idle_since: Instant,
}

/// Open stream; closed when dropped.
#[derive(Debug)]
pub(super) struct H2Stream {
    guard: H2Guard,
    number: u64,
    is_answered: bool,
}

impl H2Guard {
    /// Creates the guard of a new connection.
    pub(super) fn new() -> Self {
        let quiet_since = Instant::now();
        Self(Arc::new(Mutex::new(ConnectionStreams {
            opened: 0,
            open: BTreeMap::new(),
            cancelled: 0,
            idle_since: quiet_since,
        })))
    }

    /// Registers a new stream.
    pub(super) fn open_stream(&self) -> H2Stream {
        let mut all = self.lock();
        let number = all.opened;
        all.opened += 1;
        all.open.insert(number, None);
        drop(all);
        H2Stream { guard: self.clone(), number, is_answered: false }
    }

    /// Returns a reason to close the connection now, if there is one: a response stalled for `stall`, mass resets, or
    /// no request for `first` since the connection was opened or for `idle_for` since the last one.
    pub(super) fn close_reason(
        &self,
        now: Instant,
        stall: Duration,
        first: Duration,
        idle_for: Duration,
    ) -> Option<H2CloseReason> {
        let all = self.lock();
        let elapsed = |since: Instant| now.saturating_duration_since(since);
        if all.open.values().flatten().any(|since| elapsed(*since) >= stall) {
            return Some(H2CloseReason::Stalled);
        }
        if all.cancelled >= MAX_FREE_RESETS && all.cancelled.saturating_mul(2) > all.opened {
            return Some(H2CloseReason::RapidReset);
        }
        let limit = if all.opened == 0 { first } else { idle_for };
        (all.open.is_empty() && elapsed(all.idle_since) >= limit).then_some(H2CloseReason::Idle)
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl H2Stream {
    /// Wraps the body of the response, which is now ready to be sent.
    pub(super) fn guard_body<B>(mut self, body: B) -> GuardedBody<B> {
        self.is_answered = true;
        self.set_pending(true);
        GuardedBody { body, unsent: Bytes::new(), stream: self }
    }

    /// Records whether data waits to be sent from now on.
    fn set_pending(&self, is_owed: bool) {
        let since = is_owed.then(Instant::now);
        self.guard.lock().open.insert(self.number, since);
    }
}

impl Drop for H2Stream {
    fn drop(&mut self) {
        let mut all = self.guard.lock();
        all.open.remove(&self.number);
        all.cancelled += u64::from(!self.is_answered);
        if all.open.is_empty() {
            all.idle_since = Instant::now();
        }
    }
}

/// A response body that records since when data waits to be sent.
#[derive(Debug)]
pub(super) struct GuardedBody<B> {
    body: B,
    /// Data taken from the body and not passed on yet.
    unsent: Bytes,
    stream: H2Stream,
}

impl<B> GuardedBody<B> {
    /// Splits off the next chunk.
    fn next_chunk(&mut self) -> Bytes {
        let chunk = self.unsent.split_to(CHUNK_BYTES.min(self.unsent.len()));
        // The last chunk is copied, so that it does not keep a whole document in memory.
        if self.unsent.is_empty() { Bytes::copy_from_slice(&chunk) } else { chunk }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for GuardedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // hyper polls for more when the client's window has room, so each poll shows progress.
        if !self.unsent.is_empty() {
            self.stream.set_pending(true);
            return Poll::Ready(Some(Ok(Frame::data(self.next_chunk()))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.stream.set_pending(frame.is_ready());
        frame.map_ok(|frame| match frame.into_data() {
            Ok(data) if data.len() > CHUNK_BYTES => {
                self.unsent = data;
                Frame::data(self.next_chunk())
            }
            Ok(data) => Frame::data(data),
            Err(other) => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.unsent.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let remaining = self.unsent.len() as u64;
        let all = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = all.upper() {
            hint.set_upper(upper.saturating_add(remaining));
        }
        hint.set_lower(all.lower().saturating_add(remaining));
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http_body_util::Full;

    use super::*;

    const STALL: Duration = Duration::from_secs(20);
    const FIRST: Duration = Duration::from_secs(10);
    const QUIET: Duration = Duration::from_secs(60);

    fn verdict(streams: &H2Guard, after: Duration) -> Option<H2CloseReason> {
        streams.close_reason(Instant::now() + after, STALL, FIRST, QUIET)
    }

    /// Tolerance for the run time of a test.
    const SLACK: Duration = Duration::from_secs(5);

    #[test]
    fn a_connection_without_requests_is_closed_sooner() {
        let streams = H2Guard::new();
        assert_eq!(verdict(&streams, FIRST - SLACK), None);
        assert_eq!(verdict(&streams, FIRST), Some(H2CloseReason::Idle));
        let stream = streams.open_stream();
        assert_eq!(verdict(&streams, QUIET * 2), None, "its response is being rendered");
        drop(stream.guard_body(()));
        assert_eq!(verdict(&streams, QUIET - SLACK), None);
        assert_eq!(verdict(&streams, QUIET), Some(H2CloseReason::Idle));
    }

    #[test]
    fn an_unread_response_closes_the_connection_and_a_pending_one_does_not() {
        let streams = H2Guard::new();
        let stream = streams.open_stream().guard_body(());
        assert_eq!(verdict(&streams, STALL - SLACK), None);
        assert_eq!(verdict(&streams, STALL), Some(H2CloseReason::Stalled));
        stream.stream.set_pending(false);
        assert_eq!(verdict(&streams, STALL * 10), None, "there is nothing to send");
        stream.stream.set_pending(true);
        assert_eq!(verdict(&streams, STALL), Some(H2CloseReason::Stalled));
    }

    #[test]
    fn a_response_is_sent_in_chunks_and_complete() {
        let document = Bytes::from(vec![7; CHUNK_BYTES * 2 + 1]);
        let mut body = H2Guard::new().open_stream().guard_body(Full::new(document.clone()));
        let mut cx = Context::from_waker(Waker::noop());
        let mut remaining = document.len();
        for expected in [CHUNK_BYTES, CHUNK_BYTES, 1] {
            assert_eq!(body.size_hint().exact(), Some(remaining as u64));
            assert!(!body.is_end_stream());
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else { panic!() };
            let data = frame.into_data().unwrap();
            assert_eq!(data.len(), expected);
            let is_copy = !document.as_ptr_range().contains(&data.as_ptr());
            assert_eq!(is_copy, expected == 1);
            remaining -= expected;
        }
        assert!(body.is_end_stream() && body.size_hint().exact() == Some(0));
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut cx), Poll::Ready(None)));
    }

    #[test]
    fn a_client_that_only_resets_streams_is_closed() {
        let impatient = H2Guard::new();
        for _ in 0..MAX_FREE_RESETS {
            drop(impatient.open_stream().guard_body(()));
            drop(impatient.open_stream());
        }
        assert_eq!(verdict(&impatient, Duration::ZERO), None);
        let flood = H2Guard::new();
        for _ in 1..MAX_FREE_RESETS {
            drop(flood.open_stream());
        }
        assert_eq!(verdict(&flood, Duration::ZERO), None);
        drop(flood.open_stream());
        assert_eq!(verdict(&flood, Duration::ZERO), Some(H2CloseReason::RapidReset));
    }
}
