//! Incidents and maintenance windows: their records, their updates, and their transitions over time.

mod as_of;
pub mod automatic;
pub mod cancelled;
pub mod edit;
pub mod series;
mod size;
mod template;
mod transitions;
mod update_post;

pub use size::MAX_OPEN_BYTES;
pub use template::UpdateTemplate;
pub use transitions::{IncidentChange, IncidentEvent};
pub use update_post::UpdatePost;

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{IncidentId, MonitorId, PageId, SeriesId, UpdateId};
use crate::reminder::ReminderInterval;
use crate::time::{DAY, Timestamp};
use crate::uptime::TimeSpan;

/// The longest maintenance window, in milliseconds.
pub const MAX_WINDOW: i64 = 7 * DAY;
/// Maximum number of a page's maintenance windows that enter into figures: the newest of the time in
/// question. Fifty weekly series over the retention of figures (400 days) make 2,900.
pub const MAX_COUNTED_WINDOWS: usize = 10_000;
/// Maximum number of updates of one incident.
pub const MAX_UPDATES: usize = 200;
/// Open incidents and unfinished windows of a page above which its owner can't open another.
pub const MAX_OPEN_INCIDENTS: usize = 200;
/// Upper bound on them including the windows that series plan automatically: a series plans no more beyond
/// it.
pub const MAX_UNFINISHED: usize = MAX_OPEN_INCIDENTS + 3 * series::MAX_ACTIVE_SERIES;
/// Maximum number of affected monitors of one incident.
pub const MAX_AFFECTED: usize = 1000;
/// Milliseconds after the import of a past incident in which an edit counts as part of the import:
/// post-mortems are added by edits.
const IMPORT_PERIOD: i64 = DAY;

/// Incident or maintenance window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncidentKind {
    /// An unplanned problem, now or in the past.
    #[default]
    Incident,
    /// A planned maintenance window.
    Maintenance,
}

impl IncidentKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Incident, Self::Maintenance];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incident => "incident",
            Self::Maintenance => "maintenance",
        }
    }
}

/// The status of an incident or window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncidentStatus {
    /// The incident is being investigated.
    Investigating,
    /// The cause is known.
    Identified,
    /// A fix is in place and being monitored.
    Monitoring,
    /// The incident is over.
    Resolved,
    /// The maintenance is planned or in progress.
    Scheduled,
    /// The maintenance is over.
    Completed,
}

impl IncidentStatus {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::Investigating, Self::Identified, Self::Monitoring, Self::Resolved, Self::Scheduled, Self::Completed];
    /// Statuses that an incident's update may set.
    pub const OF_INCIDENT: [Self; 4] = [Self::Investigating, Self::Identified, Self::Monitoring, Self::Resolved];
    /// Initial statuses of an incident.
    pub const OF_NEW: [Self; 3] = [Self::Investigating, Self::Identified, Self::Monitoring];
    /// Statuses that an update of a maintenance window may set.
    pub const OF_MAINTENANCE: [Self; 1] = [Self::Completed];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Investigating => "investigating",
            Self::Identified => "identified",
            Self::Monitoring => "monitoring",
            Self::Resolved => "resolved",
            Self::Scheduled => "scheduled",
            Self::Completed => "completed",
        }
    }

    /// Returns true for a final status.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Resolved | Self::Completed)
    }
}

/// Impact, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Impact {
    /// No impact: the headline is unaffected.
    None,
    /// Slower or worse than usual.
    Degraded,
    /// Some of the service is down.
    Partial,
    /// All of the service is down.
    Major,
}

impl Impact {
    /// All impacts.
    pub const ALL: [Self; 4] = [Self::None, Self::Degraded, Self::Partial, Self::Major];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Degraded => "degraded",
            Self::Partial => "partial",
            Self::Major => "major",
        }
    }
}

/// An affected monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MonitorImpact {
    /// The monitor.
    pub monitor: MonitorId,
    /// The monitor's own impact, if it differs from the incident's.
    pub impact: Option<Impact>,
}

/// An update of an incident or window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentUpdate {
    /// Its id.
    pub id: UpdateId,
    /// Status when it was posted, by name: imported history may carry another service's names.
    pub status: String,
    /// Markdown, as sent.
    pub body: String,
    /// Time of posting.
    pub created_at: Timestamp,
}

