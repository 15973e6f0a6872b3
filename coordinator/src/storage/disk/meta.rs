//! What the engine knows of itself: numbers of the last commit, ends of the journals, and how much there must be.

use serde::{Deserialize, Serialize};

/// Written with every group of commits, in the same atomic batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    /// Number of the last group made durable: what the watermark is compared with.
    pub(super) group: u64,
    /// Checksum over everything ever written, in order.
    pub(super) chain: u32,
    /// Number of the last commit.
    pub(super) revision: u64,
    /// Sequence number of the newest event.
    pub(super) last_event: u64,
    /// Sequence number of the oldest entry of the readings journal that is kept, or will be.
    pub(super) first_reading: u64,
    /// Sequence number of the newest entry of the readings journal.
    pub(super) last_reading: u64,
    /// How many documents there are.
    pub(super) documents: u64,
    /// How many keys there are, parts and the engine's own not counted.
    pub(super) records: u64,
}

impl Meta {
    /// That of an empty store.
    pub(super) fn new() -> Self {
        Self { first_reading: 1, ..Self::default() }
    }
}
