//! Comparison of the fast path with hyper: the same bytes, in the same pieces, are sent to a connection with the fast
//! path and to one without it, and everything that a client can see must be equal.
//!
//! Connections are pipes in memory and the runtime's clock is paused, so a sleep ends when the server has nothing left
//! to do: both sides have then answered whatever they will answer to the bytes so far.

mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::super::idle_connections::IdleConnections;
use super::*;
use crate::http::HttpContext;
use crate::http::dispatch::filter;
use crate::http::server::client_ip::PeerAddress;
use crate::http::server::http1;
use crate::http::server::response_index::ResponseIndex;
use crate::http::tests::TestClient;
use crate::tls::CertificateResolver;
use requests::{Conversation, PAGES, conversations};

/// Generated conversations of each listener mode.
const CASES: u32 = 1000;
/// Capacity of a pipe: more than all responses of a conversation.
const PIPE_BYTES: usize = 4 << 20;
/// Time within which a side has sent all its responses; the clock is paused.
const QUIET: Duration = Duration::from_millis(1);
/// Waits after the last chunk, in milliseconds; the connection is read after each. They end shortly before and after
/// the header timeout, and after twice its time.
const SILENCE: [u64; 3] = [9_000, 3_000, 12_000];
/// Bytes of a date with its line ending.
const DATE_BYTES: usize = 31;

/// One step of a connection as its client sees it: bytes without the values of dates, and whether the connection has ended.
type Step = (String, bool);

/// Path that serves a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedBy {
    FastPath,
    Hyper,
}

struct Comparison {
    runtime: Runtime,
    client: TestClient,
    mode: ListenerMode,
    /// Ends all connections when it is dropped.
    graceful: GracefulShutdown,
    /// Tag of each page, by host and path.
    tags: BTreeMap<(&'static str, &'static str), String>,
}

impl Comparison {
    /// Creates a service whose pages have been requested once, so that the fast path knows them.
    fn new(is_tls: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, tags, mode) = runtime.block_on(async {
            let client = TestClient::new().await;
            let mut tags = BTreeMap::new();
            for (host, path) in PAGES {
                let reply = client.send("GET", path, &[("host", host)], "").await;
                assert_eq!(reply.status, 200, "{host}{path}: {reply:?}");
                tags.insert((host, path), reply.headers["etag"].to_str().unwrap().to_owned());
                let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n");
                assert!(is_on_fast_path(&client, request.as_bytes()), "{host}{path}");
            }
            let mode = if is_tls {
                let resolver = CertificateResolver::new(None);
                let config =
                    rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                        .with_safe_default_protocol_versions()
                        .unwrap()
                        .with_no_client_auth()
                        .with_cert_resolver(Arc::new(resolver.clone()));
                ListenerMode::Tls(resolver, Arc::new(config))
            } else {
                ListenerMode::Plain
            };
            tokio::time::pause();
            (client, tags, mode)
        });
        Self { runtime, client, mode, graceful: GracefulShutdown::new(), tags }
    }

    /// Returns a context with the same rendered pages whose index is empty, so that requests take the regular path.
    fn regular_context(&self) -> Arc<HttpContext> {
        let http_context = &self.client.context;
        let mut context = HttpContext::new(http_context.service.clone(), 120);
        context.page_cache = http_context.page_cache.clone();
        context.response_index = ResponseIndex::new(http_context.service.clone(), http_context.page_cache.clone());
        Arc::new(context)
    }

    /// Serves a connection in memory and returns the client's end of it, and whether hyper has got it.
    fn connect(&self, path: ServedBy) -> (DuplexStream, Arc<AtomicBool>) {
        let context = match path {
            ServedBy::FastPath => Arc::clone(&self.client.context),
            ServedBy::Hyper => self.regular_context(),
        };
        let limits = ServerLimits::default();
        let (client_end, server_end) = duplex(PIPE_BYTES);
        let activity = IdleConnections::new(Duration::ZERO).register();
        let mut io = WriteTimeoutStream::new(server_end, limits.write_timeout, activity.clone());
        let client = Arc::new(HttpConnection {
            service: TowerToHyperService::new(warp::service(filter(Arc::clone(&context)))),
            context,
            peer: PeerAddress(self.client.peer.parse().unwrap()),
            activity,
            mode: self.mode.clone(),
        });
        let watcher = self.graceful.watcher();
        let is_hypers = Arc::new(AtomicBool::new(false));
        let marker = Arc::clone(&is_hypers);
        tokio::spawn(async move {
            if path == ServedBy::Hyper || super::serve(&mut io, limits, &client).await {
                marker.store(true, Ordering::Relaxed);
                http1::serve_with_hyper(io, limits, client, watcher).await;
            }
        });
        (client_end, is_hypers)
    }

    /// Sends the pieces and returns all steps, of which the last ones are silence, and whether the first was answered
    /// without hyper.
    async fn steps(&self, path: ServedBy, conversation: &Conversation) -> (Vec<Step>, bool) {
        let (mut stream, is_hypers) = self.connect(path);
        let mut steps = Vec::new();
        let mut is_served = false;
        for chunk in conversation.chunks() {
            // Fails if the server has ended the connection.
            let _ = stream.write_all(chunk).await;
            sleep(QUIET).await;
            let step = read_step(&mut stream);
            is_served |= steps.is_empty() && !step.0.is_empty() && !is_hypers.load(Ordering::Relaxed);
            steps.push(step);
        }
        if conversation.ends {
            let _ = stream.shutdown().await;
            sleep(QUIET).await;
            steps.push(read_step(&mut stream));
        }
        for silence in SILENCE {
            sleep(Duration::from_millis(silence)).await;
            steps.push(read_step(&mut stream));
        }
        (steps, is_served)
    }

    /// Compares both sides, and returns whether the fast path alone answered the first piece.
    fn compare(&self, conversation: &Conversation) -> Result<bool, TestCaseError> {
        let ((fast, is_served), (regular, _)) = self.runtime.block_on(async {
            let fast = self.steps(ServedBy::FastPath, conversation).await;
            (fast, self.steps(ServedBy::Hyper, conversation).await)
        });
        match difference(&fast, &regular) {
            Some(message) => Err(TestCaseError::fail(message)),
            None => Ok(is_served),
        }
    }
}

