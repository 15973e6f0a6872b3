//! Validation of incidents and windows as sent in a request to open or edit one.

mod creation;
mod local_time;

use std::collections::BTreeSet;

use chrono::Months;

use super::series::{Series, WindowIds};
use super::{
    Impact, Incident, IncidentChange, IncidentKind, IncidentStatus, MAX_AFFECTED, MAX_WINDOW, MonitorImpact, SeriesId,
    Timestamp,
};
use crate::id::{MonitorId, PageId};
use crate::locale::Locale;
use crate::patch::PatchField;
use crate::recurrence::Frequency;
use crate::reminder::ReminderInterval;
use crate::text;
use crate::time::MINUTE;
use crate::validation::{Rule, ValidationErrors};

/// Maximum length of a title, in characters.
pub const MAX_TITLE: usize = 120;
/// Maximum length of an update, in characters.
pub const MAX_MESSAGE: usize = 4000;
/// Maximum length of a post-mortem, in characters.
pub const MAX_POSTMORTEM: usize = 20_000;
/// Milliseconds by which a time of the past may be ahead of our clock.
pub const CLOCK_TOLERANCE: i64 = 5 * MINUTE;

/// The fields of an incident or window, as sent.
#[derive(Debug, Clone, Default)]
pub struct IncidentEdit {
    /// Incident or maintenance.
    pub kind: PatchField<String>,
    /// The title.
    pub title: PatchField<String>,
    /// Incident: initial status.
    pub status: PatchField<String>,
    /// Incident: impact.
    pub impact: PatchField<String>,
    /// The first update.
    pub message: PatchField<String>,
    /// Maintenance: start.
    pub starts_at: PatchField<String>,
    /// Maintenance: end.
    pub ends_at: PatchField<String>,
    /// Affected monitors, by id.
    pub monitor_ids: PatchField<Vec<String>>,
    /// Affected monitors by id, each optionally with its own impact.
    pub monitors: PatchField<Vec<(String, Option<String>)>>,
    /// Incident: start.
    pub started_at: PatchField<String>,
    /// Incident: end.
    pub resolved_at: PatchField<String>,
    /// True to notify subscribers.
    pub notify: PatchField<bool>,
    /// Reminders.
    pub remind: PatchField<Vec<String>>,
    /// Maintenance: recurrence.
    pub repeat: PatchField<String>,
    /// Time zone of times sent without an offset; for recurring maintenance also the zone whose local time it
    /// keeps.
    pub timezone: PatchField<String>,
    /// The post-mortem.
    pub postmortem: PatchField<String>,
    /// Errors for fields that were sent and can't be edited.
    pub read_only_errors: ValidationErrors,
}

/// Context of a new incident or window.
#[derive(Debug, Clone, Copy)]
pub struct NewIncident<'a> {
    /// The page it is on.
    pub page: PageId,
    /// The page's monitors.
    pub monitors: &'a BTreeSet<MonitorId>,
    /// Language of the standard texts, used where no message was sent.
    pub locale: &'static Locale,
    /// Ids of the incident and of its first update.
    pub ids: WindowIds,
    /// Id of the series, if it becomes one.
    pub series: SeriesId,
    /// Current time.
    pub now: Timestamp,
}

/// A new incident or window, and its series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedIncident {
    /// The incident or window.
    pub incident: Incident,
    /// The series whose first window it is.
    pub series: Option<Series>,
    /// The change to announce.
    pub change: IncidentChange,
    /// True if subscribers are notified now.
    pub notify: bool,
}

/// An edited incident or window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedIncident {
    /// The incident or window.
    pub incident: Incident,
    /// True if the edit stops the series.
    pub stops_series: bool,
    /// The change to announce: an edit, or the completion of a running window by its new end.
    pub change: IncidentChange,
}

