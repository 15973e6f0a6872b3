//! Samples of every message variant, each with a name for its golden file.

use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::check::*;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{BootId, WireAgentId, WireMonitorId, WireRegion};
use parallax_protocol::join::{Enrolment, JoinRequest, JoinResponse};
use parallax_protocol::message::*;
use parallax_protocol::result::*;
use parallax_protocol::text::{SecretText, ShortText};
use std::net::Ipv6Addr;

/// A name and the frame's exact bytes.
pub(crate) type GoldenSample = (String, Vec<u8>);

/// Frames from agent to coordinator on the control stream.
pub(crate) fn to_coordinator() -> Vec<GoldenSample> {
    let version = ScheduleVersion { slot_epoch: 77, revision: 12 };
    let hello = AgentHello {
        software: "0.1.0".into(),
        boot: BootId(0x1122_3344_5566_7788),
        earlier_boots: vec![BootId(5)],
        schedule: Some(version),
        wall_ms: 1_790_000_000_000,
        kinds: WireCheckKind::ALL.to_vec(),
        faults: vec![WireOwnFault::NotPermitted],
        certificate_ends_ms: 1_792_592_000_000,
    };
    let gap =
        ResultGap { boot: BootId(5), from: 10, through: 19, from_ms: 1_790_000_000_000, through_ms: 1_790_000_060_000 };
    mesh([
        ("hello", ToCoordinator::Hello(hello)),
        ("schedule-held", ToCoordinator::ScheduleApplied { slot_epoch: 77, revision: 12 }),
        ("schedule-lost", ToCoordinator::ScheduleMismatch { current: Some(version) }),
        ("time-ask", ToCoordinator::TimeRequest { sent_us: 123_456_789 }),
        ("time-report", ToCoordinator::TimeReport(TimeReport { skew_ms: -250, round_trip_ms: 31 })),
        ("renew", ToCoordinator::Renew { csr_der: vec![0x30, 0x82, 1, 2] }),
        ("gap", ToCoordinator::Gap(gap)),
        ("fitness", ToCoordinator::Fitness { faults: own_faults() }),
        ("goodbye", ToCoordinator::Goodbye),
        (
            "holds",
            ToCoordinator::TrustReport(TrustReport { authorities: vec![[7; 32], [8; 32]], serial: vec![0x41; 16] }),
        ),
    ])
}

