//! The messages of the control and check-now streams.

use crate::assignment::ScheduleChange;
use crate::check::{CheckKind, CheckSpec};
use crate::close::CloseReason;
use crate::id::{AgentId, BootId, MonitorId, Region};
use crate::result::{CheckResult, OwnFault};
use serde::{Deserialize, Serialize};

/// Coordinator to agent, on the control stream. New variants go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first frame: the agent is connected.
    Welcome(Welcome),
    /// A change of the agent's schedule, or a part of one.
    Schedule(ScheduleChange),
    /// Results are durable.
    Ack(Mark),
    /// The answer to a `TimeAsk`; with [`TimeAnswer::UNASKED`], that the coordinator's clock has stepped.
    Time(TimeAnswer),
    /// The answer to a `Renew`.
    Renewed(Renewed),
    /// The answer to a `Renew` that is not granted; the present certificate stays as it is.
    RenewRefused {
        /// Why.
        reason: CloseReason,
    },
    /// The coordinator will close the connection.
    Closing {
        /// Why.
        reason: CloseReason,
    },
    /// Whom to trust from now on; answered with `Holds`.
    Authorities(Authorities),
    /// A `Schedule` with the accounts of what is put, in its order. From version 2 on it is sent instead of that.
    ScheduleByAccount {
        /// The change, or a part of one.
        change: ScheduleChange,
        /// One account for each assignment that is put.
        accounts: Vec<u32>,
    },
}

/// Agent to coordinator, on the control stream. New variants go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// The first frame.
    Hello(Hello),
    /// The schedule of this revision is in force.
    ScheduleHeld {
        /// The book its slots belong to.
        book: u64,
        /// The revision.
        revision: u64,
    },
    /// A change does not fit the revision held: send a snapshot.
    ScheduleLost {
        /// The revision held.
        held: Option<HeldSchedule>,
    },
    /// Asks for the coordinator's time.
    TimeAsk {
        /// The agent's monotonic clock in microseconds, to be echoed.
        sent_us: u64,
    },
    /// What the agent makes of the two clocks.
    TimeReport(TimeReport),
    /// Asks for a new certificate for a new key.
    Renew {
        /// A PKCS #10 request in DER. Only its key is used.
        csr_der: Vec<u8>,
    },
    /// Results were dropped for want of room and will never come.
    Gap(Gap),
    /// The agent's judgement of itself has changed.
    Fitness {
        /// What ails it; empty when it is well.
        faults: Vec<OwnFault>,
    },
    /// The agent is shutting down; all that it will send on this connection is sent.
    Goodbye,
    /// What the agent trusts and shows, once it is on its disk: the answer to `Authorities` and to `Renewed`.
    Holds(Holds),
}

/// How far one boot's results are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The boot.
    pub boot: BootId,
    /// Every sequence number up to and with this one is durable, dropped, or known as a gap.
    pub through: u64,
}

/// The coordinator's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The agent's number by its certificate.
    pub agent: AgentId,
    /// Its name by the coordinator's record.
    pub name: String,
    /// Its region by the coordinator's record.
    pub region: Region,
    /// Its network by the coordinator's record.
    pub network: String,
    /// The mesh's name.
    pub mesh: String,
    /// The coordinator's software version.
    pub software: String,
    /// The coordinator's time, epoch ms.
    pub coordinator_ms: i64,
    /// The book that slots in packed results must belong to on this connection.
    pub book: u64,
    /// For each boot named in `Hello` that the coordinator knows: how far it is durable.
    pub marks: Vec<Mark>,
}

/// The agent's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The agent's software version.
    pub software: String,
    /// This start of the agent.
    pub boot: BootId,
    /// Earlier boots of which the spool still holds results, oldest first; at most 32.
    pub earlier_boots: Vec<BootId>,
    /// The schedule it runs.
    pub held: Option<HeldSchedule>,
    /// Its wall clock, epoch ms.
    pub wall_ms: i64,
    /// The types of checks it can do here, ICMP only where it may.
    pub kinds: Vec<CheckKind>,
    /// What ails it; empty when it is well.
    pub faults: Vec<OwnFault>,
    /// End of its certificate's life, epoch ms.
    pub certificate_ends_ms: i64,
}

impl Hello {
    /// Most earlier boots that are named.
    pub const MAX_EARLIER_BOOTS: usize = 32;
}

/// Which schedule an agent holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSchedule {
    /// The book its slots belong to.
    pub book: u64,
    /// Its revision.
    pub revision: u64,
}

/// The coordinator's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeAnswer {
    /// The `sent_us` of the question; [`TimeAnswer::UNASKED`] where there was none.
    pub echo_us: u64,
    /// The coordinator's time, epoch ms.
    pub coordinator_ms: i64,
}

impl TimeAnswer {
    /// Stands for `echo_us` where nobody asked: the coordinator's clock has stepped, and the agent should ask at once.
    /// Agents that don't know this pass over an answer that comes before its question.
    pub const UNASKED: u64 = u64::MAX;
}

/// The agent's wall clock against the coordinator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeReport {
    /// The agent's wall clock minus the coordinator's, in ms.
    pub skew_ms: i64,
    /// The round trip of the exchange it rests on, in ms.
    pub round_trip_ms: u32,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// Chain in DER, leaf first, for the key of the request.
    pub certificates_der: Vec<Vec<u8>>,
    /// The authorities to trust from now on, in DER.
    pub authorities_der: Vec<Vec<u8>>,
}

/// Whom an agent is to trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorities {
    /// One authority, or two while one is being exchanged for the other, in DER.
    pub authorities_der: Vec<Vec<u8>>,
    /// The agent's certificate is of an authority that is to go: it should ask for a new one soon.
    pub renew: bool,
}

/// What an agent holds of certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// SHA-256 of the public key of each authority that it trusts; at most two.
    pub authorities: Vec<[u8; 32]>,
    /// Serial of the certificate that it will show on its next connection.
    pub serial: Vec<u8>,
}

/// A run of results that was dropped. An agent that restarts forgets the gaps of earlier boots: batches of one
/// boot come in order, so one that begins beyond the mark means that what lies between will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The boot they were numbered in.
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

impl Gap {
    /// How many results were dropped.
    pub fn count(&self) -> u64 {
        self.through.saturating_sub(self.from).saturating_add(1)
    }
}

/// Runs a check at once, beside the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckNow {
    /// The question's number, for logs.
    pub id: u64,
    /// The monitor.
    pub monitor: MonitorId,
    /// Revision of the specification.
    pub revision: u32,
    /// What to check.
    pub spec: CheckSpec,
    /// Why.
    pub reason: CheckReason,
    /// The answer is worthless later than this many ms after the question came.
    pub deadline_ms: u32,
}

/// Why a check is run outside the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckReason {
    /// Another place saw a failure.
    Confirm,
    /// The second of the two failures that make a region down.
    Second,
    /// Another region saw a failure.
    Sweep,
    /// The monitor is new or changed.
    First,
    /// A certificate or domain that failed is looked at again before its interval is over.
    FollowUp,
    /// A person asked.
    Manual,
}

/// The answer to a check-now. `Pending` may come once before `Done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckAnswer {
    /// No answer from the target after 3 s.
    Pending,
    /// The result; its `round` is `None`.
    Done(Box<CheckResult>),
}
