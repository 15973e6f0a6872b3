//! Tests of the component probe against status pages on loopback.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parallax_agent::probe::{Probes, run};
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireComponentCheck},
    result::{ProbeReport, VendorState, WireFailure, WireOutcome, WireOwnFault},
};

use crate::harness::{ScriptedReply, ScriptedServer, no_resolver, probes, probes_with};

const STATUSPAGE: &str = include_str!("../fixtures/vendor/statuspage/partial.json");
const DEGRADED: &str = include_str!("../fixtures/vendor/statuspage/degraded_in_group.json");
const OPENSTATUS: &str = include_str!("../fixtures/vendor/openstatus/without_ids.json");
const INSTATUS: &str = include_str!("../fixtures/vendor/instatus/fine.summary.json");
const INSTATUS_LIST: &str = include_str!("../fixtures/vendor/instatus/list.components.json");
const BETTERSTACK: &str = include_str!("../fixtures/vendor/betterstack/downtime.json");

async fn look(probes: &Probes, url: &str, component: Option<&str>) -> ProbeReport {
    let check = WireComponentCheck { vendor_url: url.to_owned(), component: component.map(str::to_owned) };
    run(&WireCheckSpec::Component(check), probes).await
}

/// Starts a page with these documents, and HTML with status 200 at every other address, as is common.
async fn page(documents: &'static [(&'static str, &'static str)]) -> ScriptedServer {
    ScriptedServer::start(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        let document = documents.iter().find(|(at, _)| *at == path);
        ScriptedReply::ok(document.map_or("<html>not a document</html>", |(_, document)| document))
    })
    .await
}

#[tokio::test]
async fn each_product_is_recognised_by_its_shape() {
    let server = page(&[("/api/v2/summary.json", STATUSPAGE)]).await;
    let report = look(&probes(), &server.url("/history"), None).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::VendorOutage));
    let reading = report.vendor.unwrap();
    assert_eq!(reading.state, VendorState::PartialOutage);
    assert_eq!(reading.vendor_text.as_str(), "Partial System Outage");
    assert_eq!(reading.incident.unwrap().as_str(), "Errors in Frankfurt");
    assert_eq!(report.status_code, None);

    let server = page(&[("/summary.json", INSTATUS), ("/v2/components.json", INSTATUS_LIST)]).await;
    let probes = probes();
    assert_eq!(look(&probes, &server.url("/"), None).await.outcome, WireOutcome::Passed);
    let report = look(&probes, &server.url("/"), Some("Core / API")).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::VendorOutage));

    let server = page(&[("/index.json", BETTERSTACK)]).await;
    let report = look(&probes, &server.url("/"), Some("API")).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::VendorOutage));

    let server = page(&[("/acme/api/status/summary.json", OPENSTATUS)]).await;
    let at_once = probes.with_full_page_detection();
    let report = look(&at_once, &server.url("/acme"), Some("api")).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.vendor.unwrap().state, VendorState::Maintenance);
}

/// Returns the reason of an outcome without a verdict on the vendor.
fn why(outcome: &WireOutcome) -> &str {
    match outcome {
        WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { detail }) => detail.as_str(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn degraded_passes_and_is_reported() {
    let server = page(&[("/api/v2/summary.json", DEGRADED)]).await;
    let report = look(&probes(), &server.url("/"), Some("Frankfurt")).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.vendor.unwrap().state, VendorState::Degraded);
}

#[tokio::test]
async fn unreadable_or_missing_components_are_inconclusive() {
    let server = page(&[]).await;
    let outcome = look(&probes(), &server.url("/"), None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");

    let server = page(&[("/api/v2/summary.json", STATUSPAGE)]).await;
    let outcome = look(&probes(), &server.url("/"), Some("Tokyo")).await.outcome;
    assert!(why(&outcome).starts_with("no component \"Tokyo\"; it has \""), "{outcome:?}");
    let outcome = look(&probes(), &server.url("/"), Some("Frankfort")).await.outcome;
    assert_eq!(why(&outcome), "no component \"Frankfort\"; similar: \"Frankfurt\"");

    for (reply, text) in [
        (ScriptedReply::ok("<!doctype html><p>All systems operational"), "HTML instead of JSON"),
        (ScriptedReply::ok("{\"ok\":true}"), "its JSON is of another form"),
        (ScriptedReply::ok("fine"), "its answer is not JSON"),
        (ScriptedReply::ok(""), "its answer is empty"),
        (ScriptedReply::status(403), "it answers with status 403"),
    ] {
        let server = ScriptedServer::start(move |_| reply.clone()).await;
        let outcome = look(&probes().with_full_page_detection(), &server.url("/"), None).await.outcome;
        assert_eq!(why(&outcome), format!("no known kind of status page ({text})"));
    }

    let server = ScriptedServer::start(|_| ScriptedReply::status(503)).await;
    let outcome = look(&probes(), &server.url("/"), None).await.outcome;
    assert_eq!(why(&outcome), "it answers with status 503");
    assert_eq!(server.requests().len(), 1, "a failing server gets no further requests");

    let outcome = look(&probes(), "ftp://status.example", None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })));
}

