//! The audit log in memory.

use std::collections::{BTreeMap, VecDeque};

use parallax_core::audit::{AuditEntry, MAX_AUDIT_ENTRIES};
use parallax_core::id::AccountId;

use super::MemoryStore;
use crate::Result;
use crate::audit::{AuditRead, MAX_EVICTED, NumberedAuditEntry};

/// Entries of every account, oldest first, with the number of the first.
#[derive(Debug, Default)]
pub(super) struct MemoryAudit(BTreeMap<AccountId, (u64, VecDeque<AuditEntry>)>);

impl MemoryAudit {
    /// Appends an entry to its account's log, and evicts as the disk does.
    pub(super) fn append(&mut self, entry: &AuditEntry) {
        let (first, entries) = self.0.entry(entry.account).or_insert_with(|| (1, VecDeque::new()));
        entries.push_back(entry.clone());
        for _ in 0..MAX_EVICTED {
            let is_expired = entries.len() > 1 && entries.front().is_some_and(|oldest| oldest.is_expired(entry.at));
            if !is_expired && entries.len() as u64 <= MAX_AUDIT_ENTRIES {
                break;
            }
            entries.pop_front();
            *first += 1;
        }
    }
}

impl AuditRead for MemoryStore {
    fn audit_entries(&self, account: AccountId, before: Option<u64>, limit: usize) -> Result<Vec<NumberedAuditEntry>> {
        let state = self.read();
        let Some((first, entries)) = state.audit.0.get(&account) else { return Ok(Vec::new()) };
        let numbered = entries.iter().zip(*first..).map(|(entry, number)| (number, entry));
        let below = numbered.filter(|(number, _)| before.is_none_or(|before| *number < before));
        let mut entries: Vec<_> =
            below.map(|(number, entry)| NumberedAuditEntry { number, entry: entry.clone() }).collect();
        entries.reverse();
        entries.truncate(limit);
        Ok(entries)
    }
}