impl IncidentEdit {
    /// Validates a new incident or window. Fields of the other kind are ignored, but must be well-formed.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate_new(&self, seat: NewIncident<'_>) -> Result<CreatedIncident, ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let kind = self.kind.defaulted("kind", None, IncidentKind::Incident, &mut faults, |name| {
            text::one_of(name, &IncidentKind::ALL, IncidentKind::name)
        });
        let title = self.title.required("title", None, &mut faults, |title| text::line(title, 1..=MAX_TITLE));
        let message = self.message.optional("message", None, &mut faults, |text| markdown(text, MAX_MESSAGE));
        let affected = self.affected(&[], seat.monitors, &mut faults);
        let notify = self.notify.defaulted("notify", None, true, &mut faults, |notify| Ok(*notify));
        let remind = self.reminders(&[], &mut faults);
        let common = Common { message, affected, remind, notify: notify.unwrap_or(true) };
        let opened = match kind.unwrap_or_default() {
            IncidentKind::Incident => self.new_incident(seat, common, &mut faults),
            IncidentKind::Maintenance => self.new_window(seat, common, &mut faults),
        };
        let (Some(mut opened), Some(title), true) = (opened, title, faults.is_empty()) else {
            return Err(faults);
        };
        if let Some(series) = &mut opened.series {
            series.title.clone_from(&title);
        }
        opened.incident.title = title;
        Ok(opened)
    }

    /// Validates an edit of an incident or window. Fields of the other kind are ignored, but must be
    /// well-formed.
    ///
    /// # Errors
    /// Every field that breaks a rule.
    pub fn validate_edit(
        &self,
        incident: &Incident,
        repeats: Option<Frequency>,
        monitors: &BTreeSet<MonitorId>,
        now: Timestamp,
    ) -> Result<EditedIncident, ValidationErrors> {
        let mut faults = self.read_only_errors.clone();
        let title = self
            .title
            .required("title", Some(incident.title.clone()), &mut faults, |title| text::line(title, 1..=MAX_TITLE));
        let affected = self.affected(&incident.affected, monitors, &mut faults);
        let remind = self.reminders(&incident.remind, &mut faults);
        let postmortem = self
            .postmortem
            .optional("postmortem", incident.postmortem.clone(), &mut faults, |text| markdown(text, MAX_POSTMORTEM));
        let mut after = Incident { affected, remind, postmortem, ..incident.clone() };
        let mut stops_series = false;
        match incident.kind {
            IncidentKind::Incident => {
                let impact =
                    self.impact.required("impact", Some(incident.impact), &mut faults, |name| read_impact(name));
                after.impact = impact.unwrap_or(incident.impact);
                self.check_window_fields(&mut faults);
            }
            IncidentKind::Maintenance => {
                self.check_incident_fields(&mut faults);
                self.check_timezone(&mut faults);
                self.reschedule(&mut after, now, &mut faults);
                stops_series = self.stops_series(repeats, &mut faults);
            }
        }
        let (Some(title), true) = (title, faults.is_empty()) else { return Err(faults) };
        after.title = title;
        if is_visible_change(&after, incident) {
            after.edited_at = Some(now);
        }
        let reminds_otherwise = after.remind != incident.remind || after.started_at != incident.started_at;
        if reminds_otherwise {
            // Reminders that would have been due by now are not sent late.
            after.reminded_until = now;
        }
        let is_over = incident.is_running() && !after.is_open();
        let news = if is_over { IncidentChange::Completed } else { IncidentChange::Changed };
        Ok(EditedIncident { incident: after, stops_series, change: news })
    }

    /// Applies a new start or end to a window.
    fn reschedule(&self, window: &mut Incident, now: Timestamp, faults: &mut ValidationErrors) {
        let before = (window.started_at, window.ends_at);
        let starts_at =
            self.starts_at.required("startsAt", Some(window.started_at), faults, |text| self.parse_time(text));
        let ends_at = self.ends_at.required("endsAt", window.ends_at, faults, |text| self.parse_time(text));
        let (Some(starts_at), Some(ends_at)) = (starts_at, ends_at) else { return };
        if before == (starts_at, Some(ends_at)) {
            return;
        }
        if !window.is_open() {
            let field = if starts_at == before.0 { "endsAt" } else { "startsAt" };
            faults.add(field, format!("can't be changed: it is {}", window.status.name()));
            return;
        }
        if let Err(rule) = check_length(starts_at, ends_at) {
            faults.add("endsAt", rule);
        }
        window.started_at = starts_at;
        window.ends_at = Some(ends_at);
        window.has_begun = window.has_begun && starts_at <= now;
        if ends_at <= now {
            // As if it had been created like that: it is over. The end of a window that had not begun is not
            // announced.
            window.status = IncidentStatus::Completed;
            window.resolved_at = Some(ends_at);
            window.notify &= window.has_begun;
            window.has_begun = true;
        }
    }

    /// Returns true if null was sent to stop the series.
    fn stops_series(&self, repeats: Option<Frequency>, faults: &mut ValidationErrors) -> bool {
        match &self.repeat {
            PatchField::Absent => false,
            PatchField::Null => repeats.is_some(),
            PatchField::Value(name) => {
                if repeats.is_none_or(|every| every.name() != name) {
                    faults.add("repeat", "can only be set to null, which stops the series");
                }
                false
            }
            PatchField::Invalid(rule) => {
                faults.add("repeat", rule.clone());
                false
            }
        }
    }

    fn reminders(&self, before: &[ReminderInterval], faults: &mut ValidationErrors) -> Vec<ReminderInterval> {
        self.remind
            .defaulted("remind", Some(before.to_vec()), Vec::new(), faults, |list| ReminderInterval::parse_all(list))
            .unwrap_or_default()
    }

    /// The affected monitors: both fields together or, if neither was sent, the present ones.
    fn affected(
        &self,
        before: &[MonitorImpact],
        known: &BTreeSet<MonitorId>,
        faults: &mut ValidationErrors,
    ) -> Vec<MonitorImpact> {
        if self.monitor_ids == PatchField::Absent && self.monitors == PatchField::Absent {
            return before.to_vec();
        }
        let one = |id: &str, impact: Option<&String>| {
            let monitor = id.trim().parse().ok().filter(|id| known.contains(id));
            let monitor = monitor.ok_or_else(|| "must be monitors of this page".to_owned())?;
            let impact = impact.map(|name| read_impact(name)).transpose();
            let impact = impact.map_err(|rule| format!("must have valid impacts: each {rule}"))?;
            Ok::<_, Rule>(MonitorImpact { monitor, impact })
        };
        let named = self.monitors.optional("monitors", None, faults, |list| {
            list.iter().map(|(id, impact)| one(id, impact.as_ref())).collect::<Result<Vec<_>, _>>().map(Some)
        });
        let plain = self.monitor_ids.optional("monitorIds", None, faults, |list| {
            list.iter().map(|id| one(id, None)).collect::<Result<Vec<_>, _>>().map(Some)
        });
        let mut all: Vec<MonitorImpact> = Vec::new();
        let mut seen = BTreeSet::new();
        for affected in named.into_iter().chain(plain).flatten() {
            if seen.insert(affected.monitor) {
                all.push(affected);
            }
        }
        if all.len() > MAX_AFFECTED {
            faults.add("monitorIds", format!("must be at most {MAX_AFFECTED} monitors"));
        }
        all
    }
}

