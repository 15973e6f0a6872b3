//! The engine: the pipeline from observations and edits through the machines to committed results.
//!
//! ```text
//! mesh ──arrival──▶ inbox ──▶ driver (machines) ──▶ commit ──▶ store ──▶ durable ──▶ ack
//!   ▲                           │
//!   └──────probe request────────┘
//! ```
//!
//! The inbox is bounded. When it is full the mesh stops reading, QUIC applies backpressure, and the agent's spool
//! takes the results. Nothing is acknowledged before the commit that holds it is durable.

mod capabilities;
mod commit;
pub mod counters;
pub mod driver;
mod heartbeat_tokens;
pub mod history;
mod ingest;
mod machines;
pub mod mesh_problems;
mod mesh_view;
pub mod restore;
mod schedule;
pub mod scheduler;
pub mod shard;

/// Log target of problems of the whole mesh, such as too few networks: `up` silences it until its agents have joined.
pub const MESH_PROBLEMS_LOG_TARGET: &str = "parallax_engine::mesh_problems";

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parallax_core::assign::ScheduledMonitor;
use parallax_core::check::Check;
use parallax_core::event::{ProbeRequest, ProbeResponse};
use parallax_core::heartbeat;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::{MachineView, MonitorMachine};
use parallax_core::observation::Observation;
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Mesh, Region, VantageNo};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::capabilities::Capabilities;
pub use self::heartbeat_tokens::{HeartbeatEntry, HeartbeatTokens, MAX_PINGS_PER_SECOND};
pub use self::schedule::MonitorSchedule;

/// Arrivals that may wait for the driver; more senders have to wait.
pub const INBOX_DEPTH: usize = 1024;

/// An input of the driver.
#[derive(Debug)]
pub enum Arrival {
    /// Results of one frame of one agent.
    Results(ObservationBatch),
    /// A response to a probe request. One request may get several: pending first, then the outcome.
    ProbeResponse {
        /// Slot of the monitor that sent the request.
        slot: u32,
        /// Number of the request.
        number: u32,
        /// The response.
        response: ProbeResponse,
    },
    /// The connected vantages have changed.
    MeshChanged(Arc<Mesh>),
    /// The capabilities of the connected vantages have changed.
    CapabilitiesChanged(Arc<Capabilities>),
    /// A heartbeat's ping.
    Ping(Box<IncomingPing>),
    /// A request to check a monitor now.
    CheckNow(CheckNowRequest),
}

/// A request to check something now.
#[derive(Debug)]
pub struct CheckNowRequest {
    /// Subject of the check.
    pub subject: CheckNowSubject,
    /// Receives the results by region; empty if the monitor is not known (yet) or too many requests are open.
    pub reply: oneshot::Sender<Vec<CheckNowResult>>,
    /// Receives the results so far: first those of all regions without observations, then one more with each.
    pub progress: watch::Sender<Vec<CheckNowResult>>,
}

/// Subject of a check-now request.
#[derive(Debug)]
pub enum CheckNowSubject {
    /// A monitor that the driver knows.
    Monitor(MonitorId),
    /// A check that belongs to no stored monitor, to try it before it is saved.
    Unsaved(UnsavedCheck),
}

/// A check that belongs to no stored monitor.
#[derive(Debug)]
pub struct UnsavedCheck {
    /// Stands for the monitor in this request alone: agents name it in their results.
    pub id: MonitorId,
    /// Account that asks.
    pub account: AccountId,
    /// The check to run.
    pub check: Arc<Check>,
    /// The only region to check from; `None` for every region.
    pub pinned: Option<Region>,
}

/// Result of a check-now request in one region.
#[derive(Debug, Clone)]
pub struct CheckNowResult {
    /// The region.
    pub region: Region,
    /// The vantage that ran the check; `None` if none there could.
    pub vantage: Option<VantageNo>,
    /// True if vantages are in service there, but none can run the check type.
    pub unsupported: bool,
    /// True if the vantage was asked and will send nothing more.
    pub unanswered: bool,
    /// Its observation; `None` if it sent none in time.
    pub observation: Option<Observation>,
}

