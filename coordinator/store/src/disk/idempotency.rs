//! Stored responses for idempotency: bounded per owner, evicted oldest first, and deleted once they expire.

use parallax_core::time::Timestamp;

use super::layout;
use super::pending::PendingChanges;
use crate::Result;
use crate::batch::MAX_EXPIRED_PER_OP;
use crate::blobs::{MAX_RESPONSE_BYTES_PER_KEY, StoredResponse, max_responses, split_owner};

/// A response as it is stored.
pub(super) type ResponseRecord = ([u8; 32], Vec<u8>, Timestamp);
/// Number of stored responses of an API key, and their bytes.
type ResponseTotals = (u64, u64);

/// Stores a response, replacing one of the same name. If its API key has too many, its oldest are evicted.
pub(super) fn store_response(pending: &mut PendingChanges<'_>, name: &str, response: &StoredResponse) -> Result<()> {
    delete_response(pending, name)?;
    pending.put(layout::expiry(response.expires_at, name), &())?;
    pending.put_document(
        layout::stored_response(name),
        &(response.fingerprint, &response.response, response.expires_at),
    )?;
    let Some((owner, rest)) = split_owner(name) else { return Ok(()) };
    let bytes = response.bytes(name) as u64;
    pending.put(response_key(owner, response.expires_at, rest), &bytes)?;
    let (mut count, mut total_bytes) = totals(pending, owner)?;
    (count, total_bytes) = (count + 1, total_bytes + bytes);
    pending.put(totals_key(owner), &(count, total_bytes))?;
    while count > max_responses(owner) as u64 || total_bytes > MAX_RESPONSE_BYTES_PER_KEY as u64 {
        // Except the new one: after the clock was set back, that would be the oldest.
        let oldest = pending.scan(layout::prefix_range(&responses_prefix(owner)), 2)?;
        let names = oldest.iter().filter_map(|(key, _)| Some((key, name_of(owner, key)?)));
        let Some((key, oldest)) = names.into_iter().find(|(_, oldest)| oldest != name) else { break };
        let key = key.clone();
        delete_response(pending, &oldest)?;
        // An older version of this program that ran meanwhile deleted only the response.
        delete_list_entry(pending, owner, key)?;
        (count, total_bytes) = totals(pending, owner)?;
    }
    Ok(())
}

/// Deletes expired responses, some at a time.
pub(super) fn delete_expired(pending: &mut PendingChanges<'_>, now: Timestamp) -> Result<()> {
    for (key, _) in pending.scan(layout::expired(now), MAX_EXPIRED_PER_OP)? {
        if let Some(name) = layout::expired_name(&key) {
            delete_response(pending, name)?;
        }
        pending.delete(key)?;
    }
    Ok(())
}

fn delete_response(pending: &mut PendingChanges<'_>, name: &str) -> Result<()> {
    let key = layout::stored_response(name);
    let Some((_, (_, _, expires_at))) = pending.document::<ResponseRecord>(&key)? else { return Ok(()) };
    pending.delete(layout::expiry(expires_at, name))?;
    pending.delete(key)?;
    match split_owner(name) {
        Some((owner, rest)) => delete_list_entry(pending, owner, response_key(owner, expires_at, rest)),
        None => Ok(()),
    }
}

/// Removes a response from its API key's list, if it is there: those of older versions are not.
fn delete_list_entry(pending: &mut PendingChanges<'_>, owner: &str, key: layout::TreeKey) -> Result<()> {
    let Some(bytes) = pending.get::<u64>(&key)? else { return Ok(()) };
    pending.delete(key)?;
    let (count, total_bytes) = totals(pending, owner)?;
    if count <= 1 {
        return pending.delete(totals_key(owner));
    }
    pending.put(totals_key(owner), &(count - 1, total_bytes.saturating_sub(bytes)))
}

fn totals(pending: &PendingChanges<'_>, owner: &str) -> Result<ResponseTotals> {
    Ok(pending.get(&totals_key(owner))?.unwrap_or_default())
}

/// Returns the prefix of an API key's stored responses, oldest first.
fn responses_prefix(owner: &str) -> layout::TreeKey {
    layout::join(b"xi", &[owner.as_bytes(), b"/"])
}

fn response_key(owner: &str, expires_at: Timestamp, rest: &str) -> layout::TreeKey {
    layout::join(&responses_prefix(owner), &[&layout::time(expires_at.as_millis()), rest.as_bytes()])
}

/// Returns the idempotency name in an [`response_key`] key.
fn name_of(owner: &str, key: &[u8]) -> Option<String> {
    let rest = key.get(2 + owner.len() + 1 + 8..)?;
    Some(format!("{owner}/{}", std::str::from_utf8(rest).ok()?))
}

fn totals_key(owner: &str) -> layout::TreeKey {
    layout::join(b"xj", &[owner.as_bytes()])
}
