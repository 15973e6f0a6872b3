//! Event stream of live screens: tells which of a person's pages changed, never how.
//!
//! One reader of the journal serves all streams (the page cache's). A browser holds one stream for all its tabs. Each
//! message is sent only while the session is valid.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use ::http::header::{CACHE_CONTROL, HeaderValue};
use bytes::Bytes;
use futures_util::future::select_all;
use futures_util::{FutureExt, StreamExt, stream};
use parallax_core::id::PageId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::SignedIn;
use crate::http::HttpContext;
use crate::http::error::{ApiError, HandlerResult};
use crate::http::public::{greeting, shutdown_requested};
use crate::http::response::{BodyStream, HttpResponse};
use crate::http::route::{HttpRoute, signed_in_route};
use crate::http::routed_request::RoutedRequest;
use crate::http::server::session_streams::OpenStream;

/// Interval of beats, by which a screen knows that its figures are those of now.
const BEAT: Duration = Duration::from_secs(10);
/// Lifetime of a stream. The browser opens another, for which the session is checked again.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Changes within this time are sent as one.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Route of the stream.
pub(super) fn rows() -> Vec<(&'static str, Vec<(Method, HttpRoute)>)> {
    vec![("/app/live", vec![(Method::GET, signed_in_route(|context, call| events(context, call).boxed()))])]
}

/// `GET /app/live`: server-sent events (WHATWG HTML, 9.2) with the ids of the pages that changed.
async fn events(context: Arc<HttpContext>, call: RoutedRequest<SignedIn>) -> HandlerResult {
    let (caller, session) = (call.caller.caller, call.caller.session.session.id);
    let open = context.session_streams.open(session).map_err(ApiError::RateLimited)?;
    let pages = context.service.pages.list(&caller).await?;
    let stream = LiveStream {
        pages: pages.iter().map(|page| WatchedPage::new(page.id, context.page_cache.watch(page.id))).collect(),
        is_signed_in: {
            let service = Arc::clone(&context.service);
            // A failed read ends the stream: the browser opens another.
            Box::new(move || service.people.is_signed_in(session).unwrap_or(false))
        },
        _open: Some(open),
        stopping: context.shutdown_signal(),
        end: Instant::now() + MAX_LIFETIME,
    };
    let reply = HttpResponse::bytes("text/event-stream; charset=utf-8", format!("{}{}", greeting(), beat()));
    Ok(reply.with(CACHE_CONTROL, HeaderValue::from_static("no-store")).with_stream(stream.parts()))
}

const fn beat() -> &'static str {
    "event: beat\ndata: 1\n\n"
}

/// A page whose changes are sent.
struct WatchedPage {
    id: PageId,
    changes: watch::Receiver<u64>,
    /// The last change that was sent.
    sent: u64,
}

impl WatchedPage {
    fn new(id: PageId, changes: watch::Receiver<u64>) -> Self {
        let sent = *changes.borrow();
        Self { id, changes, sent }
    }
}

struct LiveStream {
    /// The person's pages; their number is limited by the plan.
    pages: Vec<WatchedPage>,
    /// Returns true while the session is valid.
    is_signed_in: Box<dyn Fn() -> bool + Send>,
    /// Its place among the streams of the session.
    _open: Option<OpenStream>,
    stopping: watch::Receiver<bool>,
    end: Instant,
}

impl LiveStream {
    fn parts(self) -> BodyStream {
        stream::unfold(self, |mut it| async move {
            let chunk = it.next().await?;
            Some((Ok::<_, Infallible>(chunk), it))
        })
        .boxed()
    }

    /// Returns the next part; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let is_changed = tokio::select! {
            biased;
            () = shutdown_requested(&mut self.stopping) => return None,
            () = sleep_until(self.end) => return None,
            () = any_changed(&mut self.pages) => true,
            () = sleep(BEAT) => false,
        };
        if is_changed {
            sleep(DEBOUNCE).await;
        }
        if !(self.is_signed_in)() {
            return None;
        }
        if !is_changed {
            return Some(Bytes::from_static(beat().as_bytes()));
        }
        let mut line = "data:".to_owned();
        for page in &mut self.pages {
            let newest = *page.changes.borrow_and_update();
            if newest != page.sent {
                page.sent = newest;
                // Writing to memory does not fail.
                let _ = write!(line, " {}", page.id);
            }
        }
        Some(Bytes::from(line + "\n\n"))
    }
}

/// Waits until one of the pages changes; forever if there are none.
async fn any_changed(pages: &mut [WatchedPage]) {
    if pages.is_empty() {
        return std::future::pending().await;
    }
    let changes = pages.iter_mut().map(|page| page.changes.changed().boxed());
    let (changed, ..) = select_all(changes).await;
    if changed.is_err() {
        // The page is gone, or the server stops: nothing more will change.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn changes_of_a_second_are_one_line_and_silence_has_beats() {
        let (shop, blog) = (PageId::from_u128(1), PageId::from_u128(2));
        let senders = [shop, blog].map(|id| (id, watch::Sender::new(0)));
        let stopping = watch::Sender::new(false);
        let mut stream = LiveStream {
            pages: senders.iter().map(|(id, sender)| WatchedPage::new(*id, sender.subscribe())).collect(),
            is_signed_in: Box::new(|| true),
            _open: None,
            stopping: stopping.subscribe(),
            end: Instant::now() + MAX_LIFETIME,
        };
        let began = Instant::now();
        assert_eq!(stream.next().await.unwrap(), beat());
        assert!(began.elapsed() >= BEAT);
        for seq in 1..100 {
            senders[1].1.send_replace(seq);
        }
        assert_eq!(stream.next().await.unwrap(), format!("data: {blog}\n\n"));
        assert_eq!(stream.next().await.unwrap(), beat(), "the same change is not sent again");
        for (_, sender) in &senders {
            sender.send_replace(100);
        }
        assert_eq!(stream.next().await.unwrap(), format!("data: {shop} {blog}\n\n"));
        stopping.send_replace(true);
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_so_that_the_session_is_checked_again() {
        let stopping = watch::Sender::new(false);
        let end = Instant::now() + MAX_LIFETIME;
        let mut stream = LiveStream {
            pages: Vec::new(),
            is_signed_in: Box::new(|| true),
            _open: None,
            stopping: stopping.subscribe(),
            end,
        };
        while stream.next().await.is_some() {}
        assert!(Instant::now() >= end);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_its_session_before_it_sends_a_change() {
        let (changes, stopping) = (watch::Sender::new(0), watch::Sender::new(false));
        let is_valid = Arc::new(AtomicBool::new(true));
        let mut stream = LiveStream {
            pages: vec![WatchedPage::new(PageId::from_u128(1), changes.subscribe())],
            is_signed_in: {
                let is_valid = Arc::clone(&is_valid);
                Box::new(move || is_valid.load(Ordering::Relaxed))
            },
            _open: None,
            stopping: stopping.subscribe(),
            end: Instant::now() + MAX_LIFETIME,
        };
        assert_eq!(stream.next().await.unwrap(), beat());
        is_valid.store(false, Ordering::Relaxed);
        changes.send_replace(1);
        assert_eq!(stream.next().await, None);
    }
}
