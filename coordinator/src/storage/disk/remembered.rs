//! Stored responses for idempotency: bounded per API key, evicted oldest first, and deleted once they expire.

use parallax_core::time::Timestamp;

use super::layout;
use super::pending::Pending;
use super::stage::{document, put_document};
use crate::storage::Result;
use crate::storage::batch::FORGET_AT_ONCE;
use crate::storage::packed::{MAX_REMEMBERED, MAX_REMEMBERED_BYTES, Remembered, owner_of};

/// A response as it is stored.
pub(super) type Answer = ([u8; 32], Vec<u8>, Timestamp);
/// Number of stored responses of an API key, and their bytes.
type Total = (u64, u64);

/// Stores a response, replacing one of the same name. If its API key has too many, its oldest are evicted.
pub(super) fn remember(pending: &mut Pending<'_>, name: &str, it: &Remembered) -> Result<()> {
    forget(pending, name)?;
    pending.put(layout::expiry(it.expires_at, name), &())?;
    put_document(pending, layout::remembered(name), &(it.fingerprint, &it.answer, it.expires_at))?;
    let Some((owner, rest)) = owner_of(name) else { return Ok(()) };
    let bytes = it.bytes(name) as u64;
    pending.put(of_owner(owner, it.expires_at, rest), &bytes)?;
    let (mut count, mut sum) = total(pending, owner)?;
    (count, sum) = (count + 1, sum + bytes);
    pending.put(total_of(owner), &(count, sum))?;
    while count > MAX_REMEMBERED as u64 || sum > MAX_REMEMBERED_BYTES as u64 {
        // Except the new one: after the clock was set back, that would be the oldest.
        let oldest = pending.scan(layout::beginning(&all_of(owner)), 2)?;
        let names = oldest.iter().filter_map(|(key, _)| Some((key, name_of(owner, key)?)));
        let Some((key, oldest)) = names.into_iter().find(|(_, oldest)| oldest != name) else { break };
        let key = key.clone();
        forget(pending, &oldest)?;
        // An older version of this program that ran meanwhile deleted only the response.
        unlist(pending, owner, key)?;
        (count, sum) = total(pending, owner)?;
    }
    Ok(())
}

/// Deletes expired responses, some at a time.
pub(super) fn forget_expired(pending: &mut Pending<'_>, now: Timestamp) -> Result<()> {
    for (key, _) in pending.scan(layout::expired(now), FORGET_AT_ONCE)? {
        if let Some(name) = layout::expired_name(&key) {
            forget(pending, name)?;
        }
        pending.delete(key)?;
    }
    Ok(())
}

fn forget(pending: &mut Pending<'_>, name: &str) -> Result<()> {
    let key = layout::remembered(name);
    let Some((_, (_, _, expires_at))) = document::<Answer>(pending, &key)? else { return Ok(()) };
    pending.delete(layout::expiry(expires_at, name))?;
    pending.delete(key)?;
    match owner_of(name) {
        Some((owner, rest)) => unlist(pending, owner, of_owner(owner, expires_at, rest)),
        None => Ok(()),
    }
}

/// Removes a response from its API key's list, if it is there: those of older versions are not.
fn unlist(pending: &mut Pending<'_>, owner: &str, key: layout::Key) -> Result<()> {
    let Some(bytes) = pending.get::<u64>(&key)? else { return Ok(()) };
    pending.delete(key)?;
    let (count, sum) = total(pending, owner)?;
    if count <= 1 {
        return pending.delete(total_of(owner));
    }
    pending.put(total_of(owner), &(count - 1, sum.saturating_sub(bytes)))
}

fn total(pending: &Pending<'_>, owner: &str) -> Result<Total> {
    Ok(pending.get(&total_of(owner))?.unwrap_or_default())
}

/// Returns the prefix of an API key's stored responses, oldest first.
fn all_of(owner: &str) -> layout::Key {
    layout::join(b"xi", &[owner.as_bytes(), b"/"])
}

fn of_owner(owner: &str, expires_at: Timestamp, rest: &str) -> layout::Key {
    layout::join(&all_of(owner), &[&layout::time(expires_at.as_millis()), rest.as_bytes()])
}

/// Returns the idempotency name in an [`of_owner`] key.
fn name_of(owner: &str, key: &[u8]) -> Option<String> {
    let rest = key.get(2 + owner.len() + 1 + 8..)?;
    Some(format!("{owner}/{}", std::str::from_utf8(rest).ok()?))
}

fn total_of(owner: &str) -> layout::Key {
    layout::join(b"xj", &[owner.as_bytes()])
}
