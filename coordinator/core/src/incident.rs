//! Incidents and maintenance windows: what is kept of them, their updates, and what becomes of them in time.

pub mod automatic;
pub mod cancelled;
mod course;
pub mod edit;
mod moment;
mod post;
pub mod series;
mod size;

pub use course::{News, Told};
pub use post::UpdatePost;
pub use size::MAX_OPEN_BYTES;

use serde::{Deserialize, Serialize};

use crate::id::{IncidentId, MonitorId, PageId, SeriesId, UpdateId};
use crate::late;
use crate::remind::Remind;
use crate::time::{DAY, Timestamp};
use crate::uptime::Span;

/// The longest maintenance window, in milliseconds.
pub const MAX_WINDOW: i64 = 7 * DAY;
/// Windows of a page that figures are worked out with: the newest of the time in question. Fifty entries that repeat
/// each week for as long as figures are kept (400 days) make 2,900.
pub const MAX_COUNTED: usize = 10_000;
/// Updates of one incident: at most so many.
pub const MAX_UPDATES: usize = 200;
/// Open incidents and unfinished windows that a page may have before its owner can open no further one.
pub const MAX_OPEN: usize = 200;
/// The most that a page ever has of them, with those that repeating entries plan by themselves: none of these plans more.
pub const MAX_UNFINISHED: usize = MAX_OPEN + 3 * series::MAX_REPEATING;
/// Affected monitors of one incident: at most so many.
pub const MAX_AFFECTED: usize = 1000;
/// Milliseconds after history was entered in which an edit belongs to entering it: an import adds post-mortems by edits.
const ENTERING: i64 = DAY;

/// Which of the two it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Something is wrong, or was.
    #[default]
    Incident,
    /// Something is planned.
    Maintenance,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Incident, Self::Maintenance];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incident => "incident",
            Self::Maintenance => "maintenance",
        }
    }
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Progress {
    /// An incident that is looked into.
    Investigating,
    /// Its cause is known.
    Identified,
    /// A remedy is watched.
    Monitoring,
    /// It is over.
    Resolved,
    /// Maintenance that is planned, or under way.
    Scheduled,
    /// Maintenance that is over.
    Completed,
}

impl Progress {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Investigating,
        Self::Identified,
        Self::Monitoring,
        Self::Resolved,
        Self::Scheduled,
        Self::Completed,
    ];
    /// What an incident's update may say.
    pub const OF_INCIDENT: [Self; 4] =
        [Self::Investigating, Self::Identified, Self::Monitoring, Self::Resolved];
    /// What a new incident may be.
    pub const OF_NEW: [Self; 3] = [Self::Investigating, Self::Identified, Self::Monitoring];
    /// What an update of maintenance may say.
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

    /// Whether nothing more comes of it.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Resolved | Self::Completed)
    }
}

/// How much is affected, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Impact {
    /// Nothing: the headline is left alone.
    None,
    /// It is slower or poorer than it should be.
    Degraded,
    /// Some of it does not work.
    Partial,
    /// Nothing works.
    Major,
}

impl Impact {
    /// Each of them.
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

/// A monitor that is affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Affected {
    /// Which.
    pub monitor: MonitorId,
    /// How much, where that was said of it alone.
    pub impact: Option<Impact>,
}

/// A word on an incident or a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Its id.
    pub id: UpdateId,
    /// Status when it was posted, by name: imported history may carry another service's words.
    pub status: String,
    /// Markdown, as it was sent.
    pub body: String,
    /// When.
    pub created_at: Timestamp,
}

/// An incident, or a maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Its id.
    pub id: IncidentId,
    /// The page it is on.
    pub page: PageId,
    /// Which of the two it is.
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: Progress,
    /// How much is affected.
    pub impact: Impact,
    /// When it began; of a window, when it is planned to.
    pub started_at: Timestamp,
    /// Of a window: when it is planned to end.
    pub ends_at: Option<Timestamp>,
    /// When it was over.
    pub resolved_at: Option<Timestamp>,
    /// Opened by a monitor going down, and not yet taken over by a person.
    pub automatic: bool,
    /// Whether subscribers are told; of an incident, of its opening.
    pub notify: bool,
    /// Reminders: before a window's start, to subscribers; after an incident's last update, to the owner.
    pub remind: Vec<Remind>,
    /// The repeating entry that the window was planned from.
    pub series: Option<SeriesId>,
    /// Post-mortem, Markdown as it was sent.
    pub postmortem: Option<String>,
    /// Affected monitors. A window that names none covers the page.
    pub affected: Vec<Affected>,
    /// Updates, oldest first.
    pub updates: Vec<Update>,
    /// Of a window: its start has come and was told of.
    pub begun: bool,
    /// Reminders that fell due up to then are dealt with.
    pub reminded_until: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a person last changed what its readers see, other than by an update. Older records end here.
    #[serde(deserialize_with = "late::or_default")]
    pub edited_at: Option<Timestamp>,
    /// Of a window that was cancelled before it began: when it was planned to start. It began and ended at once instead,
    /// so that its times are in order. Older records end here, so that nothing may follow this in a record.
    #[serde(deserialize_with = "late::or_default")]
    pub planned_at: Option<Timestamp>,
}

