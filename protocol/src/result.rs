//! Results of checks: outcome, cause, timings.

use crate::check::WireCheckKind;
use crate::id::WireMonitorId;
use crate::text::ShortText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// A check's result, as an agent stores it and the coordinator receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The monitor checked.
    pub monitor: WireMonitorId,
    /// Revision of the monitor's specification that was checked.
    pub revision: u32,
    /// The scheduled round; `None` for a check-now.
    pub round: Option<u64>,
    /// Start of the check, epoch ms by the agent's estimate of the coordinator's clock.
    pub started_ms: i64,
    /// Milliseconds between the end of the check and sending, by the agent's monotonic clock.
    pub age_ms: u64,
    /// Report of the probe.
    pub report: ProbeReport,
}

/// A result with its sequence number in the agent's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedResult {
    /// Sequence number within the boot, from 1, without gaps except those reported.
    pub seq: u64,
    /// The result.
    pub result: CheckResult,
}

/// Report of a probe on one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Passed, failed, or a fault on the agent's side.
    pub outcome: WireOutcome,
    /// Response time in ms, at least 1 if measured; also set for failures with a response.
    pub latency_ms: Option<u32>,
    /// Durations of the phases. Agents send them with only a part of the passed results.
    pub phases: WirePhases,
    /// http: status received.
    pub status_code: Option<u16>,
    /// Address that was checked.
    pub address: Option<IpAddr>,
    /// certificate and domain: expiry in epoch ms.
    pub expires_ms: Option<i64>,
    /// component: state on the vendor's page.
    pub vendor: Option<VendorReading>,
}

impl ProbeReport {
    /// Creates a report with nothing but its outcome.
    pub fn outcome_only(outcome: WireOutcome) -> Self {
        Self {
            outcome,
            latency_ms: None,
            phases: WirePhases::default(),
            status_code: None,
            address: None,
            expires_ms: None,
            vendor: None,
        }
    }
}

/// Outcome of one check at one vantage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireOutcome {
    /// The target met the specification.
    Passed,
    /// The target did not meet it.
    Failed(WireFailure),
    /// The agent could not judge, because of a fault of its own or a limitation on the other side.
    Inconclusive(WireOwnFault),
    /// No response yet after 3 s; the check's result follows under the same round.
    Pending,
}

/// Durations of a check's phases in microseconds, each `None` if the phase did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WirePhases {
    /// Name resolution.
    pub dns_us: Option<u32>,
    /// TCP connect, or the echo's round trip.
    pub connect_us: Option<u32>,
    /// TLS handshake.
    pub tls_us: Option<u32>,
    /// From the request sent to the first byte of the response.
    pub first_byte_us: Option<u32>,
    /// From the first byte to the last one read.
    pub transfer_us: Option<u32>,
}

/// Phase of a check at its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WirePhase {
    /// Name resolution.
    Dns,
    /// TCP connect.
    Connect,
    /// TLS handshake.
    Tls,
    /// Waiting for the first byte of the response.
    FirstByte,
    /// Reading the response.
    Transfer,
}

