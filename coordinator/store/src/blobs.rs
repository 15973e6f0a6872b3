//! Opaque values, encoded by their writers: blocks, roll-ups, checkpoints and stored responses.

use parallax_core::id::{AccountId, KeyId, MonitorId, PageId, PersonId};
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;

/// The packed readings of one monitor, region and hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its slot.
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
    /// The packed statistics.
    pub bytes: Vec<u8>,
}

/// The open tails at one point in time, so that a start need not replay the whole journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Part of the tails; the writer may split them freely.
    pub part: u32,
    /// Sequence number of the last readings journal entry that is included.
    pub through: u64,
    /// The packed tails.
    pub bytes: Vec<u8>,
}

/// A response that is replayed for a repeated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// SHA-256 of the request, to distinguish a repeated request from another one with the same name.
    pub fingerprint: [u8; 32],
    /// The response, encoded by its writer.
    pub response: Vec<u8>,
    /// Expiry of the stored response.
    pub expires_at: Timestamp,
}

/// Stored responses per API key or person, at most.
pub(crate) const MAX_RESPONSES_PER_KEY: usize = 1000;
/// Records that an account's changes can be undone with, at most.
pub(crate) const MAX_RESPONSES_PER_ACCOUNT: usize = 200;
/// Records of a page, such as the opt-outs of its subscribers, at most: with their names they are within the bytes.
pub(crate) const MAX_RESPONSES_PER_PAGE: usize = 20_000;
/// Their bytes, at most, with their names.
pub(crate) const MAX_RESPONSE_BYTES_PER_KEY: usize = 2 << 20;

impl StoredResponse {
    /// Returns the bytes that it counts under that name.
    pub const fn bytes(&self, name: &str) -> usize {
        self.response.len() + name.len()
    }
}

/// Returns the API key, person, account or page and the rest of a name; `None` for a name of the service itself.
pub(super) fn split_owner(name: &str) -> Option<(&str, &str)> {
    let is_owner = |owner: &str| {
        owner.parse::<KeyId>().is_ok()
            || owner.parse::<PersonId>().is_ok()
            || owner.parse::<AccountId>().is_ok()
            || owner.parse::<PageId>().is_ok()
    };
    name.split_once('/').filter(|(owner, _)| is_owner(owner))
}

/// Returns the maximum number of stored responses of that owner.
pub(super) fn max_responses(owner: &str) -> usize {
    if owner.parse::<AccountId>().is_ok() {
        MAX_RESPONSES_PER_ACCOUNT
    } else if owner.parse::<PageId>().is_ok() {
        MAX_RESPONSES_PER_PAGE
    } else {
        MAX_RESPONSES_PER_KEY
    }
}