#[tokio::test]
async fn monitors_of_a_page_share_one_reading() {
    let server = page(&[("/api/v2/summary.json", STATUSPAGE)]).await;
    let probes = probes();
    let looks = ["Frankfurt", "Web", "Frankfurt", "Nowhere"].map(|component| {
        let (probes, url) = (probes.clone(), server.url("/"));
        tokio::spawn(async move { look(&probes, &url, Some(component)).await.outcome })
    });
    let mut outcomes = Vec::new();
    for look in looks {
        outcomes.push(look.await.unwrap());
    }
    assert_eq!(outcomes[0], WireOutcome::Failed(WireFailure::VendorOutage));
    assert_eq!(outcomes[1], WireOutcome::Passed);
    assert_eq!(outcomes[2], outcomes[0]);
    assert!(why(&outcomes[3]).starts_with("no component \"Nowhere\""), "{outcomes:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_page_is_fetched_conditionally() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let server = ScriptedServer::start(move |request| {
        if request.contains("if-none-match: \"v1\"") {
            count.fetch_add(1, Ordering::SeqCst);
            return ScriptedReply::text("HTTP/1.1 304 Not Modified\r\n\r\n");
        }
        let head = format!("HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: {}\r\n\r\n", STATUSPAGE.len());
        ScriptedReply::text(&format!("{head}{STATUSPAGE}"))
    })
    .await;
    let probes = probes().with_page_lifetime(Duration::ZERO);
    for _ in 0..3 {
        let report = look(&probes, &server.url("/"), None).await;
        assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::VendorOutage), "{report:?}");
    }
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn the_guard_covers_pages_and_their_redirects() {
    let inner = page(&[("/api/v2/summary.json", STATUSPAGE)]).await;
    let guarded = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    let outcome = look(&guarded, &inner.url("/"), None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");

    let to = inner.url("/api/v2/summary.json").replace("127.0.0.1", "127.0.0.2");
    let outer = ScriptedServer::start(move |_| ScriptedReply::redirect(302, &to)).await;
    let deny = vec!["127.0.0.2".parse().unwrap()];
    let policy = DialPolicy { allow_private: true, allow_own_host: true, deny, ..DialPolicy::default() };
    let outcome = look(&probes_with(&no_resolver(), policy, &[]), &outer.url("/"), None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");
    assert!(inner.requests().is_empty());
}

const KUMA: &str = include_str!("../fixtures/vendor/kuma/groups.page.json");
const BEATS: &str = include_str!("../fixtures/vendor/kuma/some.beats.json");
const ENTRY: &str = r#"{"type":"statusPageMatchedDomain","statusPageSlug":"acme"}"#;
const ROBOT: &str = include_str!("../fixtures/vendor/uptimerobot/some.json");
const KUMA_PAGE: &[(&str, &str)] =
    &[("/api/entry-page", ENTRY), ("/api/status-page/acme", KUMA), ("/api/status-page/heartbeat/acme", BEATS)];

#[tokio::test]
async fn a_page_of_two_documents_is_shared_and_fetched_conditionally() {
    let server = ScriptedServer::start(|request| {
        let path = request.split(' ').nth(1).unwrap();
        let Some((_, document)) = KUMA_PAGE.iter().find(|(at, _)| *at == path) else {
            return ScriptedReply::status(404);
        };
        let tag = format!("\"{}\"", document.len());
        if request.contains(&format!("if-none-match: {tag}")) {
            return ScriptedReply::text("HTTP/1.1 304 Not Modified\r\n\r\n");
        }
        let length = document.len();
        ScriptedReply::text(&format!("HTTP/1.1 200 OK\r\netag: {tag}\r\ncontent-length: {length}\r\n\r\n{document}"))
    })
    .await;
    let url = server.url("/status/acme");
    let shared = probes();
    for (component, outcome) in [
        (Some("Core / API"), WireOutcome::Failed(WireFailure::VendorOutage)),
        (Some("Web"), WireOutcome::Passed),
        (None, WireOutcome::Passed),
    ] {
        assert_eq!(look(&shared, &url, component).await.outcome, outcome, "{component:?}");
    }
    let outcome = look(&shared, &url, Some("Nowhere")).await.outcome;
    assert!(why(&outcome).starts_with("no component \"Nowhere\"; it has \""), "{outcome:?}");
    assert_eq!(server.requests().len(), 2, "its address determines its kind");
    assert_eq!(shared.vendor_product(&url), Some("Uptime Kuma"));

    let eager = probes().with_page_lifetime(Duration::ZERO);
    for _ in 0..2 {
        let outcome = look(&eager, &url, Some("Core / API")).await.outcome;
        assert_eq!(outcome, WireOutcome::Failed(WireFailure::VendorOutage));
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert!(requests[4..].iter().all(|request| request.contains("if-none-match")));
}

#[tokio::test]
async fn an_unknown_page_is_detected_over_several_checks() {
    let server = page(KUMA_PAGE).await;
    let probes = probes().with_page_lifetime(Duration::ZERO);
    let mut requests = 0;
    let mut rounds = 0;
    while probes.vendor_product(&server.url("/")).is_none() {
        let outcome = look(&probes, &server.url("/"), Some("Core / API")).await.outcome;
        let now = server.requests().len();
        rounds += 1;
        assert!(rounds <= 4, "{outcome:?}");
        if probes.vendor_product(&server.url("/")).is_none() {
            assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");
            assert!(now - requests <= 4, "{} requests in one round", now - requests);
        } else {
            assert_eq!(outcome, WireOutcome::Failed(WireFailure::VendorOutage));
        }
        requests = now;
    }
    look(&probes, &server.url("/"), None).await;
    assert_eq!(server.requests().len() - requests, 2, "the two documents and nothing else");

    let robot = page(&[("/api/getMonitorList/x?page=1", ROBOT)]).await;
    let once = self::probes().with_full_page_detection();
    let outcome = look(&once, &robot.url("/"), Some("API")).await.outcome;
    assert_eq!(outcome, WireOutcome::Failed(WireFailure::VendorOutage));
    assert_eq!(once.vendor_product(&robot.url("/")), Some("UptimeRobot"));
}

#[tokio::test]
async fn the_second_document_is_sent_nowhere_that_the_guard_refuses() {
    let inner = page(KUMA_PAGE).await;
    let to = inner.url("/api/status-page/heartbeat/acme").replace("127.0.0.1", "127.0.0.2");
    let outer = ScriptedServer::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/api/status-page/acme" => ScriptedReply::ok(KUMA),
        _ => ScriptedReply::redirect(302, &to),
    })
    .await;
    let policy = DialPolicy {
        allow_private: true,
        allow_own_host: true,
        deny: vec!["127.0.0.2".parse().unwrap()],
        ..DialPolicy::default()
    };
    let guarded = probes_with(&no_resolver(), policy, &[]);
    let outcome = look(&guarded, &outer.url("/status/acme"), None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");
    assert!(inner.requests().is_empty());
}

#[tokio::test]
async fn a_document_beyond_its_bound_is_not_read() {
    let server = ScriptedServer::start(|_| {
        let padding = " ".repeat(1024 * 1024);
        ScriptedReply::ok(&format!("{padding}{STATUSPAGE}"))
    })
    .await;
    let outcome = look(&probes(), &server.url("/"), None).await.outcome;
    assert!(matches!(outcome, WireOutcome::Inconclusive(WireOwnFault::VendorUnreadable { .. })), "{outcome:?}");
}

/// Responds with `document` and its tag, or with status 304.
fn tagged(request: &str, document: &str, tag: usize) -> ScriptedReply {
    if request.contains(&format!("if-none-match: \"{tag}\"")) {
        return ScriptedReply::text("HTTP/1.1 304 Not Modified\r\n\r\n");
    }
    let length = document.len();
    ScriptedReply::text(&format!("HTTP/1.1 200 OK\r\netag: \"{tag}\"\r\ncontent-length: {length}\r\n\r\n{document}"))
}

#[tokio::test]
async fn only_requested_readings_of_a_large_page_are_cached() {
    let filler = (0..3_000).map(|n| format!(r#"{{"name":"filler {n}","status":"operational"}},"#));
    let large =
        STATUSPAGE.replacen("\"components\": [", &format!("\"components\": [{}", filler.collect::<String>()), 1);
    assert!(large.len() > STATUSPAGE.len() + 100_000);
    let server = ScriptedServer::start(move |request| tagged(request, &large, 1)).await;
    let (url, probes) = (server.url("/"), probes());
    let down = WireOutcome::Failed(WireFailure::VendorOutage);
    assert_eq!(look(&probes, &url, Some("Frankfurt")).await.outcome, down);
    assert_eq!(look(&probes, &url, Some("Web")).await.outcome, WireOutcome::Passed);
    assert_eq!(server.requests().len(), 2, "a component without a request was not cached");
    for (component, outcome) in [("frankfurt", &down), ("Web", &WireOutcome::Passed), ("Frankfurt", &down)] {
        assert_eq!(look(&probes, &url, Some(component)).await.outcome, *outcome, "{component}");
    }
    let missing = look(&probes, &url, Some("Nowhere")).await.outcome;
    assert_eq!(look(&probes, &url, Some("Nowhere")).await.outcome, missing);
    assert!(why(&missing).starts_with("no component \"Nowhere\"; it has \""), "{missing:?}");
    assert_eq!(server.requests().len(), 3);

    let eager = self::probes().with_page_lifetime(Duration::ZERO);
    for component in ["Frankfurt", "Frankfurt", "Web", "Frankfurt"] {
        look(&eager, &url, Some(component)).await;
    }
    let requests = server.requests()[3..].iter().map(|it| it.contains("if-none-match")).collect::<Vec<_>>();
    assert_eq!(requests, [false, true, false, true], "conditional requests only serve known components");
}

#[tokio::test]
async fn a_page_with_one_changed_document_is_read_completely() {
    let is_bad = Arc::new(AtomicUsize::new(0));
    let state = Arc::clone(&is_bad);
    let server = ScriptedServer::start(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        match path {
            "/api/status-page/acme" => tagged(request, KUMA, 1),
            "/api/status-page/heartbeat/acme" if state.load(Ordering::SeqCst) == 0 => {
                tagged(request, &BEATS.replace("\"status\": 0", "\"status\": 1"), 1)
            }
            "/api/status-page/heartbeat/acme" => tagged(request, BEATS, 2),
            _ => ScriptedReply::status(404),
        }
    })
    .await;
    let probes = probes().with_page_lifetime(Duration::ZERO);
    let url = server.url("/status/acme");
    let outcome = async || look(&probes, &url, Some("Core / API")).await.outcome;
    assert_eq!(outcome().await, WireOutcome::Passed);
    assert_eq!(outcome().await, WireOutcome::Passed);
    is_bad.store(1, Ordering::SeqCst);
    for _ in 0..2 {
        assert_eq!(outcome().await, WireOutcome::Failed(WireFailure::VendorOutage));
    }
    // Twice 2, then 2 of which one has changed and both again, then 2.
    assert_eq!(server.requests().len(), 10);
}