/// Returns true if the fast path has a response to the first request of these bytes.
fn is_on_fast_path(client: &TestClient, bytes: &[u8]) -> bool {
    let respond = |request: &SimpleRequest<'_>| client.context.response_index.respond_raw(request);
    matches!(look_up(bytes, respond), Some((FastPathLookup::Ready(_), ..)))
}

/// Describes the first difference of the fast path's steps from hyper's.
fn difference(fast: &[Step], regular: &[Step]) -> Option<String> {
    let number = fast.iter().zip(regular).position(|(one, other)| one != other)?;
    let ((one, one_ended), (other, other_ended)) = (&fast[number], &regular[number]);
    let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let excerpt = |text: &str| -> String { text.chars().skip(at.saturating_sub(80)).take(300).collect() };
    Some(format!(
        "step {number}, byte {at}:\n  fast path: {} bytes, ended: {one_ended}: {}\n  hyper: {} bytes, ended: \
         {other_ended}: {}",
        one.len(),
        excerpt(one),
        other.len(),
        excerpt(other)
    ))
}

/// Reads the bytes received so far, without the values of date headers.
fn read_step(stream: &mut DuplexStream) -> Step {
    let mut bytes = Vec::new();
    let has_ended = loop {
        match stream.read_buf(&mut bytes).now_or_never() {
            None => break false,
            Some(Ok(count)) if count > 0 => {}
            Some(_) => break true,
        }
    };
    let mut without_dates = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    let mark = b"\r\ndate: ";
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        let (before, after) = rest.split_at(at + 2);
        without_dates.extend_from_slice(before);
        without_dates.extend_from_slice(b"date\r\n");
        rest = after.get(mark.len() - 2 + DATE_BYTES..).unwrap_or_default();
    }
    without_dates.extend_from_slice(rest);
    (without_dates.escape_ascii().to_string(), has_ended)
}

/// Compares generated conversations, and requires that the fast path serves a good part of them.
fn compare_generated(is_tls: bool) {
    let comparison = Comparison::new(is_tls);
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let responses = std::cell::Cell::new(0);
    let ran = runner.run(&conversations(&comparison.tags), |conversation| {
        responses.set(responses.get() + u32::from(comparison.compare(&conversation)?));
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    assert!(
        responses.get() >= CASES / 10,
        "the fast path alone answered only {} of {CASES} first pieces",
        responses.get()
    );
}

#[test]
fn every_response_equals_that_of_hyper() {
    compare_generated(false);
}

#[test]
fn every_response_over_tls_equals_that_of_hyper() {
    compare_generated(true);
}

#[test]
fn requests_split_at_any_byte_are_answered_as_by_hyper() {
    let comparison = Comparison::new(false);
    let page = "GET /p/shop HTTP/1.1\r\nHost: status.example\r\nAccept-Encoding: gzip\r\n\r\n";
    let last = "GET / HTTP/1.1\nhost: shop.pages.example\nAccept-Encoding: br\nConnection: close\n\n";
    let other = "HEAD /p/shop HTTP/1.1\r\nHost: status.example\r\n\r\n";
    for bytes in [format!("{page}{last}{page}"), format!("\r\n{page}{other}"), format!("{page}\r\n{last}")] {
        for at in 1..bytes.len() {
            let conversation = Conversation::new(bytes.clone().into_bytes(), vec![at], false);
            let compared = comparison.compare(&conversation);
            assert!(compared.is_ok(), "cut at {at}: {compared:?}");
        }
    }
}
