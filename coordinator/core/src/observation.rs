//! What a place saw: one outcome with its place and time, the word a round ends with, and the reading that is kept.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::page::look::Language;
use crate::place::{NetworkNo, PlaceNo, Region};
use crate::time::Timestamp;
use crate::tongue::Tongue;

/// What one place saw when it ran one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Revision of the monitor that was checked.
    pub revision: u32,
    /// Where the place stands.
    pub region: Region,
    /// Who looked.
    pub place: PlaceNo,
    /// The network it looked from.
    pub network: NetworkNo,
    /// Number of the scheduled round (slot of the schedule since the epoch); none for a check-now.
    pub round: Option<u64>,
    /// When the check began, in the coordinator's time.
    pub started: Timestamp,
    /// When it ended; for [`Outcome::Pending`] when that was said.
    pub ended: Timestamp,
    /// What was seen.
    pub outcome: Outcome,
}

/// How a check ended, or that it has not yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The target answered as it should.
    Passed(Facts),
    /// The target did not answer as it should.
    Failed(Facts, Failure),
    /// The place could not judge, by its own fault or for a reason on the other side: no word on the target.
    Inconclusive(OwnFault),
    /// No answer for three seconds yet; the outcome follows.
    Pending,
}

/// What was measured on the way, as far as the check got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Response time in milliseconds.
    pub latency_ms: Option<u32>,
    /// HTTP status received.
    pub status_code: Option<u16>,
    /// The address that was checked.
    pub address: Option<IpAddr>,
    /// Where the time went.
    pub phases: Phases,
    /// Certificate and domain: the expiry that was read.
    pub expires_at: Option<Timestamp>,
    /// Component: it passed, but the vendor calls it degraded, which counts as slow.
    pub degraded: bool,
}

/// Durations of the parts of a check, in microseconds; none where a part was not reached or does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
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

/// The part of a check that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
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

/// Why a target failed: facts, of which [`Tongue::failure`] makes words; [`fmt::Display`] has those in English. Variants are
/// only ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The check's time ended in that phase.
    Timeout(Phase),
    /// The connection was refused.
    Refused,
    /// The connection was reset or closed early.
    Reset,
    /// The network says that the host can't be reached.
    Unreachable,
    /// The name does not exist.
    NameNotFound,
    /// The name has no address.
    NoAddress,
    /// The name's servers answer with a fault.
    ResolutionFailed,
    /// The address is not one that is checked (private, loopback, link-local …): the class in a word.
    AddressNotAllowed(String),
    /// Another HTTP status than the expected.
    UnexpectedStatus(u16),
    /// The keyword is not in the body.
    KeywordMissing,
    /// The keyword is in the body and must not be.
    KeywordPresent,
    /// More than five redirects.
    TooManyRedirects,
    /// A redirect that can't be followed.
    BadRedirect,
    /// The certificate has expired.
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for another name.
    TlsNameMismatch,
    /// The certificate's issuer is not known.
    TlsUnknownIssuer,
    /// TLS failed otherwise.
    TlsFailed(String),
    /// The answer is not HTTP.
    NotHttp(String),
    /// No DNS answer holds the expected text.
    DnsUnexpected(String),
    /// The certificate expires within the warning time: days left.
    CertificateExpiring(i32),
    /// The domain expires within the warning time: days left.
    DomainExpiring(i32),
    /// No ping came by the deadline.
    PingMissed,
    /// The job reported a failure, with its exit code if it gave one.
    JobFailed(Option<u8>),
    /// The vendor reports an outage, in its own words.
    VendorOutage(String),
    /// Anything else, in short words.
    Other(String),
    /// The body is larger than so many MiB, and the keyword is not in what was read of it.
    BodyTooLarge(u32),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Tongue::of(Language::En).failure(self))
    }
}

/// Why a place could not judge: its own fault or a reason on the other side, never the target's fault. Variants are only
/// ever added at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnFault {
    /// It has no route out.
    NoRoute,
    /// It has no descriptors or ports left.
    NoDescriptors,
    /// Its resolver is dead for every name.
    ResolverDead,
    /// Its host does not permit what the check needs.
    NotPermitted,
    /// Its version has no probe of this type.
    NotBuilt,
    /// The registry can't be read: in records from before the reason was kept.
    RegistryUnreadable,
    /// The vendor's page can't be read: in records from before the reason was kept.
    VendorUnreadable,
    /// It has too much to do.
    Overloaded,
    /// The other side (a registry, a vendor's page, a server whose TLS the agent lacks) gave nothing to judge by: the
    /// reason in the agent's own words.
    OtherSide(String),
}

impl OwnFault {
    /// True where the reason lies on the other side, so that the monitor's owner can do something about it.
    pub const fn is_other_sides(&self) -> bool {
        match self {
            Self::RegistryUnreadable | Self::VendorUnreadable | Self::OtherSide(_) => true,
            Self::NoRoute
            | Self::NoDescriptors
            | Self::ResolverDead
            | Self::NotPermitted
            | Self::NotBuilt
            | Self::Overloaded => false,
        }
    }
}

impl fmt::Display for OwnFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoute => "the agent has no route",
            Self::NoDescriptors => "the agent has no descriptors or ports left",
            Self::ResolverDead => "the agent's resolver does not answer",
            Self::NotPermitted => "the agent's host does not permit this check",
            Self::NotBuilt => "the agent has no probe of this type",
            Self::RegistryUnreadable => "the registry can't be read",
            Self::VendorUnreadable => "the vendor's page can't be read",
            Self::Overloaded => "the agent has too much to do",
            Self::OtherSide(reason) => reason,
        })
    }
}

/// What a round ends as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Word {
    /// It passed.
    Passed,
    /// It failed, and a second network agreed (or the region was down already).
    Failed,
    /// The second network passed.
    Disputed,
    /// No second network could say in time.
    Unconfirmed,
    /// The place could not look.
    Inconclusive,
}

impl Word {
    /// Every word, in its order.
    pub const ALL: [Self; 5] =
        [Self::Passed, Self::Failed, Self::Disputed, Self::Unconfirmed, Self::Inconclusive];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Disputed => "disputed",
            Self::Unconfirmed => "unconfirmed",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Whether the round counts in uptime, and if so whether as passed.
    pub const fn counts(self) -> Option<bool> {
        match self {
            Self::Passed | Self::Disputed => Some(true),
            Self::Failed => Some(false),
            Self::Unconfirmed | Self::Inconclusive => None,
        }
    }
}

/// One finished scheduled round, as history keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Dense number of the monitor.
    pub slot: u32,
    /// Region of the round.
    pub region: Region,
    /// Who looked first.
    pub place: PlaceNo,
    /// Number of the round.
    pub round: u64,
    /// When that round of the schedule was due, in the coordinator's time.
    pub due: Timestamp,
    /// How it ended.
    pub word: Word,
    /// Response time in milliseconds, of a passed round that has one.
    pub latency_ms: Option<u32>,
}
