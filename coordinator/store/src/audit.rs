//! Queries for the audit log.

use parallax_core::audit::AuditEntry;
use parallax_core::id::AccountId;

use super::Result;

/// Entries that appending one evicts, at most: those of a log that is full, and a few that are no longer kept.
pub(super) const MAX_EVICTED: usize = 4;

/// An entry of an account's audit log, with its number there: from 1, without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedAuditEntry {
    /// The number.
    pub number: u64,
    /// The entry.
    pub entry: AuditEntry,
}

/// Queries for the audit log; see [`StoreRead`](super::StoreRead) for what holds for all queries.
pub trait AuditRead {
    /// Up to `limit` entries of the account, newest first: those with a number below `before`, or the newest. Entries
    /// that are no longer kept may be among them.
    fn audit_entries(&self, account: AccountId, before: Option<u64>, limit: usize) -> Result<Vec<NumberedAuditEntry>>;
}
