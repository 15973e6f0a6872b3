//! Tests of the certificate probe against servers with crafted chains.

use std::sync::Arc;

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCertificateCheck, WireCheckSpec},
    result::{AddressClass, ProbeReport, WireFailure, WireOutcome, WirePhase},
    text::ShortText,
};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::{ServerConfig, server::WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::harness::{
    ScriptedReply, ScriptedServer, get, no_resolver, probes, probes_with, probes_within, resolver_to,
};

type Authority = CertifiedIssuer<'static, KeyPair>;

const HOST: &str = "shop.example";
/// 1 June 2050, the expiry of all leaves here unless a test sets another.
const END_MS: i64 = 2_537_654_400_000;

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn root(name: &str) -> Authority {
    CertifiedIssuer::self_signed(authority_params(name), KeyPair::generate().unwrap()).unwrap()
}

fn below(name: &str, issuer: &Authority) -> Authority {
    CertifiedIssuer::signed_by(authority_params(name), KeyPair::generate().unwrap(), issuer).unwrap()
}

fn leaf(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2050, 6, 1);
    params
}

fn issued(params: &CertificateParams, issuer: &Authority) -> (Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, issuer).unwrap(), key)
}

fn der(authority: &Authority) -> CertificateDer<'static> {
    CertificateDer::from(authority.der().to_vec())
}

#[derive(Clone, Copy, PartialEq)]
enum TlsServerMode {
    Both,
    Only12,
    AsksForOurs,
}

/// Starts a server with this chain and returns its port.
async fn serve(leaf: &Certificate, key: &KeyPair, others: &[CertificateDer<'static>], ways: TlsServerMode) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = match ways {
        TlsServerMode::Only12 => vec![&rustls::version::TLS12],
        TlsServerMode::Both | TlsServerMode::AsksForOurs => {
            vec![&rustls::version::TLS12, &rustls::version::TLS13]
        }
    };
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions).unwrap();
    let builder = if ways == TlsServerMode::AsksForOurs {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(&root("clients"))).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let chain = [vec![leaf.der().clone()], others.to_vec()].concat();
    let config = builder.with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move { acceptor.accept(stream).await.map(drop) });
        }
    });
    port
}

async fn look(roots: &[&Authority], port: u16, warn_days: u16) -> ProbeReport {
    let check = WireCertificateCheck { host: HOST.to_owned(), port, warn_days };
    run_with_roots(roots, WireCheckSpec::Certificate(check)).await
}

async fn run_with_roots(roots: &[&Authority], check: WireCheckSpec) -> ProbeReport {
    let (_zone, resolver) = resolver_to(&["127.0.0.1"]).await;
    let roots: Vec<_> = roots.iter().map(|root| der(root)).collect();
    let probes = probes_with(
        &resolver,
        DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() },
        &roots,
    );
    run(&check, &probes).await
}

#[tokio::test]
async fn a_good_chain_passes_over_both_versions_with_its_expiry() {
    let top = root("top");
    let (certificate, key) = issued(&leaf(HOST), &top);
    for ways in [TlsServerMode::Both, TlsServerMode::Only12] {
        let port = serve(&certificate, &key, &[], ways).await;
        let report = look(&[&top], port, 14).await;
        assert_eq!(report.outcome, WireOutcome::Passed);
        assert_eq!(report.expires_ms, Some(END_MS));
        assert!(report.latency_ms.is_some() && report.phases.tls_us.is_some());
    }
}

#[tokio::test]
async fn a_leaf_that_expires_within_warn_days_fails() {
    let top = root("top");
    let (certificate, key) = issued(&leaf(HOST), &top);
    let port = serve(&certificate, &key, &[], TlsServerMode::Both).await;
    let report = look(&[&top], port, u16::MAX).await;
    assert!(matches!(report.outcome, WireOutcome::Failed(WireFailure::CertificateExpiring { days }) if days > 7000));
    assert_eq!(report.expires_ms, Some(END_MS));
}

#[tokio::test]
async fn a_bad_chain_fails_with_its_reason_and_reports_the_expiry() {
    let (top, stranger) = (root("top"), root("stranger"));
    let mut expired = leaf(HOST);
    expired.not_after = date_time_ymd(2021, 1, 1);
    let mut early = leaf(HOST);
    early.not_before = date_time_ymd(2049, 1, 1);
    let day = 24 * 60 * 60 * 1000;
    for (params, issuer, failure, end_ms) in [
        (expired, &top, WireFailure::TlsExpired, 18_628 * day),
        (early, &top, WireFailure::TlsNotYetValid, END_MS),
        (leaf("other.example"), &top, WireFailure::TlsNameMismatch, END_MS),
        (leaf(HOST), &stranger, WireFailure::TlsUnknownIssuer, END_MS),
    ] {
        for ways in [TlsServerMode::Both, TlsServerMode::Only12] {
            let (certificate, key) = issued(&params, issuer);
            let port = serve(&certificate, &key, &[], ways).await;
            let report = look(&[&top], port, 14).await;
            assert_eq!(report.outcome, WireOutcome::Failed(failure.clone()));
            assert_eq!(report.expires_ms, Some(end_ms), "{failure:?}");
        }
    }
}

