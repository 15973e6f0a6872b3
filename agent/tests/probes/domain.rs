//! Tests of the domain probe against a registry on loopback.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use parallax_agent::probe::{ProbeContext, run};
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireDomainCheck},
    result::{ProbeReport, WireFailure, WireOutcome, WireOwnFault},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::harness::{ScriptedReply, ScriptedServer, net, net_with, net_within, no_resolver};

/// 1 June 2050.
const END_MS: i64 = 2_537_654_400_000;

fn registered(name: &str) -> String {
    format!(
        r#"{{"objectClassName":"domain","ldhName":"{name}","status":["active"],
        "events":[{{"eventAction":"expiration","eventDate":"2050-06-01T00:00:00Z"}}]}}"#
    )
}

fn asking(registry: &ScriptedServer) -> ProbeContext {
    net().with_rdap(&registry.url("/rdap").parse().unwrap())
}

async fn look(net: &ProbeContext, host: &str, warn_days: u16) -> ProbeReport {
    run(&WireCheckSpec::Domain(WireDomainCheck { host: host.to_owned(), warn_days }), net).await
}

#[tokio::test]
async fn the_registrable_part_is_looked_up() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("EXAMPLE.CO.UK"))).await;
    let report = look(&asking(&registry), "www.shop.example.co.uk", 30).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.expires_ms, Some(END_MS));
    assert_eq!(report.status_code, None);
    let request = &registry.requests()[0];
    assert!(request.starts_with("GET /rdap/domain/example.co.uk HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("accept: application/rdap+json"), "{request}");

    let expiring = look(&asking(&registry), "example.co.uk", u16::MAX).await;
    assert!(matches!(expiring.outcome, WireOutcome::Failed(WireFailure::DomainExpiring { .. })));
    assert_eq!(expiring.expires_ms, Some(END_MS));
}

#[tokio::test]
async fn a_registry_may_send_us_on() {
    let second = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.com"))).await;
    let to = second.url("/elsewhere");
    let first = ScriptedServer::start(move |_| ScriptedReply::redirect(302, &to)).await;
    assert_eq!(look(&asking(&first), "example.com", 30).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn only_a_plain_word_fails() {
    let body = r#"{"errorCode":404,"title":"Not Found"}"#;
    let text = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let registry = ScriptedServer::start(move |_| ScriptedReply::text(&text)).await;
    let report = look(&asking(&registry), "example.com", 30).await;
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
        let outcome = look(&asking(&registry), "example.com", 30).await.outcome;
        let is_unreadable = matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. }));
        assert!(is_unreadable, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_registrys_own_words_are_read_and_dates_that_can_not_be_are_not() {
    let answer = |action: &str, date: &str| {
        let events = format!(r#"[null,{{"eventAction":"{action}","eventDate":"{date}"}}]"#);
        format!("\u{feff}{{\"ldhName\":\"example.com\",\"status\":null,\"events\":{events}}}")
    };
    let body = answer("Record expires", "2050-06-01T00:00Z");
    let registry = ScriptedServer::start(move |_| ScriptedReply::ok(&body)).await;
    let report = look(&asking(&registry), "example.com", 30).await;
    assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));

    for date in ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2001-01-01"] {
        let body = answer("expiration", date);
        let registry = ScriptedServer::start(move |_| ScriptedReply::ok(&body)).await;
        let report = look(&asking(&registry), "example.com", 30).await;
        let WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { detail }) = report.outcome else {
            panic!("{date}: {:?}", report.outcome)
        };
        assert!(detail.as_str().starts_with("its expiry date "), "{detail}");
        assert_eq!(report.expires_ms, None, "{date}");
    }
}

#[tokio::test]
async fn a_registry_that_asks_for_rest_is_left_alone() {
    let busy = "HTTP/1.1 429 Too Many\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    let registry = ScriptedServer::start(move |_| ScriptedReply::text(busy)).await;
    let net = asking(&registry);
    for _ in 0..3 {
        let outcome = look(&net, "example.com", 30).await.outcome;
        assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })));
    }
    assert_eq!(registry.requests().len(), 1);
}

