//! Deleted maintenance windows: subscribed calendars must learn that a window they have imported is
//! cancelled.

use serde::{Deserialize, Serialize};

use super::{Incident, IncidentKind};
use crate::id::IncidentId;
use crate::time::{DAY, Timestamp};

/// Milliseconds after its deletion for which a window is listed as cancelled: calendars refresh within days.
pub const LISTED_FOR: i64 = 30 * DAY;
/// Maximum number of deleted windows listed for a page: the newest.
const MAX_LISTED: usize = 100;

/// A deleted window, without its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledWindow {
    /// Its id.
    pub id: IncidentId,
    /// Planned start.
    pub started_at: Timestamp,
    /// Planned end.
    pub ends_at: Timestamp,
    /// A number above that of each of its versions (iCalendar `SEQUENCE`).
    pub version: u64,
    /// Time of deletion.
    pub deleted_at: Timestamp,
}

/// The deleted windows of a page, oldest deletion first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledWindows(pub Vec<CancelledWindow>);

impl CancelledWindows {
    /// Records the deletion of a window that has that version. Returns false if it is not a window.
    pub fn record_deletion(&mut self, window: &Incident, version: u64, now: Timestamp) -> bool {
        let Some(ends_at) = window.ends_at.filter(|_| window.kind == IncidentKind::Maintenance) else {
            return false;
        };
        self.prune(now);
        let (id, started_at) = (window.id, window.planned_start());
        self.0.push(CancelledWindow { id, started_at, ends_at, version: version.saturating_add(1), deleted_at: now });
        let over = self.0.len().saturating_sub(MAX_LISTED);
        self.0.drain(..over);
        true
    }

    /// Removes windows that were deleted long ago.
    pub fn prune(&mut self, now: Timestamp) {
        self.0.retain(|window| now.since(window.deleted_at) < LISTED_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::{at, incident, window};
    use super::*;

    #[test]
    fn deleted_windows_are_listed_for_a_limited_time_and_number() {
        let mut cancelled = CancelledWindows::default();
        assert!(!cancelled.record_deletion(&incident(), 7, at(0)) && cancelled.0.is_empty());
        assert!(cancelled.record_deletion(&window(60, 120), 7, at(0)));
        assert_eq!((cancelled.0[0].version, cancelled.0[0].deleted_at), (8, at(0)));
        for version in 0..u64::try_from(MAX_LISTED).unwrap() {
            cancelled.record_deletion(&window(60, 120), version, at(1));
        }
        assert_eq!((cancelled.0.len(), cancelled.0[0].version), (MAX_LISTED, 1));
        cancelled.prune(at(0) + LISTED_FOR);
        assert_eq!(cancelled.0.len(), MAX_LISTED);
        cancelled.prune(at(1) + LISTED_FOR);
        assert!(cancelled.0.is_empty());
    }
}