/// Frames from coordinator to agent on the control stream.
pub(crate) fn to_agent() -> Vec<GoldenSample> {
    let welcome = Welcome {
        agent: WireAgentId(1 << 100),
        name: "fra1".into(),
        region: WireRegion::Europe,
        network: "AS24940".into(),
        mesh: "main".into(),
        software: "0.1.0".into(),
        coordinator_ms: 1_790_000_000_123,
        slot_epoch: 77,
        watermarks: vec![DurabilityMark { boot: BootId(5), through: 9 }],
    };
    let elsewhere = WireRegion::ALL.into_iter().map(|region| {
        let welcome = ToAgent::Welcome(Welcome { region, ..welcome.clone() });
        (format!("welcome-{}", region.name()), encode(&welcome, MAX_FRAME).unwrap())
    });
    let elsewhere: Vec<GoldenSample> = elsewhere.collect();
    let authorities = TrustedAuthorities { authorities_der: vec![vec![0x30, 1], vec![0x30, 2]], renew: true };
    let put = specs().into_iter().zip(1..).map(|(spec, slot)| Assignment {
        monitor: WireMonitorId(1 << 90 | u128::from(slot)),
        slot,
        revision: 3,
        spec,
        interval_ms: 60_000,
        offset_ms: 1_234,
        every: 2,
        turn: 1,
        account: 0,
    });
    let snapshot =
        ScheduleChange { slot_epoch: 77, base: None, revision: 12, put: put.collect(), drop: vec![], has_more: true };
    let delta = ScheduleChange {
        slot_epoch: 77,
        base: Some(12),
        revision: 13,
        put: vec![],
        drop: vec![WireMonitorId(9)],
        has_more: false,
    };
    let by_account = ToAgent::ScheduleByAccount {
        accounts: (0u32..).take(snapshot.put.len()).map(|n| 1u32 << (4 * n % 32)).collect(),
        change: snapshot.clone(),
    };
    let renewed = RenewedCertificate { certificates_der: vec![vec![0x30, 1]], authorities_der: vec![vec![0x30, 2]] };
    let mut samples = mesh([
        ("welcome", ToAgent::Welcome(welcome)),
        ("schedule-snapshot", ToAgent::Schedule(snapshot)),
        ("schedule-delta", ToAgent::Schedule(delta)),
        ("ack", ToAgent::Ack(DurabilityMark { boot: BootId(5), through: 300 })),
        ("time", ToAgent::Time(TimeResponse { echo_us: 123_456_789, coordinator_ms: 1_790_000_000_123 })),
        ("renewed", ToAgent::Renewed(renewed)),
        ("renew-refused", ToAgent::RenewRefused { reason: CloseReason::Revoked }),
        ("authorities", ToAgent::Authorities(authorities)),
        ("seen-from-v4", ToAgent::ExternalAddress(ExternalAddress { address: [203, 0, 113, 200].into() })),
        (
            "seen-from-v6",
            ToAgent::ExternalAddress(ExternalAddress {
                address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into(),
            }),
        ),
        ("schedule-by-account", by_account),
    ]);
    samples.extend(elsewhere);
    let in_frames = CloseReason::ALL.into_iter().filter(|reason| !reason.is_code_only());
    samples.extend(in_frames.map(|reason| {
        let name = format!("closing-{:02x}", reason.code());
        (name, encode(&ToAgent::Closing { reason }, MAX_FRAME).unwrap())
    }));
    samples
}

/// Frames of the results stream: a plain batch, and one with every outcome.
pub(crate) fn results() -> Vec<GoldenSample> {
    let plain = (0..8).map(|n| CheckResult {
        monitor: WireMonitorId(100 + n),
        revision: 3,
        round: Some(29_833_333),
        started_ms: 1_790_000_000_000 - 40,
        age_ms: 7,
        report: ProbeReport {
            latency_ms: Some(33),
            status_code: Some(200),
            ..ProbeReport::outcome_only(WireOutcome::Passed)
        },
    });
    let full =
        outcomes().into_iter().map(|outcome| CheckResult { report: ProbeReport::outcome_only(outcome), ..detailed() });
    mesh([("plain", batch(plain.collect())), ("full", batch(full.collect())), ("detailed", batch(vec![detailed()]))])
}

/// Frames of check-now streams.
pub(crate) fn check_now() -> Vec<GoldenSample> {
    let reasons = [
        ("confirm", CheckReason::Confirm),
        ("second", CheckReason::SecondRound),
        ("sweep", CheckReason::Sweep),
        ("first", CheckReason::NewMonitor),
        ("followup", CheckReason::FollowUp),
        ("manual", CheckReason::Manual),
    ];
    let mut samples: Vec<GoldenSample> = reasons
        .into_iter()
        .zip(specs())
        .map(|((name, reason), spec)| {
            let request =
                WireCheckNow { id: 4, monitor: WireMonitorId(9), revision: 3, spec, reason, deadline_ms: 12_000 };
            (name.to_owned(), encode(&request, MAX_FRAME).unwrap())
        })
        .collect();
    let done = WireCheckNowResponse::Done(Box::new(CheckResult { round: None, ..detailed() }));
    samples.extend(mesh([("pending", WireCheckNowResponse::Pending), ("done", done)]));
    samples
}

