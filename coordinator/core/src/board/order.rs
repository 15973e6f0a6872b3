//! In which order people read of what is open.

use std::cmp::Reverse;

use super::Notice;

/// What is open as people are to read of it: incidents before maintenance, the worst of them before the others. What is
/// alike in that stays as it was.
pub fn worst_first<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> Vec<&'a Notice> {
    let mut ordered: Vec<&Notice> = notices.into_iter().collect();
    ordered.sort_by_key(|notice| (notice.incident.kind, Reverse(notice.incident.impact)));
    ordered
}