/// Results of one frame.
#[derive(Debug)]
pub struct ObservationBatch {
    /// The sender.
    pub vantage: VantageNo,
    /// Observations, each with the monitor's slot.
    pub observations: Vec<(u32, Observation)>,
    /// Notified once everything in the frame is durable; dropped if it never will be.
    pub on_durable: oneshot::Sender<()>,
}

/// A ping from a job.
#[derive(Debug)]
pub struct IncomingPing {
    /// The heartbeat.
    pub heartbeat: Arc<HeartbeatEntry>,
    /// The ping. The driver fills in its number and time, and the duration of the run if the job reported none.
    pub ping: heartbeat::StoredPing,
    /// Notified once it is durable; dropped if it never will be, also because the monitor is gone.
    pub on_durable: oneshot::Sender<()>,
}

/// The parts needed to accept pings.
#[derive(Debug, Clone)]
pub struct PingIntake {
    /// Receives the pings.
    pub inbox: EngineInbox,
    /// Resolves tokens to heartbeats.
    pub tokens: HeartbeatTokens,
}

/// Sends input to the driver.
pub type EngineInbox = mpsc::Sender<Arrival>;

/// A probe request from the driver to the mesh.
#[derive(Debug, Clone)]
pub struct ProbeDispatch {
    /// Slot of the monitor.
    pub slot: u32,
    /// The monitor.
    pub monitor: MonitorId,
    /// Account that the monitor belongs to.
    pub account: AccountId,
    /// Revision of the check.
    pub revision: u32,
    /// The check to run.
    pub check: Arc<Check>,
    /// The vantage, the reason and the deadline.
    pub request: ProbeRequest,
}

/// Schedule published by the driver. The mesh computes each agent's share with [`parallax_core::assign::share`].
pub type ScheduleReceiver = watch::Receiver<MonitorSchedule>;

/// A query for machine state, answered between two arrivals.
#[derive(Debug)]
pub struct MachineQuery {
    /// The monitors.
    pub monitors: Vec<MonitorId>,
    /// Number of the event up to which edits must be reflected; 0 for the current state.
    pub after_event: u64,
    /// Receives one entry per monitor, in the same order; `None` for one the driver does not know (yet).
    pub reply: oneshot::Sender<Vec<Option<MachineView>>>,
}

/// A query for a copy of one machine, to inspect it.
#[derive(Debug)]
pub struct MachineCopyQuery {
    /// The monitor.
    pub monitor: MonitorId,
    /// Receives the copy; `None` if the driver does not know the monitor (yet).
    pub reply: oneshot::Sender<Option<MachineCopy>>,
}

/// Copy of a machine at one point in time, with what its rules depend on. The driver only copies; the caller computes.
#[derive(Debug, Clone)]
pub struct MachineCopy {
    /// Time of the copy.
    pub at: Timestamp,
    /// The machine.
    pub machine: MonitorMachine,
    /// The mesh as the machine sees it, with quarantine applied.
    pub mesh: Mesh,
    /// Its entry in the schedule; `None` if it is paused or a heartbeat.
    pub scheduled: Option<Arc<ScheduledMonitor>>,
}

/// A query to the driver, answered between two arrivals.
#[derive(Debug)]
pub enum DriverQuery {
    /// For the states of monitors, as shown to users.
    Views(MachineQuery),
    /// For a copy of one machine.
    Copy(MachineCopyQuery),
}

impl From<MachineQuery> for DriverQuery {
    fn from(query: MachineQuery) -> Self {
        Self::Views(query)
    }
}

/// Sends queries for machine state.
pub type MachineQuerySender = mpsc::Sender<DriverQuery>;
