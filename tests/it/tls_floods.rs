//! Attacks on the TLS listener: handshakes that never end, requests that are cancelled at once, responses that are
//! never read. Each connection is closed, and the next visitor is served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls::TlsCoordinator;

/// Longest lifetime of such a connection.
const LIMIT: Duration = Duration::from_secs(45);
/// HTTP/2 connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

#[tokio::test(flavor = "multi_thread")]
async fn floods_over_tls_are_bounded() {
    let secure = TlsCoordinator::start().await;
    let root = secure.root();
    tokio::join!(
        silent(secure.tls),
        half_a_hello(secure.tls),
        limits(secure.tls, &root),
        cancelled(secure.tls, &root),
        never_taken(secure.tls, &root, 0),
        never_taken(secure.tls, &root, 1),
    );
    assert!(secure.answers());
}

/// A silent connection, and one that stops within its first message.
async fn silent(port: u16) {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    ends_after_ten_seconds(stream).await;
}

async fn half_a_hello(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await.unwrap();
    ends_after_ten_seconds(stream).await;
}

async fn ends_after_ten_seconds(mut stream: TcpStream) {
    let begun = Instant::now();
    // The kind of close does not matter.
    let _ = timeout(LIMIT, stream.read_to_end(&mut Vec::new())).await.expect("it is closed");
    let took = begun.elapsed();
    assert!((9..20).contains(&took.as_secs()), "{took:?}");
}

/// Checks the limits in the server's settings.
async fn limits(port: u16, root: &CertificateDer<'static>) {
    let mut stream = open(port, root, &[]).await;
    let settings = loop {
        let frame = read(&mut stream).await.expect("there are settings");
        if frame.kind == SETTINGS {
            break frame.body;
        }
    };
    let value = |id: u16| {
        let all = settings.chunks(6).map(|it| (u16::from_be_bytes([it[0], it[1]]), &it[2..6]));
        all.filter(|(found, _)| *found == id).map(|(_, it)| u32::from_be_bytes(it.try_into().unwrap())).next_back()
    };
    // SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, section 6.5.2).
    assert_eq!((value(3), value(6)), (Some(64), Some(16 * 1024)));
}

/// Sends and cancels requests as fast as possible.
async fn cancelled(port: u16, root: &CertificateDer<'static>) {
    let stream = open(port, root, &[]).await;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        for stream in (1..200_000).step_by(2) {
            let both = [request(stream), frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat();
            if writer.write_all(&both).await.is_err() {
                return stream;
            }
        }
        200_000
    };
    let reading = async {
        // Responses are read, so that they are not what closes the connection.
        let _ = reader.read_to_end(&mut Vec::new()).await;
    };
    let sent = timeout(LIMIT, async { tokio::join!(writing, reading).0 }).await;
    let sent = sent.expect("the connection is ended");
    assert!(sent < 200_000, "the flood of resets was not stopped");
}

/// Requests documents and reads only the bytes that fit its window.
async fn never_taken(port: u16, root: &CertificateDer<'static>, window: u8) {
    // SETTINGS_INITIAL_WINDOW_SIZE.
    let mut stream = open(port, root, &[0, 4, 0, 0, 0, window]).await;
    let begun = Instant::now();
    for number in (1..20).step_by(2) {
        stream.write_all(&request(number)).await.unwrap();
    }
    let mut seen = 0;
    while let Some(frame) = timeout(LIMIT, read(&mut stream)).await.expect("the connection is ended") {
        seen += usize::from(frame.kind == HEADERS);
        if frame.kind == GO_AWAY {
            break;
        }
    }
    let took = begun.elapsed();
    assert_eq!(seen, 10, "each request was answered");
    assert!((15..40).contains(&took.as_secs()), "{took:?}");
}

/// Returns a GET of the OpenAPI document, by HPACK's static table except for the host.
fn request(stream: u32) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    for (name, value) in [(0x04_u8, "/api/v1/openapi.json"), (0x01, "status.test")] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend(value.as_bytes());
    }
    frame(HEADERS, 0x05, stream, &block)
}

struct Frame {
    kind: u8,
    body: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
}

/// Returns the next frame, or `None` once the connection has ended.
async fn read(stream: &mut TlsStream<TcpStream>) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut body = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut body).await.ok()?;
    Some(Frame { kind: head[3], body })
}

async fn open(port: u16, root: &CertificateDer<'static>, settings: &[u8]) -> TlsStream<TcpStream> {
    parallax_tests::use_ring();
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("status.test").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await.unwrap();
    stream
}

impl TlsCoordinator {
    fn root(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.root_file()).unwrap()
    }
}
