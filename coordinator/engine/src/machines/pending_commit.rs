//! Outputs of the driver that wait for the next commit.

use std::collections::BTreeSet;

use parallax_core::event::Event;
use parallax_core::observation::Reading;

use crate::ProbeDispatch;

/// Outputs that must be committed together.
#[derive(Debug, Default)]
pub struct PendingCommit {
    /// Finished rounds.
    pub readings: Vec<Reading>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Slots of machines whose state must be written.
    pub changed: BTreeSet<u32>,
    /// Probe requests for the mesh.
    pub probes: Vec<ProbeDispatch>,
    /// Number of these events that quarantine has already judged.
    pub judged_events: usize,
}
