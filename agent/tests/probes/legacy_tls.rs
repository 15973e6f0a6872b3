//! Tests with servers that require features that the TLS library lacks, and servers that refuse every client.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCertificateCheck, WireCheckSpec},
    result::{WireFailure, WireOutcome, WireOwnFault},
    text::ShortText,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket},
};

use crate::harness::{get, keyword, probes, probes_with, resolver_to};

/// Starts a server that reads a hello and sends the response of `answer`; counts its visitors.
async fn server(answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    server_at("127.0.0.1:0".parse().unwrap(), answer).await
}

async fn server_at(
    address: SocketAddr,
    answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let visitors = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visitors);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = [0; 5];
            stream.read_exact(&mut head).await.unwrap();
            let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
            stream.read_exact(&mut hello).await.unwrap();
            let _ = stream.write_all(&answer(&hello)).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, visitors)
}

/// Returns the suites that a hello offers.
fn suites(hello: &[u8]) -> Vec<u16> {
    let at = 4 + 2 + 32;
    let at = at + 1 + usize::from(hello[at]);
    let length = usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    hello[at + 2..at + 2 + length].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

/// Returns the hello of a server that chooses TLS 1.2 with this suite.
fn server_hello(suite: u16) -> Vec<u8> {
    let mut hello = vec![22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3];
    hello.extend([7; 32]);
    hello.push(0);
    hello.extend(suite.to_be_bytes());
    hello.push(0);
    hello
}

const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

async fn outcomes(address: SocketAddr) -> [WireOutcome; 3] {
    let url = format!("https://{address}/");
    let keyword = keyword(&url, "x", parallax_protocol::check::WireKeywordMode::Present);
    let certificate = WireCertificateCheck { host: "127.0.0.1".to_owned(), port: address.port(), warn_days: 14 };
    [
        run(&WireCheckSpec::Http(get(&url)), &probes()).await.outcome,
        run(&keyword, &probes()).await.outcome,
        run(&WireCheckSpec::Certificate(certificate), &probes()).await.outcome,
    ]
}

#[tokio::test]
async fn a_server_with_unsupported_tls_is_inconclusive() {
    for (suite, name) in [(0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"), (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256")] {
        // With an alert, or without any data.
        for refusal in [HANDSHAKE_FAILURE.to_vec(), Vec::new()] {
            let (address, visitors) =
                server(move |hello| if suites(hello).contains(&suite) { server_hello(suite) } else { refusal.clone() })
                    .await;
            let text = format!("TLS can't be judged: the server requires {name}, which this check does not support");
            for outcome in outcomes(address).await {
                assert_eq!(outcome, WireOutcome::Inconclusive(WireOwnFault::unsupported_tls(ShortText::new(&text))));
            }
            assert_eq!(visitors.load(Ordering::SeqCst), 6, "one more connection per check");
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_our_signatures_is_inconclusive() {
    let (address, _) = server(|hello| {
        // It supports the library's suites too, but accepts only clients that offer others.
        if suites(hello).contains(&0x002f) { server_hello(0xc02f) } else { HANDSHAKE_FAILURE.to_vec() }
    })
    .await;
    for outcome in outcomes(address).await {
        let WireOutcome::Inconclusive(fault) = outcome else { panic!("{outcome:?}") };
        let text = fault.describe(parallax_protocol::check::WireCheckKind::Http);
        assert!(text.starts_with("TLS can't be judged: the server requires a key or signature"), "{text}");
    }
}

#[tokio::test]
async fn the_second_hello_goes_to_the_address_that_refused() {
    // The first address of the name refuses connections until the second one has had a visitor.
    let first = TcpSocket::new_v4().unwrap();
    first.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = first.local_addr().unwrap().port();
    let first = Mutex::new((Some(first), None));
    let (_, visitors) = server_at(SocketAddr::from(([127, 0, 0, 2], port)), move |hello| {
        let mut first = first.lock().unwrap();
        if let Some(socket) = first.0.take() {
            first.1 = Some(socket.listen(8).unwrap());
        }
        if suites(hello).contains(&0x009c) { server_hello(0x009c) } else { HANDSHAKE_FAILURE.to_vec() }
    })
    .await;
    let (_zone, resolver) = resolver_to(&["127.0.0.1", "127.0.0.2"]).await;
    let probes =
        probes_with(&resolver, DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() }, &[]);
    let check = WireCheckSpec::Http(get(&format!("https://shop.example:{port}/")));
    let outcome = run(&check, &probes).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(_)), "{outcome:?}");
    assert_eq!(visitors.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_that_refuses_every_client_is_down() {
    for (refusal, failure) in [
        (HANDSHAKE_FAILURE.to_vec(), "the server sent the alert HandshakeFailure"),
        ([21, 3, 3, 0, 2, 2, 70].to_vec(), "the server supports neither TLS 1.2 nor 1.3"),
        ([21, 3, 3, 0, 2, 2, 80].to_vec(), "the server sent the alert InternalError"),
        ([21, 3, 3, 0, 2, 2, 112].to_vec(), "the server sent the alert UnrecognisedName"),
    ] {
        let (address, _) = server(move |_| refusal.clone()).await;
        let failure = WireOutcome::Failed(WireFailure::TlsOther { detail: ShortText::new(failure) });
        assert_eq!(outcomes(address).await, [failure.clone(), failure.clone(), failure]);
    }
    let (address, visitors) = server(|_| Vec::new()).await;
    let failure = WireOutcome::Failed(WireFailure::ClosedEarly);
    assert_eq!(outcomes(address).await, [failure.clone(), failure.clone(), failure]);
    assert_eq!(visitors.load(Ordering::SeqCst), 6);
}
