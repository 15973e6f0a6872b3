//! Time-driven transitions of incidents and windows: reminders, a window's start and its end.

use serde::{Deserialize, Serialize};

use super::{Incident, Kind, Progress};
use crate::id::{IncidentId, UpdateId};
use crate::time::Timestamp;

/// A change of an incident or window, as announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum News {
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
pub struct Told {
    /// The incident.
    pub incident: IncidentId,
    /// The change.
    pub news: News,
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
            Kind::Incident => reminder,
            Kind::Maintenance if self.begun => self.ends_at,
            Kind::Maintenance => {
                let start = Some(self.started_at.min(self.ends_at.unwrap_or(self.started_at)));
                start.into_iter().chain(reminder).min()
            }
        }
    }

    /// Returns true for a window whose start is due by `now` and whose end is not.
    pub fn begins_by(&self, now: Timestamp) -> bool {
        let lasts = self.ends_at.is_some_and(|end| now < end);
        self.kind == Kind::Maintenance && self.is_open() && !self.begun && self.started_at <= now && lasts
    }

    /// Applies the transitions due by `now` and returns the change to announce. Of several that were missed
    /// together only the last is announced: the end, else the start, else the nearest reminder.
    pub fn pass(&mut self, now: Timestamp) -> Option<News> {
        if self.next_due().is_none_or(|due| due > now) {
            return None;
        }
        let due = |at: Timestamp| at > self.reminded_until && at <= now;
        let reminder = self.reminders().filter(|(at, _)| due(*at)).max_by_key(|(at, _)| *at);
        self.reminded_until = self.reminded_until.max(now);
        if self.kind == Kind::Incident {
            return reminder.map(|(_, length)| News::OwnerReminder(length));
        }
        if let Some(end) = self.ends_at.filter(|end| *end <= now) {
            self.begun = true;
            self.status = Progress::Completed;
            self.resolved_at = Some(end);
            return Some(News::Completed);
        }
        if !self.begun && self.started_at <= now {
            self.begun = true;
            return Some(News::Started);
        }
        reminder.map(|(_, length)| News::Reminder(length))
    }

    /// Due times of the reminders, with their lengths in milliseconds.
    fn reminders(&self) -> impl Iterator<Item = (Timestamp, i64)> {
        let last_word = self.updates.last().map_or(self.created_at, |last| last.created_at);
        self.remind.iter().map(move |remind| {
            let length = remind.as_millis();
            match self.kind {
                Kind::Incident => (last_word + length, length),
                Kind::Maintenance => (self.started_at - length, length),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::{at, incident, window};
    use super::*;
    use crate::remind::Remind;
    use crate::time::{HOUR, MINUTE};

    fn remind(entries: &[&str]) -> Vec<Remind> {
        entries.iter().map(|entry| Remind::read(entry).unwrap()).collect()
    }

    /// Every change with its time, polled whenever something is due.
    fn course(mut incident: Incident, until: i64) -> Vec<(i64, News)> {
        let mut told = Vec::new();
        while let Some(due) = incident.next_due().filter(|due| *due <= at(until)) {
            told.extend(incident.pass(due).map(|news| (due.since(at(0)), news)));
        }
        told
    }

    #[test]
    fn a_window_reminds_starts_and_ends() {
        let mut window = window(2 * HOUR, 3 * HOUR);
        window.remind = remind(&["1h", "15m"]);
        let told = course(window, 9 * HOUR);
        assert_eq!(
            told,
            [
                (HOUR, News::Reminder(HOUR)),
                (2 * HOUR - 15 * MINUTE, News::Reminder(15 * MINUTE)),
                (2 * HOUR, News::Started),
                (3 * HOUR, News::Completed),
            ]
        );
    }

    #[test]
    fn of_what_was_missed_only_the_last_is_told() {
        let mut window = window(2 * HOUR, 3 * HOUR);
        window.remind = remind(&["90m", "1h"]);
        for (now, news) in [
            (90 * MINUTE, News::Reminder(HOUR)),
            (2 * HOUR, News::Started),
            (3 * HOUR - 1, News::Started),
            (3 * HOUR, News::Completed),
            (90 * HOUR, News::Completed),
        ] {
            let mut window = window.clone();
            assert_eq!(window.pass(at(now)), Some(news), "{now}");
            assert_eq!(window.pass(at(now)), None, "once");
            let ends = (news == News::Completed).then(|| at(3 * HOUR));
            assert_eq!(window.resolved_at, ends);
        }
        assert_eq!(window.pass(at(29 * MINUTE)), None);
    }

    #[test]
    fn a_reminder_that_was_past_when_the_window_was_made_is_not_sent() {
        let mut window = window(30 * MINUTE, HOUR);
        window.remind = remind(&["1h"]);
        assert_eq!(window.next_due(), Some(at(30 * MINUTE)));
    }

    #[test]
    fn the_owner_is_reminded_when_no_update_came_for_so_long() {
        let mut incident = incident();
        incident.remind = remind(&["1h", "2h"]);
        assert_eq!(
            course(incident.clone(), 99 * HOUR),
            [(HOUR, News::OwnerReminder(HOUR)), (2 * HOUR, News::OwnerReminder(2 * HOUR))]
        );
        incident.say(crate::id::UpdateId::from_u128(9), "On it".to_owned(), at(90 * MINUTE));
        assert_eq!(incident.next_due(), Some(at(150 * MINUTE)));
        incident.status = Progress::Resolved;
        assert_eq!(incident.next_due(), None);
    }
}
