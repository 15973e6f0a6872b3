//! Pending changes: a group of batches before it is written, as changes by key over the tree, so that each batch
//! sees the ones before it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sled::IVec;

use super::layout::{self, TreeKey};
use super::meta::StoreState;
use super::sealed_tree::SealedTree;
use super::{engine_error, record};
use crate::Result;

type Changes = BTreeMap<TreeKey, Option<IVec>>;

/// Changes that are not in the tree yet: those of accepted batches, and over them those of the current batch.
#[derive(Debug)]
pub(super) struct PendingChanges<'a> {
    tree: &'a SealedTree,
    accepted: Changes,
    accepted_meta: StoreState,
    batch: Changes,
    bytes: usize,
    /// State including the current batch.
    pub(super) meta: StoreState,
}

impl<'a> PendingChanges<'a> {
    pub(super) fn new(tree: &'a SealedTree, meta: StoreState) -> Self {
        let empty = Changes::new;
        Self { tree, accepted: empty(), accepted_meta: meta, batch: empty(), bytes: 0, meta }
    }

    /// Ends the current batch and keeps its changes.
    pub(super) fn accept(&mut self) {
        self.bytes +=
            self.batch.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, |it| it.len())).sum::<usize>();
        self.accepted.append(&mut self.batch);
        self.accepted_meta = self.meta;
    }

    /// Ends the current batch and drops its changes.
    pub(super) fn discard(&mut self) {
        self.batch.clear();
        self.meta = self.accepted_meta;
    }

    /// Returns the approximate number of bytes that the accepted batches write.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the accepted changes.
    pub(super) fn into_changes(self) -> BTreeMap<TreeKey, Option<IVec>> {
        self.accepted
    }

    /// Returns the value of a key.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>> {
        let Some(head) = self.head(key)? else { return Ok(None) };
        record::open(key, &head, |part| self.head(part), self.tree.keyring()).map(Some)
    }

    /// Returns a document with the revision at which it was written.
    pub(super) fn document<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<(u64, T)>> {
        self.get(key)
    }

    /// Writes a document at the current batch's revision.
    pub(super) fn put_document<T: Serialize>(&mut self, key: TreeKey, value: &T) -> Result<()> {
        let revision = self.meta.revision;
        self.put(key, &(revision, value))
    }

    /// Returns true if the key has a value.
    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        self.head(key).map(|head| head.is_some())
    }

    /// Returns the first keys of a range with their heads, at most `limit`.
    pub(super) fn scan(&self, range: Range<TreeKey>, limit: usize) -> Result<Vec<(TreeKey, IVec)>> {
        let mut entries = Vec::new();
        for item in self.tree.range(range.clone()) {
            if entries.len() >= limit {
                break;
            }
            let (key, head) = item.map_err(engine_error)?;
            if !self.batch.contains_key(key.as_ref()) && !self.accepted.contains_key(key.as_ref()) {
                entries.push((key.to_vec(), head));
            }
        }
        let accepted = self.accepted.range(range.clone()).filter(|(key, _)| !self.batch.contains_key(*key));
        for (key, value) in accepted.chain(self.batch.range(range)) {
            entries.extend(value.clone().map(|head| (key.clone(), head)));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.truncate(limit);
        Ok(entries)
    }

    /// Writes a value, replacing any old one.
    pub(super) fn put<T: Serialize + ?Sized>(&mut self, key: TreeKey, value: &T) -> Result<()> {
        let old = match self.head(&key)? {
            Some(head) => record::pieces(&key, &head)?,
            None => {
                self.count(&key, 1);
                0
            }
        };
        let encoded = record::encode(&key, value, self.tree.keyring())?;
        for number in u16::try_from(encoded.pieces.len()).unwrap_or(u16::MAX)..old {
            self.batch.insert(layout::piece(&key, number), None);
        }
        self.insert(key, encoded);
        Ok(())
    }

    /// Writes a value of a key that is known to be new.
    pub(super) fn append<T: Serialize + ?Sized>(&mut self, key: TreeKey, value: &T) -> Result<()> {
        let encoded = record::encode(&key, value, self.tree.keyring())?;
        self.count(&key, 1);
        self.insert(key, encoded);
        Ok(())
    }

    /// Deletes a value, if there is one.
    pub(super) fn delete(&mut self, key: TreeKey) -> Result<()> {
        if let Some(head) = self.head(&key)? {
            self.remove(key, &head)?;
        }
        Ok(())
    }

    /// Deletes a value whose head is known.
    pub(super) fn remove(&mut self, key: TreeKey, head: &[u8]) -> Result<()> {
        for number in 0..record::pieces(&key, head)? {
            self.batch.insert(layout::piece(&key, number), None);
        }
        self.count(&key, -1);
        self.batch.insert(key, None);
        Ok(())
    }

    /// Deletes entries of the readings journal without reading them: their numbers have no gaps.
    pub(super) fn trim(&mut self, seqs: Range<u64>) -> Result<()> {
        let parts = layout::piece(&layout::readings(seqs.start), 0)..layout::piece(&layout::readings(seqs.end), 0);
        for (part, _) in self.scan(parts, usize::MAX)? {
            self.batch.insert(part, None);
        }
        for seq in seqs {
            let key = layout::readings(seq);
            self.count(&key, -1);
            self.batch.insert(key, None);
        }
        Ok(())
    }

    /// Returns the head of a key.
    pub(super) fn head(&self, key: &[u8]) -> Result<Option<IVec>> {
        match self.batch.get(key).or_else(|| self.accepted.get(key)) {
            Some(change) => Ok(change.clone()),
            None => self.tree.get(key).map_err(engine_error),
        }
    }

    fn insert(&mut self, key: TreeKey, encoded: record::EncodedRecord) {
        for (part, bytes) in encoded.pieces {
            self.batch.insert(part, Some(bytes.into()));
        }
        self.batch.insert(key, Some(encoded.head.into()));
    }

    fn count(&mut self, key: &[u8], change: i64) {
        if key.starts_with(layout::INTERNAL) {
            return;
        }
        self.meta.records = self.meta.records.saturating_add_signed(change);
        if key.starts_with(layout::DOCUMENTS) {
            self.meta.documents = self.meta.documents.saturating_add_signed(change);
        }
    }
}
