//! Drains the unread rest of a request body before the response is sent: closing a connection with unread bytes resets
//! it, and the response may be lost (RFC 9112, section 9.6).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::http::json_body::RequestBody;

/// Limit of bytes drained; a client that sends more may lose the response.
const MAX_BYTES: usize = 16 << 20;
/// Time limit of draining.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A body that hands back its unread rest when dropped.
struct RecoverableBody {
    body: Option<RequestBody>,
    return_body: Option<oneshot::Sender<RequestBody>>,
}

/// The unread rest of a body.
pub(in crate::http) struct UnreadBody(oneshot::Receiver<RequestBody>);

/// Splits a body into one to read and a handle to its unread rest.
pub(in crate::http) fn recoverable(body: RequestBody) -> (RequestBody, UnreadBody) {
    let (return_body, rest) = oneshot::channel();
    (RecoverableBody { body: Some(body), return_body: Some(return_body) }.boxed(), UnreadBody(rest))
}

impl Stream for RecoverableBody {
    type Item = Result<Bytes, ()>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = body.poll_next_unpin(cx);
        if let Poll::Ready(None | Some(Err(()))) = polled {
            self.body = None;
        }
        polled
    }
}

impl Drop for RecoverableBody {
    fn drop(&mut self) {
        if let (Some(body), Some(return_body)) = (self.body.take(), self.return_body.take()) {
            // Fails if the handle was dropped; the rest then stays unread.
            let _: Result<(), RequestBody> = return_body.send(body);
        }
    }
}

impl UnreadBody {
    /// Reads and discards the rest, within the limits of time and size.
    pub(in crate::http) async fn drain(self) {
        self.drain_within(DRAIN_TIMEOUT).await;
    }

    async fn drain_within(mut self, limit: Duration) {
        let Ok(mut body) = self.0.try_recv() else { return };
        let taking = async {
            let mut drained = 0;
            while let Some(Ok(chunk)) = body.next().await {
                drained += chunk.len();
                if drained > MAX_BYTES {
                    return;
                }
            }
        };
        // A slow sender may lose the response.
        let _: Result<(), _> = timeout(limit, taking).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;

    use super::*;

    fn parts(count: usize, length: usize) -> (RequestBody, Arc<AtomicUsize>) {
        let sent_bytes = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&sent_bytes);
        let each = move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from(vec![b' '; length]))
        };
        (stream::iter(0..count).map(each).boxed(), sent_bytes)
    }

    #[tokio::test]
    async fn an_unread_body_is_drained_up_to_a_limit() {
        for (count, length, read, expected) in [(9, 10, 0, 9), (9, 10, 4, 9), (9, 10, 9, 9), (100, 1 << 20, 1, 18)] {
            let (body, sent_bytes) = parts(count, length);
            let (mut lent_body, rest) = recoverable(body);
            for _ in 0..read {
                lent_body.next().await.unwrap().unwrap();
            }
            drop(lent_body);
            rest.drain().await;
            assert_eq!(sent_bytes.load(Ordering::Relaxed), expected, "{count} of {length} after {read}");
        }
    }

    #[tokio::test]
    async fn draining_a_stalled_body_times_out() {
        let (body, rest) = recoverable(stream::pending().boxed());
        drop(body);
        rest.drain_within(Duration::from_millis(20)).await;
    }
}
