//! The store's own state: number of the last commit, ends of the journals, and record counts.

use serde::{Deserialize, Serialize};

use super::layout::{META_KEY, SCHEMA};
use super::record;
use crate::{Result, StoreError};

/// State written with every group of commits, in the same atomic batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreState {
    /// Number of the last durable group, which the watermark is compared with.
    pub(super) group: u64,
    /// Checksum over everything ever written, in order.
    pub(super) chain: u32,
    /// Number of the last commit.
    pub(super) revision: u64,
    /// Sequence number of the newest event.
    pub(super) last_event: u64,
    /// Sequence number of the oldest entry of the readings journal, or of the next one if it is empty.
    pub(super) first_reading: u64,
    /// Sequence number of the newest entry of the readings journal.
    pub(super) last_reading: u64,
    /// Number of documents.
    pub(super) documents: u64,
    /// Number of keys, not counting parts and the store's own.
    pub(super) records: u64,
    /// Sequence number of the oldest event, or of the next one if there is none. Since schema 2.
    pub(super) first_event: u64,
}

/// The state in schema 1: without `first_event`, since no event was ever trimmed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct StoreStateOfSchema1 {
    pub(super) group: u64,
    pub(super) chain: u32,
    pub(super) revision: u64,
    pub(super) last_event: u64,
    pub(super) first_reading: u64,
    pub(super) last_reading: u64,
    pub(super) documents: u64,
    pub(super) records: u64,
}

impl StoreState {
    /// Returns the state of an empty store.
    pub(super) fn new() -> Self {
        Self { first_reading: 1, first_event: 1, ..Self::default() }
    }

    /// Decodes the state of a store with that schema.
    pub(super) fn decode(schema: u32, head: &[u8]) -> Result<Self> {
        let none = |_: &[u8]| Ok(None::<Vec<u8>>);
        match schema {
            1 => record::decode::<StoreStateOfSchema1, _, _>(META_KEY, head, none).map(Self::from),
            2..=SCHEMA => record::decode(META_KEY, head, none),
            found if found > SCHEMA => Err(StoreError::Newer { found, known: SCHEMA }),
            found => Err(StoreError::Damaged(format!("unknown schema {found}"))),
        }
    }
}

impl From<StoreStateOfSchema1> for StoreState {
    fn from(old: StoreStateOfSchema1) -> Self {
        Self {
            group: old.group,
            chain: old.chain,
            revision: old.revision,
            last_event: old.last_event,
            first_reading: old.first_reading,
            last_reading: old.last_reading,
            documents: old.documents,
            records: old.records,
            first_event: 1,
        }
    }
}