/// Returns true if readers see a difference.
fn is_visible_change(after: &Incident, before: &Incident) -> bool {
    let seen = |it: &Incident| (it.impact, it.started_at, it.ends_at, it.status);
    seen(after) != seen(before)
        || after.title != before.title
        || after.affected != before.affected
        || after.postmortem != before.postmortem
}

struct Common {
    message: Option<String>,
    affected: Vec<MonitorImpact>,
    remind: Vec<ReminderInterval>,
    notify: bool,
}

/// Validates text of several lines, stored as sent; none if it is blank. The length counts Unicode characters
/// after trimming; surrounding white space is kept only as far as it fits.
///
/// # Errors
/// The rule that the text breaks.
pub fn markdown(text: &str, most: usize) -> Result<Option<String>, Rule> {
    let trimmed = text.trim();
    if text::is_blank(trimmed) {
        return Ok(None);
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err("must not contain control characters other than line breaks and tabs".to_owned());
    }
    if trimmed.chars().count() > most {
        return Err(format!("must be at most {most} characters"));
    }
    let whole = text.chars().count() <= most;
    Ok(Some(if whole { text } else { trimmed }.to_owned()))
}

/// Parses a time within the last year, or a little ahead of our clock.
///
/// # Errors
/// The rule that the text breaks.
pub fn read_past(text: &str, now: Timestamp) -> Result<Timestamp, Rule> {
    check_past(local_time::read_time(text, None)?, now)
}

fn check_past(at: Timestamp, now: Timestamp) -> Result<Timestamp, Rule> {
    if at > now + CLOCK_TOLERANCE {
        return Err("must be at most five minutes ahead".to_owned());
    }
    let year_ago = now.to_utc().and_then(|now| now.checked_sub_months(Months::new(12)));
    let year_ago = year_ago.map_or(i64::MIN, |ago| ago.timestamp_millis());
    if at.as_millis() < year_ago { Err("must be at most a year back".to_owned()) } else { Ok(at) }
}

fn read_impact(name: &str) -> Result<Impact, Rule> {
    text::one_of(name, &Impact::ALL, Impact::name)
}

fn check_length(starts_at: Timestamp, ends_at: Timestamp) -> Result<(), Rule> {
    match ends_at.since(starts_at) {
        ..=0 => Err("must be after startsAt".to_owned()),
        1..=MAX_WINDOW => Ok(()),
        _ => Err("must be within 7 days of startsAt".to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
