//! Results of checks: the outcome one vantage saw, the outcome a round ends with, and the reading stored in history.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::vantage::{NetworkNo, Region, VantageNo};

/// Result of one check run by one vantage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Revision of the monitor that was checked.
    pub revision: u32,
    /// Region of the vantage.
    pub region: Region,
    /// Vantage that ran the check.
    pub vantage: VantageNo,
    /// Network of the vantage.
    pub network: NetworkNo,
    /// Number of the scheduled round (slot of the schedule since the epoch); none for a manual check.
    pub round: Option<u64>,
    /// Start of the check, in the coordinator's time.
    pub started: Timestamp,
    /// End of the check; for [`ProbeOutcome::Pending`] the time of that report.
    pub ended: Timestamp,
    /// Result of the probe.
    pub outcome: ProbeOutcome,
}

/// Result of a check, or pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeOutcome {
    /// The target responded as expected.
    Passed(Measurements),
    /// The target did not respond as expected.
    Failed(Measurements, Failure),
    /// The vantage could not judge, by its own fault or for an external reason: says nothing about the
    /// target.
    Inconclusive(InconclusiveReason),
    /// No response for three seconds so far; the final outcome follows.
    Pending,
}

/// Measurements taken, as far as the check got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurements {
    /// Response time in milliseconds.
    pub latency_ms: Option<u32>,
    /// HTTP status code received.
    pub status_code: Option<u16>,
    /// IP address that was checked.
    pub address: Option<IpAddr>,
    /// Durations of the phases.
    pub phases: PhaseDurations,
    /// Certificate and domain checks: the expiry date read.
    pub expires_at: Option<Timestamp>,
    /// Component checks: passed, but the vendor reports degraded performance, which counts as slow.
    pub degraded: bool,
}

/// Durations of the phases of a check, in microseconds; none if a phase was not reached or does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseDurations {
    /// Name resolution.
    pub dns_us: Option<u32>,
    /// TCP connection.
    pub connect_us: Option<u32>,
    /// TLS handshake.
    pub tls_us: Option<u32>,
    /// Request sent to first byte.
    pub first_byte_us: Option<u32>,
    /// First byte to last.
    pub transfer_us: Option<u32>,
}

/// Phase of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckPhase {
    /// Name resolution.
    Dns,
    /// TCP connection.
    Connect,
    /// TLS handshake.
    Tls,
    /// Waiting for the first byte.
    FirstByte,
    /// Reading the body.
    Transfer,
}

/// Reason why a target failed. [`Locale::failure_text`] renders it as text; its `Display` renders the English text.
/// Variants are only ever added at the end.
///
/// [`Locale::failure_text`]: crate::locale::Locale::failure_text
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The check timed out in that phase.
    Timeout(CheckPhase),
    /// The connection was refused.
    Refused,
    /// The connection was reset or closed early.
    Reset,
    /// The network reports that the host is unreachable.
    Unreachable,
    /// The name does not exist.
    NameNotFound,
    /// The name has no address record.
    NoAddress,
    /// The name servers return an error.
    ResolutionFailed,
    /// The address is in a range that is not checked (private, loopback, link-local …); holds the name of the range.
    AddressNotAllowed(String),
    /// HTTP status other than the expected one.
    UnexpectedStatus(u16),
    /// The keyword is not in the body.
    KeywordMissing,
    /// The keyword is in the body but must not be.
    KeywordPresent,
    /// More than five redirects.
    TooManyRedirects,
    /// A redirect that cannot be followed.
    BadRedirect,
    /// The certificate has expired.
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for another name.
    TlsNameMismatch,
    /// The certificate's issuer is unknown.
    TlsUnknownIssuer,
    /// Any other TLS failure.
    TlsFailed(String),
    /// The response is not HTTP.
    NotHttp(String),
    /// No DNS answer contains the expected text.
    DnsUnexpected(String),
    /// The certificate expires within the warning period; days left.
    CertificateExpiring(i32),
    /// The domain expires within the warning period; days left.
    DomainExpiring(i32),
    /// No ping arrived by the deadline.
    PingMissed,
    /// The job reported a failure, with its exit code if it gave one.
    JobFailed(Option<u8>),
    /// The vendor reports an outage; the vendor's own text.
    VendorOutage(String),
    /// Any other failure, as a short text.
    Other(String),
    /// The body exceeds this many MiB, and the keyword was not found in the part that was read.
    BodyTooLarge(u32),
}

