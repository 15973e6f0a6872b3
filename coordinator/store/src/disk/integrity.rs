//! Integrity check of a stream of keys and values: each checksum is verified, and nothing may be missing or extra.

use std::collections::BTreeMap;

use super::layout::{self, TreeKey};
use super::meta::StoreState;
use super::{SharedStore, cache_eviction, engine_error, record, record_types, snapshot_reader};
use crate::{Result, StoreCounts, StoreError};

/// Reads and verifies a whole open store, as of one point in time: every checksum, and that records decode.
pub(super) fn verify_store(shared: &SharedStore) -> Result<StoreCounts> {
    let mut check = IntegrityCheck::default();
    let keyring = shared.records.keyring();
    let mut split_records = Vec::new();
    snapshot_reader::walk(shared, |key, value| {
        check.add(key, value)?;
        if !record_types::is_typed(key) {
            return Ok(());
        }
        if record::pieces(key, value)? > 0 {
            split_records.push(key.to_vec());
            return Ok(());
        }
        record_types::verify(key, value, none, keyring)
    })?;
    // The walk verified only the checksums of pieces: these records are read again and decoded as they are now.
    for key in split_records {
        shared.query(|tree| {
            let mut keys = vec![key.clone()];
            if let Some(head) = tree.get(&key).map_err(engine_error)? {
                let piece = |part: &[u8]| {
                    keys.push(part.to_vec());
                    tree.get(part).map_err(engine_error)
                };
                record_types::verify(&key, &head, piece, keyring)?;
            }
            cache_eviction::record_uses(tree, keys.iter().map(Vec::as_slice));
            Ok(())
        })?;
    }
    check.finish().map(|(_, counts)| counts)
}

/// Counts and verifies entries, which must come in key order.
#[derive(Debug, Default)]
pub(super) struct IntegrityCheck {
    /// Checksum and length of pieces whose head is still to come.
    pieces: BTreeMap<TreeKey, (u32, usize)>,
    schema: Option<u32>,
    meta: Option<Vec<u8>>,
    documents: u64,
    records: u64,
    readings: JournalRun,
    events: JournalRun,
}

/// Sequence numbers of a journal.
#[derive(Debug, Default)]
struct JournalRun {
    first: u64,
    last: u64,
    count: u64,
}

impl IntegrityCheck {
    /// Adds an entry.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.starts_with(layout::PIECES) {
            self.pieces.insert(key.to_vec(), record::verify_piece(key, value)?);
            return Ok(());
        }
        record::verify(key, value, |part| self.pieces.remove(part))?;
        match key {
            layout::SCHEMA_KEY => self.schema = Some(record::decode(key, value, none)?),
            layout::META_KEY => self.meta = Some(value.to_vec()),
            _ if key.starts_with(layout::INTERNAL) => {}
            _ => {
                self.records += 1;
                self.documents += u64::from(key.starts_with(layout::DOCUMENTS));
                if key.starts_with(layout::READINGS) {
                    self.readings.add(layout::last_seq(key));
                } else if key.starts_with(layout::EVENTS) {
                    self.events.add(layout::last_seq(key));
                }
            }
        }
        Ok(())
    }

    /// Checks that nothing is missing. Returns the store's own state and its counts.
    pub(super) fn finish(self) -> Result<(StoreState, StoreCounts)> {
        let (Some(schema), Some(meta)) = (self.schema, self.meta) else {
            return damaged("its state record is missing".to_owned());
        };
        let meta = StoreState::decode(schema, &meta)?;
        self.readings.check("readings", meta.first_reading, meta.last_reading)?;
        self.events.check("events", meta.first_event, meta.last_event)?;
        for (name, expected, actual) in
            [("documents", meta.documents, self.documents), ("records", meta.records, self.records)]
        {
            if expected != actual {
                return damaged(format!("it has {actual} {name} instead of {expected}"));
            }
        }
        let counts = StoreCounts {
            records: self.records,
            documents: self.documents,
            events: self.events.count,
            readings: self.readings.count,
            commits: meta.revision,
        };
        Ok((meta, counts))
    }
}

impl JournalRun {
    fn add(&mut self, seq: Option<u64>) {
        let seq = seq.unwrap_or_default();
        if self.count == 0 {
            self.first = seq;
        }
        self.last = seq;
        self.count += 1;
    }

    /// Checks that there are as many entries as numbers from the first to the last, so that there is no gap.
    fn check(&self, name: &str, first: u64, last: u64) -> Result<()> {
        let expected = last.saturating_add(1).saturating_sub(first);
        if self.count != expected {
            return damaged(format!("it has {} {name} instead of {expected}", self.count));
        }
        if expected > 0 && (self.first, self.last) != (first, last) {
            return damaged(format!("its {name} are not those from {first} to {last}"));
        }
        Ok(())
    }
}

fn none(_: &[u8]) -> Result<Option<Vec<u8>>> {
    Ok(None)
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(StoreError::Damaged(problem))
}
