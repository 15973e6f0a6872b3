//! The client against misbehaving servers, and against names whose answers change.

use std::net::SocketAddr;
use std::sync::Mutex;

use parallax_dial::stub::{StubAnswer, StubServer};
use parallax_dial::{BlockedClass, DialPolicy, DnsResolver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Server on loopback that writes `reply` in pieces to each request and keeps its connections open.
struct TestServer {
    address: SocketAddr,
    /// By connection, the heads of its requests.
    heads: Arc<Mutex<Vec<Vec<String>>>>,
}

impl TestServer {
    async fn start(reply: Vec<u8>, piece: usize, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<Vec<String>>>>::default();
        let recorded_heads = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (recorded_heads, reply) = (Arc::clone(&recorded_heads), reply.clone());
                let number = {
                    let mut recorded_heads = recorded_heads.lock().unwrap();
                    recorded_heads.push(Vec::new());
                    recorded_heads.len() - 1
                };
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    while let Ok(length @ 1..) = stream.read(&mut head).await {
                        recorded_heads.lock().unwrap()[number]
                            .push(String::from_utf8_lossy(&head[..length]).into_owned());
                        for piece in reply.chunks(piece) {
                            if stream.write_all(piece).await.is_err() {
                                return;
                            }
                            sleep(pause).await;
                        }
                    }
                });
            }
        });
        Self { address, heads }
    }

    async fn replying(reply: &[u8]) -> Self {
        Self::start(reply.to_vec(), usize::MAX, Duration::ZERO).await
    }

    fn heads(&self) -> Vec<Vec<String>> {
        self.heads.lock().unwrap().clone()
    }
}

fn client(servers: &[SocketAddr], mode: BlockedAddressMode) -> GuardedClient {
    let resolver =
        if servers.is_empty() { DnsResolver::system().unwrap() } else { DnsResolver::with_servers(servers).unwrap() };
    let policy = DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() };
    GuardedClient::new(DialGuard::new(resolver, policy), mode, &[]).unwrap()
}

async fn send(client: &GuardedClient, url: &str, limit: Duration) -> Result<GuardedResponse, GuardedClientError> {
    let url = Url::parse(url).unwrap();
    let request =
        GuardedRequest { method: Method::GET, url: &url, headers: HeaderMap::new(), body: Bytes::from_static(b"{}") };
    client.send(request, Instant::now() + limit).await
}

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn each_request_passes_the_guard_once_and_connects_to_the_judged_address() {
    let server = TestServer::replying(OK).await;
    // Both families are asked for at once; the second look-up gets an address that is never allowed.
    let zone = StubServer::start(|_, earlier| {
        let address = if earlier < 2 { "127.0.0.1" } else { "0.0.0.0" };
        StubAnswer::Addresses(vec![address.parse().unwrap()])
    });
    let zone = zone.await.unwrap();
    let client = client(&[zone.address()], BlockedAddressMode::RefuseAny);
    let url = format!("http://rebind.example:{}/", server.address.port());
    let mut first = send(&client, &url, LIMIT).await.unwrap();
    assert_eq!(first.chunk().await, Ok(Some(Bytes::from_static(b"ok"))));
    assert_eq!(first.chunk().await, Ok(None));
    assert_eq!(zone.query_count(), 2, "the connection asks nobody again");
    // The server would keep the connection open; the client never uses it again.
    let blocked = GuardedClientError::Dial(DialError::AddressNotAllowed(BlockedClass::Unspecified));
    assert_eq!(send(&client, &url, LIMIT).await.err(), Some(blocked));
    assert_eq!(zone.query_count(), 4);
    assert_eq!(server.heads().concat().len(), 1);
}

#[tokio::test]
async fn one_blocked_address_refuses_the_name_or_is_left_out() {
    let server = TestServer::replying(OK).await;
    let mixed = |_: &str, _| StubAnswer::Addresses(vec!["0.0.0.0".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
    let zone = StubServer::start(mixed).await.unwrap();
    let url = format!("http://mixed.example:{}/", server.address.port());
    let refusing = client(&[zone.address()], BlockedAddressMode::RefuseAny);
    assert!(matches!(send(&refusing, &url, LIMIT).await, Err(GuardedClientError::Dial(_))));
    let dropping = client(&[zone.address()], BlockedAddressMode::DropBlocked);
    assert_eq!(send(&dropping, &url, LIMIT).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.heads().concat().len(), 1);
}

#[tokio::test]
async fn each_request_has_its_own_connection_and_sends_no_credentials_or_fragment() {
    let server = TestServer::replying(OK).await;
    let client = client(&[], BlockedAddressMode::RefuseAny);
    for host in ["127.0.0.1", "user:secret@127.0.0.1", "localhost.", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/in?a=b#c", server.address.port());
        assert_eq!(send(&client, &url, LIMIT).await.unwrap().status(), StatusCode::OK, "{host}");
    }
    let mut heads = server.heads();
    // A name with several addresses is connected to once more, to select one.
    heads.retain(|connection| !connection.is_empty());
    assert!(heads.len() == 4 && heads.iter().all(|connection| connection.len() == 1), "{heads:?}");
    let port = server.address.port();
    for (head, host) in heads.concat().iter().zip(["127.0.0.1", "127.0.0.1", "localhost.", "[::ffff:7f00:1]"]) {
        assert!(head.starts_with("GET /in?a=b HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {host}:{port}\r\n")), "{head}");
        assert!(head.contains("connection: close\r\n") && head.contains("content-length: 2\r\n"), "{head}");
        assert!(!head.contains("authorization") && !head.contains("accept-encoding"), "{head}");
    }
}

/// Opens a listener whose backlog is full, so that connections to it get no answer.
async fn black_hole(address: SocketAddr) -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut filling = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(50), TcpStream::connect(address)).await {
        filling.push(stream.unwrap());
    }
    (listener, filling)
}

