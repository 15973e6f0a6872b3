//! Tests of the http probe without TLS: methods, headers, status, keyword, redirects, broken servers.

use std::time::Duration;

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireHeader, WireHttpCheck, WireKeywordMode, WireMethod},
    result::{ProbeReport, WireFailure, WireOutcome, WirePhase},
    text::SecretText,
};
use tokio::net::TcpListener;

use crate::harness::{ScriptedReply, ScriptedServer, get, keyword, probes, probes_with, probes_within, resolver_to};

async fn check(check: WireHttpCheck) -> ProbeReport {
    run(&WireCheckSpec::Http(check), &probes()).await
}

async fn outcome_of(reply: ScriptedReply) -> WireOutcome {
    let server = ScriptedServer::start(move |_| reply.clone()).await;
    check(get(&server.url("/"))).await.outcome
}

#[tokio::test]
async fn a_good_response_passes_with_its_measurements() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("hello")).await;
    let report = check(get(&server.url("/health?x=1"))).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
    assert_eq!(report.status_code, Some(200));
    assert_eq!(report.address, Some(server.address.ip()));
    assert!(report.latency_ms.unwrap() >= 1);
    assert!(report.phases.connect_us.is_some() && report.phases.first_byte_us.is_some());
    assert!(report.phases.tls_us.is_none() && report.phases.transfer_us.is_none());
    let requests = server.requests();
    assert!(requests[0].starts_with("GET /health?x=1 HTTP/1.1\r\n"));
    assert!(requests[0].contains(&format!("host: {}\r\n", server.address)));
    assert!(requests[0].contains("accept-encoding: identity\r\n"));
    assert!(requests[0].contains("user-agent: Parallax/"));
}

