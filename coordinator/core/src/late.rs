//! Fields that records were given later: an older record ends before them.

use serde::{Deserialize, Deserializer};

/// Reads the last field of a record, which an older one may lack; whether its bytes are whole is the store's checksum to
/// say.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(T::deserialize(from).unwrap_or_default())
}
