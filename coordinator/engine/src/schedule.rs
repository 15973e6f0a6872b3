//! The schedule as one value that is cheap to share: an edit copies a few pointers and shares the rest.
//!
//! Monitors are stored in leaves by slot. A holder of an older value keeps it unchanged. The newest edits are recorded
//! in order, so a reader compares only what changed since the value it holds.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use parallax_core::assign::ScheduledMonitor;

/// Monitors per leaf. An edit copies one leaf, and one pointer for each of the others.
const LEAF_SIZE: usize = 256;
/// Number of edits recorded. A reader that is further behind compares everything.
const MAX_RECENT_CHANGES: usize = 2048;

type Leaf = Vec<Option<Arc<ScheduledMonitor>>>;

/// The scheduled monitors by slot.
#[derive(Debug, Clone, Default)]
pub struct MonitorSchedule {
    leaves: Arc<Vec<Arc<Leaf>>>,
    len: usize,
    /// Number of edits so far.
    version: u64,
    /// Slots that the newest edits changed, newest last.
    recent_changes: Arc<VecDeque<u32>>,
}

impl MonitorSchedule {
    /// Returns the number of scheduled monitors.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nothing is scheduled.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of edits so far. Only values of one driver may be compared by it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the monitor with that slot.
    pub fn get(&self, slot: u32) -> Option<&Arc<ScheduledMonitor>> {
        let (leaf, index) = leaf_index(slot);
        self.leaves.get(leaf)?.get(index)?.as_ref()
    }

    /// Returns all monitors by slot.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ScheduledMonitor>> {
        self.leaves.iter().flat_map(|leaf| leaf.iter().flatten())
    }

    /// Adds or replaces a monitor. Returns false if it is unchanged.
    pub fn put(&mut self, monitor: ScheduledMonitor) -> bool {
        if self.get(monitor.slot).is_some_and(|entry| **entry == monitor) {
            return false;
        }
        let slot = monitor.slot;
        self.set(slot, Some(Arc::new(monitor)));
        true
    }

    /// Removes a monitor. Returns false if the slot was empty.
    pub fn remove(&mut self, slot: u32) -> bool {
        let existed = self.get(slot).is_some();
        if existed {
            self.set(slot, None);
        }
        existed
    }

    /// Returns the slots that changed since an older version; `None` if that is too old.
    pub fn changed_since(&self, version: u64) -> Option<BTreeSet<u32>> {
        let missed = usize::try_from(self.version.checked_sub(version)?).ok()?;
        (missed <= self.recent_changes.len()).then(|| self.recent_changes.iter().rev().take(missed).copied().collect())
    }

    fn set(&mut self, slot: u32, monitor: Option<Arc<ScheduledMonitor>>) {
        let (leaf, index) = leaf_index(slot);
        let leaves = Arc::make_mut(&mut self.leaves);
        if leaves.len() <= leaf {
            leaves.resize_with(leaf + 1, Arc::default);
        }
        let Some(leaf) = leaves.get_mut(leaf).map(Arc::make_mut) else { return };
        if leaf.len() <= index {
            leaf.resize_with(index + 1, || None);
        }
        let Some(entry) = leaf.get_mut(index) else { return };
        self.len += usize::from(monitor.is_some());
        self.len -= usize::from(std::mem::replace(entry, monitor).is_some());
        self.version += 1;
        let recent_changes = Arc::make_mut(&mut self.recent_changes);
        if recent_changes.len() == MAX_RECENT_CHANGES {
            recent_changes.pop_front();
        }
        recent_changes.push_back(slot);
    }
}

/// Returns the leaf of a slot, and the index in it.
fn leaf_index(slot: u32) -> (usize, usize) {
    let slot = slot as usize;
    (slot / LEAF_SIZE, slot % LEAF_SIZE)
}

#[cfg(test)]
mod tests {
    use parallax_core::check::{Check, TcpCheck};
    use parallax_core::id::{AccountId, MonitorId};

    use super::*;

    fn monitor(slot: u32, revision: u32) -> ScheduledMonitor {
        ScheduledMonitor {
            monitor: MonitorId::from_u128(u128::from(slot)),
            account: AccountId::from_u128(1),
            slot,
            revision,
            check: Arc::new(Check::Tcp(TcpCheck { host: "example.com".to_owned(), port: 443 })),
            interval_ms: 60_000,
            pinned: None,
        }
    }

    fn schedule_of(count: u32) -> MonitorSchedule {
        let mut schedule = MonitorSchedule::default();
        (0..count).for_each(|slot| assert!(schedule.put(monitor(slot, 1))));
        schedule
    }

    #[test]
    fn an_edit_copies_one_leaf_and_leaves_the_older_value_unchanged() {
        let before = schedule_of(100_000);
        let mut after = before.clone();
        assert!(after.put(monitor(70_000, 2)));
        let copied = before.leaves.iter().zip(after.leaves.iter()).filter(|(one, other)| !Arc::ptr_eq(one, other));
        assert_eq!(copied.count(), 1);
        assert_eq!(after.changed_since(before.version()), Some(BTreeSet::from([70_000])));
        assert_eq!(before.get(70_000).unwrap().revision, 1);
        assert_eq!((after.get(70_000).unwrap().revision, after.len()), (2, 100_000));
    }

    #[test]
    fn an_unchanged_monitor_is_no_edit() {
        let mut schedule = schedule_of(3);
        let version = schedule.version();
        assert!(!schedule.put(monitor(2, 1)));
        assert!(!schedule.remove(9));
        assert_eq!(schedule.version(), version);
        assert!(schedule.remove(0));
        assert_eq!(schedule.iter().map(|one| one.slot).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(schedule.changed_since(version), Some(BTreeSet::from([0])));
    }

    #[test]
    fn a_reader_too_far_behind_must_compare_everything() {
        let mut schedule = schedule_of(1);
        let version = schedule.version();
        for revision in 2..2 + u32::try_from(MAX_RECENT_CHANGES).unwrap() {
            schedule.put(monitor(0, revision));
        }
        assert!(schedule.changed_since(version).is_some());
        schedule.put(monitor(0, 1));
        assert_eq!(schedule.changed_since(version), None);
        assert_eq!(schedule.changed_since(schedule.version() + 1), None);
    }
}