#[tokio::test]
async fn checks_of_one_domain_share_one_look_up() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.co.uk"))).await;
    let net = asking(&registry);
    let hosts = ["example.co.uk", "www.example.co.uk", "shop.example.co.uk"];
    for report in futures_util::future::join_all(hosts.map(|host| look(&net, host, 30))).await {
        assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));
    }
    let warned = look(&net, "mail.example.co.uk", u16::MAX).await.outcome;
    assert!(matches!(warned, WireOutcome::Failed(WireFailure::DomainExpiring { .. })), "each has its own warning");
    assert_eq!(registry.requests().len(), 1);
}

#[tokio::test]
async fn the_registry_of_registries_is_read_from_its_address_and_kept_for_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rdap.json");
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.zz"))).await;
    let services = format!(r#"{{"services":[[["zz"],["{}"]]]}}"#, registry.url("/rdap"));
    let bootstrap = ScriptedServer::start(move |_| ScriptedReply::ok(&services)).await;
    let address = bootstrap.url("/dns.json").parse().unwrap();
    let reading = net().with_bootstrap(Some(&address), file.clone());
    assert_eq!(look(&reading, "example.zz", 30).await.outcome, WireOutcome::Passed);
    assert_eq!(look(&reading, "www.example.zz", 30).await.outcome, WireOutcome::Passed);
    assert_eq!(bootstrap.requests().len(), 1);

    drop(bootstrap);
    let later = net().with_bootstrap(Some(&address), file.clone());
    assert_eq!(look(&later, "example.zz", 30).await.outcome, WireOutcome::Passed, "from the cached copy");
    std::fs::write(&file, "no copy").unwrap();
    drop(net().with_bootstrap(None, file));
}

#[tokio::test]
async fn what_nobody_registers_is_a_bad_target_and_the_guard_holds() {
    let registry = ScriptedServer::start(|_| ScriptedReply::ok(&registered("example.com"))).await;
    for host in ["127.0.0.1", "co.uk", "com", "a b", ""] {
        let outcome = look(&asking(&registry), host, 30).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{host}: {outcome:?}");
    }
    let guarded = net_with(&no_resolver(), DialPolicy::default(), &[]);
    let guarded = guarded.with_rdap(&registry.url("/rdap").parse().unwrap());
    let outcome = look(&guarded, "example.com", 30).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })));
    assert!(registry.requests().is_empty());
}

#[tokio::test]
async fn a_registry_without_rdap_is_asked_by_whois() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let net = net().with_whois(listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut question = String::new();
            BufReader::new(&mut stream).read_line(&mut question).await.unwrap();
            let answer = match question.trim() {
                "zz" => "domain: ZZ\nwhois: 127.0.0.1\n",
                "example.zz" => "domain: example.zz\nexpires: 2050-06-01\n",
                _ => "% No entries found\n",
            };
            seen.lock().unwrap().push(question.trim().to_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let report = look(&net, "www.example.zz", 30).await;
    assert_eq!((report.outcome, report.expires_ms), (WireOutcome::Passed, Some(END_MS)));
    let report = look(&net, "gone.zz", 30).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::DomainNotFound));
    assert_eq!(*asked.lock().unwrap(), ["zz", "example.zz", "gone.zz"]);
}

#[tokio::test]
async fn a_registry_that_never_ends_ends_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec();
    let registry = ScriptedServer::start(move |_| ScriptedReply::Stall(head.clone())).await;
    let net = net_within(Duration::from_millis(200)).with_rdap(&registry.url("/").parse().unwrap());
    let started = Instant::now();
    let outcome = look(&net, "example.com", 30).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::RegistryUnreadable { .. })), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
