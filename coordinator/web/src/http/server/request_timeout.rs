//! Limits the processing time of a request, so that clients get an error if the store stalls.
//!
//! A write that timed out may still be committed: its response reports an error, never that nothing was written.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use ::http::Method;
use futures_util::{StreamExt, stream};
use parallax_service::ServiceError;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::http::error::{ApiError, HandlerResult};
use crate::http::json_body::RequestBody;

/// Time limit of a request, from when it has been received completely.
pub(in crate::http) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit of requests that wait for agents or receivers; longer than the wait for them.
pub(in crate::http) const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the time limit of requests to a path. "Check now" may take as long as a check, and a test alert as long as
/// its receiver.
pub(in crate::http) fn timeout_for(path: &str) -> Duration {
    if path.ends_with("/check") || path.ends_with("/test") { CHECK_TIMEOUT } else { REQUEST_TIMEOUT }
}

/// Resolves when the request's body has been read or dropped.
pub(in crate::http) type BodyReceived = Option<oneshot::Receiver<()>>;

/// Wraps a body to learn when it has been read, since a slow sender has a separate limit. For methods without a body
/// there is nothing to wait for.
pub(in crate::http) fn track_body(body: RequestBody, method: &Method) -> (RequestBody, BodyReceived) {
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

/// Runs a handler; returns an internal error if it takes longer than `limit` after the body was received.
pub(in crate::http) async fn with_timeout(
    limit: Duration,
    arrived: BodyReceived,
    answer: impl Future<Output = HandlerResult>,
) -> HandlerResult {
    let overdue = async {
        if let Some(arrived) = arrived {
            // Resolves when the sender is dropped; nothing is sent.
            let _ = arrived.await;
        }
        sleep(limit).await;
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        () = overdue => Err(timeout_error()),
    }
}

/// The error for a request that timed out.
pub(super) fn timeout_error() -> ApiError {
    ServiceError::Internal("the request timed out; the store may be stalled".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use bytes::Bytes;

    use super::*;

    fn body() -> RequestBody {
        stream::iter([Ok(Bytes::from_static(b"{}"))]).boxed()
    }

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_request_that_takes_too_long_is_an_internal_error() {
        let (_, arrived) = track_body(body(), &Method::DELETE);
        let reply = with_timeout(SHORT, arrived, pending()).await.unwrap_err().into_response();
        assert_eq!(reply.status().as_u16(), 500);
    }

    #[tokio::test]
    async fn the_timeout_starts_when_the_body_was_read() {
        let (mut body, arrived) = track_body(body(), &Method::POST);
        let (send, finished) = oneshot::channel();
        let reply = with_timeout(SHORT, arrived, async move {
            sleep(SHORT * 4).await;
            while body.next().await.is_some() {}
            send.send(()).unwrap();
            pending().await
        });
        assert_eq!(reply.await.unwrap_err().into_response().status().as_u16(), 500);
        assert_eq!(finished.await, Ok(()), "a slow sender has its own limit");
    }
}