/// Cause of a failed check. New kinds go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireFailure {
    /// No response within the deadline.
    Timeout {
        /// Phase at the timeout.
        phase: WirePhase,
    },
    /// The port is closed.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before it had responded.
    ClosedEarly,
    /// A router reports the host as unreachable.
    Unreachable,
    /// The name does not exist (NXDOMAIN).
    DnsNotFound,
    /// The name servers respond with an error.
    DnsFailed {
        /// The response code (RFC 6895).
        code: u16,
    },
    /// The name exists without a record of the queried type.
    DnsNoRecord,
    /// No answer contains the expected text.
    DnsMismatch {
        /// Records received.
        got: ShortText,
    },
    /// No address of the target may be checked.
    AddressNotAllowed {
        /// Class of the addresses.
        class: AddressClass,
    },
    /// A status other than the expected one.
    UnexpectedStatus {
        /// The status received.
        got: u16,
    },
    /// The body lacks the keyword.
    KeywordMissing,
    /// The body contains the forbidden keyword.
    KeywordPresent,
    /// More than 5 redirects.
    TooManyRedirects,
    /// A redirect without a usable http or https address.
    BadRedirect,
    /// The certificate has expired.
    TlsExpired,
    /// The certificate is not yet valid.
    TlsNotYetValid,
    /// The certificate does not cover the host's name.
    TlsNameMismatch,
    /// The certificate's chain ends in no known root.
    TlsUnknownIssuer,
    /// The certificate is revoked.
    TlsRevoked,
    /// Another TLS handshake failure.
    TlsOther {
        /// Text of the TLS library.
        detail: ShortText,
    },
    /// The response is not HTTP.
    HttpMalformed,
    /// The response's head is over the size limit.
    HeadTooLarge,
    /// The body is over the size limit, as sent or as decoded, and the keyword is not in the part read.
    BodyTooLarge,
    /// The body's content coding cannot be decoded.
    BodyUndecodable,
    /// No echo reply.
    NoReply,
    /// The certificate expires within the configured days.
    CertificateExpiring {
        /// Whole days left.
        days: u32,
    },
    /// The registration expires within the configured days.
    DomainExpiring {
        /// Whole days left.
        days: u32,
    },
    /// The registration has expired.
    DomainExpired,
    /// The domain is not registered.
    DomainNotFound,
    /// The vendor reports an outage; its texts are in the report's [`VendorReading`].
    VendorOutage,
    /// The target itself breaks a rule of its type (a URL that does not parse, an invalid host name).
    BadTarget {
        /// The rule.
        detail: ShortText,
    },
}

/// Faults that are not the target's. New kinds go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireOwnFault {
    /// This host has no route.
    NoRoute,
    /// This host has no file descriptors or ports left.
    NoDescriptors,
    /// This host's resolver does not respond.
    ResolverDead,
    /// This host lacks the permission that the check needs (ICMP).
    NotPermitted,
    /// This agent does not support the check type.
    UnsupportedCheck,
    /// The registry cannot be read.
    RegistryUnreadable {
        /// Reason.
        detail: ShortText,
    },
    /// The vendor's page cannot be read.
    VendorUnreadable {
        /// Reason.
        detail: ShortText,
    },
    /// The component is not on the vendor's page. Current agents report [`Self::VendorUnreadable`] instead,
    /// with the names that are there.
    VendorComponentMissing,
    /// The vendor's state has no known meaning.
    VendorStateUnknown {
        /// The vendor's state.
        vendor_text: ShortText,
    },
    /// Too many checks are running on this host.
    Overloaded,
    /// An internal error of the agent.
    Internal {
        /// Details.
        detail: ShortText,
    },
}

impl WireOwnFault {
    /// A server whose TLS this agent's library does not support, in words for the monitor's owner. It is sent
    /// as [`Self::VendorUnreadable`], the only fault on the other side that every coordinator knows; the
    /// check type tells them apart.
    pub fn unsupported_tls(detail: ShortText) -> Self {
        Self::VendorUnreadable { detail }
    }

    /// Text of the fault for a check of this type.
    pub fn describe(&self, kind: WireCheckKind) -> String {
        match (self, kind) {
            (Self::VendorUnreadable { detail }, WireCheckKind::Http | WireCheckKind::Certificate) => detail.to_string(),
            // The registry is read over TLS too.
            (Self::VendorUnreadable { detail }, WireCheckKind::Domain) => format!("registry: {detail}"),
            _ => self.to_string(),
        }
    }
}

/// Classes of addresses that may not be checked. Reports contain only the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressClass {
    /// Loopback.
    Loopback,
    /// Private use.
    Private,
    /// Link-local, including metadata services.
    LinkLocal,
    /// Multicast or broadcast.
    Multicast,
    /// Unspecified.
    Unspecified,
    /// Reserved, documentation, translation and transition ranges.
    Reserved,
    /// An address of this host, or one that the operator has excluded.
    Own,
}

/// State of a component or of the whole page, as its vendor reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VendorReading {
    /// The vendor's state, mapped.
    pub state: VendorState,
    /// The vendor's own word.
    pub vendor_text: ShortText,
    /// Title of the vendor's open incident, if any.
    pub incident: Option<ShortText>,
}

