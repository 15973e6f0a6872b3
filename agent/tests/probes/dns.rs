//! Tests of the dns probe.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WireDnsCheck, WireRecordType},
    result::{AddressClass, ProbeReport, WireFailure, WireOutcome, WireOwnFault, WirePhase},
    text::ShortText,
};

use crate::{
    harness::probes_with,
    scripted_zone::{A, AAAA, CNAME, MX, NS, ScriptedZone, TXT, ZoneAnswer, ZoneQuery, exchange, name, text},
};

async fn run_check(zone: &ScriptedZone, host: &str, record: WireRecordType, expect: Option<&str>) -> ProbeReport {
    ask_within(zone, host, record, expect, Duration::from_secs(10)).await
}

async fn ask_within(
    zone: &ScriptedZone,
    host: &str,
    record: WireRecordType,
    expect: Option<&str>,
    limit: Duration,
) -> ProbeReport {
    let probes = probes_with(&zone.resolver(), DialPolicy::default(), &[]).with_limit(limit);
    let check = WireDnsCheck { host: host.to_owned(), record, expect: expect.map(str::to_owned) };
    run(&WireCheckSpec::Dns(check), &probes).await
}

fn site(question: &ZoneQuery) -> ZoneAnswer {
    ZoneAnswer::Records(match question.kind {
        A => vec![(A, vec![192, 0, 2, 1]), (A, vec![192, 0, 2, 2])],
        AAAA => vec![(AAAA, [vec![0x20, 0x01, 0x0d, 0xb8], vec![0; 11], vec![7]].concat())],
        CNAME => vec![(CNAME, name("Shop.Hosting.example"))],
        MX => vec![(MX, exchange(20, "b.mx.example")), (MX, exchange(10, "a.mx.example"))],
        TXT => vec![(TXT, text(&["v=spf1 include:_s", "pf.example -all"])), (TXT, text(&["Other"]))],
        NS => vec![(NS, name("ns1.example")), (NS, name("ns2.example"))],
        _ => vec![],
    })
}

#[tokio::test]
async fn every_record_type_is_queried_and_any_answer_may_match() {
    let zone = ScriptedZone::start(site).await;
    for (record, expect) in [
        (WireRecordType::A, "192.0.2.2"),
        (WireRecordType::Aaaa, "2001:db8:0::7"),
        (WireRecordType::Cname, "shop.hosting.example."),
        (WireRecordType::Mx, "10 A.mx.example"),
        (WireRecordType::Txt, "include:_spf.example"),
        (WireRecordType::Ns, "NS2.example"),
    ] {
        let report = run_check(&zone, "example.com", record, Some(expect)).await;
        assert_eq!(report.outcome, WireOutcome::Passed, "{record:?}");
        assert!(report.latency_ms.is_some() && report.phases.dns_us.is_some());
        assert_eq!(run_check(&zone, "example.com", record, None).await.outcome, WireOutcome::Passed, "{record:?}");
        let mismatch = run_check(&zone, "example.com", record, Some("elsewhere")).await.outcome;
        assert!(matches!(mismatch, WireOutcome::Failed(WireFailure::DnsMismatch { .. })), "{record:?}: {mismatch:?}");
    }
    let got = ShortText::new("ns1.example, ns2.example");
    let report = run_check(&zone, "example.com", WireRecordType::Ns, Some("ns3")).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::DnsMismatch { got }));
}

