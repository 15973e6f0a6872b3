//! Conversion between wire types and core types: checks, results and vantages. No other module converts them.

use std::collections::BTreeMap;

use parallax_core::assign::{ScheduleShare, ScheduledMonitor};
use parallax_core::check::{self as core_check, Check, CheckKind};
use parallax_core::event::ProbeReason;
use parallax_core::id::MonitorId;
use parallax_core::member::AgentRecord;
use parallax_core::observation as core_observation;
use parallax_core::text::{ascii_host, with_visible_controls};
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use parallax_protocol::assignment::{Assignment, ScheduleChange};
use parallax_protocol::check as wire_check;
use parallax_protocol::id as wire_id;
use parallax_protocol::message::CheckReason;
use parallax_protocol::result as wire;
use parallax_protocol::text::SecretText;

use super::account_numbers::AccountNumbers;
use super::schedule_diff::ScheduleDifference;

/// Longest time from a check's start to its end, in ms: the deadline of 10 s and some for a busy host. A start
/// before that was computed from a wrong clock.
pub(super) const LONGEST_CHECK_MS: i64 = 15_000;

/// Body bytes that agents read, in MiB.
const BODY_READ_MIB: u32 = (wire_check::WireHttpCheck::MAX_BODY_BYTES / (1024 * 1024)) as u32;

/// Milliseconds without a response after which an agent reports a check as pending.
const PENDING_AFTER_MS: i64 = 3_000;

/// Converts a region to its wire form.
pub(super) fn region(region: Region) -> wire_id::WireRegion {
    match region {
        Region::Europe => wire_id::WireRegion::Europe,
        Region::NorthAmerica => wire_id::WireRegion::NorthAmerica,
        Region::SouthAmerica => wire_id::WireRegion::SouthAmerica,
        Region::Africa => wire_id::WireRegion::Africa,
        Region::Asia => wire_id::WireRegion::Asia,
        Region::Oceania => wire_id::WireRegion::Oceania,
    }
}

/// Converts a monitor's id to its wire form.
pub(super) fn monitor(id: MonitorId) -> wire_id::WireMonitorId {
    wire_id::WireMonitorId(id.to_u128())
}

/// Converts a monitor's id from its wire form.
pub(super) fn monitor_id(id: wire_id::WireMonitorId) -> MonitorId {
    MonitorId::from_u128(id.0)
}

/// Converts a check to its wire form; `None` for a heartbeat, which no agent runs.
pub(super) fn spec(check: &Check) -> Option<wire_check::WireCheckSpec> {
    use wire_check::WireCheckSpec;
    Some(match check {
        Check::Http(check) => WireCheckSpec::Http(http(check)),
        Check::Tcp(check) => {
            WireCheckSpec::Tcp(wire_check::WireTcpCheck { host: ascii_host(&check.host), port: check.port })
        }
        Check::Dns(check) => WireCheckSpec::Dns(wire_check::WireDnsCheck {
            host: ascii_host(&check.host),
            record: record(check.record),
            expect: check.expect.clone(),
        }),
        Check::Ping(check) => WireCheckSpec::Ping(wire_check::WirePingCheck { host: ascii_host(&check.host) }),
        Check::Certificate(check) => WireCheckSpec::Certificate(wire_check::WireCertificateCheck {
            host: ascii_host(&check.host),
            port: check.port,
            warn_days: check.warn_days,
        }),
        Check::Domain(check) => WireCheckSpec::Domain(wire_check::WireDomainCheck {
            host: ascii_host(&check.host),
            warn_days: check.warn_days,
        }),
        Check::Heartbeat(_) => return None,
        Check::Component(check) => WireCheckSpec::Component(wire_check::WireComponentCheck {
            vendor_url: check.url.clone(),
            component: check.component.clone(),
        }),
    })
}

