//! The engine's tree with the keyring that seals and unseals its records.

use std::ops::Deref;
use std::sync::Arc;

use parallax_certs::sealing::{KeyId, Keyring};
use sled::Tree;

use super::layout::{self, TreeKey};
use super::sealing::{KEYS_KEY, holds_secrets};
use super::{engine_error, record};
use crate::{Result, StoreError};

/// The engine's tree, with the keyring that seals and unseals its records.
#[derive(Debug)]
pub(super) struct SealedTree {
    tree: Tree,
    keyring: Option<Arc<Keyring>>,
}

impl SealedTree {
    pub(super) fn new(tree: Tree, keyring: Option<Arc<Keyring>>) -> Self {
        Self { tree, keyring }
    }

    pub(super) fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_deref()
    }

    /// Returns the ids to store in [`KEYS_KEY`] if the sealing key is not listed yet. Fails with
    /// [`StoreError::KeyMissing`] if a listed key is not in the keyring.
    pub(super) fn unlisted_keys(&self) -> Result<Option<Vec<[u8; KeyId::LENGTH]>>> {
        let head = self.tree.get(KEYS_KEY).map_err(engine_error)?;
        let piece = |part: &[u8]| self.tree.get(part).map_err(engine_error);
        let list = head.map(|head| record::decode(KEYS_KEY, &head, piece)).transpose()?;
        let mut listed: Vec<[u8; KeyId::LENGTH]> = list.unwrap_or_default();
        let has_key = |id: KeyId| self.keyring().is_some_and(|keyring| keyring.contains(id));
        if let Some(missing) = listed.iter().copied().map(KeyId::from_bytes).find(|id| !has_key(*id)) {
            return Err(StoreError::KeyMissing(missing.to_string()));
        }
        let sealing_key = self.keyring().and_then(Keyring::sealing_key).map(KeyId::to_bytes);
        let Some(sealing_key) = sealing_key.filter(|id| !listed.contains(id)) else { return Ok(None) };
        listed.push(sealing_key);
        Ok(Some(listed))
    }

    /// Re-encodes a record, sealed with the newest key: the pieces and the head. Returns nothing for pieces of
    /// sealed records, which come with their head.
    pub(super) fn reseal(&self, key: &[u8], value: &[u8]) -> Result<Vec<(TreeKey, Vec<u8>)>> {
        let record_of_piece = key.strip_prefix(layout::PIECES);
        let Some(keyring) = self.keyring() else { return Ok(vec![(key.to_vec(), value.to_vec())]) };
        if key == KEYS_KEY || record_of_piece.is_some_and(holds_secrets) {
            return Ok(Vec::new());
        }
        if !holds_secrets(key) {
            return Ok(vec![(key.to_vec(), value.to_vec())]);
        }
        let plain = record::plain_bytes(key, value, |part| self.tree.get(part).map_err(engine_error), Some(keyring))?;
        let record::EncodedRecord { head, pieces: mut entries } = record::encode_bytes(key, &plain, Some(keyring))?;
        entries.push((key.to_vec(), head));
        Ok(entries)
    }

    /// Returns the list of keys for a store in which everything is sealed with the newest.
    pub(super) fn newest_key(&self) -> Result<Option<Vec<u8>>> {
        let newest = self.keyring().and_then(Keyring::sealing_key).map(|id| vec![id.to_bytes()]);
        newest.map(|list| Ok(record::encode(KEYS_KEY, &list, None)?.head)).transpose()
    }
}

impl Deref for SealedTree {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}
