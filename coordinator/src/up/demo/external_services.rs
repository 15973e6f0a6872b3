//! External services of the demo's monitors: a domain registry, and a vendor's status page.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parallax_core::time::{DAY, Timestamp};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

use super::targets::{TIMEOUT, accept, bind};

/// Domain that the demo monitors (RFC 2606).
pub(super) const DOMAIN: &str = "shop.example";
/// Vendor component that the demo follows.
pub(super) const COMPONENT: &str = "Card payments";
/// Days until the domain's registration expires.
const DAYS_LEFT: i64 = 200;

/// The registry that the demo's agents query about every domain; it is bound before they start.
#[derive(Debug)]
pub(in crate::up) struct DemoRegistry {
    /// URL of the registry.
    pub(in crate::up) url: Url,
    pub(super) listener: TcpListener,
}

impl DemoRegistry {
    /// Binds it to a free port on loopback.
    pub(in crate::up) async fn bind() -> io::Result<Self> {
        let (listener, port) = bind(None).await?;
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).map_err(io::Error::other)?;
        Ok(Self { url, listener })
    }

    /// Serves until shutdown.
    pub(super) async fn serve(self, now: Timestamp, stop: watch::Receiver<bool>) {
        let answer = move |path: &str| path.strip_prefix("/domain/").map(|domain| registration(domain, now));
        serve(self.listener, answer, stop).await;
    }
}

/// Serves the vendor's status page until shutdown.
pub(super) async fn serve_vendor(listener: TcpListener, stop: watch::Receiver<bool>) {
    serve(listener, |path| (path == "/api/v2/summary.json").then(summary), stop).await;
}

async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) {
    let connection = move |stream: TcpStream, _: SocketAddr| {
        let answer = answer.clone();
        async move {
            let service = service_fn(|request: Request<Incoming>| {
                let response = response(answer(request.uri().path()));
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            // Errors of a connection are its peer's.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        }
    };
    accept(listener, stop, connection).await;
}

fn response(body: Option<String>) -> Response<Full<Bytes>> {
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let mut response = Response::new(Full::new(Bytes::from(body.unwrap_or_default())));
    *response.status_mut() = status;
    response
}

/// Builds a registry's response about a domain (RFC 9083).
fn registration(domain: &str, now: Timestamp) -> String {
    json!({
        "objectClassName": "domain",
        "ldhName": domain,
        "status": ["active"],
        "events": [{ "eventAction": "expiration", "eventDate": (now + DAYS_LEFT * DAY).to_string() }],
    })
    .to_string()
}

/// Builds a summary in the format of Atlassian Statuspage.
fn summary() -> String {
    json!({
        "page": { "id": "demo", "name": "Payment vendor" },
        "status": { "indicator": "none", "description": "All Systems Operational" },
        "components": [{ "id": "cards", "name": COMPONENT, "status": "operational" }],
        "incidents": [],
        "scheduled_maintenances": [],
    })
    .to_string()
}
