//! Conversion between wire types and core types: checks, results and vantages. No other module converts them.

use std::collections::BTreeMap;

use parallax_core::assign::{Scheduled, Share};
use parallax_core::check::{self as core_check, Check, CheckKind};
use parallax_core::event::Reason;
use parallax_core::id::MonitorId;
use parallax_core::member::Agent;
use parallax_core::observation as seen;
use parallax_core::place::Region;
use parallax_core::text::ascii_host;
use parallax_core::time::Timestamp;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::check as wire_check;
use parallax_protocol::id as wire_id;
use parallax_protocol::message::CheckReason;
use parallax_protocol::result as wire;
use parallax_protocol::text::Secret;

use super::accounts::AccountNumbers;
use super::assign::Difference;

/// Longest time from a check's start to its end, in ms: the deadline of 10 s and some for a busy host. A start
/// before that was computed from a wrong clock.
pub(super) const LONGEST_CHECK_MS: i64 = 15_000;

/// Body bytes that agents read, in MiB.
const BODY_READ_MIB: u32 = (wire_check::HttpCheck::BODY_READ / (1024 * 1024)) as u32;

/// Milliseconds without a response after which an agent reports a check as pending.
const PENDING_AFTER_MS: i64 = 3_000;

/// Converts a region to its wire form.
pub(super) fn region(region: Region) -> wire_id::Region {
    match region {
        Region::Europe => wire_id::Region::Europe,
        Region::NorthAmerica => wire_id::Region::NorthAmerica,
        Region::SouthAmerica => wire_id::Region::SouthAmerica,
        Region::Africa => wire_id::Region::Africa,
        Region::Asia => wire_id::Region::Asia,
        Region::Oceania => wire_id::Region::Oceania,
    }
}

/// Converts a monitor's id to its wire form.
pub(super) fn monitor(id: MonitorId) -> wire_id::MonitorId {
    wire_id::MonitorId(id.to_u128())
}

/// Converts a monitor's id from its wire form.
pub(super) fn monitor_id(id: wire_id::MonitorId) -> MonitorId {
    MonitorId::from_u128(id.0)
}

/// Converts a check to its wire form; `None` for a heartbeat, which no agent runs.
pub(super) fn spec(check: &Check) -> Option<wire_check::CheckSpec> {
    use wire_check::CheckSpec;
    Some(match check {
        Check::Http(check) => CheckSpec::Http(http(check)),
        Check::Tcp(check) => {
            CheckSpec::Tcp(wire_check::TcpCheck { host: ascii_host(&check.host), port: check.port })
        }
        Check::Dns(check) => CheckSpec::Dns(wire_check::DnsCheck {
            host: ascii_host(&check.host),
            record: record(check.record),
            expect: check.expect.clone(),
        }),
        Check::Ping(check) => CheckSpec::Ping(wire_check::PingCheck { host: ascii_host(&check.host) }),
        Check::Certificate(check) => CheckSpec::Certificate(wire_check::CertificateCheck {
            host: ascii_host(&check.host),
            port: check.port,
            warn_days: check.warn_days,
        }),
        Check::Domain(check) => CheckSpec::Domain(wire_check::DomainCheck {
            host: ascii_host(&check.host),
            warn_days: check.warn_days,
        }),
        Check::Heartbeat(_) => return None,
        Check::Component(check) => CheckSpec::Component(wire_check::ComponentCheck {
            vendor_url: check.url.clone(),
            component: check.component.clone(),
        }),
    })
}

/// Converts an agent's share of a monitor to its wire form; `None` for a heartbeat.
pub(super) fn assignment(scheduled: &Scheduled, share: Share, account: u32) -> Option<Assignment> {
    Some(Assignment {
        monitor: monitor(scheduled.monitor),
        slot: scheduled.slot,
        revision: scheduled.revision,
        spec: spec(&scheduled.check)?,
        interval_ms: share.interval_ms,
        offset_ms: share.offset_ms,
        every: share.every,
        turn: share.from,
        account,
    })
}