#[tokio::test]
async fn the_root_has_name_servers() {
    let zone = ScriptedZone::start(|question| match (question.name.as_str(), question.kind) {
        ("", NS) => ZoneAnswer::Records(vec![(NS, name("a.root-servers.net"))]),
        _ => ZoneAnswer::Code(3),
    })
    .await;
    let report = run_check(&zone, ".", WireRecordType::Ns, Some("a.root-servers.net")).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn each_failed_query_has_its_failure() {
    let zone = ScriptedZone::start(|question| match question.name.as_str() {
        // The root's name servers: the resolver works.
        "" => ZoneAnswer::Records(vec![(NS, name("a.root-servers.net"))]),
        // It also reaches large zones, which have no such name.
        name if name.starts_with("px") => ZoneAnswer::Code(3),
        "gone.example" => ZoneAnswer::Code(3),
        "empty.example" => ZoneAnswer::Records(vec![]),
        "broken.example" => ZoneAnswer::Code(2),
        "refused.example" => ZoneAnswer::Code(5),
        _ => ZoneAnswer::Silence,
    })
    .await;
    for (host, failure) in [
        ("gone.example", WireFailure::DnsNotFound),
        ("empty.example", WireFailure::DnsNoRecord),
        ("broken.example", WireFailure::DnsFailed { code: 2 }),
        ("refused.example", WireFailure::DnsFailed { code: 5 }),
    ] {
        let report = run_check(&zone, host, WireRecordType::Mx, None).await;
        assert_eq!(report.outcome, WireOutcome::Failed(failure), "{host}");
        assert!(report.latency_ms.is_some(), "{host}");
    }
    let limit = Duration::from_millis(200);
    let report = ask_within(&zone, "silent.example", WireRecordType::A, None, limit).await;
    assert_eq!(report.outcome, WireOutcome::Failed(WireFailure::Timeout { phase: WirePhase::Dns }));
    assert_eq!(report.latency_ms, None);
}

#[tokio::test]
async fn a_dead_resolver_is_no_fault_of_the_name() {
    let zone = ScriptedZone::start(|_| ZoneAnswer::Code(2)).await;
    let report = run_check(&zone, "example.com", WireRecordType::A, None).await;
    // The root is answered with an error too.
    assert_eq!(report.outcome, WireOutcome::Inconclusive(WireOwnFault::ResolverDead));
}

#[tokio::test]
async fn a_long_answer_arrives_over_tcp() {
    let zone = ScriptedZone::start(|question| {
        if !question.is_tcp {
            return ZoneAnswer::CutShort;
        }
        let long = "x".repeat(250);
        let filler = (0..20).map(|_| (TXT, text(&[&long, &long])));
        ZoneAnswer::Records(filler.chain([(TXT, text(&["the last one"]))]).collect())
    })
    .await;
    let report = run_check(&zone, "long.example", WireRecordType::Txt, Some("the last one")).await;
    assert_eq!(report.outcome, WireOutcome::Passed);
}

#[tokio::test]
async fn nothing_is_cached_between_checks() {
    let query_count = AtomicUsize::new(0);
    let zone = ScriptedZone::start(move |_| {
        let last = if query_count.fetch_add(1, Ordering::SeqCst) == 0 { 1 } else { 2 };
        ZoneAnswer::Records(vec![(A, vec![192, 0, 2, last])])
    })
    .await;
    let probes = probes_with(&zone.resolver(), DialPolicy::default(), &[]);
    for expect in ["192.0.2.1", "192.0.2.2"] {
        let check = WireDnsCheck { host: "a.example".into(), record: WireRecordType::A, expect: Some(expect.into()) };
        assert_eq!(run(&WireCheckSpec::Dns(check), &probes).await.outcome, WireOutcome::Passed, "{expect}");
    }
}

#[tokio::test]
async fn invalid_names_are_not_queried() {
    let zone = ScriptedZone::start(site).await;
    for host in ["192.0.2.1", "::1", "", "a b"] {
        let outcome = run_check(&zone, host, WireRecordType::A, None).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{host}: {outcome:?}");
    }
}

#[tokio::test]
async fn private_records_are_dropped_unless_private_targets_are_allowed() {
    let query_count = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&query_count);
    let zone = ScriptedZone::start(move |question| {
        count.fetch_add(1, Ordering::SeqCst);
        ZoneAnswer::Records(match (question.name.as_str(), question.kind) {
            ("both.example", A) => vec![(A, vec![10, 1, 2, 3]), (A, vec![192, 0, 2, 1])],
            ("both.example", MX) => {
                vec![(MX, exchange(5, "mx.corp")), (MX, exchange(10, "mx.example"))]
            }
            (_, A) => vec![(A, vec![10, 1, 2, 3]), (A, vec![127, 0, 0, 1]), (A, vec![169, 254, 1, 1])],
            (_, AAAA) => {
                let translated = [vec![0, 0x64, 0xff, 0x9b], vec![0; 8], vec![10, 1, 2, 3]].concat();
                vec![(AAAA, [vec![0xfd], vec![0; 15]].concat()), (AAAA, translated)]
            }
            (_, CNAME) => vec![(CNAME, name("vault.internal"))],
            (_, NS) => vec![(NS, name("ns1.corp"))],
            (_, MX) => vec![(MX, exchange(10, "mail.lan"))],
            _ => vec![],
        })
    })
    .await;
    for record in
        [WireRecordType::A, WireRecordType::Aaaa, WireRecordType::Cname, WireRecordType::Ns, WireRecordType::Mx]
    {
        for expect in [None, Some("1"), Some("vault"), Some("guessed")] {
            // The same error as for a name without such a record: it reveals nothing of the answer, not even
            // its existence.
            let outcome = run_check(&zone, "inner.example", record, expect).await.outcome;
            assert_eq!(outcome, WireOutcome::Failed(WireFailure::DnsNoRecord), "{record:?}, {expect:?}");
        }
    }
    // The message of a mismatch contains no private address either.
    let got = |text: &str| WireOutcome::Failed(WireFailure::DnsMismatch { got: ShortText::new(text) });
    assert_eq!(run_check(&zone, "both.example", WireRecordType::A, Some("10.1")).await.outcome, got("192.0.2.1"));
    assert_eq!(run_check(&zone, "both.example", WireRecordType::Mx, Some("corp")).await.outcome, got("10 mx.example"));

    let before = query_count.load(Ordering::SeqCst);
    for host in ["vault.internal", "nas.local", "a.home.arpa", "1.0.10.in-addr.arpa", "db.corp", "localhost"] {
        let outcome = run_check(&zone, host, WireRecordType::Txt, Some("v")).await.outcome;
        let class = AddressClass::Private;
        assert_eq!(outcome, WireOutcome::Failed(WireFailure::AddressNotAllowed { class }), "{host}");
    }
    assert_eq!(query_count.load(Ordering::SeqCst), before, "such names are not queried");

    let open = probes_with(&zone.resolver(), DialPolicy { allow_private: true, ..DialPolicy::default() }, &[]);
    for (host, record, expect) in
        [("inner.example", WireRecordType::A, "10.1.2.3"), ("nas.local", WireRecordType::Cname, "vault.internal")]
    {
        let check = WireDnsCheck { host: host.into(), record, expect: Some(expect.into()) };
        assert_eq!(run(&WireCheckSpec::Dns(check), &open).await.outcome, WireOutcome::Passed, "{host}");
    }
}
