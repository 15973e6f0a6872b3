//! The writer of the store on disk: a group of batches becomes one atomic batch, and is durable before any sender
//! is notified.

use std::fs::File;
use std::sync::Arc;

use parallax_core::id::MonitorId;

use super::files::{DiskSpace, Watermark};
use super::layout::{self, SCHEMA};
use super::meta::StoreState;
use super::pending::PendingChanges;
use super::sealing::KEYS_KEY;
use super::stage::{delete_history, stage};
use super::{SharedStore, engine_error, io_error, record};
use crate::{Batch, CommitReceipt, Result, StoreError, StoreWrite};

/// Bytes from which on a group is written, however many batches wait.
const GROUP_BYTES: usize = 8 << 20;
/// Records of a deleted monitor deleted at a time.
const SLICE: usize = 1024;

/// Makes a group of commits durable.
#[derive(Debug)]
pub(super) struct DurableFiles {
    /// A second handle of sled's file: its own is not accessible, and an fsync on any handle covers the file.
    file: File,
    watermark: Watermark,
    #[cfg(test)]
    skip: SkippedStep,
}

/// A step that a commit skips in a test.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SkippedStep {
    #[default]
    Nothing,
    /// Neither flushed nor fsynced.
    Flush,
    /// Flushed by the engine alone.
    Fsync,
}

impl DurableFiles {
    pub(super) fn new(file: File, watermark: Watermark) -> Self {
        Self {
            file,
            watermark,
            #[cfg(test)]
            skip: SkippedStep::Nothing,
        }
    }

    #[cfg(test)]
    pub(super) fn skip(&mut self, skip: SkippedStep) {
        self.skip = skip;
    }

    /// Makes everything applied so far durable and records it in the watermark.
    pub(super) fn make_durable(&mut self, shared: &SharedStore, meta: &StoreState) -> Result<()> {
        #[cfg(test)]
        if self.skip == SkippedStep::Flush {
            return self.watermark.write(meta.group, meta.chain);
        }
        shared.db.flush().map_err(engine_error)?;
        #[cfg(test)]
        if self.skip == SkippedStep::Fsync {
            return self.watermark.write(meta.group, meta.chain);
        }
        self.file.sync_all().map_err(io_error)?;
        self.watermark.write(meta.group, meta.chain)
    }
}

/// The writing side of the store.
#[derive(Debug)]
pub(super) struct DiskWriter {
    shared: Arc<SharedStore>,
    durable: DurableFiles,
    space: DiskSpace,
    meta: StoreState,
    /// Reason why nothing is written any more: after a failed write or fsync, the contents of the disk are unknown.
    failure: Option<StoreError>,
}

impl DiskWriter {
    pub(super) fn new(shared: Arc<SharedStore>, durable: DurableFiles, space: DiskSpace, meta: StoreState) -> Self {
        Self { shared, durable, space, meta, failure: None }
    }

    /// Writes the first records of a new store.
    pub(super) fn initialize(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut pending = PendingChanges::new(&shared.records, self.meta);
        pending.put(layout::SCHEMA_KEY.to_vec(), &SCHEMA)?;
        pending.accept();
        self.persist(pending)
    }

    /// Records that a new key seals from now on, before it seals anything.
    pub(super) fn record_sealing_key(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let Some(keys) = shared.records.unlisted_keys()? else { return Ok(()) };
        let mut pending = PendingChanges::new(&shared.records, self.meta);
        pending.put(KEYS_KEY.to_vec(), &keys)?;
        pending.accept();
        self.persist(pending)
    }

    fn check_writable(&mut self) -> Result<()> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None if self.space.check_low()? => Err(StoreError::Full),
            None => Ok(()),
        }
    }

    /// Stages batches from the front until the group is full, writes them, and returns the result of each.
    fn commit_some(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>> {
        let shared = Arc::clone(&self.shared);
        let mut pending = PendingChanges::new(&shared.records, self.meta);
        let mut results = Vec::with_capacity(group.len());
        for batch in group {
            let result = stage(&mut pending, batch);
            if result.is_ok() {
                pending.accept();
            } else {
                pending.discard();
            }
            results.push(result);
            if pending.bytes() >= GROUP_BYTES {
                break;
            }
        }
        if results.iter().any(Result::is_ok)
            && let Err(error) = self.persist(pending)
        {
            results.iter_mut().filter(|result| result.is_ok()).for_each(|result| *result = Err(error.clone()));
        }
        results
    }

    fn persist(&mut self, pending: PendingChanges<'_>) -> Result<()> {
        // If sled panics during the write, this error remains.
        self.failure = Some(StoreError::Io("a write was not finished".to_owned()));
        let result = self.write(pending);
        self.failure = result.as_ref().err().cloned();
        if self.failure.is_some() {
            // Closing the engine would write and fsync once more, and panic if that fails too: it is never closed.
            std::mem::forget(self.shared.db.clone());
        }
        result
    }

    fn write(&mut self, pending: PendingChanges<'_>) -> Result<()> {
        let mut meta = pending.meta;
        meta.group += 1;
        let changes = pending.into_changes();
        let mut batch = sled::Batch::default();
        for (key, value) in &changes {
            meta.chain = crc32c::crc32c_append(meta.chain, key);
            match value {
                Some(value) => {
                    meta.chain = crc32c::crc32c_append(meta.chain, value);
                    batch.insert(key.as_slice(), value);
                }
                None => batch.remove(key.as_slice()),
            }
        }
        batch.insert(layout::META_KEY, record::encode(layout::META_KEY, &meta, None)?.head);
        {
            let _guard = self.shared.writing();
            let keys = changes.keys().map(Vec::as_slice).chain([layout::META_KEY]);
            self.shared.snapshot_walk.keep_old_values(&self.shared.db, keys);
            self.shared.db.apply_batch(batch).map_err(engine_error)?;
        }
        self.durable.make_durable(&self.shared, &meta)?;
        self.meta = meta;
        Ok(())
    }
}

impl StoreWrite for DiskWriter {
    fn commit(&mut self, group: &[Batch]) -> Vec<Result<CommitReceipt>> {
        let mut results = Vec::with_capacity(group.len());
        while let Some(rest) = group.get(results.len()..).filter(|rest| !rest.is_empty()) {
            match self.check_writable() {
                Ok(()) => results.append(&mut self.commit_some(rest)),
                Err(error) => results.extend(rest.iter().map(|_| Err(error.clone()))),
            }
        }
        results
    }

    fn clean_up(&mut self) -> Result<bool> {
        self.check_writable()?;
        let shared = Arc::clone(&self.shared);
        let mut pending = PendingChanges::new(&shared.records, self.meta);
        let deleted = pending.scan(layout::prefix_range(layout::DELETED_MONITORS), 1)?;
        let Some(id) = deleted.first().and_then(|(key, _)| layout::last_id(key)) else { return Ok(false) };
        delete_history(&mut pending, MonitorId::from_u128(id), SLICE)?;
        pending.accept();
        self.persist(pending)?;
        Ok(true)
    }
}
