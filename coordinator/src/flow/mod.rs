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

mod able;
pub mod commit;
pub mod counters;
pub mod driver;
pub mod ingest;
pub mod machines;
pub mod notices;
mod places;
mod schedule;
pub mod shard;
mod tokens;
pub mod warmup;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parallax_core::check::Check;
use parallax_core::event::{Answer, Ask};
use parallax_core::heartbeat;
use parallax_core::id::{AccountId, MonitorId};
use parallax_core::machine::View;
use parallax_core::observation::Observation;
use parallax_core::place::{Mesh, PlaceNo, Region};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::able::Able;
pub use self::schedule::Schedules;
pub use self::tokens::{Listed, PINGS_A_SECOND, Tokens};

/// Arrivals that may wait for the driver; more senders have to wait.
pub const INBOX_DEPTH: usize = 1024;

/// An input of the driver.
#[derive(Debug)]
pub enum Arrival {
    /// Results of one frame of one agent.
    Results(Batch),
    /// A response to a probe request. One request may get several: pending first, then the outcome.
    Answer {
        /// Slot of the monitor that sent the request.
        slot: u32,
        /// Number of the request.
        number: u32,
        /// The response.
        answer: Answer,
    },
    /// The connected vantages have changed.
    Mesh(Arc<Mesh>),
    /// The capabilities of the connected vantages have changed.
    Able(Arc<Able>),
    /// A heartbeat's ping.
    Ping(Box<Ping>),
    /// A request to check a monitor now.
    CheckNow(CheckNow),
}

/// A request to check a monitor now.
#[derive(Debug)]
pub struct CheckNow {
    /// The monitor.
    pub monitor: MonitorId,
    /// Receives the results by region; empty if the monitor is not known (yet) or too many requests are open.
    pub answer: oneshot::Sender<Vec<Sighting>>,
}

/// Result of a check-now request in one region.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// The region.
    pub region: Region,
    /// The vantage that ran the check; `None` if none there could.
    pub place: Option<PlaceNo>,
    /// True if vantages are in service there, but none can run the check type.
    pub unable: bool,
    /// Its observation; `None` if it sent none in time.
    pub seen: Option<Observation>,
}

/// Results of one frame.
#[derive(Debug)]
pub struct Batch {
    /// The sender.
    pub place: PlaceNo,
    /// Observations, each with the monitor's slot.
    pub observations: Vec<(u32, Observation)>,
    /// Notified once everything in the frame is durable; dropped if it never will be.
    pub durable: oneshot::Sender<()>,
}

/// A ping from a job.
#[derive(Debug)]
pub struct Ping {
    /// The heartbeat.
    pub listed: Arc<Listed>,
    /// The ping. The driver fills in its number and time, and the duration of the run if the job reported none.
    pub said: heartbeat::Ping,
    /// Notified once it is durable; dropped if it never will be, also because the monitor is gone.
    pub durable: oneshot::Sender<()>,
}

/// The parts needed to accept pings.
#[derive(Debug, Clone)]
pub struct Beats {
    /// Receives the pings.
    pub inbox: Inbox,
    /// Resolves tokens to heartbeats.
    pub tokens: Tokens,
}

/// Sends input to the driver.
pub type Inbox = mpsc::Sender<Arrival>;

/// A probe request from the driver to the mesh.
#[derive(Debug, Clone)]
pub struct Question {
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
    pub ask: Ask,
}

/// Sends probe requests to the mesh.
pub type Questions = mpsc::Sender<Question>;

/// Schedule published by the driver. The mesh computes each agent's share with [`parallax_core::assign::share`].
pub type Schedule = watch::Receiver<Schedules>;

/// A query for machine state, answered between two arrivals.
#[derive(Debug)]
pub struct Query {
    /// The monitors.
    pub monitors: Vec<MonitorId>,
    /// Number of the event up to which edits must be reflected; 0 for the current state.
    pub after: u64,
    /// Receives one entry per monitor, in the same order; `None` for one the driver does not know (yet).
    pub answer: oneshot::Sender<Vec<Option<View>>>,
}

/// Sends queries for machine state.
pub type Queries = mpsc::Sender<Query>;
