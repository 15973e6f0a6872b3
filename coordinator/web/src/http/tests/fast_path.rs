//! Tests of the fast path over real sockets: its responses equal those of hyper, also when a connection is handed over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parallax_core::event::{Event, EventKind};
use parallax_core::page::Page;
use parallax_core::time::MINUTE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::TestClient;
use super::socket::{TestServer, exchange, server, server_within};
use crate::http::server::response_index::FastPathLookup;
use crate::http::server::{ServerLimits, SimpleRequest, look_up};

/// Response read from a socket: status, headers without date and length, and body.
#[derive(Debug, PartialEq, Eq)]
struct RawResponse {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn request(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: status.example\r\nAccept-Encoding: gzip\r\n{more}\r\n")
}

/// Reads one response with a content length.
async fn answer(stream: &mut TcpStream) -> RawResponse {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap().unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
    let mut headers: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap())
        .collect();
    assert!(headers.remove("date").is_some_and(|date| httpdate::parse_http_date(&date).is_ok()), "{head}");
    let length = headers.remove("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    RawResponse { status, headers, body }
}

/// Returns true if the fast path has a response to the request.
fn is_known(client: &TestClient, request: &str) -> bool {
    matches!(look_up_response(client, request), Some(FastPathLookup::Ready(_)))
}

fn look_up_response(client: &TestClient, request: &str) -> Option<FastPathLookup> {
    let respond = |simple_request: &SimpleRequest<'_>| client.context.response_index.respond_raw(simple_request);
    look_up(request.as_bytes(), respond).map(|(looked_up, ..)| looked_up)
}

async fn visitor(server: &TestServer) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

#[tokio::test]
async fn documents_with_one_tag_have_their_own_lengths() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let mut stream = visitor(&server).await;
    let (path, begin) = ("/p/shop/history/2026-11", client.world.service.now());
    let (mut tags, mut lengths) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..30 {
        // Rendered again each time; only the time in it differs.
        client.world.clock.set(begin + number * (7 * MINUTE + 1234));
        let rendered = client.send("GET", path, &[("host", "status.example")], "").await;
        tags.insert(rendered.headers["etag"].to_str().unwrap().to_owned());
        let Some(FastPathLookup::Ready(bytes)) = look_up_response(&client, &request(path, "")) else {
            panic!("it is cached")
        };
        stream.write_all(request(path, "").as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.body, bytes.body);
        lengths.insert(bytes.body.len());
    }
    assert!(tags.len() == 1 && lengths.len() > 1, "{tags:?} {lengths:?}");
}

#[tokio::test]
async fn the_fast_path_answers_like_the_regular_path() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let tag = {
        let reply = client.send("GET", "/p/shop", &[("host", "status.example")], "").await;
        reply.headers["etag"].to_str().unwrap().to_owned()
    };
    let mut stream = visitor(&server).await;
    for (accepted, none_match, is_short) in [
        ("gzip", None, true),
        ("br", None, true),
        ("gzip, br;q=0.5", Some("W/\"x\""), true),
        ("br", Some(tag.as_str()), true),
        ("gzip", Some("*"), true),
        ("identity", None, false),
        ("gzip", Some(tag.as_str()), true),
    ] {
        let mut headers = vec![("host", "status.example"), ("accept-encoding", accepted)];
        headers.extend(none_match.map(|tag| ("if-none-match", tag)));
        let regular = client.send("GET", "/p/shop", &headers, "").await;
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("GET /p/shop HTTP/1.1\r\n{lines}\r\n");
        assert_eq!(is_known(&client, &request), is_short, "{accepted} {none_match:?}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let got = answer(&mut stream).await;
        let pairs = regular.headers.iter();
        let headers = pairs.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        assert_eq!(
            got,
            RawResponse { status: regular.status, headers, body: regular.bytes.to_vec() },
            "{accepted} {none_match:?}"
        );
    }
}

