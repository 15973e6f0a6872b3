//! The river: what arrives from the mesh and from people, what the driver asks of the mesh, and what comes of it.
//!
//! ```text
//! mesh ──Arrival──▶ inbox ──▶ driver (machines) ──▶ commit ──▶ store ──▶ durable ──▶ ack
//!   ▲                           │
//!   └────────Question───────────┘
//! ```
//!
//! The inbox is bounded. When it is full the mesh stops reading, QUIC holds the agent back, and the agent's spool
//! takes it up. Nothing is acknowledged before the commit that holds it is durable.

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

use std::collections::BTreeSet;
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

/// How many arrivals wait for the driver before their senders have to.
pub const INBOX_DEPTH: usize = 1024;

/// What the driver takes in.
#[derive(Debug)]
pub enum Arrival {
    /// Results of one frame of one agent.
    Results(Batch),
    /// What came back for a question. Several may come for one: pending first, then the outcome.
    Answer {
        /// Dense number of the monitor that asked.
        slot: u32,
        /// Number of the question.
        number: u32,
        /// What came back.
        answer: Answer,
    },
    /// Who is there has changed.
    Mesh(Arc<Mesh>),
    /// What those who are there can check has changed.
    Able(Arc<Able>),
    /// A heartbeat's job reports.
    Ping(Box<Ping>),
    /// Somebody wants a monitor checked at once.
    CheckNow(CheckNow),
}

/// A look at a monitor on request.
#[derive(Debug)]
pub struct CheckNow {
    /// The monitor.
    pub monitor: MonitorId,
    /// Told what was seen, by region; nothing where the monitor is not known (yet) or too many look at once.
    pub answer: oneshot::Sender<Vec<Sighting>>,
}

/// What came of asking in one region.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// The region.
    pub region: Region,
    /// Who was asked; none where nobody there could be.
    pub place: Option<PlaceNo>,
    /// Whether places are in service there, and none of them can run checks of the type.
    pub unable: bool,
    /// What it saw; none where it gave no answer in time.
    pub seen: Option<Observation>,
}

/// Results of one frame.
#[derive(Debug)]
pub struct Batch {
    /// Who sent them.
    pub place: PlaceNo,
    /// Dense number of the monitor, and what was seen.
    pub observations: Vec<(u32, Observation)>,
    /// Told once everything in the frame is durable; dropped if it never will be.
    pub durable: oneshot::Sender<()>,
}

/// A job's report.
#[derive(Debug)]
pub struct Ping {
    /// The heartbeat.
    pub listed: Arc<Listed>,
    /// The ping. The driver fills in its number and moment, and the length of the run if the job reported none.
    pub said: heartbeat::Ping,
    /// Told once it is durable; dropped if it never will be, also because the monitor is gone.
    pub durable: oneshot::Sender<()>,
}

/// What is needed to take pings in.
#[derive(Debug, Clone)]
pub struct Beats {
    /// Where pings go.
    pub inbox: Inbox,
    /// Whose they are.
    pub tokens: Tokens,
}

/// The way into the driver.
pub type Inbox = mpsc::Sender<Arrival>;

/// A question of the driver to the mesh.
#[derive(Debug, Clone)]
pub struct Question {
    /// Dense number of the monitor.
    pub slot: u32,
    /// The monitor.
    pub monitor: MonitorId,
    /// Account that it is asked for.
    pub account: AccountId,
    /// Revision of what is checked.
    pub revision: u32,
    /// What to check.
    pub check: Arc<Check>,
    /// Whom, why and until when.
    pub ask: Ask,
}

/// The way from the driver to the mesh.
pub type Questions = mpsc::Sender<Question>;

/// Published by the driver, read by the mesh, which works out each agent's share with
/// [`parallax_core::assign::share`].
pub type Schedule = watch::Receiver<Schedules>;

/// Places in quarantine: published by the driver, laid over the roster by the mesh when it works out shares.
pub type Quarantined = watch::Receiver<Arc<BTreeSet<PlaceNo>>>;

/// A look at the machines, answered between two arrivals.
#[derive(Debug)]
pub struct Query {
    /// Whose state is wanted.
    pub monitors: Vec<MonitorId>,
    /// The event up to which edits are to show in it; 0 for what is known already.
    pub after: u64,
    /// One entry for each, in the same order; none for a monitor the driver does not know (yet).
    pub answer: oneshot::Sender<Vec<Option<View>>>,
}

/// The way to ask for the machines' present state.
pub type Queries = mpsc::Sender<Query>;
