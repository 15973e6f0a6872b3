//! Reading records from the tree.

use serde::de::DeserializeOwned;
use sled::IVec;

use super::layout::{self, TreeKey};
use super::sealed_tree::SealedTree;
use super::{engine_error, record};
use crate::{Result, VersionedValue};

pub(super) fn read_record<T: DeserializeOwned>(tree: &SealedTree, key: &[u8]) -> Result<Option<T>> {
    let head = tree.get(key).map_err(engine_error)?;
    head.map(|head| record::open(key, &head, |part| tree.get(part).map_err(engine_error), tree.keyring())).transpose()
}

pub(super) fn list<T: DeserializeOwned>(
    tree: &SealedTree,
    items: impl Iterator<Item = sled::Result<(IVec, IVec)>>,
) -> Result<Vec<(IVec, T)>> {
    items
        .map(|item| {
            let (key, head) = item.map_err(engine_error)?;
            let value = record::open(&key, &head, |part| tree.get(part).map_err(engine_error), tree.keyring())?;
            Ok((key, value))
        })
        .collect()
}

pub(super) fn versioned<T>((revision, value): (u64, T)) -> VersionedValue<T> {
    VersionedValue { revision, value }
}

/// Returns the first possible key after that one.
pub(super) fn key_after(key: &[u8]) -> TreeKey {
    [key, &[0]].concat()
}

pub(super) fn seq_of(key: &[u8]) -> u64 {
    layout::last_seq(key).unwrap_or_default()
}
