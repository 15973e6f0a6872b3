//! Protects HTTP/2 connections against clients that stall responses, reset streams in masses, or stay idle.
//!
//! HTTP/1.1 has one request at a time, and an unread response shows at the socket (see `Stalling`). With HTTP/2 a
//! client can stall a response by never widening its window (RFC 9113, section 5.2) while the socket makes progress, or
//! open and reset streams as fast as the line allows (rapid reset, CVE-2023-44487), at the price of one frame each.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// Number of reset streams from which a connection is closed if more than half of its streams were reset.
const CANCELLED: u64 = 128;
/// Size of one chunk of a response body, in bytes. A chunk must be sent before the next is taken, however small the
/// client's window is.
const PIECE: usize = 16 * 1024;

/// Reason to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A response made no progress for too long.
    Stalled,
    /// The client reset most of its streams.
    Cancelling,
    /// The connection was without a request for too long.
    Quiet,
}

/// Open streams of one connection, limited by its number of concurrent streams.
#[derive(Debug, Clone)]
pub(super) struct Streams(Arc<Mutex<All>>);

#[derive(Debug)]
struct All {
    next: u64,
    /// Each open stream, with the time since which data of its response waits to be sent; `None` while there is nothing
    /// to send.
    open: BTreeMap<u64, Option<Instant>>,
    cancelled: u64,
    quiet_since: Instant,
}

/// Open stream; closed when dropped.
#[derive(Debug)]
pub(super) struct Stream {
    streams: Streams,
    number: u64,
    is_answered: bool,
}

impl Streams {
    /// Creates the guard of a new connection.
    pub(super) fn new() -> Self {
        let quiet_since = Instant::now();
        Self(Arc::new(Mutex::new(All { next: 0, open: BTreeMap::new(), cancelled: 0, quiet_since })))
    }

    /// Registers a new stream.
    pub(super) fn begin(&self) -> Stream {
        let mut all = self.all();
        let number = all.next;
        all.next += 1;
        all.open.insert(number, None);
        drop(all);
        Stream { streams: self.clone(), number, is_answered: false }
    }

    /// Returns a reason to close the connection now, if there is one: a response stalled for `stall`, mass resets, or
    /// no request for `first` since the connection was opened or for `quiet` since the last one.
    pub(super) fn verdict(
        &self,
        now: Instant,
        stall: Duration,
        first: Duration,
        quiet: Duration,
    ) -> Option<Verdict> {
        let all = self.all();
        let lasted = |since: Instant| now.saturating_duration_since(since);
        if all.open.values().flatten().any(|since| lasted(*since) >= stall) {
            return Some(Verdict::Stalled);
        }
        if all.cancelled >= CANCELLED && all.cancelled.saturating_mul(2) > all.next {
            return Some(Verdict::Cancelling);
        }
        let limit = if all.next == 0 { first } else { quiet };
        (all.open.is_empty() && lasted(all.quiet_since) >= limit).then_some(Verdict::Quiet)
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Wraps the body of the response, which is now ready to be sent.
    pub(super) fn answered<B>(mut self, body: B) -> Watched<B> {
        self.is_answered = true;
        self.note(true);
        Watched { body, rest: Bytes::new(), stream: self }
    }

    /// Records whether data waits to be sent from now on.
    fn note(&self, is_owed: bool) {
        let since = is_owed.then(Instant::now);
        self.streams.all().open.insert(self.number, since);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut all = self.streams.all();
        all.open.remove(&self.number);
        all.cancelled += u64::from(!self.is_answered);
        if all.open.is_empty() {
            all.quiet_since = Instant::now();
        }
    }
}

/// A response body that records since when data waits to be sent.
#[derive(Debug)]
pub(super) struct Watched<B> {
    body: B,
    /// Data taken from the body and not passed on yet.
    rest: Bytes,
    stream: Stream,
}

impl<B> Watched<B> {
    /// Splits off the next chunk.
    fn piece(&mut self) -> Bytes {
        let piece = self.rest.split_to(PIECE.min(self.rest.len()));
        // The last chunk is copied, so that it does not keep a whole document in memory.
        if self.rest.is_empty() { Bytes::copy_from_slice(&piece) } else { piece }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // hyper polls for more when the client's window has room, so each poll shows progress.
        if !self.rest.is_empty() {
            self.stream.note(true);
            return Poll::Ready(Some(Ok(Frame::data(self.piece()))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.stream.note(frame.is_ready());
        frame.map_ok(|frame| match frame.into_data() {
            Ok(data) if data.len() > PIECE => {
                self.rest = data;
                Frame::data(self.piece())
            }
            Ok(data) => Frame::data(data),
            Err(other) => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let all = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = all.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(all.lower().saturating_add(rest));
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

    fn verdict(streams: &Streams, after: Duration) -> Option<Verdict> {
        streams.verdict(Instant::now() + after, STALL, FIRST, QUIET)
    }

    /// Tolerance for the run time of a test.
    const SLACK: Duration = Duration::from_secs(5);

    #[test]
    fn a_connection_without_requests_ends_sooner_than_one_that_had_some() {
        let streams = Streams::new();
        assert_eq!(verdict(&streams, FIRST - SLACK), None);
        assert_eq!(verdict(&streams, FIRST), Some(Verdict::Quiet));
        let stream = streams.begin();
        assert_eq!(verdict(&streams, QUIET * 2), None, "its response is being rendered");
        drop(stream.answered(()));
        assert_eq!(verdict(&streams, QUIET - SLACK), None);
        assert_eq!(verdict(&streams, QUIET), Some(Verdict::Quiet));
    }

    #[test]
    fn an_answer_that_is_left_lying_ends_it_and_one_that_waits_for_news_does_not() {
        let streams = Streams::new();
        let taken = streams.begin().answered(());
        assert_eq!(verdict(&streams, STALL - SLACK), None);
        assert_eq!(verdict(&streams, STALL), Some(Verdict::Stalled));
        taken.stream.note(false);
        assert_eq!(verdict(&streams, STALL * 10), None, "there is nothing to send");
        taken.stream.note(true);
        assert_eq!(verdict(&streams, STALL), Some(Verdict::Stalled));
    }

    #[test]
    fn an_answer_is_handed_out_in_pieces_and_nothing_is_lost() {
        let document = Bytes::from(vec![7; PIECE * 2 + 1]);
        let mut body = Streams::new().begin().answered(Full::new(document.clone()));
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = document.len();
        for expected in [PIECE, PIECE, 1] {
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            assert!(!body.is_end_stream());
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) else { panic!() };
            let data = frame.into_data().unwrap();
            assert_eq!(data.len(), expected);
            let is_copy = !document.as_ptr_range().contains(&data.as_ptr());
            assert_eq!(is_copy, expected == 1);
            left -= expected;
        }
        assert!(body.is_end_stream() && body.size_hint().exact() == Some(0));
        assert!(matches!(Pin::new(&mut body).poll_frame(&mut cx), Poll::Ready(None)));
    }

    #[test]
    fn whoever_only_cancels_is_known_and_an_impatient_reader_is_not() {
        let impatient = Streams::new();
        for _ in 0..CANCELLED {
            drop(impatient.begin().answered(()));
            drop(impatient.begin());
        }
        assert_eq!(verdict(&impatient, Duration::ZERO), None);
        let flood = Streams::new();
        for _ in 1..CANCELLED {
            drop(flood.begin());
        }
        assert_eq!(verdict(&flood, Duration::ZERO), None);
        drop(flood.begin());
        assert_eq!(verdict(&flood, Duration::ZERO), Some(Verdict::Cancelling));
    }
}
