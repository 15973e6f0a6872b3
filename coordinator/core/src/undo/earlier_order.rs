//! The order of a page's monitors before a change, and how it is restored among those that are there now.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::MonitorId;

/// The order of a page's monitors before a change, and the one that the change gave them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierOrder {
    before: Vec<MonitorId>,
    after: Vec<MonitorId>,
}

impl EarlierOrder {
    /// Records the order of the same monitors before and after a change.
    pub const fn new(before: Vec<MonitorId>, after: Vec<MonitorId>) -> Self {
        Self { before, after }
    }

    /// Returns true if the change left the order as it was.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Returns the page's monitors in their earlier order; `None` if it was changed since. Monitors that were deleted
    /// are left out. One that was created since keeps its place: nobody chose another order for it.
    pub fn restored(&self, present: &[MonitorId]) -> Option<Vec<MonitorId>> {
        let ordered: BTreeSet<&MonitorId> = self.after.iter().collect();
        let remaining: BTreeSet<&MonitorId> = present.iter().filter(|id| ordered.contains(id)).collect();
        let is_remaining = |id: &&MonitorId| remaining.contains(id);
        if !self.after.iter().filter(is_remaining).eq(present.iter().filter(is_remaining)) {
            return None;
        }
        let mut earlier = self.before.iter().filter(is_remaining);
        present.iter().map(|id| if ordered.contains(id) { earlier.next() } else { Some(id) }.copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u128]) -> Vec<MonitorId> {
        numbers.iter().map(|number| MonitorId::from_u128(*number)).collect()
    }

    #[test]
    fn an_earlier_order_is_restored_among_those_that_are_there_now() {
        let order = EarlierOrder::new(ids(&[1, 2, 3, 4]), ids(&[4, 2, 1, 3]));
        for (present, restored) in [
            (&[4, 2, 1, 3][..], Some(&[1, 2, 3, 4][..])),
            // Created since: at the end, and moved to the front by another order.
            (&[4, 2, 1, 3, 5, 6], Some(&[1, 2, 3, 4, 5, 6])),
            (&[5, 4, 2, 1, 3], Some(&[5, 1, 2, 3, 4])),
            // Deleted since.
            (&[4, 1, 3], Some(&[1, 3, 4])),
            (&[4, 3, 5], Some(&[3, 4, 5])),
            (&[5], Some(&[5])),
            (&[], Some(&[])),
            // Ordered by somebody else.
            (&[1, 2, 3, 4], None),
            (&[4, 1, 2, 3, 5], None),
            (&[2, 4], None),
        ] {
            assert_eq!(order.restored(&ids(present)), restored.map(ids), "{present:?}");
        }
        assert!(!order.is_empty() && EarlierOrder::new(ids(&[1, 2]), ids(&[1, 2])).is_empty());
    }
}
