//! Health on the admin address: `/healthz` (the process answers) and `/readyz` (it serves).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Connections at once; more wait in the host's queue.
const CONNECTIONS: usize = 64;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(5);
/// Pause after the host could not accept, so that a lack of descriptors is no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Serves health on the listener until told to stop.
pub async fn serve(listener: TcpListener, ready: watch::Receiver<bool>, mut shutdown: watch::Receiver<bool>) {
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
        let ready = ready.clone();
        connections.spawn(async move {
            let _slot = slot;
            let service = service_fn(move |request| {
                let answer = answer(&request, *ready.borrow());
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // How a connection ended is its peer's affair.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
    connections.shutdown().await;
}

fn answer<B>(request: &Request<B>, is_ready: bool) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, "alive\n"),
        (&Method::GET | &Method::HEAD, "/readyz") if is_ready => (StatusCode::OK, "ready\n"),
        (&Method::GET | &Method::HEAD, "/readyz") => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        (_, "/healthz" | "/readyz") => (StatusCode::METHOD_NOT_ALLOWED, "GET only\n"),
        (_, _) => (StatusCode::NOT_FOUND, "there is /healthz and /readyz\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_follows_the_service_and_life_does_not() {
        let ask = |method: Method, path: &str, is_ready| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            answer(&request, is_ready).status().as_u16()
        };
        assert_eq!(ask(Method::GET, "/healthz", false), 200);
        assert_eq!(ask(Method::GET, "/readyz", false), 503);
        assert_eq!(ask(Method::HEAD, "/readyz", true), 200);
        assert_eq!(ask(Method::POST, "/readyz", true), 405);
        assert_eq!(ask(Method::GET, "/", true), 404);
    }
}
