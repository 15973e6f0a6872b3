//! Samples of every message variant, each with a name for its golden file.

use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::batch::{ResultBatch, ResultFrame};
use parallax_protocol::check::*;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{MAX_FRAME, MAX_JOIN_FRAME, encode};
use parallax_protocol::id::{AgentId, BootId, MonitorId, Region};
use parallax_protocol::join::{JoinAnswer, JoinRequest, Joined};
use parallax_protocol::message::*;
use parallax_protocol::result::*;
use parallax_protocol::text::{Detail, Secret};
use std::net::Ipv6Addr;

/// A name and the frame's exact bytes.
pub(crate) type Sample = (String, Vec<u8>);

/// Frames from agent to coordinator on the control stream.
pub(crate) fn to_coordinator() -> Vec<Sample> {
    let held = HeldSchedule { book: 77, revision: 12 };
    let hello = Hello {
        software: "0.1.0".into(),
        boot: BootId(0x1122_3344_5566_7788),
        earlier_boots: vec![BootId(5)],
        held: Some(held),
        wall_ms: 1_790_000_000_000,
        kinds: CheckKind::ALL.to_vec(),
        faults: vec![OwnFault::NotPermitted],
        certificate_ends_ms: 1_792_592_000_000,
    };
    let gap = Gap {
        boot: BootId(5),
        from: 10,
        through: 19,
        from_ms: 1_790_000_000_000,
        through_ms: 1_790_000_060_000,
    };
    mesh([
        ("hello", ToCoordinator::Hello(hello)),
        ("schedule-held", ToCoordinator::ScheduleHeld { book: 77, revision: 12 }),
        ("schedule-lost", ToCoordinator::ScheduleLost { held: Some(held) }),
        ("time-ask", ToCoordinator::TimeAsk { sent_us: 123_456_789 }),
        ("time-report", ToCoordinator::TimeReport(TimeReport { skew_ms: -250, round_trip_ms: 31 })),
        ("renew", ToCoordinator::Renew { csr_der: vec![0x30, 0x82, 1, 2] }),
        ("gap", ToCoordinator::Gap(gap)),
        ("fitness", ToCoordinator::Fitness { faults: own_faults() }),
        ("goodbye", ToCoordinator::Goodbye),
        (
            "holds",
            ToCoordinator::Holds(Holds { authorities: vec![[7; 32], [8; 32]], serial: vec![0x41; 16] }),
        ),
    ])
}

