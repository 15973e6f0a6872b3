//! Contract for the audit log: entries are numbered by account, and the oldest are evicted.

use parallax_core::audit::{AUDIT_RETENTION, MAX_AUDIT_ENTRIES};

use crate::samples::*;
use crate::{Batch, NumberedAuditEntry};

/// Returns the numbers of the newest entries of an account.
fn numbers(store: &TestStore, account: u128, before: Option<u64>, limit: usize) -> Vec<u64> {
    let entries = store.reader.audit_entries(account_id(account), before, limit).unwrap();
    entries.iter().map(|it| it.number).collect()
}

pub(super) fn audit_entries_are_listed_newest_first(store: &mut TestStore) {
    assert_eq!(numbers(store, 1, None, 9), [0; 0]);
    for n in 1..=5 {
        store.commit(Batch::new().write(audit_entry(1, n)).write(audit_entry(2, 10 * n))).unwrap();
    }
    assert_eq!(numbers(store, 1, None, 9), [5, 4, 3, 2, 1]);
    assert_eq!(numbers(store, 1, None, 2), [5, 4]);
    assert_eq!(numbers(store, 1, Some(4), 2), [3, 2]);
    assert_eq!(numbers(store, 1, Some(1), 2), [0; 0]);
    assert_eq!(numbers(store, 1, Some(99), 1), [5]);
    let newest = store.reader.audit_entries(account_id(2), None, 1).unwrap();
    assert_eq!(newest, [NumberedAuditEntry { number: 5, entry: audit_entry(2, 50) }]);
    assert!(store.reader.verify().is_ok());
}

pub(super) fn audit_entries_are_evicted_when_they_are_too_many_or_too_old(store: &mut TestStore) {
    let append = |store: &mut TestStore, count: u64, millis: i64| {
        let mut batch = Batch::new();
        for _ in 0..count {
            batch.write(audit_entry(1, millis));
        }
        store.commit(&batch).unwrap();
    };
    append(store, MAX_AUDIT_ENTRIES, 0);
    let oldest = |store: &TestStore| numbers(store, 1, None, usize::MAX).last().copied();
    assert_eq!(oldest(store), Some(1));
    append(store, 3, 0);
    assert_eq!((numbers(store, 1, None, usize::MAX).len() as u64, oldest(store)), (MAX_AUDIT_ENTRIES, Some(4)));
    // Four of those that are no longer kept go with each that comes, and the new one stays, however old.
    append(store, 1, AUDIT_RETENTION);
    assert_eq!(oldest(store), Some(8));
    append(store, MAX_AUDIT_ENTRIES, AUDIT_RETENTION);
    append(store, 1, 3 * AUDIT_RETENTION);
    assert_eq!(numbers(store, 1, None, 1).len(), 1);
    assert!(store.reader.verify().is_ok());
}
