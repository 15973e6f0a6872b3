//! The requests of one HTTP/2 connection: whether one of its answers is left lying, and whether it only asks to cancel.
//!
//! HTTP/1.1 has one request at a time, and what is not taken of its answer shows at the socket (`stall.rs`). Here a
//! visitor may leave an answer lying by never widening its window (RFC 9113, section 5.2) while the socket is well, or
//! ask and cancel as fast as the line allows (CVE-2023-44487), each time for the price of a frame.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// Cancelled requests that a connection may have before they are held against those that it let be answered.
const CANCELLED: u64 = 128;
/// Bytes of an answer that are handed out at once. Each piece must be taken before the next, however small the reader's
/// window is.
const PIECE: usize = 16 * 1024;

/// What a connection is to end for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing of an answer was taken for too long.
    Stalled,
    /// Most of many requests were cancelled.
    Cancelling,
    /// It has had no request for long enough.
    Quiet,
}

/// The requests of a connection, as many as it may have at once.
#[derive(Debug, Clone)]
pub(super) struct Streams(Arc<Mutex<All>>);

#[derive(Debug)]
struct All {
    next: u64,
    /// Each request under way, with the moment since which something of its answer could have been taken; none while
    /// there is nothing to take.
    open: BTreeMap<u64, Option<Instant>>,
    cancelled: u64,
    quiet_since: Instant,
}

/// One request under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    streams: Streams,
    number: u64,
    is_answered: bool,
}

impl Streams {
    /// None so far.
    pub(super) fn new() -> Self {
        let quiet_since = Instant::now();
        Self(Arc::new(Mutex::new(All { next: 0, open: BTreeMap::new(), cancelled: 0, quiet_since })))
    }

    /// A request has come.
    pub(super) fn begin(&self) -> Stream {
        let mut all = self.all();
        let number = all.next;
        all.next += 1;
        all.open.insert(number, None);
        drop(all);
        Stream { streams: self.clone(), number, is_answered: false }
    }

    /// Whether the connection is to end now: where an answer was left lying for `stall`, where it only cancels, and where
    /// there was no request for `first` since its beginning or for `quiet` since the last one.
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
    /// Its answer is made, and waits to be taken.
    pub(super) fn answered<B>(mut self, body: B) -> Watched<B> {
        self.is_answered = true;
        self.note(true);
        Watched { body, rest: Bytes::new(), stream: self }
    }

    /// Whether something could be taken from now on.
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

/// A body of which it is known since when its reader could have taken more.
#[derive(Debug)]
pub(super) struct Watched<B> {
    body: B,
    /// What the body gave and was not handed out yet.
    rest: Bytes,
    stream: Stream,
}

impl<B> Watched<B> {
    /// The next piece of the rest.
    fn piece(&mut self) -> Bytes {
        let piece = self.rest.split_to(PIECE.min(self.rest.len()));
        // Copied, so that the last one, which nobody waits for, does not hold on to a whole document.
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
        // hyper asks for more once the reader's window has room, so each question is something taken.
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

    /// As much as a test may take.
    const SLACK: Duration = Duration::from_secs(5);

    #[test]
    fn a_connection_without_requests_ends_sooner_than_one_that_had_some() {
        let streams = Streams::new();
        assert_eq!(verdict(&streams, FIRST - SLACK), None);
        assert_eq!(verdict(&streams, FIRST), Some(Verdict::Quiet));
        let stream = streams.begin();
        assert_eq!(verdict(&streams, QUIET * 2), None, "its answer is being made");
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
        assert_eq!(verdict(&streams, STALL * 10), None, "there is nothing to take");
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
