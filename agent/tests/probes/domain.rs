//! Tests of the domain probe against a registry on loopback.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use parallax_agent::probe::{Probes, run};
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireDomainCheck},
    result::{ProbeReport, WireFailure, WireOutcome, WireOwnFault},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::harness::{ScriptedReply, ScriptedServer, no_resolver, probes, probes_with, probes_within};

/// 1 June 2050.
const END_MS: i64 = 2_537_654_400_000;

fn registered(name: &str) -> String {
    format!(
        r#"{{"objectClassName":"domain","ldhName":"{name}","status":["active"],
        "events":[{{"eventAction":"expiration","eventDate":"2050-06-01T00:00:00Z"}}]}}"#
    )
}

fn probes_for(registry: &ScriptedServer) -> Probes {
    probes().with_rdap(&registry.url("/rdap").parse().unwrap())
}

async fn look(probes: &Probes, host: &str, warn_days: u16) -> ProbeReport {
    run(&WireCheckSpec::Domain(WireDomainCheck { host: host.to_owned(), warn_days }), probes).await
}

#[tokio::test]
async fn the_registrable_part_is_looked_up() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("EXAMPLE.CO.UK"))).await;
    let report = look(&probes_for(&registry), "www.shop.example.co.uk", 30).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.expires_ms, Some(END_MS));
    assert_eq!(report.status_code, None);
    let request = &registry.requests()[0];
    assert!(request.starts_with("GET /rdap/domain/example.co.uk HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("accept: application/rdap+json"), "{request}");

    let expiring = look(&probes_for(&registry), "example.co.uk", u16::MAX).await;
    assert!(matches!(expiring.outcome, WireOutcome::Failed(WireFailure::DomainExpiring { .. })));
    assert_eq!(expiring.expires_ms, Some(END_MS));
}

#[tokio::test]
async fn a_registry_may_redirect() {
    let second = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.com"))).await;
    let to = second.url("/elsewhere");
    let first = ScriptedServer::start(move |_| ScriptedReply::redirect(302, &to)).await;
    assert_eq!(look(&probes_for(&first), "example.com", 30).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn only_a_clear_outage_fails() {
    let body = r#"{"errorCode":404,"title":"Not Found"}"#;
    let text = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let registry = ScriptedServer::start(move |_| ScriptedReply::text(&text)).await;
    let report = look(&probes_for(&registry), "example.com", 30).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::DomainNotFound));

    for reply in [
        ScriptedReply::text("HTTP/1.1 404 Not Found\r\ncontent-length: 6\r\n\r\n<html>"),
        ScriptedReply::status(500),
        ScriptedReply::ok("{\"events\":"),
        ScriptedReply::ok("{}"),
        ScriptedReply::ok(&registered("other.com")),
        ScriptedReply::Reset,
    ] {
        let registry = ScriptedServer::start(move |_| reply.clone()).await;
        let outcome = look(&probes_for(&registry), "example.com", 30).await.outcome;
        let is_unreadable = matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. }));
        assert!(is_unreadable, "{outcome:?}");
    }
}

#[tokio::test]
async fn registry_specific_labels_are_read_and_implausible_dates_rejected() {
    let answer = |action: &str, date: &str| {
        let events = format!(r#"[null,{{"eventAction":"{action}","eventDate":"{date}"}}]"#);
        format!("\u{feff}{{\"ldhName\":\"example.com\",\"status\":null,\"events\":{events}}}")
    };
    let body = answer("Record expires", "2050-06-01T00:00Z");
    let registry = ScriptedServer::start(move |_| ScriptedReply::ok(&body)).await;
    let report = look(&probes_for(&registry), "example.com", 30).await;
    assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));

    for date in ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2001-01-01"] {
        let body = answer("expiration", date);
        let registry = ScriptedServer::start(move |_| ScriptedReply::ok(&body)).await;
        let report = look(&probes_for(&registry), "example.com", 30).await;
        let WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { detail }) = report.outcome else {
            panic!("{date}: {:?}", report.outcome)
        };
        assert!(detail.as_str().starts_with("its expiry date "), "{detail}");
        assert_eq!(report.expires_ms, None, "{date}");
    }
}