/// An incident or a maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Its id.
    pub id: IncidentId,
    /// The page it is on.
    pub page: PageId,
    /// Incident or maintenance.
    pub kind: IncidentKind,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: IncidentStatus,
    /// Its impact.
    pub impact: Impact,
    /// Start; for a window, the planned start.
    pub started_at: Timestamp,
    /// Planned end of a window.
    pub ends_at: Option<Timestamp>,
    /// Actual end.
    pub resolved_at: Option<Timestamp>,
    /// True if it was opened by an outage and not yet taken over by a person.
    pub automatic: bool,
    /// True if subscribers are notified; for an incident, of its opening.
    pub notify: bool,
    /// Reminders: to subscribers before a window's start; to the owner after an incident's last update.
    pub remind: Vec<ReminderInterval>,
    /// The series that the window belongs to.
    pub series: Option<SeriesId>,
    /// Post-mortem in Markdown, as sent.
    pub postmortem: Option<String>,
    /// Affected monitors. A window without monitors covers the whole page.
    pub affected: Vec<MonitorImpact>,
    /// Updates, oldest first.
    pub updates: Vec<IncidentUpdate>,
    /// For a window: true once its start was recorded and announced.
    pub has_begun: bool,
    /// Reminders due by then have been handled.
    pub reminded_until: Timestamp,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last edit by a person that changed what readers see, updates aside. Older records end
    /// here.
    #[serde(deserialize_with = "compat::or_default")]
    pub edited_at: Option<Timestamp>,
    /// Original planned start of a window that was cancelled before it began. Such a window starts and ends
    /// at once instead, so that its times are in order. Older records end here, so no field may follow.
    #[serde(deserialize_with = "compat::or_default")]
    pub planned_at: Option<Timestamp>,
}

impl Incident {
    /// Returns true for an incident imported after it was over. Readers see the times of the event, so that
    /// an import is not news.
    pub fn is_imported(&self) -> bool {
        self.resolved_at.is_some_and(|over| over < self.created_at)
    }

    /// Creation time as shown to readers: the start, for an imported incident.
    pub fn published_at(&self) -> Timestamp {
        if self.is_imported() { self.started_at } else { self.created_at }
    }

    /// The last edit that is news to readers.
    pub fn last_edit(&self) -> Option<Timestamp> {
        let is_news = |at: &Timestamp| !self.is_imported() || at.since(self.created_at) >= IMPORT_PERIOD;
        self.edited_at.filter(is_news)
    }

    /// Time of the last change for readers: an update, the end, or an edit.
    pub fn last_change(&self) -> Timestamp {
        let last_update = self.updates.last().map(|update| update.created_at);
        [last_update, self.resolved_at, self.last_edit()]
            .into_iter()
            .flatten()
            .fold(self.published_at(), Timestamp::max)
    }

    /// Returns true while it is in progress or planned.
    pub const fn is_open(&self) -> bool {
        !self.status.is_closed()
    }

    /// Returns true for a window that ended before it began.
    pub fn is_cancelled(&self) -> bool {
        let is_early = self.resolved_at.is_some_and(|at| at < self.started_at);
        self.kind == IncidentKind::Maintenance && (self.planned_at.is_some() || is_early)
    }

    /// Start; for a window, the planned start.
    pub fn planned_start(&self) -> Timestamp {
        self.planned_at.unwrap_or(self.started_at)
    }

    /// Duration so far; none before it begins.
    pub fn duration_so_far(&self, now: Timestamp) -> Option<TimeSpan> {
        let planned = if self.is_open() { None } else { self.ends_at };
        let end = self.resolved_at.or(planned).unwrap_or(now).min(now);
        (self.started_at <= now).then(|| TimeSpan { from: self.started_at, to: end.max(self.started_at) })
    }

    /// Returns true for a window in progress, as far as its start has been recorded.
    pub const fn is_running(&self) -> bool {
        self.has_begun && self.is_open()
    }

    /// Adds an update, dated no earlier than the last one.
    fn add_update(&mut self, id: UpdateId, body: String, now: Timestamp) {
        let created_at = self.updates.last().map_or(now, |last| last.created_at.max(now));
        self.updates.push(IncidentUpdate { id, status: self.status.name().to_owned(), body, created_at });
    }
}

#[cfg(test)]
mod tests {
    use super::edit::tests::{at, incident, window};
    use super::*;
    use crate::time::HOUR;

    #[test]
    fn imported_incidents_have_the_times_of_the_event_and_later_edits_count() {
        let made = at(0);
        let over = |hours: i64, edited: Option<i64>| Incident {
            started_at: made + (hours - 1) * HOUR,
            resolved_at: Some(made + hours * HOUR),
            status: IncidentStatus::Resolved,
            created_at: made,
            updates: Vec::new(),
            edited_at: edited.map(|hours| made + hours * HOUR),
            ..incident()
        };
        // End and last edit, in hours after creation; then creation and last change as readers see them.
        for (hours, edited, made_at, last_word) in [
            (-48, None, -49, -48),
            (-48, Some(0), -49, -48),
            (-48, Some(23), -49, -48),
            (-48, Some(24), -49, 24),
            (5, None, 0, 5),
            (5, Some(6), 0, 6),
            (0, Some(1), 0, 1),
        ] {
            let incident = over(hours, edited);
            let dates = (incident.published_at(), incident.last_change());
            assert_eq!(dates, (made + made_at * HOUR, made + last_word * HOUR), "{hours} {edited:?}");
        }
        // A late report is news when it is created, and so is a planned window.
        let late = Incident { started_at: made - 9 * HOUR, created_at: made, ..incident() };
        assert_eq!((late.published_at(), late.is_imported()), (made, false));
        assert!(!window(60, 120).is_imported());
    }
}
