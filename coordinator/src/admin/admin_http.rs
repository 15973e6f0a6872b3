//! The admin address: `/healthz` (the process responds), `/readyz` (it is ready), `/metrics` and `/ask` (whether a
//! host name belongs to this service, for a proxy that issues certificates on demand).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, VARY};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::metrics_format::MetricsFormat;

/// Concurrent connections; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// Time limit for a request's head.
const HEAD: Duration = Duration::from_secs(5);
/// Pause after a failed accept, so that a lack of file descriptors causes no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Renders the metrics as OpenMetrics 1.0, for each scrape.
pub(crate) type MetricsRenderer = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Tells whether a host name belongs to this service; none if that is unknown at present.
pub(crate) type HostCheck = Arc<dyn Fn(&str) -> Option<bool> + Send + Sync>;

/// Returns the reason writes fail at present; none while they work.
pub(crate) type WriteFault = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Data sources of the admin address.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "functions have nothing to show")]
pub(crate) struct AdminSources {
    /// Renders the metrics.
    pub metrics: MetricsRenderer,
    /// Tells whether a host name belongs to this service.
    pub is_own_host: HostCheck,
    /// Returns the reason writes fail at present.
    pub write_fault: WriteFault,
}

/// Serves the admin address on the listener until shutdown.
pub(crate) async fn serve(
    listener: TcpListener,
    ready: watch::Receiver<bool>,
    answers: AdminSources,
    mut shutdown: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepting = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accepting => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BACK_OFF).await;
            continue;
        };
        let (ready, answers) = (ready.clone(), answers.clone());
        connections.spawn(async move {
            let _slot = slot;
            let service = service_fn(move |request| {
                let (is_ready, answers) = (*ready.borrow(), answers.clone());
                async move { Ok::<_, Infallible>(answer(&request, is_ready, &answers).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // Errors of a connection are its peer's.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
    connections.shutdown().await;
}

async fn answer<B>(request: &Request<B>, is_ready: bool, answers: &AdminSources) -> Response<Full<Bytes>> {
    if let (&Method::GET | &Method::HEAD, "/metrics") = (request.method(), request.uri().path()) {
        let accepted = request.headers().get_all(ACCEPT).iter();
        let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
        let format = MetricsFormat::negotiate(&accepted);
        let page = format.convert((answers.metrics)().await);
        let mut response = Response::new(Full::new(Bytes::from(page)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        return response;
    }
    if let (&Method::GET | &Method::HEAD, "/readyz") = (request.method(), request.uri().path())
        && let Some(fault) = (answers.write_fault)()
    {
        let mut response = Response::new(Full::new(Bytes::from(format!("not ready: {fault}\n"))));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return response;
    }
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, "alive\n"),
        (&Method::GET | &Method::HEAD, "/readyz") if is_ready => (StatusCode::OK, "ready\n"),
        (&Method::GET | &Method::HEAD, "/readyz") => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        (&Method::GET | &Method::HEAD, "/ask") => match (answers.is_own_host)(&queried_domain(request.uri().query())) {
            Some(true) => (StatusCode::OK, "ours\n"),
            Some(false) => (StatusCode::NOT_FOUND, "not ours\n"),
            None => (StatusCode::SERVICE_UNAVAILABLE, "not known now\n"),
        },
        (_, "/healthz" | "/readyz" | "/metrics" | "/ask") => (StatusCode::METHOD_NOT_ALLOWED, "GET only\n"),
        (_, _) => (StatusCode::NOT_FOUND, "there is /healthz, /readyz, /metrics and /ask\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

/// Returns the query's `domain`; empty if it is missing.
fn queried_domain(query: Option<&str>) -> String {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(name, _)| name == "domain").map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_scraper_gets_the_format_that_it_accepts() {
        let page = "# TYPE a counter\na_total 1\n# EOF\n";
        let metrics: MetricsRenderer = Arc::new(move || Box::pin(std::future::ready(page.to_owned())));
        let answers = AdminSources { metrics, is_own_host: Arc::new(|_| None), write_fault: Arc::new(|| None) };
        for (accept, media, body) in [
            (None, "text/plain; version=0.0.4; charset=utf-8", "# TYPE a_total counter\na_total 1\n"),
            (
                Some("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                page,
            ),
        ] {
            let mut request = Request::builder().uri("/metrics");
            if let Some(accept) = accept {
                request = request.header(ACCEPT, accept);
            }
            let response = answer(&request.body(()).unwrap(), true, &answers).await;
            assert_eq!(response.headers()[CONTENT_TYPE], media);
            assert_eq!(response.headers()[VARY], "accept");
            let body_bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
            assert_eq!(body_bytes, body);
        }
    }

    #[tokio::test]
    async fn readiness_follows_the_service_and_liveness_does_not() {
        let metrics: MetricsRenderer = Arc::new(|| Box::pin(std::future::ready("# EOF\n".to_owned())));
        let own_host_check: HostCheck = Arc::new(|name| (name != "broken.example").then_some(name == "ours.example"));
        let full = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_full = Arc::clone(&full);
        let fault = move || is_full.load(std::sync::atomic::Ordering::Relaxed).then(|| "the disk is full".to_owned());
        let answers = AdminSources { metrics, is_own_host: own_host_check, write_fault: Arc::new(fault) };
        let ask = async |method: Method, path: &str, is_ready| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            answer(&request, is_ready, &answers).await.status().as_u16()
        };
        assert_eq!(ask(Method::GET, "/healthz", false).await, 200);
        assert_eq!(ask(Method::GET, "/readyz", false).await, 503);
        assert_eq!(ask(Method::HEAD, "/readyz", true).await, 200);
        assert_eq!(ask(Method::POST, "/readyz", true).await, 405);
        full.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ask(Method::GET, "/readyz", true).await, 503);
        assert_eq!(ask(Method::GET, "/healthz", true).await, 200);
        full.store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ask(Method::GET, "/readyz", true).await, 200);
        assert_eq!(ask(Method::GET, "/metrics", false).await, 200);
        assert_eq!(ask(Method::HEAD, "/metrics", false).await, 200);
        assert_eq!(ask(Method::GET, "/", true).await, 404);
        for (query, status) in [
            ("?domain=ours.example", 200),
            ("?other=1&domain=ours%2Eexample", 200),
            ("?domain=other.example", 404),
            ("?domain=broken.example", 503),
            ("?domain=", 404),
            ("", 404),
        ] {
            assert_eq!(ask(Method::GET, &format!("/ask{query}"), true).await, status, "{query}");
        }
    }
}