/// Converts a schedule change to its wire form.
pub(super) fn change(book: u64, difference: Difference, accounts: &AccountNumbers) -> ScheduleChange {
    let mut numbers = BTreeMap::new();
    let mut number = |account| *numbers.entry(account).or_insert_with(|| accounts.number(account));
    let put = difference.put.into_iter();
    ScheduleChange {
        book,
        base: difference.base,
        revision: difference.revision,
        put: put.filter_map(|(one, share)| assignment(&one, share, number(one.account))).collect(),
        drop: difference.drop.into_iter().map(monitor).collect(),
        more: false,
    }
}

/// Converts the reason of a probe request to its wire form.
pub(super) fn reason(reason: Reason) -> CheckReason {
    match reason {
        Reason::Confirm => CheckReason::Confirm,
        Reason::Second => CheckReason::Second,
        Reason::Sweep => CheckReason::Sweep,
        Reason::First => CheckReason::First,
        Reason::FollowUp => CheckReason::FollowUp,
        // A scheduled round is never requested; if it were, it would be a manual request.
        Reason::Manual | Reason::Scheduled => CheckReason::Manual,
    }
}

/// Converts a result to an observation. Vantage, region and network come from the coordinator's record of `agent`.
/// The end is computed from `received` and the result's age on the agent's monotonic clock, whatever its wall clock
/// says.
pub(super) fn observation(
    result: wire::CheckResult,
    kind: CheckKind,
    agent: &Agent,
    received: Timestamp,
) -> seen::Observation {
    let age = i64::try_from(result.age_ms).unwrap_or(i64::MAX);
    let ended = received - age;
    let mut started = Timestamp::from_millis(result.started_ms);
    if !(0..=LONGEST_CHECK_MS).contains(&ended.since(started)) {
        started = ended - i64::from(result.report.latency_ms.unwrap_or(0).min(10_000));
    }
    seen::Observation {
        revision: result.revision,
        region: agent.region,
        place: agent.place,
        network: agent.network_no,
        round: result.round,
        started,
        ended,
        outcome: outcome(result.report, kind),
    }
}

/// Builds the observation for a check that has had no response for 3 s.
pub(super) fn pending(revision: u32, agent: &Agent, now: Timestamp) -> seen::Observation {
    seen::Observation {
        revision,
        region: agent.region,
        place: agent.place,
        network: agent.network_no,
        round: None,
        started: now - PENDING_AFTER_MS,
        ended: now,
        outcome: seen::Outcome::Pending,
    }
}

fn http(check: &core_check::HttpCheck) -> wire_check::HttpCheck {
    let header = |(name, value): &(String, String)| wire_check::Header {
        name: name.clone(),
        value: Secret::new(value.as_str()),
    };
    wire_check::HttpCheck {
        url: check.url.clone(),
        method: match check.method {
            core_check::Method::Get => wire_check::Method::Get,
            core_check::Method::Head => wire_check::Method::Head,
            core_check::Method::Post => wire_check::Method::Post,
            core_check::Method::Put => wire_check::Method::Put,
            core_check::Method::Patch => wire_check::Method::Patch,
            core_check::Method::Delete => wire_check::Method::Delete,
        },
        headers: check.sent_headers().iter().map(header).collect(),
        body: check.body.as_deref().map(Secret::new),
        expect_status: check.expect_status,
        keyword: check.keyword.clone(),
        keyword_mode: match check.keyword_mode {
            core_check::KeywordMode::Present => wire_check::KeywordMode::Present,
            core_check::KeywordMode::Absent => wire_check::KeywordMode::Absent,
        },
    }
}

fn record(record: core_check::RecordType) -> wire_check::RecordType {
    match record {
        core_check::RecordType::A => wire_check::RecordType::A,
        core_check::RecordType::Aaaa => wire_check::RecordType::Aaaa,
        core_check::RecordType::Cname => wire_check::RecordType::Cname,
        core_check::RecordType::Mx => wire_check::RecordType::Mx,
        core_check::RecordType::Txt => wire_check::RecordType::Txt,
        core_check::RecordType::Ns => wire_check::RecordType::Ns,
    }
}

