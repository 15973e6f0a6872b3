//! The demo's webhook receiver: it answers challenges, stores the newest deliveries, and displays them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::targets::{TIMEOUT, accept};

/// Number of deliveries stored.
const MAX_DELIVERIES: usize = 100;
/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 256 << 10;
/// Headers of a delivery that are displayed.
const SHOWN_HEADERS: [&str; 5] =
    ["x-service-event", "x-service-delivery", "x-service-signature", "webhook-timestamp", "webhook-signature"];

/// Received deliveries, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct DemoWebhookReceiver(Arc<Mutex<VecDeque<ReceivedDelivery>>>);

/// A received delivery.
#[derive(Debug, Clone)]
struct ReceivedDelivery {
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl DemoWebhookReceiver {
    /// Serves until shutdown.
    pub(super) async fn serve(self, listener: TcpListener, stop: watch::Receiver<bool>) {
        let connection = move |stream: TcpStream, _: SocketAddr| {
            let inbox = self.clone();
            async move {
                let service = service_fn(move |request| {
                    let inbox = inbox.clone();
                    async move { Ok::<_, Infallible>(inbox.respond(request).await) }
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
                // Errors of a connection are its peer's.
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            }
        };
        accept(listener, stop, connection).await;
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            return text(StatusCode::OK, self.page());
        }
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect();
        let Ok(Ok(body)) = timeout(TIMEOUT, body).await else {
            return text(StatusCode::BAD_REQUEST, "could not read the body\n".to_owned());
        };
        text(StatusCode::OK, self.store(head.uri.path(), &head.headers, &body.to_bytes()))
    }

    /// Stores a delivery and returns the response.
    fn store(&self, path: &str, headers: &HeaderMap, body: &[u8]) -> String {
        let json: Option<Value> = serde_json::from_slice(body).ok();
        let challenge = json.as_ref().and_then(|json| json.get("challenge")?.as_str().map(str::to_owned));
        let pretty = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
        let header = |name: &'static str| Some((name, headers.get(name)?.to_str().ok()?.to_owned()));
        let received = ReceivedDelivery {
            path: path.to_owned(),
            headers: SHOWN_HEADERS.into_iter().filter_map(header).collect(),
            body: pretty.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()),
        };
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while requests.len() >= MAX_DELIVERIES {
            requests.pop_front();
        }
        requests.push_back(received);
        challenge.unwrap_or_else(|| "accepted\n".to_owned())
    }

    /// Renders all stored deliveries, newest first.
    fn page(&self) -> String {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = format!("{} deliveries, newest first; the last {MAX_DELIVERIES} are kept.\n", requests.len());
        for received in requests.iter().rev() {
            // Writing to a string can't fail.
            let _ = writeln!(page, "\nPOST {}", received.path);
            for (name, value) in &received.headers {
                let _ = writeln!(page, "{name}: {value}");
            }
            let _ = writeln!(page, "{}", received.body);
        }
        page
    }
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // A body must never be interpreted as HTML.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_shown_newest_first_and_a_challenge_is_answered() {
        let inbox = DemoWebhookReceiver::default();
        let mut headers = HeaderMap::new();
        headers.insert("x-service-event", HeaderValue::from_static("went-down"));
        headers.insert("cookie", HeaderValue::from_static("private"));
        for n in 0..MAX_DELIVERIES + 5 {
            let body = format!("{{\"n\":{n}}}");
            assert_eq!(inbox.store("/alerts", &headers, body.as_bytes()), "accepted\n");
        }
        let page = inbox.page();
        assert!(page.starts_with("100 deliveries") && page.contains("x-service-event: went-down"), "{page}");
        assert!(!page.contains("private") && !page.contains("\"n\": 4\n"), "{page}");
        let position = |n: usize| page.find(&format!("\"n\": {n}\n")).unwrap();
        assert!(position(104) < position(5));
        assert_eq!(inbox.store("/news", &headers, b"{\"challenge\":\"abc\"}"), "abc");
        inbox.store("/news", &headers, b"\xff no JSON");
        assert!(inbox.page().contains("no JSON"));
    }
}