#[tokio::test]
async fn another_status_fails_and_is_reported() {
    let server = ScriptedServer::start(|_| ScriptedReply::status(503)).await;
    let report = check(get(&server.url("/"))).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 503 }));
    assert_eq!(report.status_code, Some(503));
    assert!(report.latency_ms.is_some(), "there was a response");
    let expected = WireHttpCheck { expect_status: Some(503), ..get(&server.url("/")) };
    assert_eq!(check(expected).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn each_method_is_sent_and_only_some_with_a_body() {
    let server = ScriptedServer::start(|request| {
        if request.starts_with("HEAD") {
            ScriptedReply::text("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
        } else {
            ScriptedReply::ok("")
        }
    })
    .await;
    for (method, body) in [
        (WireMethod::Get, false),
        (WireMethod::Head, false),
        (WireMethod::Post, true),
        (WireMethod::Put, true),
        (WireMethod::Patch, true),
        (WireMethod::Delete, true),
    ] {
        let headers = vec![WireHeader { name: "Content-Type".to_owned(), value: SecretText::new("text/x") }];
        let own = WireHttpCheck {
            method,
            headers,
            body: Some(SecretText::new("{\"a\": \"\u{e4}\"}")),
            ..get(&server.url("/"))
        };
        assert_eq!(check(own).await.outcome, WireOutcome::Passed, "{method:?}");
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with(method.token()));
        assert_eq!(request.ends_with("{\"a\": \"\u{e4}\"}"), body, "{request}");
        assert_eq!(request.contains("content-length: 11\r\n"), body, "{request}");
        assert!(request.contains("content-type: text/x\r\n"));
    }
}

#[tokio::test]
async fn a_keyword_is_found_across_chunks() {
    let server = ScriptedServer::start(|_| {
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        ScriptedReply::Pieces(vec![head, chunk("all sys"), chunk("tems "), chunk("fine"), b"0\r\n\r\n".to_vec()])
    })
    .await;
    let url = server.url("/");
    for (text, mode, outcome) in [
        ("systems fine", WireKeywordMode::Present, WireOutcome::Passed),
        ("systems fine", WireKeywordMode::Absent, WireOutcome::Failed(WireFailure::KeywordPresent)),
        ("Systems", WireKeywordMode::Present, WireOutcome::Failed(WireFailure::KeywordMissing)),
        ("broken", WireKeywordMode::Absent, WireOutcome::Passed),
    ] {
        let report = run(&keyword(&url, text, mode), &probes()).await;
        assert_eq!(report.outcome, outcome, "{text} {mode:?}");
        assert!(report.phases.transfer_us.is_some());
        assert!(report.latency_ms.is_some());
    }
}

#[tokio::test]
async fn a_keyword_beyond_two_mebibytes_is_not_read() {
    let server = ScriptedServer::start(|request| {
        let filler = if request.contains("/in") { 2 * 1024 * 1024 - 4 } else { 2 * 1024 * 1024 - 3 };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", filler + 4);
        ScriptedReply::Pieces(vec![head.into_bytes(), vec![b'a'; filler], b"fine".to_vec()])
    })
    .await;
    let within = run(&keyword(&server.url("/in"), "fine", WireKeywordMode::Present), &probes()).await;
    assert_eq!(within.outcome, WireOutcome::Passed);
    let beyond = run(&keyword(&server.url("/out"), "fine", WireKeywordMode::Present), &probes()).await;
    assert_eq!(beyond.outcome, WireOutcome::Failed(WireFailure::BodyTooLarge));
    let absent = run(&keyword(&server.url("/out"), "fine", WireKeywordMode::Absent), &probes()).await;
    assert_eq!(absent.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn a_head_answer_has_no_body_to_search() {
    let server = ScriptedServer::start(|_| ScriptedReply::text("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n")).await;
    let head = WireHttpCheck { method: WireMethod::Head, keyword: Some("fine".to_owned()), ..get(&server.url("/")) };
    assert_eq!(check(head).await.outcome, WireOutcome::Failed(WireFailure::KeywordMissing));
}

#[tokio::test]
async fn a_body_in_an_unknown_coding_is_not_searched() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nfine";
    let server = ScriptedServer::start(move |_| ScriptedReply::text(reply)).await;
    let report = run(&keyword(&server.url("/"), "fine", WireKeywordMode::Present), &probes()).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::BodyUndecodable));
    assert_eq!(check(get(&server.url("/"))).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn redirects_are_followed_and_the_last_answer_counts() {
    let server = ScriptedServer::start(|request| {
        let path = request.split(' ').nth(1).unwrap();
        match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => ScriptedReply::ok("there"),
            Ok(left) => ScriptedReply::redirect(302, &format!("/{}", left - 1)),
            Err(_) => ScriptedReply::redirect(302, "/loop"),
        }
    })
    .await;
    let five = check(get(&server.url("/5"))).await;
    assert_eq!(five.outcome, WireOutcome::Passed);
    assert_eq!(five.status_code, Some(200));
    assert_eq!(server.requests().len(), 6);
    let six = check(get(&server.url("/6"))).await;
    assert_eq!(six.outcome, WireOutcome::Failed(WireFailure::TooManyRedirects));
    assert_eq!(check(get(&server.url("/loop"))).await.outcome, WireOutcome::Failed(WireFailure::TooManyRedirects));
    assert_eq!(server.requests().len(), 18, "six requests per check, however long the chain");
}

#[tokio::test]
async fn an_expected_redirect_is_not_followed() {
    let server = ScriptedServer::start(|_| ScriptedReply::redirect(301, "/elsewhere")).await;
    let expected = WireHttpCheck { expect_status: Some(301), ..get(&server.url("/")) };
    assert_eq!(check(expected).await.outcome, WireOutcome::Passed);
    let other = WireHttpCheck { expect_status: Some(302), ..get(&server.url("/")) };
    assert_eq!(check(other).await.outcome, WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 301 }));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_redirect_to_no_web_address_fails() {
    for location in ["ftp://example.com/", "http://", "file:///etc/passwd"] {
        let outcome = outcome_of(ScriptedReply::redirect(302, location)).await;
        assert_eq!(outcome, WireOutcome::Failed(WireFailure::BadRedirect), "{location}");
    }
    let bare = outcome_of(ScriptedReply::status(302)).await;
    assert_eq!(bare, WireOutcome::Failed(WireFailure::UnexpectedStatus { got: 302 }));
}

