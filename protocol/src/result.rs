//! What a check found: outcome, whose fault, timings.

use crate::check::CheckKind;
use crate::id::MonitorId;
use crate::text::Detail;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// One check's result, as an agent keeps it and the coordinator receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The monitor checked.
    pub monitor: MonitorId,
    /// Revision of the monitor's specification that was checked.
    pub revision: u32,
    /// The scheduled round; `None` for a check-now.
    pub round: Option<u64>,
    /// When the check started, epoch ms by the coordinator's clock as the agent reckons it.
    pub started_ms: i64,
    /// Milliseconds since the check ended, by the agent's monotonic clock, when this was sent.
    pub age_ms: u64,
    /// What was found.
    pub report: Report,
}

/// A result with its place in the agent's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedResult {
    /// Sequence number within the boot, from 1, without gaps but those reported.
    pub seq: u64,
    /// The result.
    pub result: CheckResult,
}

/// What a probe says of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Passed, failed, or the place's own fault.
    pub outcome: Outcome,
    /// Response time in ms, at least 1 where measured; also of failures that came with an answer.
    pub latency_ms: Option<u32>,
    /// Where the time went. Agents send it with a part of the passed results only.
    pub phases: Phases,
    /// http: the status received.
    pub status_code: Option<u16>,
    /// The address that was checked.
    pub address: Option<IpAddr>,
    /// certificate and domain: expiry in epoch ms.
    pub expires_ms: Option<i64>,
    /// component: what the vendor's page says.
    pub vendor: Option<VendorReading>,
}

impl Report {
    /// A report that says no more than its outcome.
    pub fn bare(outcome: Outcome) -> Self {
        Self {
            outcome,
            latency_ms: None,
            phases: Phases::default(),
            status_code: None,
            address: None,
            expires_ms: None,
            vendor: None,
        }
    }
}

/// The verdict on one check at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The target did what the specification asks.
    Passed,
    /// The target did not.
    Failed(Failure),
    /// The place could not judge, by a fault of its own or for a reason on the other side.
    Inconclusive(OwnFault),
    /// No answer yet after 3 s; the check's result follows under the same round.
    Pending,
}

/// Durations of a check's phases in microseconds, each `None` where the phase did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Phases {
    /// Name resolution.
    pub dns_us: Option<u32>,
    /// TCP connect, or the echo's round trip.
    pub connect_us: Option<u32>,
    /// TLS handshake.
    pub tls_us: Option<u32>,
    /// From the request sent to the first byte of the answer.
    pub first_byte_us: Option<u32>,
    /// From the first byte to the last one read.
    pub transfer_us: Option<u32>,
}

/// The phase in which a check was when it timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Name resolution.
    Dns,
    /// TCP connect.
    Connect,
    /// TLS handshake.
    Tls,
    /// Waiting for the answer's first byte.
    FirstByte,
    /// Reading the answer.
    Transfer,
}

/// Why a check failed. New kinds go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// No answer within the deadline.
    Timeout {
        /// What was being waited for.
        phase: Phase,
    },
    /// The port is closed.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer closed before it had answered.
    ClosedEarly,
    /// A router says the host cannot be reached.
    Unreachable,
    /// The name does not exist (NXDOMAIN).
    DnsNotFound,
    /// The name's servers answer with an error.
    DnsFailed {
        /// The response code (RFC 6895).
        code: u16,
    },
    /// The name exists without a record of the type asked for.
    DnsNoRecord,
    /// No answer contains the expected text.
    DnsMismatch {
        /// What was answered.
        got: Detail,
    },
    /// Every address of the target is one that may not be checked.
    AddressNotAllowed {
        /// What kind of address it is.
        class: AddressClass,
    },
    /// Another status than expected.
    UnexpectedStatus {
        /// The status received.
        got: u16,
    },
    /// The body lacks the keyword.
    KeywordMissing,
    /// The body has the keyword that it must not have.
    KeywordPresent,
    /// More than 5 redirects.
    TooManyRedirects,
    /// A redirect without a usable http or https address.
    BadRedirect,
    /// The certificate's time is over.
    TlsExpired,
    /// The certificate's time has not begun.
    TlsNotYetValid,
    /// The certificate does not bear the host's name.
    TlsNameMismatch,
    /// The certificate's chain ends in no known root.
    TlsUnknownIssuer,
    /// The certificate is revoked.
    TlsRevoked,
    /// Another fault of the handshake.
    TlsOther {
        /// The handshake's own word.
        detail: Detail,
    },
    /// The answer is not HTTP.
    HttpMalformed,
    /// The answer's head is longer than a check reads.
    HeadTooLarge,
    /// The body is larger than a check reads, as sent or as decoded, and the keyword is not in what was read.
    BodyTooLarge,
    /// The body's content coding cannot be undone.
    BodyUndecodable,
    /// No echo reply.
    NoReply,
    /// The certificate ends within the days asked for.
    CertificateExpiring {
        /// Whole days left.
        days: u32,
    },
    /// The registration ends within the days asked for.
    DomainExpiring {
        /// Whole days left.
        days: u32,
    },
    /// The registration's time is over.
    DomainExpired,
    /// No such registration.
    DomainNotFound,
    /// The vendor reports an outage; its words are in the report's [`VendorReading`].
    VendorOutage,
    /// The target itself breaks a rule of its type (a URL that does not parse, a host that is no name).
    BadTarget {
        /// The rule.
        detail: Detail,
    },
}