/// Frames from coordinator to agent on the control stream.
pub(crate) fn to_agent() -> Vec<Sample> {
    let welcome = Welcome {
        agent: AgentId(1 << 100),
        name: "fra1".into(),
        region: Region::Europe,
        network: "AS24940".into(),
        mesh: "main".into(),
        software: "0.1.0".into(),
        coordinator_ms: 1_790_000_000_123,
        book: 77,
        marks: vec![Mark { boot: BootId(5), through: 9 }],
    };
    let elsewhere = Region::ALL.into_iter().map(|region| {
        let welcome = ToAgent::Welcome(Welcome { region, ..welcome.clone() });
        (format!("welcome-{}", region.name()), encode(&welcome, MAX_FRAME).unwrap())
    });
    let elsewhere: Vec<Sample> = elsewhere.collect();
    let authorities = Authorities { authorities_der: vec![vec![0x30, 1], vec![0x30, 2]], renew: true };
    let put = specs().into_iter().zip(1..).map(|(spec, slot)| Assignment {
        monitor: MonitorId(1 << 90 | u128::from(slot)),
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
        ScheduleChange { book: 77, base: None, revision: 12, put: put.collect(), drop: vec![], more: true };
    let delta = ScheduleChange {
        book: 77,
        base: Some(12),
        revision: 13,
        put: vec![],
        drop: vec![MonitorId(9)],
        more: false,
    };
    let by_account = ToAgent::ScheduleByAccount {
        accounts: (0u32..).take(snapshot.put.len()).map(|n| 1u32 << (4 * n % 32)).collect(),
        change: snapshot.clone(),
    };
    let renewed = Renewed { certificates_der: vec![vec![0x30, 1]], authorities_der: vec![vec![0x30, 2]] };
    let mut samples = mesh([
        ("welcome", ToAgent::Welcome(welcome)),
        ("schedule-snapshot", ToAgent::Schedule(snapshot)),
        ("schedule-delta", ToAgent::Schedule(delta)),
        ("ack", ToAgent::Ack(Mark { boot: BootId(5), through: 300 })),
        ("time", ToAgent::Time(TimeAnswer { echo_us: 123_456_789, coordinator_ms: 1_790_000_000_123 })),
        ("renewed", ToAgent::Renewed(renewed)),
        ("renew-refused", ToAgent::RenewRefused { reason: CloseReason::Revoked }),
        ("authorities", ToAgent::Authorities(authorities)),
        ("seen-from-v4", ToAgent::SeenFrom(SeenFrom { address: [203, 0, 113, 200].into() })),
        (
            "seen-from-v6",
            ToAgent::SeenFrom(SeenFrom { address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into() }),
        ),
        ("schedule-by-account", by_account),
    ]);
    samples.extend(elsewhere);
    let in_frames = CloseReason::ALL.into_iter().filter(|reason| !reason.is_told_by_code());
    samples.extend(in_frames.map(|reason| {
        let name = format!("closing-{:02x}", reason.code());
        (name, encode(&ToAgent::Closing { reason }, MAX_FRAME).unwrap())
    }));
    samples
}

/// Frames of the results stream: a plain batch, and one with every outcome.
pub(crate) fn results() -> Vec<Sample> {
    let plain = (0..8).map(|n| CheckResult {
        monitor: MonitorId(100 + n),
        revision: 3,
        round: Some(29_833_333),
        started_ms: 1_790_000_000_000 - 40,
        age_ms: 7,
        report: Report { latency_ms: Some(33), status_code: Some(200), ..Report::bare(Outcome::Passed) },
    });
    let full =
        outcomes().into_iter().map(|outcome| CheckResult { report: Report::bare(outcome), ..detailed() });
    mesh([
        ("plain", batch(plain.collect())),
        ("full", batch(full.collect())),
        ("detailed", batch(vec![detailed()])),
    ])
}

/// Frames of check-now streams.
pub(crate) fn check_now() -> Vec<Sample> {
    let reasons = [
        CheckReason::Confirm,
        CheckReason::Second,
        CheckReason::Sweep,
        CheckReason::First,
        CheckReason::FollowUp,
        CheckReason::Manual,
    ];
    let mut samples: Vec<Sample> = reasons
        .into_iter()
        .zip(specs())
        .map(|(reason, spec)| {
            let ask =
                CheckNow { id: 4, monitor: MonitorId(9), revision: 3, spec, reason, deadline_ms: 12_000 };
            (format!("{reason:?}").to_lowercase(), encode(&ask, MAX_FRAME).unwrap())
        })
        .collect();
    let done = CheckAnswer::Done(Box::new(CheckResult { round: None, ..detailed() }));
    samples.extend(mesh([("pending", CheckAnswer::Pending), ("done", done)]));
    samples
}

/// Frames of a join stream.
pub(crate) fn join() -> Vec<Sample> {
    let request = JoinRequest { token: Secret::new("id.secret.hash"), csr_der: vec![0x30, 0x82, 1, 2] };
    let joined = Joined {
        certificates_der: vec![vec![0x30, 1]],
        authorities_der: vec![vec![0x30, 2]],
        agent: AgentId(1 << 100),
        name: "fra1".into(),
        region: Region::Oceania,
        network: "AS24940".into(),
        mesh: "main".into(),
        coordinator_ms: 1_790_000_000_123,
    };
    let refused = JoinAnswer::Refused { reason: CloseReason::TokenUsed };
    let elsewhere = Region::ALL.into_iter().map(|region| {
        let joined = JoinAnswer::Joined(Joined { region, ..joined.clone() });
        (format!("joined-{}", region.name()), encode(&joined, MAX_JOIN_FRAME).unwrap())
    });
    let elsewhere: Vec<Sample> = elsewhere.collect();
    let mut samples = vec![
        ("request".into(), encode(&request, MAX_JOIN_FRAME).unwrap()),
        ("joined".into(), encode(&JoinAnswer::Joined(joined), MAX_JOIN_FRAME).unwrap()),
        ("refused".into(), encode(&refused, MAX_JOIN_FRAME).unwrap()),
    ];
    samples.extend(elsewhere);
    samples
}

fn mesh<T: serde::Serialize, const N: usize>(values: [(&str, T); N]) -> Vec<Sample> {
    values.into_iter().map(|(name, value)| (name.to_string(), encode(&value, MAX_FRAME).unwrap())).collect()
}

fn batch(results: Vec<CheckResult>) -> ResultFrame {
    let numbered: Vec<_> = (50..).zip(results).map(|(seq, result)| NumberedResult { seq, result }).collect();
    let slot_of = |monitor: MonitorId| u32::try_from(monitor.0).ok();
    ResultFrame::Batch(ResultBatch::pack(BootId(5), 1_790_000_000_000, &numbered, slot_of).unwrap())
}

fn detailed() -> CheckResult {
    CheckResult {
        monitor: MonitorId(1 << 90),
        revision: 3,
        round: Some(29_833_333),
        started_ms: 1_789_999_999_000,
        age_ms: 7,
        report: Report {
            outcome: Outcome::Passed,
            latency_ms: Some(120),
            phases: Phases {
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
                word: Detail::new("degraded_performance"),
                incident: Some(Detail::new("Slow builds")),
            }),
        },
    }
}

fn outcomes() -> Vec<Outcome> {
    let detail = || Detail::new("detail");
    let mut failures: Vec<Failure> =
        [Phase::Dns, Phase::Connect, Phase::Tls, Phase::FirstByte, Phase::Transfer]
            .map(|phase| Failure::Timeout { phase })
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
        .map(|class| Failure::AddressNotAllowed { class }),
    );
    failures.extend([
        Failure::Refused,
        Failure::Reset,
        Failure::ClosedEarly,
        Failure::Unreachable,
        Failure::DnsNotFound,
        Failure::DnsFailed { code: 2 },
        Failure::DnsNoRecord,
        Failure::DnsMismatch { got: detail() },
        Failure::UnexpectedStatus { got: 503 },
        Failure::KeywordMissing,
        Failure::KeywordPresent,
        Failure::TooManyRedirects,
        Failure::BadRedirect,
        Failure::TlsExpired,
        Failure::TlsNotYetValid,
        Failure::TlsNameMismatch,
        Failure::TlsUnknownIssuer,
        Failure::TlsRevoked,
        Failure::TlsOther { detail: detail() },
        Failure::HttpMalformed,
        Failure::HeadTooLarge,
        Failure::BodyTooLarge,
        Failure::BodyUndecodable,
        Failure::NoReply,
        Failure::CertificateExpiring { days: 13 },
        Failure::DomainExpiring { days: 29 },
        Failure::DomainExpired,
        Failure::DomainNotFound,
        Failure::VendorOutage,
        Failure::BadTarget { detail: detail() },
    ]);
    let mut all: Vec<Outcome> = failures.into_iter().map(Outcome::Failed).collect();
    all.extend(own_faults().into_iter().map(Outcome::Inconclusive));
    all.extend([Outcome::Passed, Outcome::Pending]);
    all
}

