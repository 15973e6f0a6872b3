//! Tests of the ping probe against the kernel of this host.

use std::{net::Ipv4Addr, time::Duration};

use parallax_agent::probe::run;
use parallax_dial::DialPolicy;
use parallax_protocol::{
    check::{WireCheckSpec, WirePingCheck},
    result::{AddressClass, ProbeReport, WireFailure, WireOutcome, WireOwnFault},
};

use crate::harness::{no_resolver, probes, probes_with, probes_within, resolver_to};

fn to(host: &str) -> WireCheckSpec {
    WireCheckSpec::Ping(WirePingCheck { host: host.to_owned() })
}

/// Returns true if this host permits pings; otherwise the test is skipped.
fn may_send(report: &ProbeReport) -> bool {
    if report.outcome == WireOutcome::Inconclusive(WireOwnFault::NotPermitted) {
        println!("skipped: this host does not permit ICMP");
        return false;
    }
    true
}

#[tokio::test]
async fn loopback_replies_in_both_families() {
    let probes = probes();
    for host in ["127.0.0.1", "::1"] {
        let report = run(&to(host), &probes).await;
        if report.outcome == WireOutcome::Inconclusive(WireOwnFault::NoRoute) && host == "::1" {
            println!("skipped: this host has no IPv6");
            continue;
        }
        if !may_send(&report) {
            return;
        }
        assert_eq!(report.outcome, WireOutcome::Passed, "{host}");
        assert_eq!(report.address, Some(host.parse().unwrap()));
        assert!(report.latency_ms.unwrap() >= 1);
        assert!(report.phases.connect_us.is_some());
        assert_eq!(report.phases.dns_us, None);
    }
}

#[tokio::test]
async fn a_name_is_reached_by_the_address_that_is_allowed() {
    let (_zone, resolver) = resolver_to(&["127.0.0.1", "::1"]).await;
    let policy = DialPolicy {
        allow_private: true,
        allow_own_host: true,
        deny: vec!["::1".parse().unwrap()],
        ..DialPolicy::default()
    };
    let report = run(&to("host.example"), &probes_with(&resolver, policy, &[])).await;
    if may_send(&report) {
        assert_eq!(report.outcome, WireOutcome::Passed);
        assert_eq!(report.address, Some(Ipv4Addr::LOCALHOST.into()));
        assert!(report.phases.dns_us.is_some());
    }
}

#[tokio::test]
async fn many_checks_share_a_socket_without_mixing_replies() {
    let probes = probes();
    let checks: Vec<_> = (1..=100)
        .map(|last| {
            let probes = probes.clone();
            tokio::spawn(async move { (last, run(&to(&format!("127.0.0.{last}")), &probes).await) })
        })
        .collect();
    for check in checks {
        let (last, report) = check.await.unwrap();
        if !may_send(&report) {
            return;
        }
        assert_eq!(report.outcome, WireOutcome::Passed);
        assert_eq!(report.address, Some(Ipv4Addr::new(127, 0, 0, last).into()));
    }
}

#[tokio::test]
async fn silence_fails_and_private_addresses_are_refused() {
    // An unused address, whether it is routable or not.
    let report = run(&to("10.255.255.254"), &probes_within(Duration::from_millis(300))).await;
    if may_send(&report) {
        assert!(
            matches!(
                report.outcome,
                WireOutcome::Failed(WireFailure::NoReply | WireFailure::Unreachable)
                    | WireOutcome::Inconclusive(WireOwnFault::NoRoute)
            ),
            "{:?}",
            report.outcome
        );
        assert_eq!(report.latency_ms, None);
    }
    let guarded = probes_with(&no_resolver(), DialPolicy::default(), &[]);
    let refused = WireOutcome::Failed(WireFailure::AddressNotAllowed { class: AddressClass::Loopback });
    assert_eq!(run(&to("127.0.0.1"), &guarded).await.outcome, refused);
    for host in ["127.1", "[::1]", ""] {
        let outcome = run(&to(host), &probes()).await.outcome;
        assert!(matches!(outcome, WireOutcome::Failed(WireFailure::BadTarget { .. })), "{host}: {outcome:?}");
    }
}
