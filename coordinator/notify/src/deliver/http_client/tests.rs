//! The client against misbehaving receivers and forbidden addresses.

use std::sync::Arc;

use parallax_dial::stub::{StubAnswer, StubServer};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::deliver::tests::receiver::{TestReceiver, TestReply, status_reply};

fn request(url: &str) -> ChannelRequest {
    ChannelRequest {
        url: Url::parse(url).unwrap(),
        headers: Vec::new(),
        body: Bytes::from_static(b"{}"),
        follow_up: None,
    }
}

fn client() -> DeliveryClient {
    DeliveryClient::new(true, &[]).unwrap()
}

async fn post_to_receiver(
    reply: impl Fn() -> TestReply + Send + Sync + 'static,
) -> Result<ChannelResponse, DeliveryError> {
    let receiver = TestReceiver::start(move |_, _| reply()).await;
    client().with_timeout(Duration::from_millis(1_500)).post(&request(&receiver.url())).await
}

#[tokio::test]
async fn a_response_body_is_read_to_a_limit_and_its_start_is_stored() {
    let huge = || {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + (10 << 20), b'x');
        TestReply::Bytes(bytes)
    };
    let response = post_to_receiver(huge).await.unwrap();
    assert_eq!((response.status, response.body), (StatusCode::OK, "x".repeat(MAX_RESPONSE_BYTES)));
    // Non-text bodies are not shown, whether their bytes or their media type reveal it.
    for (media, body, text) in [
        ("", b"a\xffb".as_slice(), ""),
        ("", b"a\0b", ""),
        ("", b"a\xe2\x82", "a"),
        ("Content-Type: image/png\r\n", b"abc", ""),
        ("Content-Type: application/octet-stream\r\n", b"abc", ""),
        ("Content-Type: application/json; charset=utf-8\r\n", b"{}", "{}"),
        ("Content-Type: application/problem+json\r\n", b"{}", "{}"),
        ("Content-Type: text/plain\r\n", b"abc", "abc"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{media}Content-Length: {}\r\n\r\n", body.len());
        let raw = [head.as_bytes(), body].concat();
        let response = post_to_receiver(move || TestReply::Bytes(raw.clone())).await.unwrap();
        let logged_text = if response.is_text { response.body.as_str() } else { "" };
        assert_eq!(logged_text, text, "{media}{body:?}");
    }
    // A truncated body does not invalidate the response headers.
    let truncated = || TestReply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab".to_vec());
    assert_eq!(post_to_receiver(truncated).await.unwrap().body, "ab");
}

#[tokio::test]
async fn each_missing_response_has_its_error() {
    assert_eq!(post_to_receiver(|| TestReply::Hang).await, Err(DeliveryError::Timeout));
    assert_eq!(post_to_receiver(|| TestReply::Bytes(Vec::new())).await, Err(DeliveryError::Closed));
    assert_eq!(post_to_receiver(|| TestReply::Bytes(b"SSH-2.0-x\r\n\r\n".to_vec())).await, Err(DeliveryError::NotHttp));
    let endless = || TestReply::Bytes([b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 500_000]].concat());
    assert_eq!(post_to_receiver(endless).await, Err(DeliveryError::HeadersTooLarge));
    let oversized = || TestReply::Bytes([b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 70_000], b"\r\n\r\n"].concat());
    assert_eq!(post_to_receiver(oversized).await, Err(DeliveryError::HeadersTooLarge));
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let refused = client().post(&request(&format!("http://{address}/"))).await;
    assert_eq!(refused, Err(DeliveryError::Dial(DialError::Refused)));
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    assert_eq!(client().post(&request(&format!("https://{address}/"))).await, Err(DeliveryError::Tls));
    server.await.unwrap();
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let redirect_target = TestReceiver::healthy().await;
    let target_url = redirect_target.url();
    let receiver = TestReceiver::start(move |_, _| status_reply(302, &format!("Location: {target_url}\r\n"))).await;
    let response = client().post(&request(&receiver.url())).await.unwrap();
    assert_eq!(response.status, StatusCode::FOUND);
    assert!(redirect_target.requests().is_empty());
}