/// Frames of a join stream.
pub(crate) fn join() -> Vec<GoldenSample> {
    let request = JoinRequest { token: SecretText::new("id.secret.hash"), csr_der: vec![0x30, 0x82, 1, 2] };
    let joined = Enrolment {
        certificates_der: vec![vec![0x30, 1]],
        authorities_der: vec![vec![0x30, 2]],
        agent: WireAgentId(1 << 100),
        name: "fra1".into(),
        region: WireRegion::Oceania,
        network: "AS24940".into(),
        mesh: "main".into(),
        coordinator_ms: 1_790_000_000_123,
    };
    let refused = JoinResponse::Refused { reason: CloseReason::TokenUsed };
    let elsewhere = WireRegion::ALL.into_iter().map(|region| {
        let joined = JoinResponse::Enrolled(Enrolment { region, ..joined.clone() });
        (format!("joined-{}", region.name()), encode(&joined, MAX_JOIN_FRAME).unwrap())
    });
    let elsewhere: Vec<GoldenSample> = elsewhere.collect();
    let mut samples = vec![
        ("request".into(), encode(&request, MAX_JOIN_FRAME).unwrap()),
        ("joined".into(), encode(&JoinResponse::Enrolled(joined), MAX_JOIN_FRAME).unwrap()),
        ("refused".into(), encode(&refused, MAX_JOIN_FRAME).unwrap()),
    ];
    samples.extend(elsewhere);
    samples
}

fn mesh<T: serde::Serialize, const N: usize>(values: [(&str, T); N]) -> Vec<GoldenSample> {
    values.into_iter().map(|(name, value)| (name.to_string(), encode(&value, MAX_FRAME).unwrap())).collect()
}

fn batch(results: Vec<CheckResult>) -> ResultFrame {
    let numbered: Vec<_> = (50..).zip(results).map(|(seq, result)| NumberedResult { seq, result }).collect();
    let slot_of = |monitor: WireMonitorId| u32::try_from(monitor.0).ok();
    ResultFrame::Batch(ResultBatch::pack(BootId(5), 1_790_000_000_000, &numbered, slot_of).unwrap())
}

fn detailed() -> CheckResult {
    CheckResult {
        monitor: WireMonitorId(1 << 90),
        revision: 3,
        round: Some(29_833_333),
        started_ms: 1_789_999_999_000,
        age_ms: 7,
        report: ProbeReport {
            outcome: WireOutcome::Passed,
            latency_ms: Some(120),
            phases: WirePhases {
                dns_us: Some(1_000),
                connect_us: Some(20_000),
                tls_us: Some(40_000),
                first_byte_us: Some(50_000),
                transfer_us: Some(9_000),
            },
            status_code: Some(204),
            address: Some("2001:db8::1".parse().unwrap()),
            expires_ms: Some(1_800_000_000_000),
            vendor: Some(VendorReading {
                state: VendorState::Degraded,
                vendor_text: ShortText::new("degraded_performance"),
                incident: Some(ShortText::new("Slow builds")),
            }),
        },
    }
}