fn own_faults() -> Vec<OwnFault> {
    let detail = || Detail::new("detail");
    vec![
        OwnFault::NoRoute,
        OwnFault::NoDescriptors,
        OwnFault::ResolverDead,
        OwnFault::NotPermitted,
        OwnFault::NotBuilt,
        OwnFault::RegistryUnreadable { detail: detail() },
        OwnFault::VendorUnreadable { detail: detail() },
        OwnFault::VendorComponentMissing,
        OwnFault::VendorWordUnknown { word: detail() },
        OwnFault::Overloaded,
        OwnFault::Internal { detail: detail() },
    ]
}

fn specs() -> Vec<CheckSpec> {
    let http = |method, keyword_mode| {
        CheckSpec::Http(HttpCheck {
            url: "https://example.com/".into(),
            method,
            headers: vec![Header { name: "X-Key".into(), value: Secret::new("v") }],
            body: Some(Secret::new("{}")),
            expect_status: Some(200),
            keyword: Some("ok".into()),
            keyword_mode,
        })
    };
    let dns = |record| {
        CheckSpec::Dns(DnsCheck { host: "example.com".into(), record, expect: Some("192.0.2.1".into()) })
    };
    vec![
        http(Method::Get, KeywordMode::Present),
        CheckSpec::Tcp(TcpCheck { host: "example.com".into(), port: 443 }),
        dns(RecordType::A),
        CheckSpec::Ping(PingCheck { host: "example.com".into() }),
        CheckSpec::Certificate(CertificateCheck { host: "example.com".into(), port: 443, warn_days: 14 }),
        CheckSpec::Domain(DomainCheck { host: "example.com".into(), warn_days: 30 }),
        CheckSpec::Component(ComponentCheck {
            vendor_url: "https://status.example.com".into(),
            component: Some("API".into()),
        }),
        http(Method::Head, KeywordMode::Absent),
        http(Method::Post, KeywordMode::Absent),
        http(Method::Put, KeywordMode::Absent),
        http(Method::Patch, KeywordMode::Absent),
        http(Method::Delete, KeywordMode::Absent),
        dns(RecordType::Aaaa),
        dns(RecordType::Cname),
        dns(RecordType::Mx),
        dns(RecordType::Txt),
        dns(RecordType::Ns),
    ]
}