/// Converts an agent's share of a monitor to its wire form; `None` for a heartbeat.
pub(super) fn assignment(scheduled: &ScheduledMonitor, share: ScheduleShare, account: u32) -> Option<Assignment> {
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
pub(super) fn schedule_change(
    slot_epoch: u64,
    difference: ScheduleDifference,
    accounts: &AccountNumbers,
) -> ScheduleChange {
    let mut numbers = BTreeMap::new();
    let mut number = |account| *numbers.entry(account).or_insert_with(|| accounts.number(account));
    let put = difference.put.into_iter();
    ScheduleChange {
        slot_epoch,
        base: difference.base,
        revision: difference.revision,
        put: put.filter_map(|(scheduled, share)| assignment(&scheduled, share, number(scheduled.account))).collect(),
        drop: difference.drop.into_iter().map(monitor).collect(),
        has_more: false,
    }
}

/// Converts the reason of a probe request to its wire form.
pub(super) fn reason(reason: ProbeReason) -> CheckReason {
    match reason {
        ProbeReason::Confirm => CheckReason::Confirm,
        ProbeReason::Second => CheckReason::SecondRound,
        ProbeReason::Sweep => CheckReason::Sweep,
        ProbeReason::First => CheckReason::NewMonitor,
        ProbeReason::FollowUp => CheckReason::FollowUp,
        // A scheduled round is never requested; if it were, it would be a manual request.
        ProbeReason::Manual | ProbeReason::Scheduled => CheckReason::Manual,
    }
}

/// Converts a result to an observation. Vantage, region and network come from the coordinator's record of `agent`.
/// The end is computed from `received` and the result's age on the agent's monotonic clock, whatever its wall clock
/// says.
pub(super) fn observation(
    result: wire::CheckResult,
    kind: CheckKind,
    agent: &AgentRecord,
    received: Timestamp,
) -> core_observation::Observation {
    let age = i64::try_from(result.age_ms).unwrap_or(i64::MAX);
    let ended = received - age;
    let mut started = Timestamp::from_millis(result.started_ms);
    if !(0..=LONGEST_CHECK_MS).contains(&ended.since(started)) {
        started = ended - i64::from(result.report.latency_ms.unwrap_or(0).min(10_000));
    }
    core_observation::Observation {
        revision: result.revision,
        region: agent.region,
        vantage: agent.vantage_no,
        network: agent.network_no,
        round: result.round,
        started,
        ended,
        outcome: outcome(result.report, kind),
    }
}

/// Builds the observation for a check that has had no response for 3 s.
pub(super) fn pending(revision: u32, agent: &AgentRecord, now: Timestamp) -> core_observation::Observation {
    core_observation::Observation {
        revision,
        region: agent.region,
        vantage: agent.vantage_no,
        network: agent.network_no,
        round: None,
        started: now - PENDING_AFTER_MS,
        ended: now,
        outcome: core_observation::ProbeOutcome::Pending,
    }
}

fn http(check: &core_check::HttpCheck) -> wire_check::WireHttpCheck {
    let header = |(name, value): &(String, String)| wire_check::WireHeader {
        name: name.clone(),
        value: SecretText::new(value.as_str()),
    };
    wire_check::WireHttpCheck {
        url: check.url.clone(),
        method: match check.method {
            core_check::Method::Get => wire_check::WireMethod::Get,
            core_check::Method::Head => wire_check::WireMethod::Head,
            core_check::Method::Post => wire_check::WireMethod::Post,
            core_check::Method::Put => wire_check::WireMethod::Put,
            core_check::Method::Patch => wire_check::WireMethod::Patch,
            core_check::Method::Delete => wire_check::WireMethod::Delete,
        },
        headers: check.sent_headers().iter().map(header).collect(),
        body: check.body.as_deref().map(SecretText::new),
        expect_status: check.expect_status,
        keyword: check.keyword.clone(),
        keyword_mode: match check.keyword_mode {
            core_check::KeywordMode::Present => wire_check::WireKeywordMode::Present,
            core_check::KeywordMode::Absent => wire_check::WireKeywordMode::Absent,
        },
    }
}

fn record(record: core_check::RecordType) -> wire_check::WireRecordType {
    match record {
        core_check::RecordType::A => wire_check::WireRecordType::A,
        core_check::RecordType::Aaaa => wire_check::WireRecordType::Aaaa,
        core_check::RecordType::Cname => wire_check::WireRecordType::Cname,
        core_check::RecordType::Mx => wire_check::WireRecordType::Mx,
        core_check::RecordType::Txt => wire_check::WireRecordType::Txt,
        core_check::RecordType::Ns => wire_check::WireRecordType::Ns,
    }
}

fn outcome(report: wire::ProbeReport, kind: CheckKind) -> core_observation::ProbeOutcome {
    let measurements = core_observation::Measurements {
        latency_ms: report.latency_ms,
        status_code: report.status_code,
        address: report.address,
        phases: core_observation::PhaseDurations {
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
        wire::WireOutcome::Passed => core_observation::ProbeOutcome::Passed(measurements),
        // Other agents may reach it. As a failure, the contradiction would put honest agents into quarantine,
        // through a monitor that anyone can create. The monitor's owner reads the reason.
        wire::WireOutcome::Failed(wire::WireFailure::AddressNotAllowed { class: wire::AddressClass::Own }) => {
            core_observation::ProbeOutcome::Inconclusive(core_observation::InconclusiveReason::External(
                OWN_HOST_REASON.to_owned(),
            ))
        }
        wire::WireOutcome::Failed(fault) => {
            core_observation::ProbeOutcome::Failed(measurements, failure(fault, kind, report.vendor.as_ref()))
        }
        wire::WireOutcome::Inconclusive(fault) => core_observation::ProbeOutcome::Inconclusive(own_fault(&fault, kind)),
        wire::WireOutcome::Pending => core_observation::ProbeOutcome::Pending,
    }
}

/// Reason shown for a target on an agent's own host.
const OWN_HOST_REASON: &str =
    "the target is the agent's own host or the coordinator's, which is not checked from there";

fn failure(
    fault: wire::WireFailure,
    kind: CheckKind,
    vendor: Option<&wire::VendorReading>,
) -> core_observation::Failure {
    use core_observation::Failure;
    let days = |days: u32| i32::try_from(days).unwrap_or(i32::MAX);
    match fault {
        wire::WireFailure::Timeout { phase } => Failure::Timeout(match phase {
            wire::WirePhase::Dns => core_observation::CheckPhase::Dns,
            wire::WirePhase::Connect => core_observation::CheckPhase::Connect,
            wire::WirePhase::Tls => core_observation::CheckPhase::Tls,
            wire::WirePhase::FirstByte => core_observation::CheckPhase::FirstByte,
            wire::WirePhase::Transfer => core_observation::CheckPhase::Transfer,
        }),
        wire::WireFailure::Refused => Failure::Refused,
        wire::WireFailure::Reset | wire::WireFailure::ClosedEarly => Failure::Reset,
        wire::WireFailure::Unreachable => Failure::Unreachable,
        wire::WireFailure::DnsNotFound => Failure::NameNotFound,
        wire::WireFailure::DnsFailed { .. } => Failure::ResolutionFailed,
        wire::WireFailure::DnsNoRecord if kind == CheckKind::Dns => {
            Failure::Other("the name has no record of this type".to_owned())
        }
        wire::WireFailure::DnsNoRecord => Failure::NoAddress,
        wire::WireFailure::DnsMismatch { got } => Failure::DnsUnexpected(got.to_string()),
        wire::WireFailure::AddressNotAllowed { class } => Failure::AddressNotAllowed(address_class(class).to_owned()),
        wire::WireFailure::UnexpectedStatus { got } => Failure::UnexpectedStatus(got),
        wire::WireFailure::KeywordMissing => Failure::KeywordMissing,
        wire::WireFailure::KeywordPresent => Failure::KeywordPresent,
        wire::WireFailure::TooManyRedirects => Failure::TooManyRedirects,
        wire::WireFailure::BadRedirect => Failure::BadRedirect,
        wire::WireFailure::TlsExpired => Failure::TlsExpired,
        wire::WireFailure::TlsNotYetValid => Failure::TlsNotYetValid,
        wire::WireFailure::TlsNameMismatch => Failure::TlsNameMismatch,
        wire::WireFailure::TlsUnknownIssuer => Failure::TlsUnknownIssuer,
        wire::WireFailure::TlsRevoked => Failure::TlsFailed("certificate revoked".to_owned()),
        wire::WireFailure::TlsOther { detail } => Failure::TlsFailed(detail.to_string()),
        wire::WireFailure::HttpMalformed => Failure::NotHttp("it does not parse".to_owned()),
        wire::WireFailure::HeadTooLarge => Failure::NotHttp("its header is too large".to_owned()),
        wire::WireFailure::BodyUndecodable => Failure::NotHttp("its content coding can't be undone".to_owned()),
        wire::WireFailure::BodyTooLarge => Failure::BodyTooLarge(BODY_READ_MIB),
        wire::WireFailure::NoReply => Failure::Other("no reply to a ping".to_owned()),
        wire::WireFailure::CertificateExpiring { days: left } => Failure::CertificateExpiring(days(left)),
        wire::WireFailure::DomainExpiring { days: left } => Failure::DomainExpiring(days(left)),
        wire::WireFailure::DomainExpired => Failure::Other("domain expired".to_owned()),
        wire::WireFailure::DomainNotFound => Failure::Other("domain not registered".to_owned()),
        wire::WireFailure::VendorOutage => Failure::VendorOutage(vendor_text(vendor)),
        wire::WireFailure::BadTarget { detail } => Failure::Other(detail.to_string()),
    }
}

/// Returns the vendor's own status text, with its incident's title if it names one.
fn vendor_text(vendor: Option<&wire::VendorReading>) -> String {
    match vendor {
        Some(wire::VendorReading { vendor_text: text, incident: Some(title), .. }) => {
            format!("{text}: {title}")
        }
        Some(reading) => reading.vendor_text.to_string(),
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

/// Returns the agent's description of the fault. It depends on the check type, and may quote a vendor or a registry.
fn own_fault_text(fault: &wire::WireOwnFault, kind: CheckKind) -> String {
    let text = match kind {
        CheckKind::Http => fault.describe(wire_check::WireCheckKind::Http),
        CheckKind::Certificate => fault.describe(wire_check::WireCheckKind::Certificate),
        CheckKind::Domain => fault.describe(wire_check::WireCheckKind::Domain),
        CheckKind::Tcp | CheckKind::Dns | CheckKind::Ping | CheckKind::Heartbeat | CheckKind::Component => {
            fault.to_string()
        }
    };
    with_visible_controls(&text)
}

fn own_fault(fault: &wire::WireOwnFault, kind: CheckKind) -> core_observation::InconclusiveReason {
    match fault {
        wire::WireOwnFault::NoRoute => core_observation::InconclusiveReason::NoRoute,
        wire::WireOwnFault::NoDescriptors => core_observation::InconclusiveReason::NoDescriptors,
        wire::WireOwnFault::ResolverDead => core_observation::InconclusiveReason::ResolverDead,
        wire::WireOwnFault::NotPermitted => core_observation::InconclusiveReason::NotPermitted,
        wire::WireOwnFault::UnsupportedCheck => core_observation::InconclusiveReason::Unsupported,
        // The monitor's owner reads the reason in the agent's words.
        wire::WireOwnFault::RegistryUnreadable { .. }
        | wire::WireOwnFault::VendorUnreadable { .. }
        | wire::WireOwnFault::VendorComponentMissing
        | wire::WireOwnFault::VendorStateUnknown { .. } => {
            core_observation::InconclusiveReason::External(own_fault_text(fault, kind))
        }
        wire::WireOwnFault::Overloaded | wire::WireOwnFault::Internal { .. } => {
            core_observation::InconclusiveReason::Overloaded
        }
    }
}

#[cfg(test)]
mod tests;