#[tokio::test]
async fn sequential_split_and_pipelined_requests_are_answered_in_order() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let page = request("/p/shop", "");
    // The first request fills the cache.
    assert!(exchange(&server, request("/p/shop", "Connection: close\r\n").as_bytes()).await.contains(" 200 "));
    assert!(is_known(&client, &page));
    let mut stream = visitor(&server).await;
    // Two cached documents, one that is not cached, and a cached one again.
    let at_once = [&page, &page, &request("/p/none", ""), &page].map(String::as_str).concat();
    stream.write_all(at_once.as_bytes()).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(answer(&mut stream).await.status);
    }
    assert_eq!(statuses, [200, 200, 404, 200]);
    // Headers in two parts, the first one sent together with the previous request.
    let (first, rest) = page.split_at(20);
    let mut stream = visitor(&server).await;
    stream.write_all(format!("{page}{first}").as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await.status, 200);
    stream.write_all(rest.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await.status, 200);
}

#[tokio::test]
async fn a_connection_ends_on_request_or_when_idle() {
    let client = TestClient::new().await;
    let server =
        server_within(ServerLimits { header_timeout: Duration::from_millis(100), ..ServerLimits::default() }, &client)
            .await;
    let last = request("/p/shop", "Connection: close\r\n");
    // Through hyper first, then on the fast path.
    for _ in 0..2 {
        let mut stream = visitor(&server).await;
        stream.write_all(last.as_bytes()).await.unwrap();
        let got = answer(&mut stream).await;
        assert_eq!((got.status, got.headers["connection"].as_str()), (200, "close"));
        assert!(stream.read_u8().await.is_err());
    }
    assert!(is_known(&client, &last));
    let mut stream = visitor(&server).await;
    for _ in 0..2 {
        stream.write_all(request("/p/shop", "").as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.status, 200);
    }
    assert!(timeout(Duration::from_secs(5), stream.read_u8()).await.unwrap().is_err());
}

#[tokio::test]
async fn an_edit_is_seen_by_the_next_request_of_a_connection() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let page = request("/p/shop", "");
    let mut stream = visitor(&server).await;
    let mut ask = async || {
        stream.write_all(page.as_bytes()).await.unwrap();
        answer(&mut stream).await.status
    };
    assert_eq!(ask().await, 200);
    assert!(is_known(&client, &page));
    let mut new_connection = visitor(&server).await;
    new_connection.write_all(page.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut new_connection).await.status, 200);
    client.world.put_page(Page { private: true, ..client.world.shop.clone() }).await;
    new_connection.write_all(page.as_bytes()).await.unwrap();
    assert_eq!((answer(&mut new_connection).await.status, ask().await), (403, 403));
}

#[tokio::test]
async fn the_fast_path_waits_for_a_changed_document() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let page = request("/p/shop", "");
    exchange(&server, request("/p/shop", "Connection: close\r\n").as_bytes()).await;
    let mut stream = visitor(&server).await;
    for _ in 0..3 {
        let (at, shop) = (client.world.service.now(), Some(client.world.shop.id));
        let event = EventKind::ScopeChanged(None);
        client.world.happened(Event { at, page: shop, monitor: None, kind: event }).await;
        assert!(matches!(look_up_response(&client, &page), Some(FastPathLookup::Rendering(_))));
        stream.write_all(page.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.status, 200);
        assert!(is_known(&client, &page));
    }
}

#[tokio::test]
async fn a_stopped_server_ends_fast_path_connections() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let page = request("/p/shop", "");
    exchange(&server, request("/p/shop", "Connection: close\r\n").as_bytes()).await;
    let mut stream = visitor(&server).await;
    stream.write_all(page.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await.status, 200);
    server.stop.send(()).unwrap();
    timeout(Duration::from_secs(5), server.server_task).await.unwrap().unwrap();
    assert!(stream.read_u8().await.is_err());
}
