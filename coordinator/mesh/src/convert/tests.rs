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
fn vantage_region_and_network_come_from_the_coordinators_record() {
    let converted = observation(passed(999_000, 900), CheckKind::Tcp, &agent(), Timestamp::from_millis(1_000_000));
    assert_eq!((converted.vantage, converted.region, converted.network), (VantageNo(3), Region::Europe, NetworkNo(4)));
    assert_eq!((converted.started.as_millis(), converted.ended.as_millis()), (999_000, 999_100));
}

#[test]
fn a_wrong_wall_clock_does_not_make_a_live_result_old_or_future() {
    for wrong in [0, 999_101, i64::MAX, i64::MIN] {
        let converted = observation(passed(wrong, 900), CheckKind::Tcp, &agent(), Timestamp::from_millis(1_000_000));
        assert_eq!((converted.started.as_millis(), converted.ended.as_millis()), (999_020, 999_100), "{wrong}");
    }
}

#[test]
fn absurd_ages_do_not_overflow() {
    let converted = observation(passed(5, u64::MAX), CheckKind::Tcp, &agent(), Timestamp::from_millis(10));
    assert!(converted.ended < Timestamp::from_millis(0));
}

#[test]
fn a_vendor_outage_has_the_vendors_own_text() {
    let report = wire::ProbeReport {
        vendor: Some(wire::VendorReading {
            state: wire::VendorState::MajorOutage,
            vendor_text: parallax_protocol::text::ShortText::new("major_outage"),
            incident: Some(parallax_protocol::text::ShortText::new("Pushes fail")),
        }),
        ..wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(wire::WireFailure::VendorOutage))
    };
    let core_observation::ProbeOutcome::Failed(_, failure) = outcome(report, CheckKind::Component) else {
        panic!("passed")
    };
    assert_eq!(failure.to_string(), "major_outage: Pushes fail");
}

#[test]
fn the_text_of_a_fault_depends_on_the_check_type() {
    let fault =
        wire::WireOwnFault::unsupported_tls(parallax_protocol::text::ShortText::new("TLS can't be judged: CBC alone"));
    for (kind, words) in [
        (CheckKind::Http, "TLS can't be judged: CBC alone"),
        (CheckKind::Certificate, "TLS can't be judged: CBC alone"),
        (CheckKind::Domain, "registry: TLS can't be judged: CBC alone"),
        (CheckKind::Component, "vendor's page: TLS can't be judged: CBC alone"),
    ] {
        let report = wire::ProbeReport::outcome_only(wire::WireOutcome::Inconclusive(fault.clone()));
        let core_observation::ProbeOutcome::Inconclusive(fault) = outcome(report, kind) else { panic!("judged") };
        assert!(fault.is_external());
        assert_eq!(fault.to_string(), words);
    }
}

#[test]
fn a_body_over_the_limit_is_reported_with_the_limit() {
    let report = wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(wire::WireFailure::BodyTooLarge));
    let core_observation::ProbeOutcome::Failed(_, failure) = outcome(report, CheckKind::Http) else { panic!("passed") };
    assert_eq!(failure.to_string(), "body larger than 2 MiB, keyword not in the part that is read");
}

#[test]
fn hostnames_are_sent_in_ascii() {
    let dns = |host: &str| {
        spec(&Check::Dns(core_check::DnsCheck {
            host: host.to_owned(),
            record: core_check::RecordType::Ns,
            expect: None,
        }))
    };
    for (host, ascii) in [("b\u{fc}cher.example", "xn--bcher-kva.example"), (".", "."), ("a.example", "a.example")] {
        let Some(wire_check::WireCheckSpec::Dns(dns)) = dns(host) else { panic!("no dns check") };
        assert_eq!(dns.host, ascii);
    }
}

#[test]
fn external_faults_keep_the_agents_text() {
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
        let core_observation::ProbeOutcome::Inconclusive(fault) = outcome(report, kind) else { panic!("judged") };
        assert!(fault.is_external());
        assert_eq!(fault.to_string(), words);
    }
    for own in [wire::WireOwnFault::NoRoute, wire::WireOwnFault::ResolverDead, wire::WireOwnFault::Overloaded] {
        assert!(!own_fault(&own, CheckKind::Http).is_external(), "{own}");
    }
}

#[test]
fn a_target_on_the_agents_own_host_is_inconclusive() {
    let refused = |class| {
        let fault = wire::WireFailure::AddressNotAllowed { class };
        outcome(wire::ProbeReport::outcome_only(wire::WireOutcome::Failed(fault)), CheckKind::Tcp)
    };
    let core_observation::ProbeOutcome::Inconclusive(fault) = refused(wire::AddressClass::Own) else {
        panic!("judged")
    };
    assert!(fault.is_external() && fault.to_string().contains("the agent's own host"), "{fault}");
    // Every agent reports the same for these.
    assert!(matches!(refused(wire::AddressClass::Private), core_observation::ProbeOutcome::Failed(..)));
}

#[test]
fn a_heartbeat_has_no_wire_form() {
    let heartbeat = core_check::HeartbeatCheck { period_seconds: 60, grace_seconds: 60, token: "t".to_owned() };
    assert!(spec(&Check::Heartbeat(heartbeat)).is_none());
}
