//! Display order of open incidents and maintenance.

use std::cmp::Reverse;

use super::IncidentView;

/// Sorts incidents before maintenance, and the worst impact first. The sort is stable.
pub fn worst_first<'a>(notices: impl IntoIterator<Item = &'a IncidentView>) -> Vec<&'a IncidentView> {
    let mut ordered: Vec<&IncidentView> = notices.into_iter().collect();
    ordered.sort_by_key(|notice| (notice.incident.kind, Reverse(notice.incident.impact)));
    ordered
}