fn outcomes() -> Vec<WireOutcome> {
    let detail = || ShortText::new("detail");
    let mut failures: Vec<WireFailure> =
        [WirePhase::Dns, WirePhase::Connect, WirePhase::Tls, WirePhase::FirstByte, WirePhase::Transfer]
            .map(|phase| WireFailure::Timeout { phase })
            .to_vec();
    failures.extend(
        [
            AddressClass::Loopback,
            AddressClass::Private,
            AddressClass::LinkLocal,
            AddressClass::Multicast,
            AddressClass::Unspecified,
            AddressClass::Reserved,
            AddressClass::Own,
        ]
        .map(|class| WireFailure::AddressNotAllowed { class }),
    );
    failures.extend([
        WireFailure::Refused,
        WireFailure::Reset,
        WireFailure::ClosedEarly,
        WireFailure::Unreachable,
        WireFailure::DnsNotFound,
        WireFailure::DnsFailed { code: 2 },
        WireFailure::DnsNoRecord,
        WireFailure::DnsMismatch { got: detail() },
        WireFailure::UnexpectedStatus { got: 503 },
        WireFailure::KeywordMissing,
        WireFailure::KeywordPresent,
        WireFailure::TooManyRedirects,
        WireFailure::BadRedirect,
        WireFailure::TlsExpired,
        WireFailure::TlsNotYetValid,
        WireFailure::TlsNameMismatch,
        WireFailure::TlsUnknownIssuer,
        WireFailure::TlsRevoked,
        WireFailure::TlsOther { detail: detail() },
        WireFailure::HttpMalformed,
        WireFailure::HeadTooLarge,
        WireFailure::BodyTooLarge,
        WireFailure::BodyUndecodable,
        WireFailure::NoReply,
        WireFailure::CertificateExpiring { days: 13 },
        WireFailure::DomainExpiring { days: 29 },
        WireFailure::DomainExpired,
        WireFailure::DomainNotFound,
        WireFailure::VendorOutage,
        WireFailure::BadTarget { detail: detail() },
    ]);
    let mut all: Vec<WireOutcome> = failures.into_iter().map(WireOutcome::Failed).collect();
    all.extend(own_faults().into_iter().map(WireOutcome::Inconclusive));
    all.extend([WireOutcome::Passed, WireOutcome::Pending]);
    all
}

fn own_faults() -> Vec<WireOwnFault> {
    let detail = || ShortText::new("detail");
    vec![
        WireOwnFault::NoRoute,
        WireOwnFault::NoDescriptors,
        WireOwnFault::ResolverDead,
        WireOwnFault::NotPermitted,
        WireOwnFault::UnsupportedCheck,
        WireOwnFault::RegistryUnreadable { detail: detail() },
        WireOwnFault::VendorUnreadable { detail: detail() },
        WireOwnFault::VendorComponentMissing,
        WireOwnFault::VendorStateUnknown { vendor_text: detail() },
        WireOwnFault::Overloaded,
        WireOwnFault::Internal { detail: detail() },
    ]
}

fn specs() -> Vec<WireCheckSpec> {
    let http = |method, keyword_mode| {
        WireCheckSpec::Http(WireHttpCheck {
            url: "https://example.com/".into(),
            method,
            headers: vec![WireHeader { name: "X-Key".into(), value: SecretText::new("v") }],
            body: Some(SecretText::new("{}")),
            expect_status: Some(200),
            keyword: Some("ok".into()),
            keyword_mode,
        })
    };
    let dns = |record| {
        WireCheckSpec::Dns(WireDnsCheck { host: "example.com".into(), record, expect: Some("192.0.2.1".into()) })
    };
    vec![
        http(WireMethod::Get, WireKeywordMode::Present),
        WireCheckSpec::Tcp(WireTcpCheck { host: "example.com".into(), port: 443 }),
        dns(WireRecordType::A),
        WireCheckSpec::Ping(WirePingCheck { host: "example.com".into() }),
        WireCheckSpec::Certificate(WireCertificateCheck { host: "example.com".into(), port: 443, warn_days: 14 }),
        WireCheckSpec::Domain(WireDomainCheck { host: "example.com".into(), warn_days: 30 }),
        WireCheckSpec::Component(WireComponentCheck {
            vendor_url: "https://status.example.com".into(),
            component: Some("API".into()),
        }),
        http(WireMethod::Head, WireKeywordMode::Absent),
        http(WireMethod::Post, WireKeywordMode::Absent),
        http(WireMethod::Put, WireKeywordMode::Absent),
        http(WireMethod::Patch, WireKeywordMode::Absent),
        http(WireMethod::Delete, WireKeywordMode::Absent),
        dns(WireRecordType::Aaaa),
        dns(WireRecordType::Cname),
        dns(WireRecordType::Mx),
        dns(WireRecordType::Txt),
        dns(WireRecordType::Ns),
    ]
}