fn outcome(report: wire::Report, kind: CheckKind) -> seen::Outcome {
    let facts = seen::Facts {
        latency_ms: report.latency_ms,
        status_code: report.status_code,
        address: report.address,
        phases: seen::Phases {
            dns_us: report.phases.dns_us,
            connect_us: report.phases.connect_us,
            tls_us: report.phases.tls_us,
            first_byte_us: report.phases.first_byte_us,
            transfer_us: report.phases.transfer_us,
        },
        expires_at: report.expires_ms.map(Timestamp::from_millis),
        degraded: report.vendor.as_ref().is_some_and(|vendor| vendor.state == wire::VendorState::Degraded),
    };
    match report.outcome {
        wire::Outcome::Passed => seen::Outcome::Passed(facts),
        // Other agents may reach it. As a failure, the contradiction would put honest agents into quarantine,
        // through a monitor that anyone can create. The monitor's owner reads the reason.
        wire::Outcome::Failed(wire::Failure::AddressNotAllowed { class: wire::AddressClass::Own }) => {
            seen::Outcome::Inconclusive(seen::OwnFault::OtherSide(OWN_HOST.to_owned()))
        }
        wire::Outcome::Failed(fault) => {
            seen::Outcome::Failed(facts, failure(fault, kind, report.vendor.as_ref()))
        }
        wire::Outcome::Inconclusive(fault) => seen::Outcome::Inconclusive(own_fault(&fault, kind)),
        wire::Outcome::Pending => seen::Outcome::Pending,
    }
}

/// Reason shown for a target on an agent's own host.
const OWN_HOST: &str =
    "the target is the agent's own host or the coordinator's, which is not checked from there";

fn failure(fault: wire::Failure, kind: CheckKind, vendor: Option<&wire::VendorReading>) -> seen::Failure {
    use seen::Failure;
    let days = |days: u32| i32::try_from(days).unwrap_or(i32::MAX);
    match fault {
        wire::Failure::Timeout { phase } => Failure::Timeout(match phase {
            wire::Phase::Dns => seen::Phase::Dns,
            wire::Phase::Connect => seen::Phase::Connect,
            wire::Phase::Tls => seen::Phase::Tls,
            wire::Phase::FirstByte => seen::Phase::FirstByte,
            wire::Phase::Transfer => seen::Phase::Transfer,
        }),
        wire::Failure::Refused => Failure::Refused,
        wire::Failure::Reset | wire::Failure::ClosedEarly => Failure::Reset,
        wire::Failure::Unreachable => Failure::Unreachable,
        wire::Failure::DnsNotFound => Failure::NameNotFound,
        wire::Failure::DnsFailed { .. } => Failure::ResolutionFailed,
        wire::Failure::DnsNoRecord if kind == CheckKind::Dns => {
            Failure::Other("the name has no record of this type".to_owned())
        }
        wire::Failure::DnsNoRecord => Failure::NoAddress,
        wire::Failure::DnsMismatch { got } => Failure::DnsUnexpected(got.to_string()),
        wire::Failure::AddressNotAllowed { class } => {
            Failure::AddressNotAllowed(address_class(class).to_owned())
        }
        wire::Failure::UnexpectedStatus { got } => Failure::UnexpectedStatus(got),
        wire::Failure::KeywordMissing => Failure::KeywordMissing,
        wire::Failure::KeywordPresent => Failure::KeywordPresent,
        wire::Failure::TooManyRedirects => Failure::TooManyRedirects,
        wire::Failure::BadRedirect => Failure::BadRedirect,
        wire::Failure::TlsExpired => Failure::TlsExpired,
        wire::Failure::TlsNotYetValid => Failure::TlsNotYetValid,
        wire::Failure::TlsNameMismatch => Failure::TlsNameMismatch,
        wire::Failure::TlsUnknownIssuer => Failure::TlsUnknownIssuer,
        wire::Failure::TlsRevoked => Failure::TlsFailed("certificate revoked".to_owned()),
        wire::Failure::TlsOther { detail } => Failure::TlsFailed(detail.to_string()),
        wire::Failure::HttpMalformed => Failure::NotHttp("it does not parse".to_owned()),
        wire::Failure::HeadTooLarge => Failure::NotHttp("its header is too large".to_owned()),
        wire::Failure::BodyUndecodable => Failure::NotHttp("its content coding can't be undone".to_owned()),
        wire::Failure::BodyTooLarge => Failure::BodyTooLarge(BODY_READ_MIB),
        wire::Failure::NoReply => Failure::Other("no reply to a ping".to_owned()),
        wire::Failure::CertificateExpiring { days: left } => Failure::CertificateExpiring(days(left)),
        wire::Failure::DomainExpiring { days: left } => Failure::DomainExpiring(days(left)),
        wire::Failure::DomainExpired => Failure::Other("domain expired".to_owned()),
        wire::Failure::DomainNotFound => Failure::Other("domain not registered".to_owned()),
        wire::Failure::VendorOutage => Failure::VendorOutage(vendor_words(vendor)),
        wire::Failure::BadTarget { detail } => Failure::Other(detail.to_string()),
    }
}

