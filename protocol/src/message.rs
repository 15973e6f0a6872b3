//! Messages of the control and check-now streams.

use crate::assignment::ScheduleChange;
use crate::check::{WireCheckKind, WireCheckSpec};
use crate::close::CloseReason;
use crate::id::{BootId, WireAgentId, WireMonitorId, WireRegion};
use crate::result::{CheckResult, WireOwnFault};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Coordinator to agent, on the control stream. New variants go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first frame: the agent is connected.
    Welcome(Welcome),
    /// A change of the agent's schedule, or a part of one.
    Schedule(ScheduleChange),
    /// Results are durable.
    Ack(DurabilityMark),
    /// The response to a `TimeRequest`; with [`TimeResponse::UNSOLICITED`], notice that the coordinator's clock has
    /// stepped.
    Time(TimeResponse),
    /// The response to a `Renew`.
    Renewed(RenewedCertificate),
    /// The response to a `Renew` that is refused; the present certificate stays valid.
    RenewRefused {
        /// Reason.
        reason: CloseReason,
    },
    /// The coordinator will close the connection.
    Closing {
        /// Reason.
        reason: CloseReason,
    },
    /// Authorities to trust from now on; answered with `TrustReport`.
    Authorities(TrustedAuthorities),
    /// The address that the agent's packets come from, as the coordinator sees it: sent after the welcome,
    /// and when it changes. From version 2 on.
    ExternalAddress(ExternalAddress),
    /// A `Schedule` with the accounts of its assignments, in their order. Replaces it from version 2 on.
    ScheduleByAccount {
        /// The change, or a part of one.
        change: ScheduleChange,
        /// Accounts, one for each assignment in `schedule`.
        accounts: Vec<u32>,
    },
}

/// Agent to coordinator, on the control stream. New variants go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// The first frame.
    Hello(AgentHello),
    /// The schedule of this revision is in force.
    ScheduleApplied {
        /// The slot epoch.
        slot_epoch: u64,
        /// The revision.
        revision: u64,
    },
    /// A change does not apply to the present revision: send a snapshot.
    ScheduleMismatch {
        /// The present revision.
        current: Option<ScheduleVersion>,
    },
    /// Requests the coordinator's time.
    TimeRequest {
        /// The agent's monotonic clock in microseconds, to be echoed.
        sent_us: u64,
    },
    /// The agent's comparison of the two clocks.
    TimeReport(TimeReport),
    /// Requests a new certificate for a new key.
    Renew {
        /// A PKCS #10 request in DER. Only its key is used.
        csr_der: Vec<u8>,
    },
    /// Results were dropped for lack of space and will never arrive.
    Gap(ResultGap),
    /// The agent's health has changed.
    Fitness {
        /// Problems of this host; empty if it is healthy.
        faults: Vec<WireOwnFault>,
    },
    /// The agent is shutting down; everything it will send on this connection is sent.
    Goodbye,
    /// The authorities that the agent trusts and its certificate, once they are on its disk: the response to
    /// `Authorities` and to `Renewed`.
    TrustReport(TrustReport),
}

/// Durability watermark of one boot's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityMark {
    /// The boot.
    pub boot: BootId,
    /// Every sequence number up to and including this one is durable, dropped, or known as a gap.
    pub through: u64,
}

/// The coordinator's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The agent's number by its certificate.
    pub agent: WireAgentId,
    /// Its name by the coordinator's record.
    pub name: String,
    /// Its region by the coordinator's record.
    pub region: WireRegion,
    /// Its network by the coordinator's record.
    pub network: String,
    /// The mesh's name.
    pub mesh: String,
    /// The coordinator's software version.
    pub software: String,
    /// The coordinator's time, epoch ms.
    pub coordinator_ms: i64,
    /// Slot epoch of packed results on this connection.
    pub slot_epoch: u64,
    /// Watermark of each boot named in `Hello` that the coordinator knows.
    pub watermarks: Vec<DurabilityMark>,
}