#[tokio::test]
async fn a_certificate_that_signs_itself_is_from_an_unknown_issuer() {
    let (mut authority, mut for_clients) = (leaf(HOST), leaf(HOST));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    for params in [leaf(HOST), authority, for_clients] {
        let key = KeyPair::generate().unwrap();
        let port = serve(&params.self_signed(&key).unwrap(), &key, &[], TlsServerMode::Both).await;
        let report = look(&[], port, 14).await;
        assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::TlsUnknownIssuer));
        assert_eq!(report.expires_ms, Some(END_MS));
        let http = WireCheckSpec::Http(get(&format!("https://{HOST}:{port}/")));
        let report = run_with_roots(&[], http).await;
        assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::TlsUnknownIssuer));
    }
}

#[tokio::test]
async fn the_order_sent_does_not_matter_and_a_gap_does() {
    let top = root("top");
    let middle = below("middle", &top);
    let low = below("low", &middle);
    let (certificate, key) = issued(&leaf(HOST), &low);
    for (others, outcome) in [
        (vec![der(&low), der(&middle)], WireOutcome::Passed),
        (vec![der(&middle), der(&low)], WireOutcome::Passed),
        (vec![der(&low), der(&middle), der(&top)], WireOutcome::Passed),
        (vec![der(&low)], WireOutcome::Failed(WireFailure::TlsUnknownIssuer)),
    ] {
        let port = serve(&certificate, &key, &others, TlsServerMode::Both).await;
        assert_eq!(look(&[&top], port, 14).await.outcome, outcome);
    }
}

#[tokio::test]
async fn an_expired_cross_sign_that_no_path_needs_is_no_fault() {
    let old = root("old");
    // The new root, and the same name and key signed by the old root, long ago.
    let new = root("new");
    let mut crossed = authority_params("new");
    crossed.not_before = date_time_ymd(2000, 1, 1);
    crossed.not_after = date_time_ymd(2021, 9, 30);
    let crossed = crossed.signed_by(new.key(), &old).unwrap();
    let middle = below("middle", &new);
    let (certificate, key) = issued(&leaf(HOST), &middle);
    for others in [vec![der(&middle), crossed.der().clone()], vec![crossed.der().clone(), der(&middle)]] {
        let port = serve(&certificate, &key, &others, TlsServerMode::Both).await;
        assert_eq!(look(&[&new, &old], port, 14).await.outcome, WireOutcome::Passed);
        assert_eq!(look(&[&new], port, 14).await.outcome, WireOutcome::Passed);
        // The leaf is valid for years: not the leaf has expired, but the path to this root.
        let report = look(&[&old], port, 14).await;
        let detail = ShortText::new("the intermediate certificate \"new\" expired on 2021-09-30");
        assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::TlsOther { detail }));
        assert_eq!(report.expires_ms, Some(END_MS));
    }
}

#[tokio::test]
async fn an_endless_chain_is_refused() {
    let top = root("top");
    let (certificate, key) = issued(&leaf(HOST), &top);
    let others = vec![der(&top); 10];
    let port = serve(&certificate, &key, &others, TlsServerMode::Both).await;
    let detail = ShortText::new("the chain is too long");
    assert_eq!(look(&[&top], port, 14).await.outcome, WireOutcome::Failed(WireFailure::TlsOther { detail }));
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_is_judged_by_its_own() {
    let top = root("top");
    let (certificate, key) = issued(&leaf(HOST), &top);
    let port = serve(&certificate, &key, &[], TlsServerMode::AsksForOurs).await;
    assert_eq!(look(&[&top], port, 14).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn a_renewed_certificate_is_seen_at_the_next_check() {
    let top = root("top");
    let (certificate, key) = issued(&leaf(HOST), &top);
    let (_zone, resolver) = resolver_to(&["127.0.0.1"]).await;
    let probes = probes_with(
        &resolver,
        DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() },
        &[der(&top)],
    );
    let mut renewed = leaf(HOST);
    renewed.not_after = date_time_ymd(2060, 6, 1);
    let (renewed, renewed_key) = issued(&renewed, &top);
    let mut ends = Vec::new();
    for (certificate, key) in [(&certificate, &key), (&renewed, &renewed_key)] {
        let port = serve(certificate, key, &[], TlsServerMode::Both).await;
        let check = WireCertificateCheck { host: HOST.to_owned(), port, warn_days: 14 };
        ends.push(run(&WireCheckSpec::Certificate(check), &probes).await.expires_ms.unwrap());
    }
    assert!(ends[1] > ends[0]);
}

#[tokio::test]
async fn a_server_without_tls_is_reported_and_silence_ends_at_the_limit() {
    let plain = ScriptedServer::start(|_| ScriptedReply::ok("hello")).await;
    let port = plain.address.port();
    let at = |host: &str, port| {
        WireCheckSpec::Certificate(WireCertificateCheck { host: host.to_owned(), port, warn_days: 14 })
    };
    // The plain server waits for the end of a request's head.
    let brief = probes_within(std::time::Duration::from_secs(1));
    let report = run(&at("127.0.0.1", port), &brief).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Tls }));
    assert_eq!((report.expires_ms, report.latency_ms), (None, None));

    let guarded = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    let refused = WireOutcome::Failed(WireFailure::AddressNotAllowed { class: AddressClass::Loopback });
    assert_eq!(run(&at("127.0.0.1", port), &guarded).await.outcome, refused);
    let outcome = run(&at("127.1", port), &probes()).await.outcome;
    assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })));
}
