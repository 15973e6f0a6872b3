//! Types of stored records, by key: a record that matches its checksum must also be a value of its type.

use parallax_certs::sealing::Keyring;
use parallax_core::account::Account;
use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::heartbeat::StoredPing;
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::machine::MachineState;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::subscriber::{Bulletin, Subscriber};
use serde::de::DeserializeOwned;

use super::idempotency::ResponseRecord;
use super::record;
use crate::storage::Result;

/// Prefixes of the records that [`verify`] decodes. History and indexes are not decoded: their values are packed
/// bytes, ids and numbers.
const TYPED: [&[u8; 2]; 19] = [
    b"da", b"dp", b"dm", b"dk", b"dg", b"di", b"dn", b"ds", b"dd", b"dt", b"du", b"db", b"df", b"do", b"dr", b"vd",
    b"ms", b"ev", b"pi",
];

/// Returns true for the key of a record that [`verify`] decodes.
pub(super) fn is_typed(key: &[u8]) -> bool {
    key.first_chunk::<2>().is_some_and(|prefix| TYPED.contains(&prefix))
}

/// Decodes a record as its type and drops the value; `piece` returns the bytes of a piece's key. Other records are not
/// decoded.
///
/// # Errors
/// [`StoreError::Damaged`](crate::storage::StoreError::Damaged) if the bytes are no value of the type.
pub(super) fn verify<B, F>(key: &[u8], head: &[u8], piece: F, keyring: Option<&Keyring>) -> Result<()>
where
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    fn decode<T, B, F>(key: &[u8], head: &[u8], piece: F, keyring: Option<&Keyring>) -> Result<()>
    where
        T: DeserializeOwned,
        B: AsRef<[u8]>,
        F: FnMut(&[u8]) -> Result<Option<B>>,
    {
        record::open::<T, B, F>(key, head, piece, keyring).map(drop)
    }
    let decode = match key.first_chunk::<2>() {
        Some(b"da") => decode::<(u64, Account), B, F>,
        Some(b"dp") => decode::<(u64, Page), B, F>,
        Some(b"dm") => decode::<(u64, Monitor), B, F>,
        Some(b"dk") => decode::<(u64, ApiKey), B, F>,
        Some(b"dg") => decode::<(u64, AgentRecord), B, F>,
        Some(b"di") => decode::<(u64, Invitation), B, F>,
        Some(b"dn") => decode::<(u64, Incident), B, F>,
        Some(b"ds") => decode::<(u64, Series), B, F>,
        Some(b"dd") => decode::<(u64, Deploy), B, F>,
        Some(b"dt") => decode::<(u64, Destination), B, F>,
        Some(b"du") => decode::<(u64, Subscriber), B, F>,
        Some(b"db") => decode::<(u64, Bulletin), B, F>,
        Some(b"df") => decode::<(u64, AlertSettings), B, F>,
        Some(b"do") => decode::<(u64, AnnouncedOutages), B, F>,
        Some(b"dr") => decode::<(u64, ResponseRecord), B, F>,
        Some(b"vd") => decode::<(u64, Delivery), B, F>,
        Some(b"ms") => decode::<MachineState, B, F>,
        Some(b"ev") => decode::<Event, B, F>,
        Some(b"pi") => decode::<StoredPing, B, F>,
        _ => return Ok(()),
    };
    decode(key, head, piece, keyring)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::StoreError;

    #[test]
    fn the_decoded_records_are_those_with_a_type() {
        for prefix in (0..=u16::MAX).map(u16::to_be_bytes) {
            // No type is a byte that says no more than that the value is incomplete.
            let head = record::encode_bytes(&prefix, &[0xff], None).unwrap().head;
            let none = |_: &[u8]| Ok::<Option<Vec<u8>>, StoreError>(None);
            let is_decoded = verify(&prefix, &head, none, None).is_err();
            assert_eq!(is_decoded, is_typed(&prefix), "{}", prefix.escape_ascii());
        }
    }
}
