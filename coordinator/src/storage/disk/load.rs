//! Reading records from the tree.

use serde::de::DeserializeOwned;
use sled::IVec;

use super::layout::{self, Key};
use super::sealing::Records;
use super::{failed, record};
use crate::storage::{Result, Versioned};

pub(super) fn load<T: DeserializeOwned>(tree: &Records, key: &[u8]) -> Result<Option<T>> {
    let head = tree.get(key).map_err(failed)?;
    head.map(|head| record::open(key, &head, |part| tree.get(part).map_err(failed), tree.keyring()))
        .transpose()
}

pub(super) fn list<T: DeserializeOwned>(
    tree: &Records,
    items: impl Iterator<Item = sled::Result<(IVec, IVec)>>,
) -> Result<Vec<(IVec, T)>> {
    items
        .map(|item| {
            let (key, head) = item.map_err(failed)?;
            let value = record::open(&key, &head, |part| tree.get(part).map_err(failed), tree.keyring())?;
            Ok((key, value))
        })
        .collect()
}

pub(super) fn versioned<T>((revision, value): (u64, T)) -> Versioned<T> {
    Versioned { revision, value }
}

/// Returns the first possible key after that one.
pub(super) fn behind(key: &[u8]) -> Key {
    [key, &[0]].concat()
}

pub(super) fn seq_of(key: &[u8]) -> u64 {
    layout::last_seq(key).unwrap_or_default()
}