/// Faults that are not the target's. New kinds go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnFault {
    /// This host has no route.
    NoRoute,
    /// This host has no file descriptors or ports left.
    NoDescriptors,
    /// This host's resolver answers nobody.
    ResolverDead,
    /// This host may not send what the check needs (ICMP).
    NotPermitted,
    /// This agent does not know the type of check.
    NotBuilt,
    /// The registry cannot be read.
    RegistryUnreadable {
        /// Why.
        detail: Detail,
    },
    /// The vendor's page cannot be read.
    VendorUnreadable {
        /// Why.
        detail: Detail,
    },
    /// The component is not on the vendor's page. Agents of today say so by [`Self::VendorUnreadable`], with the names
    /// that are there.
    VendorComponentMissing,
    /// The vendor uses a word that has no known meaning.
    VendorWordUnknown {
        /// The word.
        word: Detail,
    },
    /// Too much runs here already.
    Overloaded,
    /// A fault of the agent itself.
    Internal {
        /// Why.
        detail: Detail,
    },
}

impl OwnFault {
    /// A server whose TLS this agent's library lacks, in words that the monitor's owner reads. It travels as
    /// [`Self::VendorUnreadable`], the kind with a reason from the other side that every coordinator knows; the type of the
    /// check tells them apart.
    pub fn tls(detail: Detail) -> Self {
        Self::VendorUnreadable { detail }
    }

    /// The fault in words, of a check of this type.
    pub fn words(&self, kind: CheckKind) -> String {
        match (self, kind) {
            (Self::VendorUnreadable { detail }, CheckKind::Http | CheckKind::Certificate) => {
                detail.to_string()
            }
            // Its registry is asked over TLS too.
            (Self::VendorUnreadable { detail }, CheckKind::Domain) => format!("registry: {detail}"),
            _ => self.to_string(),
        }
    }
}

/// Kinds of addresses that may not be checked. Reports name the class only, never the address's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressClass {
    /// Loopback.
    Loopback,
    /// Private use.
    Private,
    /// Link-local, metadata services among them.
    LinkLocal,
    /// Multicast or broadcast.
    Multicast,
    /// Unspecified.
    Unspecified,
    /// Reserved, documentation, translation and transition ranges.
    Reserved,
    /// An address of this host, or one the operator has excluded.
    Own,
}

/// What a vendor's page says of a component or of the whole page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VendorReading {
    /// The vendor's word in our terms.
    pub state: VendorState,
    /// The vendor's own word.
    pub word: Detail,
    /// Title of the vendor's open incident, where there is one.
    pub incident: Option<Detail>,
}

/// The states that vendors' words are read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VendorState {
    /// All is well.
    Operational,
    /// Planned work; counts as up.
    Maintenance,
    /// Slow or partly impaired; counts as slow.
    Degraded,
    /// Down for some; counts as down.
    PartialOutage,
    /// Down for all; counts as down.
    MajorOutage,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "resolving the name",
            Self::Connect => "connecting",
            Self::Tls => "in the TLS handshake",
            Self::FirstByte => "waiting for the answer",
            Self::Transfer => "reading the answer",
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
            Self::Own => "this host's own, or excluded",
        })
    }
}

/// A short operator's text; what customers read is made by the coordinator.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { phase } => write!(f, "timed out {phase}"),
            Self::Refused => f.write_str("connection refused"),
            Self::Reset => f.write_str("connection reset"),
            Self::ClosedEarly => f.write_str("connection closed before an answer"),
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
            Self::HttpMalformed => f.write_str("answer is not HTTP"),
            Self::HeadTooLarge => f.write_str("answer's head too large"),
            Self::BodyTooLarge => f.write_str("body larger than is read, and nothing found up to there"),
            Self::BodyUndecodable => f.write_str("body's coding cannot be undone"),
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

/// A short text; of a reason on the other side it is what customers read.
impl fmt::Display for OwnFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute => f.write_str("this host has no route"),
            Self::NoDescriptors => f.write_str("this host has no descriptors or ports left"),
            Self::ResolverDead => f.write_str("this host's resolver does not answer"),
            Self::NotPermitted => f.write_str("this host may not send ICMP"),
            Self::NotBuilt => f.write_str("this agent cannot do this type of check"),
            Self::RegistryUnreadable { detail } => write!(f, "registry: {detail}"),
            Self::VendorUnreadable { detail } => write!(f, "vendor's page: {detail}"),
            Self::VendorComponentMissing => f.write_str("vendor's page: no such component"),
            Self::VendorWordUnknown { word } => write!(f, "vendor's page: unknown word \"{word}\""),
            Self::Overloaded => f.write_str("too much runs here already"),
            Self::Internal { detail } => write!(f, "agent fault: {detail}"),
        }
    }
}
