//! Compatibility of stored records: fields that were added at the end, which older records lack.

use serde::{Deserialize, Deserializer};

/// Reads the last field of a record, with its default if an older record ends before it. The store's checksum
/// guarantees that the bytes are complete.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(T::deserialize(from).unwrap_or_default())
}