/// Returns the vendor's own status text, with its incident's title if it names one.
fn vendor_words(vendor: Option<&wire::VendorReading>) -> String {
    match vendor {
        Some(wire::VendorReading { word, incident: Some(title), .. }) => format!("{word}: {title}"),
        Some(reading) => reading.word.to_string(),
        None => "the vendor reports an outage".to_owned(),
    }
}

fn address_class(class: wire::AddressClass) -> &'static str {
    match class {
        wire::AddressClass::Loopback => "loopback",
        wire::AddressClass::Private => "private",
        wire::AddressClass::LinkLocal => "link-local",
        wire::AddressClass::Multicast => "multicast",
        wire::AddressClass::Unspecified => "unspecified",
        wire::AddressClass::Reserved => "reserved",
        wire::AddressClass::Own => "the agent's own",
    }
}

/// Returns the agent's description of the fault. It depends on the check type.
fn own_words(fault: &wire::OwnFault, kind: CheckKind) -> String {
    match kind {
        CheckKind::Http => fault.words(wire_check::CheckKind::Http),
        CheckKind::Certificate => fault.words(wire_check::CheckKind::Certificate),
        CheckKind::Domain => fault.words(wire_check::CheckKind::Domain),
        CheckKind::Tcp | CheckKind::Dns | CheckKind::Ping | CheckKind::Heartbeat | CheckKind::Component => {
            fault.to_string()
        }
    }
}

fn own_fault(fault: &wire::OwnFault, kind: CheckKind) -> seen::OwnFault {
    match fault {
        wire::OwnFault::NoRoute => seen::OwnFault::NoRoute,
        wire::OwnFault::NoDescriptors => seen::OwnFault::NoDescriptors,
        wire::OwnFault::ResolverDead => seen::OwnFault::ResolverDead,
        wire::OwnFault::NotPermitted => seen::OwnFault::NotPermitted,
        wire::OwnFault::NotBuilt => seen::OwnFault::NotBuilt,
        // The monitor's owner reads the reason in the agent's words.
        wire::OwnFault::RegistryUnreadable { .. }
        | wire::OwnFault::VendorUnreadable { .. }
        | wire::OwnFault::VendorComponentMissing
        | wire::OwnFault::VendorWordUnknown { .. } => seen::OwnFault::OtherSide(own_words(fault, kind)),
        wire::OwnFault::Overloaded | wire::OwnFault::Internal { .. } => seen::OwnFault::Overloaded,
    }
}

#[cfg(test)]
mod tests;
