//! Display order of open incidents and maintenance.

use std::cmp::Reverse;

use super::Notice;

/// Sorts incidents before maintenance, and the worst impact first. The sort is stable.
pub fn worst_first<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> Vec<&'a Notice> {
    let mut ordered: Vec<&Notice> = notices.into_iter().collect();
    ordered.sort_by_key(|notice| (notice.incident.kind, Reverse(notice.incident.impact)));
    ordered
}
