//! Tests of the http probe over TLS: valid and invalid certificates, HTTP/2 and HTTP/1.1.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use parallax_agent::probe::{Probes, run};
use parallax_dial::{DialPolicy, stub::StubServer};
use parallax_protocol::{
    check::{WireCheckSpec, WireHeader, WireHttpCheck, WireKeywordMode, WireMethod},
    result::{ProbeReport, WireFailure, WireOutcome, WirePhase},
    text::SecretText,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::harness::{ScriptedReply, ScriptedServer, get, keyword, probes_with, resolver_to};

/// An authority, a server with a leaf of its own, and probe resources that trust the authority.
struct Site {
    address: SocketAddr,
    probes: Probes,
    _zone: StubServer,
}

impl Site {
    async fn start(leaf: CertificateParams, alpn: &[&[u8]]) -> Self {
        Self::signed_by(&authority("ours"), leaf, alpn).await
    }

    async fn signed_by(authority: &CertifiedIssuer<'static, KeyPair>, leaf: CertificateParams, alpn: &[&[u8]]) -> Self {
        let (_zone, resolver) = resolver_to(&["127.0.0.1"]).await;
        let root = CertificateDer::from(authority.der().to_vec());
        let probes = probes_with(
            &resolver,
            DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() },
            &[root],
        );
        let address = serve(authority, leaf, alpn).await;
        Self { address, probes, _zone }
    }

    fn url(&self, path: &str) -> String {
        format!("https://shop.example:{}{path}", self.address.port())
    }

    async fn check(&self, check: WireHttpCheck) -> ProbeReport {
        run(&WireCheckSpec::Http(check), &self.probes).await
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn leaf(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

/// Responds with the version, method and body of the request.
async fn serve(authority: &CertifiedIssuer<'static, KeyPair>, leaf: CertificateParams, alpn: &[&[u8]]) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let certificate = leaf.signed_by(&key, authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(answer);
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    address
}

async fn answer(request: http::Request<hyper::body::Incoming>) -> http::Result<http::Response<Full<Bytes>>> {
    use http_body_util::BodyExt;
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let host = head.headers.get("host").map(|host| host.to_str().unwrap().to_owned());
    let host = host.or(head.uri.authority().map(ToString::to_string)).unwrap_or_default();
    let header = |name| head.headers.get(name).map_or("none", |value: &http::HeaderValue| value.to_str().unwrap());
    let text = format!(
        "{:?} {} {} {} agent {} token {}",
        head.version,
        head.method,
        host,
        String::from_utf8_lossy(&body),
        header("user-agent"),
        header("x-token"),
    );
    let response = match head.uri.path() {
        path if path.starts_with("/down/") => {
            let port = path.trim_start_matches("/down/");
            http::Response::builder().status(302).header("location", format!("http://shop.example:{port}/"))
        }
        "/away" => http::Response::builder().status(302).header("location", "/"),
        _ => http::Response::builder(),
    };
    response.body(Full::new(Bytes::from(text)))
}

const BOTH: &[&[u8]] = &[b"h2", b"http/1.1"];

#[tokio::test]
async fn http2_is_used_if_the_server_supports_it() {
    for (alpn, version) in [(BOTH, "HTTP/2.0"), (&[b"http/1.1".as_slice()] as &[&[u8]], "HTTP/1.1"), (&[], "HTTP/1.1")]
    {
        let site = Site::start(leaf("shop.example"), alpn).await;
        let host = format!("shop.example:{}", site.address.port());
        let expected = format!("{version} POST {host} ping");
        let post = WireHttpCheck {
            method: WireMethod::Post,
            body: Some(SecretText::new("ping")),
            keyword: Some(expected),
            ..get(&site.url("/"))
        };
        let report = site.check(post).await;
        assert_eq!(report.outcome, WireOutcome::Passed, "{version}");
        let phases = report.phases;
        assert!(phases.dns_us.is_some() && phases.connect_us.is_some() && phases.tls_us.is_some());
        assert!(phases.first_byte_us.is_some() && phases.transfer_us.is_some());
    }
}

#[tokio::test]
async fn redirects_are_followed_over_http2_and_out_of_tls() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    assert_eq!(site.check(get(&site.url("/away"))).await.outcome, WireOutcome::Passed);
    let open = ScriptedServer::start(|_| ScriptedReply::ok("in the open")).await;
    let check = WireHttpCheck {
        headers: ["X-Token", "User-Agent"]
            .map(|name| WireHeader { name: name.to_owned(), value: SecretText::new("canary") })
            .to_vec(),
        keyword: Some("in the open".to_owned()),
        ..get(&site.url(&format!("/down/{}", open.address.port())))
    };
    let report = site.check(check).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert!(report.phases.tls_us.is_none(), "the phases are those of the last hop");
    let request = open.requests().pop().unwrap();
    assert!(request.contains("user-agent: canary\r\n") && !request.contains("x-token"), "{request}");
}

#[tokio::test]
async fn customer_headers_follow_an_upgrade_to_tls_on_their_host() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let target = site.url("/");
    // A firewall that only accepts the right user agent and token.
    let front = ScriptedServer::start(move |_| ScriptedReply::redirect(301, &target)).await;
    let own = WireHttpCheck {
        headers: ["User-Agent", "X-Token"]
            .map(|name| WireHeader { name: name.to_owned(), value: SecretText::new("canary") })
            .to_vec(),
        keyword: Some("agent canary token canary".to_owned()),
        ..get(&format!("http://shop.example:{}/", front.address.port()))
    };
    assert_eq!(site.check(own).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn a_host_override_reaches_the_server_and_not_the_certificate() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let own = WireHttpCheck {
        headers: vec![WireHeader { name: "Host".to_owned(), value: SecretText::new("inner.example") }],
        keyword: Some("HTTP/2.0 GET inner.example".to_owned()),
        ..get(&site.url("/"))
    };
    assert_eq!(site.check(own).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn a_head_over_http2_passes() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let head = WireHttpCheck { method: WireMethod::Head, ..get(&site.url("/")) };
    assert_eq!(site.check(head).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn an_expired_certificate_is_reported() {
    let mut old = leaf("shop.example");
    old.not_before = date_time_ymd(2020, 1, 1);
    old.not_after = date_time_ymd(2021, 1, 1);
    let site = Site::start(old, BOTH).await;
    let report = site.check(get(&site.url("/"))).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::TlsExpired));
    assert_eq!(report.latency_ms, None);
    assert!(report.phases.connect_us.is_some(), "the earlier phases are kept");
}

#[tokio::test]
async fn a_certificate_from_the_future_is_reported() {
    let mut early = leaf("shop.example");
    early.not_before = date_time_ymd(3000, 1, 1);
    early.not_after = date_time_ymd(3001, 1, 1);
    let site = Site::start(early, BOTH).await;
    assert_eq!(site.check(get(&site.url("/"))).await.outcome, WireOutcome::Failed(WireFailure::TlsNotYetValid));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_reported() {
    let site = Site::start(leaf("other.example"), BOTH).await;
    assert_eq!(site.check(get(&site.url("/"))).await.outcome, WireOutcome::Failed(WireFailure::TlsNameMismatch));
    let by_address = get(&format!("https://{}/", site.address));
    assert_eq!(site.check(by_address).await.outcome, WireOutcome::Failed(WireFailure::TlsNameMismatch));
}

#[tokio::test]
async fn a_certificate_for_an_address_serves_that_address() {
    let site = Site::start(leaf("127.0.0.1"), BOTH).await;
    let by_address = get(&format!("https://{}/", site.address));
    assert_eq!(site.check(by_address).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn an_unknown_issuer_is_reported() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let stranger = Site::signed_by(&authority("theirs"), leaf("shop.example"), BOTH).await;
    let url = format!("https://shop.example:{}/", stranger.address.port());
    assert_eq!(site.check(get(&url)).await.outcome, WireOutcome::Failed(WireFailure::TlsUnknownIssuer));
}

#[tokio::test]
async fn a_server_without_tls_is_reported() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", plain.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // Ends when the client closes.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let outcome = site.check(get(&url)).await.outcome;
    assert!(matches!(outcome, WireOutcome::Failed(WireFailure::TlsOther { .. })), "{outcome:?}");
}

#[tokio::test]
async fn an_unanswered_handshake_ends_at_the_limit() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let probes = site.probes.clone().with_limit(Duration::from_secs(1));
    let report = run(&WireCheckSpec::Http(get(&url)), &probes).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Tls }));
}

#[tokio::test]
async fn a_redirect_from_http_to_https_is_followed() {
    let site = Site::start(leaf("shop.example"), BOTH).await;
    let target = site.url("/");
    let front = ScriptedServer::start(move |_| ScriptedReply::redirect(301, &target)).await;
    let spec = keyword(&front.url("/"), "HTTP/2.0 GET shop.example", WireKeywordMode::Present);
    let report = run(&spec, &site.probes).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert!(report.phases.tls_us.is_some(), "the phases are those of the last hop");
}
