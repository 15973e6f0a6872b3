//! Tests of the server over real sockets: headers, bodies, timeouts, connection limits and shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::TestClient;
use crate::http::server::{ConnectionSlots, ListenerMode, ServerLimits, serve};
use crate::tls::AcmeChallenges;

pub(super) struct TestServer {
    pub(super) address: std::net::SocketAddr,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) server_task: JoinHandle<()>,
}

pub(super) async fn server(client: &TestClient) -> TestServer {
    server_within(ServerLimits::default(), client).await
}

pub(super) async fn server_within(limits: ServerLimits, client: &TestClient) -> TestServer {
    server_by(ListenerMode::Plain, limits, client).await
}

async fn server_by(mode: ListenerMode, limits: ServerLimits, client: &TestClient) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let context = Arc::clone(&client.context);
    let stopped = Box::pin(async {
        let _ = stopped.await;
    });
    let server_task = tokio::spawn(serve(listener, mode, ConnectionSlots::with_limits(limits), context, stopped));
    TestServer { address, stop, server_task }
}

/// Sends bytes and reads until the server closes.
pub(super) async fn exchange(server: &TestServer, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // The server may close the connection before it has read everything.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(line: &str, key: &str, headers: &str) -> Vec<u8> {
    format!(
        "{line} HTTP/1.1\r\nHost: status.example\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n{headers}\r\n"
    )
    .into()
}

#[tokio::test]
async fn an_options_request_for_the_server_is_answered_on_every_listener() {
    let client = TestClient::new().await;
    let request = b"OPTIONS * HTTP/1.1\r\nHost: status.example\r\nConnection: close\r\n\r\n";
    let redirecting = ListenerMode::PlainWithTls { challenges: AcmeChallenges::default(), redirect: true };
    for mode in [ListenerMode::Plain, redirecting] {
        let answer = exchange(&server_by(mode, ServerLimits::default(), &client).await, request).await;
        assert!(answer.starts_with("HTTP/1.1 204 No Content\r\n"), "{answer}");
        assert!(answer.contains("allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"), "{answer}");
        assert!(!answer.contains("location:"), "{answer}");
    }
}