/// Returns a zone in which every name has these addresses.
async fn zone_of(addresses: &[&str]) -> StubServer {
    let addresses: Vec<_> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    StubServer::start(move |_, _| StubAnswer::Addresses(addresses.clone())).await.unwrap()
}

#[tokio::test]
async fn dead_addresses_before_a_working_one_delay_only_briefly() {
    let server = TestServer::replying(OK).await;
    let port = server.address.port();
    let _hole = black_hole(([127, 0, 0, 2], port).into()).await;
    // Nothing listens on 127.0.0.3.
    let zone = zone_of(&["127.0.0.2", "127.0.0.3", "127.0.0.1"]).await;
    for mode in [BlockedAddressMode::RefuseAny, BlockedAddressMode::DropBlocked] {
        let started = Instant::now();
        let client = client(&[zone.address()], mode);
        let response = send(&client, &format!("http://several.example:{port}/"), LIMIT).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    }
    assert_eq!(server.heads().concat().len(), 2);
}

#[tokio::test]
async fn the_error_of_several_addresses_is_the_most_informative_one() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let _hole = black_hole(([127, 0, 0, 2], port).into()).await;
    for addresses in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]] {
        let zone = zone_of(&addresses).await;
        let client = client(&[zone.address()], BlockedAddressMode::RefuseAny);
        let url = format!("http://several.example:{port}/");
        let error = send(&client, &url, Duration::from_secs(1)).await.err();
        assert_eq!(error, Some(GuardedClientError::Dial(DialError::Refused)), "{addresses:?}");
    }
}

#[tokio::test]
async fn outside_a_request_no_name_resolves() {
    let resolve = || SelectedAddressResolver.resolve("localhost".parse().unwrap());
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let inside =
        SELECTED_ADDRESS.scope(address, async { resolve().await.ok().map(|addresses| addresses.collect::<Vec<_>>()) });
    assert_eq!(inside.await, Some(vec![address]));
    assert!(SELECTED_ADDRESS.scope(address, tokio::spawn(resolve())).await.unwrap().is_err());
    assert!(resolve().await.is_err());
}

#[tokio::test]
async fn a_head_is_bounded_in_size_and_time() {
    let client = client(&[], BlockedAddressMode::RefuseAny);
    let head = |lines: &str, end: &str| format!("HTTP/1.1 200 OK\r\n{lines}{end}").into_bytes();
    let long = format!("X: {}\r\n", "x".repeat(100_000));
    for (reply, piece, pause, error) in [
        (head(&long, "\r\n"), usize::MAX, 0, Some(GuardedClientError::HeadTooLarge)),
        (head(&long.repeat(5), ""), usize::MAX, 0, Some(GuardedClientError::HeadTooLarge)),
        (head(&"X: y\r\n".repeat(200), "\r\n"), usize::MAX, 0, Some(GuardedClientError::HeadTooLarge)),
        (head(&"x".repeat(100), ""), 1, 100, Some(GuardedClientError::Timeout)),
        // Incomplete, and below the size that hyper refuses.
        (head(&long, ""), usize::MAX, 100, Some(GuardedClientError::Timeout)),
        (OK.to_vec(), 1, 1, None),
    ] {
        let server = TestServer::start(reply, piece, Duration::from_millis(pause)).await;
        let limit = if pause > 1 { Duration::from_millis(500) } else { LIMIT };
        let result = send(&client, &format!("http://{}/", server.address), limit).await;
        assert_eq!(result.as_ref().err(), error.as_ref(), "{result:?}");
    }
}

#[tokio::test]
async fn a_body_is_returned_as_it_arrives() {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd";
    let server = TestServer::replying(reply).await;
    let client = client(&[], BlockedAddressMode::RefuseAny);
    let mut response = send(&client, &format!("http://{}/", server.address), LIMIT).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(response.chunk().await, Ok(Some(Bytes::from_static(b"abcd"))));
}

#[tokio::test]
async fn a_refused_connection_and_a_tls_error_are_distinguished() {
    let client = client(&[], BlockedAddressMode::RefuseAny);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for scheme in ["http", "https"] {
        for host in [closed.to_string(), format!("localhost:{}", closed.port())] {
            let refused = send(&client, &format!("{scheme}://{host}/"), LIMIT).await.err();
            assert_eq!(refused, Some(GuardedClientError::Dial(DialError::Refused)), "{scheme} {host}");
        }
    }
    let plain = TestServer::replying(OK).await;
    let error = send(&client, &format!("https://{}/", plain.address), LIMIT).await.err();
    assert_eq!(error, Some(GuardedClientError::Tls));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let error = send(&client, &format!("https://{address}/"), Duration::from_millis(300)).await.err();
    assert_eq!(error, Some(GuardedClientError::Timeout));
}

#[tokio::test]
async fn a_connection_that_ends_in_its_handshake_is_reported_as_closed_not_refused() {
    let client = client(&[], BlockedAddressMode::RefuseAny);
    // With unread bytes the server's end is a reset, otherwise an orderly one.
    for read in [1, 4096] {
        let closing = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = closing.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = closing.accept().await.unwrap();
            let _ = stream.read(&mut vec![0; read]).await;
        });
        let error = send(&client, &format!("https://{address}/"), LIMIT).await.err();
        assert_eq!(error, Some(GuardedClientError::Closed), "{read}");
        serving.await.unwrap();
    }
}
