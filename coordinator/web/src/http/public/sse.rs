//! Server-sent events (SSE) of a page: a line for each change, as long as the visitor stays connected.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderValue;
use ::http::header::CACHE_CONTROL;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parallax_service::page_access::authorize::AuthorizedPage;
use rand::Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::authorize;
use crate::http::HttpContext;
use crate::http::error::HandlerResult;
use crate::http::response::{BodyStream, HttpResponse};
use crate::http::routed_request::RoutedRequest;

/// Interval of keep-alive comments; proxies close streams that are silent for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(25);
/// Lifetime of a stream; the browser opens another.
const MAX_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Milliseconds after which a browser reconnects.
const RETRY_MS: RangeInclusive<u32> = 3000..=12_000;
/// Changes within this time are sent as one.
const DEBOUNCE: Duration = Duration::from_millis(500);

/// `GET /p/{slug}/events`: server-sent events (WHATWG HTML, 9.2). Each only signals a change.
pub(super) async fn events(context: Arc<HttpContext>, call: RoutedRequest<()>) -> HandlerResult {
    let page = authorize(&context, &call)?;
    let changes = context.page_cache.watch(page.page().id);
    let stopping = context.shutdown_signal();
    let events = PageEventStream { context, call, changes, stopping, end: Instant::now() + MAX_LIFETIME };
    let reply = HttpResponse::bytes("text/event-stream; charset=utf-8", greeting())
        .with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply.with_stream(events.parts()))
}

/// Returns the first line of a stream, the reconnection delay. It is random, so that not all browsers reconnect at
/// once after a restart.
pub(in crate::http) fn greeting() -> String {
    format!("retry: {}\n\n", rand::rng().random_range(RETRY_MS))
}

struct PageEventStream {
    context: Arc<HttpContext>,
    /// The visitor's request with its credentials.
    call: RoutedRequest<()>,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    end: Instant,
}

impl PageEventStream {
    fn parts(self) -> BodyStream {
        stream::unfold(self, |mut it| async move {
            let chunk = it.next().await?;
            Some((Ok::<_, Infallible>(chunk), it))
        })
        .boxed()
    }

    /// Returns the next part; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            () = shutdown_requested(&mut self.stopping) => None,
            () = sleep_until(self.end) => None,
            changed = self.changes.changed() => {
                changed.ok()?;
                sleep(DEBOUNCE).await;
                let seq = *self.changes.borrow_and_update();
                // The change may have revoked this visitor's access.
                let _page: AuthorizedPage = authorize(&self.context, &self.call).ok()?;
                Some(Bytes::from(format!("data: {seq}\n\n")))
            }
            () = sleep(KEEP_ALIVE) => Some(Bytes::from_static(b":\n\n")),
        }
    }
}

/// Waits until the server shuts down.
pub(in crate::http) async fn shutdown_requested(stopping: &mut watch::Receiver<bool>) {
    // A dropped sender is a reason to stop, too.
    let _ = stopping.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_reconnect_at_different_times() {
        let delays: Vec<u32> = (0..400)
            .map(|_| {
                let greeting = greeting();
                let millis = greeting.strip_prefix("retry: ").and_then(|rest| rest.strip_suffix("\n\n"));
                millis.unwrap().parse().unwrap()
            })
            .collect();
        assert!(delays.iter().all(|millis| RETRY_MS.contains(millis)), "{delays:?}");
        // Each of the nine seconds occurs, except once in 10^19 runs.
        for second in 3..12_u32 {
            assert!(delays.iter().any(|millis| millis / 1000 == second), "{second}: {delays:?}");
        }
    }
}
