//! The longest that a request is worked on: whoever waits for a store that stalls is told so, and not left waiting.
//!
//! A write that was given up may still be committed: its answer says that something is wrong, never that nothing was
//! written.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use ::http::Method;
use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::error::Refused;
use super::json::Body;
use super::route::Answer;
use crate::service::Error;

/// How long a request is worked on once all of it is there.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// How long where agents are asked to look now: longer than they are waited for.
pub(super) const LOOK: Duration = Duration::from_secs(15);

/// How long a request to that path is worked on. A look on request takes as long as a check may, and a test alert as
/// long as its receiver.
pub(super) fn limit_of(path: &str) -> Duration {
    if path.ends_with("/check") || path.ends_with("/test") { LOOK } else { LIMIT }
}

/// Ends when a request's body was read, or is no longer wanted.
pub(super) type Arrived = Option<oneshot::Receiver<()>>;

/// A body of which is known when it has been read; how long a sender takes has a limit of its own. A method without a
/// body has none to wait for.
pub(super) fn watched(body: Body, method: &Method) -> (Body, Arrived) {
    if !matches!(*method, Method::POST | Method::PATCH | Method::PUT) {
        return (body, None);
    }
    let (reading, arrived) = oneshot::channel::<()>();
    let mut reading = Some(reading);
    let end = stream::poll_fn(move |_| {
        reading.take();
        Poll::Ready(None)
    });
    (body.chain(end).boxed(), Some(arrived))
}

/// The answer, or an error of ours where it takes longer than `limit`.
pub(super) async fn within(
    limit: Duration,
    arrived: Arrived,
    answer: impl Future<Output = Answer>,
) -> Answer {
    let overdue = async {
        if let Some(arrived) = arrived {
            // Nothing is ever sent: it is dropped.
            let _ = arrived.await;
        }
        sleep(limit).await;
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        () = overdue => Err(fault()),
    }
}

/// What is said of what took longer.
pub(super) fn fault() -> Refused {
    Error::Internal("it was not done in time; the store may be stalled".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use bytes::Bytes;

    use super::*;

    fn body() -> Body {
        stream::iter([Ok(Bytes::from_static(b"{}"))]).boxed()
    }

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn what_takes_too_long_is_an_error_of_ours() {
        let (_, arrived) = watched(body(), &Method::DELETE);
        let reply = within(SHORT, arrived, pending()).await.unwrap_err().reply();
        assert_eq!(reply.status().as_u16(), 500);
    }

    #[tokio::test]
    async fn the_time_counts_from_when_the_body_was_read() {
        let (mut body, arrived) = watched(body(), &Method::POST);
        let (send, sent) = oneshot::channel();
        let reply = within(SHORT, arrived, async move {
            sleep(SHORT * 4).await;
            while body.next().await.is_some() {}
            send.send(()).unwrap();
            pending().await
        });
        assert_eq!(reply.await.unwrap_err().reply().status().as_u16(), 500);
        assert_eq!(sent.await, Ok(()), "a slow sender has its own limit");
    }
}