/// Reason why a vantage could not judge: its own fault or an external reason, never the target's fault.
/// Variants are only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InconclusiveReason {
    /// No route to the internet.
    NoRoute,
    /// No file descriptors or ports left.
    NoDescriptors,
    /// The resolver fails for every name.
    ResolverDead,
    /// The host does not permit an operation that the check needs.
    NotPermitted,
    /// The agent's version has no probe for this type.
    Unsupported,
    /// The registry cannot be read; only in records written before the reason was stored.
    RegistryUnreadable,
    /// The vendor's status page cannot be read; only in records written before the reason was stored.
    VendorUnreadable,
    /// The agent is overloaded.
    Overloaded,
    /// The other side (a registry, a vendor's page, a server whose TLS the agent does not support) returned nothing
    /// to judge by; the reason as reported by the agent.
    External(String),
}

impl InconclusiveReason {
    /// Returns true if the reason is external, so that the monitor's owner can act on it.
    pub const fn is_external(&self) -> bool {
        match self {
            Self::RegistryUnreadable | Self::VendorUnreadable | Self::External(_) => true,
            Self::NoRoute
            | Self::NoDescriptors
            | Self::ResolverDead
            | Self::NotPermitted
            | Self::Unsupported
            | Self::Overloaded => false,
        }
    }
}

impl fmt::Display for InconclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoute => "the agent has no route",
            Self::NoDescriptors => "the agent has no file descriptors or ports left",
            Self::ResolverDead => "the agent's resolver does not answer",
            Self::NotPermitted => "the agent's host does not permit this check",
            Self::Unsupported => "the agent has no probe of this type",
            Self::RegistryUnreadable => "the registry can't be read",
            Self::VendorUnreadable => "the vendor's page can't be read",
            Self::Overloaded => "the agent is overloaded",
            Self::External(reason) => reason,
        })
    }
}

/// Final outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RoundOutcome {
    /// Passed.
    Passed,
    /// Failed, and confirmed by a second network (or the region was already down).
    Failed,
    /// Failed, but the second network passed.
    Disputed,
    /// Failed, but no second network could confirm it in time.
    Unconfirmed,
    /// The vantage could not judge.
    Inconclusive,
}

impl RoundOutcome {
    /// Every outcome, in order.
    pub const ALL: [Self; 5] = [Self::Passed, Self::Failed, Self::Disputed, Self::Unconfirmed, Self::Inconclusive];

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Disputed => "disputed",
            Self::Unconfirmed => "unconfirmed",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Returns true if a vantage's outcome is the one that the round ended with.
    pub const fn agrees_with(self, seen: &ProbeOutcome) -> bool {
        match self {
            Self::Passed => matches!(seen, ProbeOutcome::Passed(_)),
            Self::Failed => matches!(seen, ProbeOutcome::Failed(..)),
            Self::Disputed | Self::Unconfirmed | Self::Inconclusive => false,
        }
    }

    /// Returns whether the round counts in uptime as passed or failed; none if it does not count.
    pub const fn counts_as_passed(self) -> Option<bool> {
        match self {
            Self::Passed | Self::Disputed => Some(true),
            Self::Failed => Some(false),
            Self::Unconfirmed | Self::Inconclusive => None,
        }
    }
}

/// Finished scheduled round, as stored in history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Dense number of the monitor.
    pub slot: u32,
    /// Region of the round.
    pub region: Region,
    /// Vantage that ran the round first.
    pub vantage: VantageNo,
    /// Number of the round.
    pub round: u64,
    /// Time at which the round was due, in the coordinator's time.
    pub due: Timestamp,
    /// Final outcome.
    pub outcome: RoundOutcome,
    /// Response time in milliseconds, for a passed round that has one.
    pub latency_ms: Option<u32>,
}
