//! What is kept as its writer packed it: blocks, roll-ups, checkpoints of tails, and remembered answers.

use parallax_core::id::{KeyId, MonitorId};
use parallax_core::place::Region;
use parallax_core::time::Timestamp;

/// The sealed readings of one monitor, region and hour, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its dense number.
    pub slot: u32,
    /// The region.
    pub region: Region,
    /// The hour since the epoch.
    pub hour: i64,
    /// The packed readings.
    pub bytes: Vec<u8>,
}

/// A roll-up of one monitor's hour or day, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    /// The monitor.
    pub monitor: MonitorId,
    /// The hour or day.
    pub at: i64,
    /// The packed figures.
    pub bytes: Vec<u8>,
}

/// Open tails as they were at one moment, so that a start need not replay the whole journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which part of the tails: the writer may cut them as it likes.
    pub part: u32,
    /// Sequence number of the last entry of the readings journal that is in it.
    pub through: u64,
    /// The packed tails.
    pub bytes: Vec<u8>,
}

/// An answer that is given again to a request that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// SHA-256 of the request, to tell a repetition from another request under the same name.
    pub fingerprint: [u8; 32],
    /// The answer, packed by its writer.
    pub answer: Vec<u8>,
    /// Until when it is remembered.
    pub expires_at: Timestamp,
}

/// Answers that are remembered of one API key at most.
pub const MAX_REMEMBERED: usize = 1000;
/// Bytes of them at most, with their names.
pub const MAX_REMEMBERED_BYTES: usize = 2 << 20;

impl Remembered {
    /// Bytes that it counts for under that name.
    pub const fn bytes(&self, name: &str) -> usize {
        self.answer.len() + name.len()
    }
}

/// The API key whose idempotency name it is, and the rest of the name; none for a name of the service's own.
pub(super) fn owner_of(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|(owner, _)| owner.parse::<KeyId>().is_ok())
}
