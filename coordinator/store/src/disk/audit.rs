//! The audit log on disk: entries of an account by number, the oldest of which are evicted.

use parallax_core::audit::{AuditEntry, MAX_AUDIT_ENTRIES};
use parallax_core::id::AccountId;

use super::layout::{TreeKey, join};
use super::pending::PendingChanges;
use super::reader::DiskReader;
use crate::Result;
use crate::audit::{AuditRead, MAX_EVICTED, NumberedAuditEntry};

/// Numbers of an account's entries: of the oldest that is kept, and of the next one.
type Numbers = (u64, u64);

/// Appends an entry to its account's log. Entries beyond the limit are evicted, and a few that are no longer kept.
pub(super) fn append(pending: &mut PendingChanges<'_>, entry: &AuditEntry) -> Result<()> {
    let numbers = numbers_key(entry.account);
    let (mut first, next): Numbers = pending.get(&numbers)?.unwrap_or((1, 1));
    pending.put(entry_key(entry.account, next), entry)?;
    let next = next + 1;
    for _ in 0..MAX_EVICTED {
        let oldest = entry_key(entry.account, first);
        let is_evicted = next - first > MAX_AUDIT_ENTRIES
            || (next - first > 1
                && pending.get::<AuditEntry>(&oldest)?.is_some_and(|oldest| oldest.is_expired(entry.at)));
        if !is_evicted {
            break;
        }
        pending.delete(oldest)?;
        first += 1;
    }
    pending.put(numbers, &(first, next))
}

fn entries_of(account: AccountId) -> TreeKey {
    join(b"al", &[&account.to_u128().to_be_bytes()])
}

fn entry_key(account: AccountId, number: u64) -> TreeKey {
    join(&entries_of(account), &[&number.to_be_bytes()])
}

fn numbers_key(account: AccountId) -> TreeKey {
    join(b"an", &[&account.to_u128().to_be_bytes()])
}

impl AuditRead for DiskReader {
    fn audit_entries(&self, account: AccountId, before: Option<u64>, limit: usize) -> Result<Vec<NumberedAuditEntry>> {
        let Some((first, next)) = self.record::<Numbers>(&numbers_key(account))? else { return Ok(Vec::new()) };
        let end = before.map_or(next, |before| before.min(next)).max(first);
        let start = end.saturating_sub(limit as u64).max(first);
        let entries = self.first::<AuditEntry>(entry_key(account, start)..entry_key(account, end), usize::MAX)?;
        let numbered = entries.into_iter().filter_map(|(key, entry)| {
            Some(NumberedAuditEntry { number: u64::from_be_bytes(*key.last_chunk()?), entry })
        });
        let mut entries: Vec<_> = numbered.collect();
        entries.reverse();
        Ok(entries)
    }
}