#[tokio::test]
async fn own_and_private_addresses_are_refused_in_every_notation() {
    let receiver = TestReceiver::healthy().await;
    let port = receiver.address.port();
    let client = DeliveryClient::new(false, &[]).unwrap();
    for host in [
        "127.0.0.1",
        "127.1",
        "0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fec0::1]",
        "[fd00:ec2::254]",
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "0x7f.1",
        "017700000001",
        "2130706433",
        "localhost",
        "localhost.",
        "a.localhost",
        "１２７.０.０.１",
        "127。0。0。1",
        "example.com@127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
    ] {
        let Ok(url) = Url::parse(&format!("http://{host}:{port}/")) else { continue };
        let request = ChannelRequest { url, headers: Vec::new(), body: Bytes::new(), follow_up: None };
        let refused = client.post(&request).await;
        assert!(
            matches!(
                refused,
                Err(DeliveryError::Dial(DialError::AddressNotAllowed(_))
                    | DeliveryError::NoPublicAddress
                    | DeliveryError::UnsupportedUrl)
            ),
            "{host}: {refused:?}"
        );
    }
    for interface in if_addrs::get_if_addrs().unwrap() {
        let refused = client.http.guard().blocked_class(interface.ip());
        assert!(refused.unwrap().is_some(), "{interface:?} belongs to this host");
    }
    assert!(receiver.requests().is_empty());
    for url in ["ftp://example.com/", "unix:/run/x", "file:///etc/passwd"] {
        assert_eq!(client.post(&request(url)).await, Err(DeliveryError::UnsupportedUrl), "{url}");
    }
}

#[tokio::test]
async fn an_internal_name_gives_the_same_error_as_an_unknown_one() {
    let zone = StubServer::start(|name, _| match name {
        "inner.example" => StubAnswer::Addresses(vec!["10.1.2.3".parse().unwrap()]),
        "mixed.example" => StubAnswer::Addresses(vec!["8.8.8.8".parse().unwrap(), "127.0.0.1".parse().unwrap()]),
        "empty.example" => StubAnswer::Addresses(Vec::new()),
        _ => StubAnswer::NxDomain,
    })
    .await
    .unwrap();
    let resolver = DnsResolver::with_servers(&[zone.address()]).unwrap();
    let client = DeliveryClient::with_guard(DialGuard::new(resolver, DialPolicy::default()), &[]).unwrap();
    for host in ["inner.example", "mixed.example", "empty.example", "gone.example", "vault.internal"] {
        let error = client.post(&request(&format!("http://{host}/"))).await.unwrap_err();
        assert_eq!(error, DeliveryError::NoPublicAddress, "{host}");
    }
}

#[tokio::test]
async fn unreadable_own_addresses_block_deliveries_and_do_not_count_against_the_receiver() {
    let receiver = TestReceiver::start(|_, _| status_reply(200, "")).await;
    // EAFNOSUPPORT, as in a systemd unit without AF_NETLINK.
    let unreadable = || Err(std::io::Error::from_raw_os_error(97));
    let policy = DialPolicy { allow_private: true, ..DialPolicy::default() };
    let guard = DialGuard::new(DnsResolver::system().unwrap(), policy)
        .with_own_addresses(parallax_dial::OwnAddresses::from_reader(unreadable));
    let client = DeliveryClient::with_guard(guard, &[]).unwrap();
    for url in [receiver.url(), "http://8.8.8.8/".to_owned()] {
        let error = client.post(&request(&url)).await.unwrap_err();
        assert_eq!(error, DeliveryError::OwnFault(DialError::OwnAddressesUnreadable), "{url}");
        assert!(error.is_our_fault());
    }
    assert!(client.last_logged.lock().unwrap().is_some(), "logged for the operator");
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn https_requires_a_certificate_for_the_host() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    });
    let trusting = DeliveryClient::new(true, &[certificate.der().clone()]).unwrap();
    let response = trusting.post(&request(&format!("https://localhost:{port}/"))).await.unwrap();
    assert_eq!(response.status, StatusCode::NO_CONTENT);
    for (client, host) in [(&trusting, "127.0.0.1"), (&client(), "localhost")] {
        let refused = client.post(&request(&format!("https://{host}:{port}/"))).await;
        assert!(matches!(refused, Err(DeliveryError::Certificate(_))), "{host}: {refused:?}");
    }
    server.abort();
}