#[tokio::test]
async fn a_registry_with_a_rate_limit_is_paused() {
    let busy = "HTTP/1.1 429 Too Many\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    let registry = ScriptedServer::start(move |_| ScriptedReply::text(busy)).await;
    let probes = probes_for(&registry);
    for _ in 0..3 {
        let outcome = look(&probes, "example.com", 30).await.outcome;
        assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })));
    }
    assert_eq!(registry.requests().len(), 1);
}

#[tokio::test]
async fn checks_of_one_domain_share_one_look_up() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.co.uk"))).await;
    let probes = probes_for(&registry);
    let hosts = ["example.co.uk", "www.example.co.uk", "shop.example.co.uk"];
    for report in futures_util::future::join_all(hosts.map(|host| look(&probes, host, 30))).await {
        assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));
    }
    let warned = look(&probes, "mail.example.co.uk", u16::MAX).await.outcome;
    assert!(matches!(warned, WireOutcome::Failed(WireFailure::DomainExpiring { .. })), "each has its own warning");
    assert_eq!(registry.requests().len(), 1);
}

#[tokio::test]
async fn the_bootstrap_registry_is_fetched_and_cached_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rdap.json");
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.zz"))).await;
    let services = format!(r#"{{"services":[[["zz"],["{}"]]]}}"#, registry.url("/rdap"));
    let bootstrap = ScriptedServer::start(move |_| ScriptedReply::ok(&services)).await;
    let address = bootstrap.url("/dns.json").parse().unwrap();
    let reading = probes().with_bootstrap(Some(&address), file.clone());
    assert_eq!(look(&reading, "example.zz", 30).await.outcome, WireOutcome::Passed);
    assert_eq!(look(&reading, "www.example.zz", 30).await.outcome, WireOutcome::Passed);
    assert_eq!(bootstrap.requests().len(), 1);

    drop(bootstrap);
    let later = probes().with_bootstrap(Some(&address), file.clone());
    assert_eq!(look(&later, "example.zz", 30).await.outcome, WireOutcome::Passed, "from the cached copy");
    std::fs::write(&file, "no copy").unwrap();
    drop(probes().with_bootstrap(None, file));
}

#[tokio::test]
async fn unregistrable_names_are_bad_targets_and_the_guard_applies() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.com"))).await;
    for host in ["127.0.0.1", "co.uk", "com", "a b", ""] {
        let outcome = look(&probes_for(&registry), host, 30).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{host}: {outcome:?}");
    }
    let guarded = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    let guarded = guarded.with_rdap(&registry.url("/rdap").parse().unwrap());
    let outcome = look(&guarded, "example.com", 30).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })));
    assert!(registry.requests().is_empty());
}

#[tokio::test]
async fn a_registry_without_rdap_is_queried_by_whois() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let probes = probes().with_whois(listener.local_addr().unwrap());
    let queries = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&queries);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut question = String::new();
            BufReader::new(&mut stream).read_line(&mut question).await.unwrap();
            let answer = match question.trim() {
                "zz" => "domain: ZZ\nwhois: 127.0.0.1\n",
                "example.zz" => "domain: example.zz\nexpires: 2050-06-01\n",
                _ => "% No entries found\n",
            };
            received.lock().unwrap().push(question.trim().to_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let report = look(&probes, "www.example.zz", 30).await;
    assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));
    let report = look(&probes, "gone.zz", 30).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::DomainNotFound));
    assert_eq!(*queries.lock().unwrap(), ["zz", "example.zz", "gone.zz"]);
}

#[tokio::test]
async fn a_registry_that_never_ends_ends_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec();
    let registry = ScriptedServer::start(move |_| ScriptedReply::Stall(head.clone())).await;
    let probes = probes_within(Duration::from_millis(200)).with_rdap(&registry.url("/").parse().unwrap());
    let started = Instant::now();
    let outcome = look(&probes, "example.com", 30).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