/// The agent's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// The agent's software version.
    pub software: String,
    /// This start of the agent.
    pub boot: BootId,
    /// Earlier boots whose results are still in the spool, oldest first; at most 32.
    pub earlier_boots: Vec<BootId>,
    /// Schedule that it runs.
    pub schedule: Option<ScheduleVersion>,
    /// Its wall clock, epoch ms.
    pub wall_ms: i64,
    /// Check types that it supports; ICMP only if permitted.
    pub kinds: Vec<WireCheckKind>,
    /// Problems of this host; empty if it is healthy.
    pub faults: Vec<WireOwnFault>,
    /// Expiry of its certificate, epoch ms.
    pub certificate_ends_ms: i64,
}

impl AgentHello {
    /// Maximum number of earlier boots.
    pub const MAX_EARLIER_BOOTS: usize = 32;
}

/// Schedule that an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleVersion {
    /// The slot epoch.
    pub slot_epoch: u64,
    /// Its revision.
    pub revision: u64,
}

/// The coordinator's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeResponse {
    /// The `sent_us` of the request; [`TimeResponse::UNSOLICITED`] if there was none.
    pub echo_us: u64,
    /// The coordinator's time, epoch ms.
    pub coordinator_ms: i64,
}

impl TimeResponse {
    /// Value of `echo_us` in an unsolicited message: the coordinator's clock has stepped, and the agent
    /// should request the time at once. Agents that don't know it ignore a response that precedes its
    /// request.
    pub const UNSOLICITED: u64 = u64::MAX;
}

/// The agent's wall clock against the coordinator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeReport {
    /// The agent's wall clock minus the coordinator's, in ms.
    pub skew_ms: i64,
    /// Round trip of the exchange that it is based on, in ms.
    pub round_trip_ms: u32,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewedCertificate {
    /// Chain in DER, leaf first, for the key of the request.
    pub certificates_der: Vec<Vec<u8>>,
    /// Authorities to trust from now on, in DER.
    pub authorities_der: Vec<Vec<u8>>,
}

/// Authorities that an agent is to trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedAuthorities {
    /// An authority, or two while one replaces the other, in DER.
    pub authorities_der: Vec<Vec<u8>>,
    /// True if the agent's certificate was issued by an authority being phased out: it should renew soon.
    pub renew: bool,
}

/// An agent's address after any network address translation on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalAddress {
    /// The address.
    pub address: IpAddr,
}

/// Certificate state of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustReport {
    /// SHA-256 of the public key of each trusted authority; at most two.
    pub authorities: Vec<[u8; 32]>,
    /// Serial number of the certificate that it will present on its next connection.
    pub serial: Vec<u8>,
}

/// A run of dropped results. An agent does not keep the gaps of earlier boots over a restart: batches of one
/// boot arrive in order, so a batch that begins beyond the watermark implies that the results between were
/// lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultGap {
    /// Boot they were numbered in.
    pub boot: BootId,
    /// First sequence number dropped.
    pub from: u64,
    /// Last sequence number dropped.
    pub through: u64,
    /// Start of the first dropped check, epoch ms by the coordinator's clock.
    pub from_ms: i64,
    /// Start of the last one.
    pub through_ms: i64,
}

impl ResultGap {
    /// Number of dropped results.
    pub fn count(&self) -> u64 {
        self.through.saturating_sub(self.from).saturating_add(1)
    }
}

/// Runs a check at once, outside the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireCheckNow {
    /// Number of the request, for logs.
    pub id: u64,
    /// The monitor.
    pub monitor: WireMonitorId,
    /// Revision of the specification.
    pub revision: u32,
    /// Check to run.
    pub spec: WireCheckSpec,
    /// Reason.
    pub reason: CheckReason,
    /// Time within which the response is useful, in ms from the arrival of the request.
    pub deadline_ms: u32,
}

/// Reason for a check outside the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckReason {
    /// Another vantage saw a failure.
    Confirm,
    /// The second of the two failures that make a region down.
    SecondRound,
    /// Another region saw a failure.
    Sweep,
    /// The monitor is new or changed.
    NewMonitor,
    /// A failed certificate or domain is checked again before its interval has passed.
    FollowUp,
    /// A person requested it.
    Manual,
}

/// Response to a check-now. `Pending` may be sent once before `Done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireCheckNowResponse {
    /// No response from the target after 3 s.
    Pending,
    /// The result; its `round` is `None`.
    Done(Box<CheckResult>),
}
