//! Tests of the conversion of agents' results to observations, and of checks to their wire form.

use parallax_core::id::AgentId;
use parallax_core::vantage::{NetworkNo, VantageNo};

use super::*;

fn agent() -> AgentRecord {
    AgentRecord {
        id: AgentId::from_u128(1),
        vantage_no: VantageNo(3),
        name: "fra1".to_owned(),
        region: Region::Europe,
        network: "AS1".to_owned(),
        network_no: NetworkNo(4),
        joined_at: Timestamp::from_millis(0),
        revoked_at: None,
        serial: Vec::new(),
        identity: parallax_core::member::IdentityState::default(),
    }
}

fn passed(started_ms: i64, age_ms: u64) -> wire::CheckResult {
    wire::CheckResult {
        monitor: wire_id::WireMonitorId(9),
        revision: 2,
        round: Some(5),
        started_ms,
        age_ms,
        report: wire::ProbeReport {
            latency_ms: Some(80),
            ..wire::ProbeReport::outcome_only(wire::WireOutcome::Passed)
        },
    }
}

#[test]
fn place_region_and_network_are_the_coordinators_record() {
    let seen = observation(passed(999_000, 900), CheckKind::Tcp, &agent(), Timestamp::from_millis(1_000_000));
    assert_eq!((seen.vantage, seen.region, seen.network), (VantageNo(3), Region::Europe, NetworkNo(4)));
    assert_eq!((seen.started.as_millis(), seen.ended.as_millis()), (999_000, 999_100));
}

#[test]
fn a_wrong_wall_clock_does_not_make_a_live_result_old_or_future() {
    for wrong in [0, 999_101, i64::MAX, i64::MIN] {
        let seen = observation(passed(wrong, 900), CheckKind::Tcp, &agent(), Timestamp::from_millis(1_000_000));
        assert_eq!((seen.started.as_millis(), seen.ended.as_millis()), (999_020, 999_100), "{wrong}");
    }
}

#[test]
fn absurd_ages_do_not_overflow() {
    let seen = observation(passed(5, u64::MAX), CheckKind::Tcp, &agent(), Timestamp::from_millis(10));
    assert!(seen.ended < Timestamp::from_millis(0));
}

#[test]
fn a_vendors_outage_is_told_in_its_own_words() {
    let report = wire::ProbeReport {
        vendor: Some(wire::VendorReading {
            state: wire::VendorState::MajorOutage,
            vendor_text: parallax_protocol::text::ShortText::new("major_outage"),
            incident: Some(parallax_protocol::text::ShortText::new("Pushes fail")),
        }),
        ..wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(wire::WireFailure::VendorOutage))
    };
    let seen::ProbeOutcome::Failed(_, failure) = outcome(report, CheckKind::Component) else { panic!("passed") };
    assert_eq!(failure.to_string(), "major_outage: Pushes fail");
}

#[test]
fn a_reason_is_named_by_what_was_checked() {
    let fault =
        wire::WireOwnFault::unsupported_tls(parallax_protocol::text::ShortText::new("TLS can't be judged: CBC alone"));
    for (kind, words) in [
        (CheckKind::Http, "TLS can't be judged: CBC alone"),
        (CheckKind::Certificate, "TLS can't be judged: CBC alone"),
        (CheckKind::Domain, "registry: TLS can't be judged: CBC alone"),
        (CheckKind::Component, "vendor's page: TLS can't be judged: CBC alone"),
    ] {
        let report = wire::ProbeReport::outcome_only(wire::WireOutcome::Inconclusive(fault.clone()));
        let seen::ProbeOutcome::Inconclusive(fault) = outcome(report, kind) else { panic!("judged") };
        assert!(fault.is_external());
        assert_eq!(fault.to_string(), words);
    }
}

#[test]
fn a_body_over_the_limit_says_so() {
    let report = wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(wire::WireFailure::BodyTooLarge));
    let seen::ProbeOutcome::Failed(_, failure) = outcome(report, CheckKind::Http) else { panic!("passed") };
    assert_eq!(failure.to_string(), "body larger than 2 MiB, keyword not in the part that is read");
}

#[test]
fn names_of_any_script_are_asked_for_in_ascii() {
    let dns = |host: &str| {
        spec(&Check::Dns(core_check::DnsCheck {
            host: host.to_owned(),
            record: core_check::RecordType::Ns,
            expect: None,
        }))
    };
    for (host, asked) in [("b\u{fc}cher.example", "xn--bcher-kva.example"), (".", "."), ("a.example", "a.example")] {
        let Some(wire_check::WireCheckSpec::Dns(dns)) = dns(host) else { panic!("no dns check") };
        assert_eq!(dns.host, asked);
    }
}

#[test]
fn a_reason_on_the_other_side_arrives_in_the_agents_words() {
    let detail = |text: &str| parallax_protocol::text::ShortText::new(text);
    let unreadable = |text: &str| wire::WireOwnFault::VendorUnreadable { detail: detail(text) };
    for (kind, fault, words) in [
        (
            CheckKind::Domain,
            wire::WireOwnFault::RegistryUnreadable { detail: detail("its answer has no expiry date") },
            "registry: its answer has no expiry date",
        ),
        (CheckKind::Component, unreadable("it answers with status 500"), "vendor's page: it answers with status 500"),
        (CheckKind::Domain, unreadable("it asks for P-521"), "registry: it asks for P-521"),
        (CheckKind::Http, unreadable("the server asks for P-521"), "the server asks for P-521"),
        (CheckKind::Component, wire::WireOwnFault::VendorComponentMissing, "vendor's page: no such component"),
        (
            CheckKind::Component,
            wire::WireOwnFault::VendorStateUnknown { vendor_text: detail("splendid") },
            "vendor's page: unknown word \"splendid\"",
        ),
    ] {
        let report = wire::ProbeReport::outcome_only(wire::WireOutcome::Inconclusive(fault));
        let seen::ProbeOutcome::Inconclusive(fault) = outcome(report, kind) else { panic!("judged") };
        assert!(fault.is_external());
        assert_eq!(fault.to_string(), words);
    }
    for own in [wire::WireOwnFault::NoRoute, wire::WireOwnFault::ResolverDead, wire::WireOwnFault::Overloaded] {
        assert!(!own_fault(&own, CheckKind::Http).is_external(), "{own}");
    }
}

#[test]
fn a_target_on_an_agents_own_host_accuses_neither_the_target_nor_the_agent() {
    let refused = |class| {
        let fault = wire::WireFailure::AddressNotAllowed { class };
        outcome(wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(fault)), CheckKind::Tcp)
    };
    let seen::ProbeOutcome::Inconclusive(fault) = refused(wire::AddressClass::Own) else { panic!("judged") };
    assert!(fault.is_external() && fault.to_string().contains("the agent's own host"), "{fault}");
    // Every agent reports the same for these.
    assert!(matches!(refused(wire::AddressClass::Private), seen::ProbeOutcome::Failed(..)));
}

#[test]
fn a_heartbeat_is_never_sent() {
    let heartbeat = core_check::HeartbeatCheck { period_seconds: 60, grace_seconds: 60, token: "t".to_owned() };
    assert!(spec(&Check::Heartbeat(heartbeat)).is_none());
}
