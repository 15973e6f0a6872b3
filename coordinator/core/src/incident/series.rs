//! Recurring maintenance: a series plans its windows one after another, each a week before it starts.

use serde::{Deserialize, Serialize};

use super::{Impact, Incident, IncidentKind, IncidentStatus, MonitorImpact};
use crate::id::{IncidentId, PageId, SeriesId, UpdateId};
use crate::recurrence::Recurrence;
use crate::reminder::ReminderInterval;
use crate::time::{DAY, Timestamp};

/// Milliseconds before its start at which a window is planned.
pub const PLAN_AHEAD: i64 = 7 * DAY;
/// Active series of a page above which its owner can't create another.
pub const MAX_ACTIVE_SERIES: usize = 50;
/// Stopped series kept for a page: the newest.
pub const MAX_STOPPED: usize = 200;
/// Maximum number of missed windows skipped at once: about eighty years of weeks.
const MAX_SKIPPED: u32 = 4096;

/// A series of recurring maintenance windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Its id.
    pub id: SeriesId,
    /// The page it is on.
    pub page: PageId,
    /// Start times of its windows.
    pub recurrence: Recurrence,
    /// Length of each window, in milliseconds.
    pub length: i64,
    /// Number of the window that is planned next.
    pub next_index: u32,
    /// Time at which it was stopped: windows already planned are kept.
    pub stopped_at: Option<Timestamp>,
    /// Each window's title.
    pub title: String,
    /// Each window's first update.
    pub message: String,
    /// Each window's monitors.
    pub affected: Vec<MonitorImpact>,
    /// Each window's reminders.
    pub remind: Vec<ReminderInterval>,
    /// True if subscribers are notified of each window.
    pub notify: bool,
}

/// Ids for a new window and its first update.
#[derive(Debug, Clone, Copy)]
pub struct WindowIds {
    /// Id of the window.
    pub incident: IncidentId,
    /// Id of its first update.
    pub update: UpdateId,
}

impl Series {
    /// Time at which the next window is to be planned; none once the series is stopped.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.stopped_at.is_some() {
            return None;
        }
        Some(self.recurrence.nth(self.next_index)? - PLAN_AHEAD)
    }

    /// Plans the next window if that is due by `now`. Windows wholly in the past are skipped; the result may
    /// then be none even though the series advanced.
    pub fn plan(&mut self, now: Timestamp, names: WindowIds) -> Option<Incident> {
        for _ in 0..MAX_SKIPPED {
            if self.next_due().is_none_or(|due| due > now) {
                return None;
            }
            let starts_at = self.recurrence.nth(self.next_index)?;
            self.next_index = self.next_index.checked_add(1)?;
            if starts_at + self.length > now {
                return Some(self.window(starts_at, now, names));
            }
        }
        None
    }

    /// Builds a window of this series.
    pub(super) fn window(&self, starts_at: Timestamp, now: Timestamp, names: WindowIds) -> Incident {
        let mut window = Incident {
            id: names.incident,
            page: self.page,
            kind: IncidentKind::Maintenance,
            title: self.title.clone(),
            status: IncidentStatus::Scheduled,
            impact: Impact::None,
            started_at: starts_at,
            ends_at: Some(starts_at + self.length),
            resolved_at: None,
            automatic: false,
            notify: self.notify,
            remind: self.remind.clone(),
            series: Some(self.id),
            postmortem: None,
            affected: self.affected.clone(),
            updates: Vec::new(),
            has_begun: false,
            reminded_until: now,
            created_at: now,
            edited_at: None,
            planned_at: None,
        };
        window.add_update(names.update, self.message.clone(), now);
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recurrence::Frequency;
    use crate::time::HOUR;

    const FIRST: i64 = 20_000 * DAY;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(FIRST + millis)
    }

    fn series() -> Series {
        Series {
            id: SeriesId::from_u128(1),
            page: PageId::from_u128(1),
            recurrence: Recurrence { frequency: Frequency::Weekly, zone: chrono_tz::UTC, first: at(0) },
            length: HOUR,
            next_index: 1,
            stopped_at: None,
            title: "Patches".to_owned(),
            message: "Planned".to_owned(),
            affected: Vec::new(),
            remind: Vec::new(),
            notify: true,
        }
    }

    fn names() -> WindowIds {
        WindowIds { incident: IncidentId::from_u128(5), update: UpdateId::from_u128(6) }
    }

    #[test]
    fn each_window_is_planned_a_week_before_it_starts() {
        let mut series = series();
        assert_eq!(series.next_due(), Some(at(0)));
        assert_eq!(series.plan(at(-1), names()), None);
        let window = series.plan(at(0), names()).unwrap();
        assert_eq!((window.started_at, window.ends_at), (at(7 * DAY), Some(at(7 * DAY + HOUR))));
        assert_eq!((window.status, window.updates.len()), (IncidentStatus::Scheduled, 1));
        assert_eq!(series.next_due(), Some(at(7 * DAY)));
    }

    #[test]
    fn windows_wholly_in_the_past_are_skipped_and_one_that_still_runs_is_not() {
        let mut late = series();
        let window = late.plan(at(21 * DAY + HOUR - 1), names()).unwrap();
        assert_eq!(window.started_at, at(21 * DAY));
        let mut later = series();
        let window = later.plan(at(21 * DAY + HOUR), names()).unwrap();
        assert_eq!((window.started_at, later.next_index), (at(28 * DAY), 5));
    }

    #[test]
    fn a_stopped_series_plans_nothing() {
        let mut series = Series { stopped_at: Some(at(0)), ..series() };
        assert_eq!((series.next_due(), series.plan(at(99 * DAY), names())), (None, None));
    }
}