#[tokio::test]
async fn a_request_without_a_path_is_answered() {
    let client = TestClient::new().await;
    let redirecting = ListenerMode::PlainWithTls { challenges: AcmeChallenges::default(), redirect: true };
    for mode in [ListenerMode::Plain, redirecting] {
        let server = server_by(mode, ServerLimits::default(), &client).await;
        for line in ["CONNECT status.example", "GET status.example"] {
            let answer = exchange(&server, &head(line, &client.write_key, "")).await;
            assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{line}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_request_over_a_socket_is_answered() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let answer = exchange(&server, &head("GET /api/v1/me", &client.write_key, "")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("ratelimit-limit: 120\r\n") && answer.contains("content-type: application/json\r\n"));
    let body = r#"{"url":"a.example"}"#;
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let mut request = head(&format!("POST {}", client.shop_path("/checkpoints")), &client.write_key, &headers);
    request.extend_from_slice(body.as_bytes());
    let answer = exchange(&server, &request).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    let rejection = exchange(&server, &head("GET /api/v1/nothing", "plx_none", "")).await;
    assert!(rejection.starts_with("HTTP/1.1 401 Unauthorized\r\n") && rejection.contains("www-authenticate: Bearer"));
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let get = exchange(&server, &head("GET /api/v1/me", &client.write_key, "")).await;
    let head = exchange(&server, &head("HEAD /api/v1/me", &client.write_key, "")).await;
    let length =
        |answer: &str| answer.lines().find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
    assert_eq!(length(&head), length(&get));
    assert!(length(&head).is_some() && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn a_chunked_body_is_bounded_too() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let headers = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let mut request = head(&format!("POST {}", client.shop_path("/monitors")), &client.write_key, headers);
    for _ in 0..5 {
        request.extend_from_slice(b"10000\r\n");
        request.extend_from_slice(&vec![b' '; 0x10000]);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let mut answer = [0; 12];
    let (_, read) = tokio::join!(writer.write_all(&request), reader.read_exact(&mut answer));
    read.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
}

#[tokio::test]
async fn a_rejection_reaches_a_client_that_is_still_sending() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    for (key, length, status) in
        [("plx_none", 200 * 1024, 401), (&client.read_key, 200 * 1024, 403), (&client.write_key, 900 * 1024, 400)]
    {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        let mut request = head(&format!("POST {}", client.shop_path("/monitors")), key, &headers);
        request.resize(request.len() + length, b' ');
        for _ in 0..20 {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let sent = stream.write_all(&request).await;
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {sent:?} {read:?} {answer}");
        }
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let headers: String = (0..70).map(|n| format!("X-{n}: y\r\n")).collect();
    let answer = exchange(&server, &head("GET /api/v1/me", &client.write_key, &headers)).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn an_unfinished_request_head_is_disconnected() {
    let client = TestClient::new().await;
    let limits = ServerLimits { header_timeout: Duration::from_millis(100), ..ServerLimits::default() };
    let server = server_within(limits, &client).await;
    for sent in ["", "G", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost: status.example\r\n"] {
        let answer = tokio::time::timeout(Duration::from_secs(5), exchange(&server, sent.as_bytes())).await;
        assert!(!answer.unwrap().contains(" 200 "), "{sent:?}");
    }
}

#[tokio::test]
async fn connections_above_the_limit_wait_for_a_slot() {
    let client = TestClient::new().await;
    let server = server_within(ServerLimits { connections: 1, ..ServerLimits::default() }, &client).await;
    // The body is sent later.
    let headers = "Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n";
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first
        .write_all(&head(&format!("POST {}", client.shop_path("/monitors")), &client.write_key, headers))
        .await
        .unwrap();
    let mut line = [0; 25];
    first.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
    let second = exchange(&server, b"GET / HTTP/1.1\r\nHost: status.example\r\nConnection: close\r\n\r\n");
    tokio::pin!(second);
    // The slot is free only when the first request has ended.
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut second).await.is_err());
    first.write_all(b"{}").await.unwrap();
    let mut rejection = [0; 12];
    first.read_exact(&mut rejection).await.unwrap();
    assert_eq!(&rejection, b"HTTP/1.1 400");
    let answer = tokio::time::timeout(Duration::from_secs(5), second).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn the_longest_idle_connection_is_evicted_and_no_flood_blocks_a_request() {
    let client = TestClient::new().await;
    let server = server_within(ServerLimits { connections: 4, ..ServerLimits::default() }, &client).await;
    let mut idle = Vec::new();
    for number in 0..20 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Half of them send nothing, half send a part of the headers.
        if number % 2 == 0 {
            stream.write_all(b"GET / HT").await.unwrap();
        }
        idle.push(stream);
    }
    let answer = exchange(&server, b"GET / HTTP/1.1\r\nHost: status.example\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // All but the newest three have been closed, oldest first; unread bytes cause a reset.
    let newest = idle.split_off(17);
    for mut stream in idle {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok() && rest.is_empty());
    }
    for stream in newest {
        let result = stream.try_read(&mut [0; 1]);
        assert!(result.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    }
}

#[tokio::test]
async fn a_stopped_server_ends_idle_connections_and_takes_no_more() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: status.example\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    server.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.server_task).await.unwrap().unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_request_that_names_no_host_or_two_is_refused_in_the_usual_shape() {
    let client = TestClient::new().await;
    let server = server(&client).await;
    for hosts in ["", "Host: a\r\nHost: b\r\n"] {
        let request = format!("GET / HTTP/1.1\r\nConnection: close\r\n{hosts}\r\n");
        let answer = exchange(&server, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains(r#""code":"bad_request""#), "{answer}");
    }
    let answer = exchange(&server, b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
}