#[tokio::test]
async fn secrets_of_the_customers_do_not_cross_to_another_host() {
    let (_zone, resolver) = resolver_to(&["127.0.0.1"]).await;
    let probes =
        probes_with(&resolver, DialPolicy { allow_private: true, allow_own_host: true, ..DialPolicy::default() }, &[]);
    let other = ScriptedServer::start(|_| ScriptedReply::ok("")).await;
    let target = format!("http://other.example:{}/", other.address.port());
    let first = ScriptedServer::start(move |request| {
        if request.starts_with("GET / ") {
            ScriptedReply::redirect(307, "/own")
        } else {
            ScriptedReply::redirect(307, &target)
        }
    })
    .await;
    let own = WireHttpCheck {
        headers: ["Cookie", "X-Token", "Host", "User-Agent", "Accept-Language"]
            .map(|name| WireHeader { name: name.to_owned(), value: SecretText::new("canary") })
            .to_vec(),
        ..get(&format!("http://user:canary@shop.example:{}/", first.address.port()))
    };
    assert_eq!(run(&WireCheckSpec::Http(own), &probes).await.outcome, WireOutcome::Passed);
    let same = first.requests();
    assert_eq!(same.len(), 2);
    for request in &same {
        assert_eq!(request.matches("canary").count(), 5, "{request}");
        assert!(request.contains("authorization: Basic "));
    }
    let crossed = other.requests().pop().unwrap();
    assert_eq!(crossed.matches("canary").count(), 2, "{crossed}");
    for line in ["user-agent: canary\r\n", "accept-language: canary\r\n"] {
        assert!(crossed.contains(line), "{crossed}");
    }
    assert!(crossed.contains(&format!("host: other.example:{}\r\n", other.address.port())));
}

#[tokio::test]
async fn broken_servers_have_their_own_failures() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(70_000));
    for (reply, failure) in [
        (ScriptedReply::Reset, WireFailure::Reset),
        (ScriptedReply::Pieces(Vec::new()), WireFailure::ClosedEarly),
        (ScriptedReply::text("HTTP/1.1 200 OK\r\nx: y"), WireFailure::ClosedEarly),
        (ScriptedReply::text("SSH-2.0-thing\r\n\r\n"), WireFailure::HttpMalformed),
        (ScriptedReply::text(&huge), WireFailure::HeadTooLarge),
    ] {
        assert_eq!(outcome_of(reply).await, WireOutcome::Failed(failure));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_fails_unless_the_verdict_is_reached() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nall fine";
    let server = ScriptedServer::start(move |_| ScriptedReply::text(reply)).await;
    let found = run(&keyword(&server.url("/"), "fine", WireKeywordMode::Present), &probes()).await;
    assert_eq!(found.outcome, WireOutcome::Passed);
    let absent = run(&keyword(&server.url("/"), "bad", WireKeywordMode::Absent), &probes()).await;
    assert_eq!(absent.outcome, WireOutcome::Failed(WireFailure::ClosedEarly));
    assert_eq!(absent.status_code, Some(200));
    assert_eq!(check(get(&server.url("/"))).await.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn silence_ends_at_the_limit_and_reports_the_phase() {
    let brief = probes_within(Duration::from_secs(1));
    let server = ScriptedServer::start(|_| ScriptedReply::Stall(Vec::new())).await;
    let report = run(&WireCheckSpec::Http(get(&server.url("/"))), &brief).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::FirstByte }));
    assert_eq!(report.latency_ms, None);

    let start = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec();
    let server = ScriptedServer::start(move |_| ScriptedReply::Stall(start.clone())).await;
    let report = run(&keyword(&server.url("/"), "fine", WireKeywordMode::Present), &brief).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Transfer }));
    assert_eq!(report.status_code, Some(200));
}

#[tokio::test]
async fn the_limit_is_of_the_whole_check_not_of_a_hop() {
    let server = ScriptedServer::start(|request| {
        if request.starts_with("GET /slow") {
            ScriptedReply::Stall(Vec::new())
        } else {
            ScriptedReply::redirect(302, "/slow")
        }
    })
    .await;
    let started = std::time::Instant::now();
    let brief = probes_within(Duration::from_secs(1));
    let report = run(&WireCheckSpec::Http(get(&server.url("/"))), &brief).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::FirstByte }));
    assert_eq!(report.status_code, None, "the last hop had no response");
    assert!(started.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(check(get(&url)).await.outcome, WireOutcome::Failed(WireFailure::Refused));
}

#[tokio::test]
async fn targets_that_break_a_rule_are_reported() {
    for url in ["ftp://example.com/", "nonsense", "http://a..b/"] {
        let outcome = check(get(url)).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{url}: {outcome:?}");
    }
}

#[tokio::test]
async fn every_check_connects_anew() {
    let server = ScriptedServer::start(|_| ScriptedReply::ok("")).await;
    let probes = probes();
    for _ in 0..3 {
        let report = run(&WireCheckSpec::Http(get(&server.url("/"))), &probes).await;
        assert!(report.phases.connect_us.is_some());
    }
    assert_eq!(server.requests().len(), 3);
}