impl Incident {
    /// True for history that was entered afterwards: it was over before it was made. To its readers it has the times of
    /// the event, so that an import is no news.
    pub fn is_entered_afterwards(&self) -> bool {
        self.resolved_at.is_some_and(|over| over < self.created_at)
    }

    /// The moment it was made, as its readers are told: history when it began.
    pub fn made_at(&self) -> Timestamp {
        if self.is_entered_afterwards() { self.started_at } else { self.created_at }
    }

    /// The last edit that is news to its readers.
    pub fn last_edit(&self) -> Option<Timestamp> {
        let is_news = |at: &Timestamp| !self.is_entered_afterwards() || at.since(self.created_at) >= ENTERING;
        self.edited_at.filter(is_news)
    }

    /// When it last became another one to its readers: by an update, its end, or an edit.
    pub fn last_word(&self) -> Timestamp {
        let said = self.updates.last().map(|update| update.created_at);
        [said, self.resolved_at, self.last_edit()].into_iter().flatten().fold(self.made_at(), Timestamp::max)
    }

    /// Whether it is still going on, or still to come.
    pub const fn is_open(&self) -> bool {
        !self.status.is_closed()
    }

    /// Tells a window that was over before it began from all else.
    pub fn is_cancelled(&self) -> bool {
        let is_early = self.resolved_at.is_some_and(|at| at < self.started_at);
        self.kind == Kind::Maintenance && (self.planned_at.is_some() || is_early)
    }

    /// When it began; of a window when it is, or was, planned to.
    pub fn planned_start(&self) -> Timestamp {
        self.planned_at.unwrap_or(self.started_at)
    }

    /// The time that it has taken so far; none before it begins.
    pub fn lasted(&self, now: Timestamp) -> Option<Span> {
        let planned = if self.is_open() { None } else { self.ends_at };
        let end = self.resolved_at.or(planned).unwrap_or(now).min(now);
        (self.started_at <= now).then(|| Span { from: self.started_at, to: end.max(self.started_at) })
    }

    /// Whether it is a window that is under way, as far as that was noted.
    pub const fn is_running(&self) -> bool {
        self.begun && self.is_open()
    }

    /// Adds an update, not dated before the last one.
    fn say(&mut self, id: UpdateId, body: String, now: Timestamp) {
        let created_at = self.updates.last().map_or(now, |last| last.created_at.max(now));
        self.updates.push(Update { id, status: self.status.name().to_owned(), body, created_at });
    }
}

#[cfg(test)]
mod tests {
    use super::edit::tests::{at, incident, window};
    use super::*;
    use crate::time::HOUR;

    #[test]
    fn history_has_the_times_of_the_event_and_an_edit_counts_once_it_is_no_part_of_entering_it() {
        let made = at(0);
        let over = |hours: i64, edited: Option<i64>| Incident {
            started_at: made + (hours - 1) * HOUR,
            resolved_at: Some(made + hours * HOUR),
            status: Progress::Resolved,
            created_at: made,
            updates: Vec::new(),
            edited_at: edited.map(|hours| made + hours * HOUR),
            ..incident()
        };
        // When it was over and edited, in hours after it was made; when it was made and last changed, as readers are told.
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
            let told = (incident.made_at(), incident.last_word());
            assert_eq!(told, (made + made_at * HOUR, made + last_word * HOUR), "{hours} {edited:?}");
        }
        // A late report is news when it is made, and so is a window that is planned.
        let late = Incident { started_at: made - 9 * HOUR, created_at: made, ..incident() };
        assert_eq!((late.made_at(), late.is_entered_afterwards()), (made, false));
        assert!(!window(60, 120).is_entered_afterwards());
    }
}
