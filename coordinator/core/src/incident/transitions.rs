//! Time-driven transitions of incidents and windows: reminders, a window's start and its end.

use serde::{Deserialize, Serialize};

use super::{Incident, IncidentKind, IncidentStatus};
use crate::id::{IncidentId, UpdateId};
use crate::time::Timestamp;

/// A change of an incident or window, as announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncidentChange {
    /// An incident was opened.
    Opened,
    /// An update was posted.
    Updated,
    /// The incident was resolved.
    Resolved,
    /// A window was planned.
    Scheduled,
    /// A window starts in that many milliseconds, or fewer if the moment was missed.
    Reminder(i64),
    /// A window began.
    Started,
    /// A window ended.
    Completed,
    /// No update was posted for that many milliseconds: for the owner alone.
    OwnerReminder(i64),
    /// It was changed silently.
    Changed,
    /// It was deleted.
    Deleted,
}

/// A change of one incident, for the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentEvent {
    /// The incident.
    pub incident: IncidentId,
    /// The change.
    pub change: IncidentChange,
    /// The update that announces it, if one does.
    pub update: Option<UpdateId>,
    /// True if people are notified; else it is for internal consumers only.
    pub notify: bool,
}

impl Incident {
    /// Time of the next time-driven transition; none once it is closed, or if nothing is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        if !self.is_open() {
            return None;
        }
        let reminder = self.reminders().map(|(at, _)| at).filter(|at| *at > self.reminded_until).min();
        match self.kind {
            IncidentKind::Incident => reminder,
            IncidentKind::Maintenance if self.has_begun => self.ends_at,
            IncidentKind::Maintenance => {
                let start = Some(self.started_at.min(self.ends_at.unwrap_or(self.started_at)));
                start.into_iter().chain(reminder).min()
            }
        }
    }

    /// Returns true for a window whose start is due by `now` and whose end is not.
    pub fn starts_by(&self, now: Timestamp) -> bool {
        let lasts = self.ends_at.is_some_and(|end| now < end);
        self.kind == IncidentKind::Maintenance && self.is_open() && !self.has_begun && self.started_at <= now && lasts
    }

    /// Applies the transitions due by `now` and returns the change to announce. Of several that were missed
    /// together only the last is announced: the end, else the start, else the nearest reminder.
    pub fn apply_due(&mut self, now: Timestamp) -> Option<IncidentChange> {
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        let due = |at: Timestamp| at > self.reminded_until && at <= now;
        let reminder = self.reminders().filter(|(at, _)| due(*at)).max_by_key(|(at, _)| *at);
        self.reminded_until = self.reminded_until.max(now);
        if self.kind == IncidentKind::Incident {
            return reminder.map(|(_, length)| IncidentChange::OwnerReminder(length));
        }
        if let Some(end) = self.ends_at.filter(|end| *end <= now) {
            self.has_begun = true;
            self.status = IncidentStatus::Completed;
            self.resolved_at = Some(end);
            return Some(IncidentChange::Completed);
        }
        if !self.has_begun && self.started_at <= now {
            self.has_begun = true;
            return Some(IncidentChange::Started);
        }
        reminder.map(|(_, length)| IncidentChange::Reminder(length))
    }

    /// Due times of the reminders, with their lengths in milliseconds.
    fn reminders(&self) -> impl Iterator<Item = (Timestamp, i64)> {
        let last_word = self.updates.last().map_or(self.created_at, |last| last.created_at);
        self.remind.iter().map(move |remind| {
            let length = remind.as_millis();
            match self.kind {
                IncidentKind::Incident => (last_word + length, length),
                IncidentKind::Maintenance => (self.started_at - length, length),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::{at, incident, window};
    use super::*;
    use crate::reminder::ReminderInterval;
    use crate::time::{HOUR, MINUTE};

    fn remind(entries: &[&str]) -> Vec<ReminderInterval> {
        entries.iter().map(|entry| ReminderInterval::parse(entry).unwrap()).collect()
    }

    /// Every change with its time, polled whenever something is due.
    fn course(mut incident: Incident, until: i64) -> Vec<(i64, IncidentChange)> {
        let mut changes = Vec::new();
        while let Some(due) = incident.next_due().filter(|due| *due <= at(until)) {
            changes.extend(incident.apply_due(due).map(|news| (due.since(at(0)), news)));
        }
        changes
    }

    #[test]
    fn a_window_reminds_starts_and_ends() {
        let mut window = window(2 * HOUR, 3 * HOUR);
        window.remind = remind(&["1h", "15m"]);
        let changes = course(window, 9 * HOUR);
        assert_eq!(
            changes,
            [
                (HOUR, IncidentChange::Reminder(HOUR)),
                (2 * HOUR - 15 * MINUTE, IncidentChange::Reminder(15 * MINUTE)),
                (2 * HOUR, IncidentChange::Started),
                (3 * HOUR, IncidentChange::Completed),
            ]
        );
    }

    #[test]
    fn of_missed_reminders_only_the_last_is_sent() {
        let mut window = window(2 * HOUR, 3 * HOUR);
        window.remind = remind(&["90m", "1h"]);
        for (now, news) in [
            (90 * MINUTE, IncidentChange::Reminder(HOUR)),
            (2 * HOUR, IncidentChange::Started),
            (3 * HOUR - 1, IncidentChange::Started),
            (3 * HOUR, IncidentChange::Completed),
            (90 * HOUR, IncidentChange::Completed),
        ] {
            let mut window = window.clone();
            assert_eq!(window.apply_due(at(now)), Some(news), "{now}");
            assert_eq!(window.apply_due(at(now)), None, "once");
            let ends = (news == IncidentChange::Completed).then(|| at(3 * HOUR));
            assert_eq!(window.resolved_at, ends);
        }
        assert_eq!(window.apply_due(at(29 * MINUTE)), None);
    }

    #[test]
    fn a_reminder_due_before_the_creation_of_the_window_is_not_sent() {
        let mut window = window(30 * MINUTE, HOUR);
        window.remind = remind(&["1h"]);
        assert_eq!(window.next_due(), Some(at(30 * MINUTE)));
    }

    #[test]
    fn the_owner_is_reminded_after_a_time_without_update() {
        let mut incident = incident();
        incident.remind = remind(&["1h", "2h"]);
        assert_eq!(
            course(incident.clone(), 99 * HOUR),
            [(HOUR, IncidentChange::OwnerReminder(HOUR)), (2 * HOUR, IncidentChange::OwnerReminder(2 * HOUR))]
        );
        incident.add_update(crate::id::UpdateId::from_u128(9), "On it".to_owned(), at(90 * MINUTE));
        assert_eq!(incident.next_due(), Some(at(150 * MINUTE)));
        incident.status = IncidentStatus::Resolved;
        assert_eq!(incident.next_due(), None);
    }
}
