//! Types of stored records, by key: a record that matches its checksum must also be a value of its type.

use parallax_certs::sealing::Keyring;
use parallax_core::account::Account;
use parallax_core::alert_settings::{AlertSettings, AnnouncedOutages};
use parallax_core::audit::AuditEntry;
use parallax_core::company_sign_in::CompanySignIn;
use parallax_core::delivery::Delivery;
use parallax_core::deploy::Deploy;
use parallax_core::destination::Destination;
use parallax_core::event::Event;
use parallax_core::heartbeat::StoredPing;
use parallax_core::incident::Incident;
use parallax_core::incident::series::Series;
use parallax_core::key::ApiKey;
use parallax_core::login_session::LoginSession;
use parallax_core::machine::MachineState;
use parallax_core::member::{AgentRecord, Invitation};
use parallax_core::monitor::Monitor;
use parallax_core::one_time_link::OneTimeLink;
use parallax_core::page::Page;
use parallax_core::person::{AccountMember, Person};
use parallax_core::subscriber::{Bulletin, Subscriber};
use serde::de::DeserializeOwned;

use super::idempotency::ResponseRecord;
use super::record;
use crate::Result;

/// Decodes a record's plain bytes and drops the value; returns false if they are no value of the type.
type Decoder = fn(&[u8]) -> bool;

fn decodes<T: DeserializeOwned>(plain: &[u8]) -> bool {
    postcard::from_bytes::<T>(plain).is_ok()
}

/// Returns the decoder of a key's record. History and indexes have none: their values are packed bytes, ids and
/// numbers.
fn decoder(key: &[u8]) -> Option<Decoder> {
    Some(match key.first_chunk::<2>()? {
        b"da" => decodes::<(u64, Account)>,
        b"dp" => decodes::<(u64, Page)>,
        b"dm" => decodes::<(u64, Monitor)>,
        b"dk" => decodes::<(u64, ApiKey)>,
        b"dg" => decodes::<(u64, AgentRecord)>,
        b"di" => decodes::<(u64, Invitation)>,
        b"dn" => decodes::<(u64, Incident)>,
        b"ds" => decodes::<(u64, Series)>,
        b"dd" => decodes::<(u64, Deploy)>,
        b"dt" => decodes::<(u64, Destination)>,
        b"du" => decodes::<(u64, Subscriber)>,
        b"db" => decodes::<(u64, Bulletin)>,
        b"de" => decodes::<(u64, Person)>,
        b"dj" => decodes::<(u64, AccountMember)>,
        b"dy" => decodes::<(u64, CompanySignIn)>,
        b"dl" => decodes::<(u64, LoginSession)>,
        b"dz" => decodes::<(u64, OneTimeLink)>,
        b"df" => decodes::<(u64, AlertSettings)>,
        b"do" => decodes::<(u64, AnnouncedOutages)>,
        b"dr" => decodes::<(u64, ResponseRecord)>,
        b"vd" => decodes::<(u64, Delivery)>,
        b"al" => decodes::<AuditEntry>,
        b"ms" => decodes::<MachineState>,
        b"ev" => decodes::<Event>,
        b"pi" => decodes::<StoredPing>,
        _ => return None,
    })
}

/// Returns true for the key of a record that [`verify`] decodes.
pub(super) fn is_typed(key: &[u8]) -> bool {
    decoder(key).is_some()
}

/// Decodes a record as its type and drops the value; `piece` returns the bytes of a piece's key. Other records are not
/// decoded.
///
/// # Errors
/// [`StoreError::Damaged`](crate::StoreError::Damaged) if the bytes are no value of the type.
pub(super) fn verify<B, F>(key: &[u8], head: &[u8], piece: F, keyring: Option<&Keyring>) -> Result<()>
where
    B: AsRef<[u8]>,
    F: FnMut(&[u8]) -> Result<Option<B>>,
{
    let Some(decodes) = decoder(key) else { return Ok(()) };
    let plain = record::plain_bytes(key, head, piece, keyring)?;
    if decodes(&plain) { Ok(()) } else { Err(record::damaged(key, "can't be read")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;

    #[test]
    fn a_record_with_a_type_must_decode_and_others_may_hold_any_bytes() {
        for (prefix, has_type) in [(b"da", true), (b"ms", true), (b"ev", true), (b"rd", false), (b"zz", false)] {
            // No type is a byte that says no more than that the value is incomplete.
            let head = record::encode_bytes(prefix, &[0xff], None).unwrap().head;
            let none = |_: &[u8]| Ok::<Option<Vec<u8>>, StoreError>(None);
            assert_eq!(is_typed(prefix), has_type, "{}", prefix.escape_ascii());
            assert_eq!(verify(prefix, &head, none, None).is_err(), has_type, "{}", prefix.escape_ascii());
        }
    }
}