/// States that vendors' words are mapped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VendorState {
    /// No problem.
    Operational,
    /// Planned maintenance; counts as up.
    Maintenance,
    /// Slow or partly impaired; counts as slow.
    Degraded,
    /// Down for some; counts as down.
    PartialOutage,
    /// Down for all; counts as down.
    MajorOutage,
}

impl fmt::Display for WirePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "resolving the name",
            Self::Connect => "connecting",
            Self::Tls => "in the TLS handshake",
            Self::FirstByte => "waiting for the response",
            Self::Transfer => "reading the response",
        })
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
            Self::Own => "this host, or excluded by the operator",
        })
    }
}

/// Short text for the operator; the coordinator writes the customer's text.
impl fmt::Display for WireFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { phase } => write!(f, "timed out {phase}"),
            Self::Refused => f.write_str("connection refused"),
            Self::Reset => f.write_str("connection reset"),
            Self::ClosedEarly => f.write_str("connection closed before a response"),
            Self::Unreachable => f.write_str("host unreachable"),
            Self::DnsNotFound => f.write_str("name not found"),
            Self::DnsFailed { code } => write!(f, "name servers answer with code {code}"),
            Self::DnsNoRecord => f.write_str("no record of this type"),
            Self::DnsMismatch { got } => write!(f, "expected text not in the answer: {got}"),
            Self::AddressNotAllowed { class } => write!(f, "address not allowed: {class}"),
            Self::UnexpectedStatus { got } => write!(f, "unexpected status {got}"),
            Self::KeywordMissing => f.write_str("keyword missing"),
            Self::KeywordPresent => f.write_str("keyword present"),
            Self::TooManyRedirects => f.write_str("too many redirects"),
            Self::BadRedirect => f.write_str("redirect to an unusable address"),
            Self::TlsExpired => f.write_str("certificate expired"),
            Self::TlsNotYetValid => f.write_str("certificate not yet valid"),
            Self::TlsNameMismatch => f.write_str("certificate for another name"),
            Self::TlsUnknownIssuer => f.write_str("certificate from an unknown issuer"),
            Self::TlsRevoked => f.write_str("certificate revoked"),
            Self::TlsOther { detail } => write!(f, "TLS fault: {detail}"),
            Self::HttpMalformed => f.write_str("response is not HTTP"),
            Self::HeadTooLarge => f.write_str("response head too large"),
            Self::BodyTooLarge => f.write_str("body over the size limit, keyword not in the part that was read"),
            Self::BodyUndecodable => f.write_str("body's content coding cannot be decoded"),
            Self::NoReply => f.write_str("no reply"),
            Self::CertificateExpiring { days } => write!(f, "certificate ends in {days} days"),
            Self::DomainExpiring { days } => write!(f, "registration ends in {days} days"),
            Self::DomainExpired => f.write_str("registration expired"),
            Self::DomainNotFound => f.write_str("domain not registered"),
            Self::VendorOutage => f.write_str("vendor reports an outage"),
            Self::BadTarget { detail } => write!(f, "target not usable: {detail}"),
        }
    }
}

/// Short text; for a fault on the other side it is what customers read.
impl fmt::Display for WireOwnFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute => f.write_str("this host has no route"),
            Self::NoDescriptors => f.write_str("this host has no file descriptors or ports left"),
            Self::ResolverDead => f.write_str("this host's resolver does not answer"),
            Self::NotPermitted => f.write_str("this host may not send ICMP"),
            Self::UnsupportedCheck => f.write_str("this agent does not support this type of check"),
            Self::RegistryUnreadable { detail } => write!(f, "registry: {detail}"),
            Self::VendorUnreadable { detail } => write!(f, "vendor's page: {detail}"),
            Self::VendorComponentMissing => f.write_str("vendor's page: no such component"),
            Self::VendorStateUnknown { vendor_text } => {
                write!(f, "vendor's page: unknown word \"{vendor_text}\"")
            }
            Self::Overloaded => f.write_str("too many checks are running on this host"),
            Self::Internal { detail } => write!(f, "agent fault: {detail}"),
        }
    }
}
