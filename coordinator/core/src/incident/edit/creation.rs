//! New incidents and windows, built from the fields of their kind.

use super::local_time::read_zone;
use super::{
    CLOCK_TOLERANCE, Common, CreatedIncident, IncidentEdit, NewIncident, check_length, check_past, read_impact,
};
use crate::incident::series::Series;
use crate::incident::{Impact, Incident, IncidentChange, IncidentKind, IncidentStatus};
use crate::recurrence::{Frequency, Recurrence};
use crate::text;
use crate::validation::{Rule, ValidationErrors};

impl IncidentEdit {
    pub(super) fn new_incident(
        &self,
        seat: NewIncident<'_>,
        common: Common,
        faults: &mut ValidationErrors,
    ) -> Option<CreatedIncident> {
        self.check_window_fields(faults);
        let now = seat.now;
        let status = self.status.defaulted("status", None, IncidentStatus::Investigating, faults, |name| {
            text::one_of(name, &IncidentStatus::OF_NEW, IncidentStatus::name)
        });
        let impact = self.impact.defaulted("impact", None, Impact::Partial, faults, |name| read_impact(name));
        let started_at = self
            .started_at
            .defaulted("startedAt", None, now, faults, |text| self.parse_time(text).and_then(|at| check_past(at, now)));
        let resolved_at = self.resolved_at.optional("resolvedAt", None, faults, |text| {
            let at = self.parse_time(text)?;
            if at > now + CLOCK_TOLERANCE {
                return Err("must not be in the future".to_owned());
            }
            if started_at.is_some_and(|started_at| at < started_at) {
                return Err("must not be before startedAt".to_owned());
            }
            Ok(Some(at))
        });
        let status = if resolved_at.is_some() { IncidentStatus::Resolved } else { status? };
        let mut incident = Incident {
            id: seat.ids.incident,
            page: seat.page,
            kind: IncidentKind::Incident,
            title: String::new(),
            status,
            impact: impact?,
            started_at: started_at?,
            ends_at: None,
            resolved_at,
            automatic: false,
            notify: common.notify && resolved_at.is_none(),
            remind: common.remind,
            series: None,
            postmortem: None,
            affected: common.affected,
            updates: Vec::new(),
            has_begun: true,
            reminded_until: now,
            created_at: now,
            edited_at: None,
            planned_at: None,
        };
        let message = common.message.unwrap_or_else(|| seat.locale.default_message(status).to_owned());
        incident.add_update(seat.ids.update, message, resolved_at.unwrap_or(now));
        let news = if resolved_at.is_some() { IncidentChange::Resolved } else { IncidentChange::Opened };
        Some(CreatedIncident { notify: incident.notify, incident, series: None, change: news })
    }

    pub(super) fn new_window(
        &self,
        seat: NewIncident<'_>,
        common: Common,
        faults: &mut ValidationErrors,
    ) -> Option<CreatedIncident> {
        self.check_incident_fields(faults);
        let now = seat.now;
        let starts_at = self.starts_at.required("startsAt", None, faults, |text| self.parse_time(text));
        let ends_at = self.ends_at.required("endsAt", None, faults, |text| {
            let ends_at = self.parse_time(text)?;
            starts_at.map_or(Ok(()), |starts_at| check_length(starts_at, ends_at)).map(|()| ends_at)
        });
        let every = self.repeat.optional("repeat", None, faults, |name| read_every(name).map(Some));
        let zone = self.timezone.defaulted("timezone", None, chrono_tz::UTC, faults, |zone| read_zone(zone));
        let (starts_at, ends_at, zone) = (starts_at?, ends_at?, zone?);
        let is_unsaid = common.message.is_none();
        // A recurring window is the first of a series; a single one is built the same way.
        let series = Series {
            id: seat.series,
            page: seat.page,
            recurrence: Recurrence { frequency: every.unwrap_or(Frequency::Weekly), zone, first: starts_at },
            length: ends_at.since(starts_at),
            next_index: 1,
            stopped_at: None,
            title: String::new(),
            message: common
                .message
                .unwrap_or_else(|| seat.locale.default_message(IncidentStatus::Scheduled).to_owned()),
            affected: common.affected,
            remind: common.remind,
            notify: common.notify,
        };
        let mut incident = series.window(starts_at, now, seat.ids);
        let series = every.map(|_| series);
        incident.series = series.as_ref().map(|series| series.id);
        let mut news = IncidentChange::Scheduled;
        if ends_at <= now {
            incident.status = IncidentStatus::Completed;
            incident.resolved_at = Some(ends_at);
            incident.has_begun = true;
            incident.notify = false;
            news = IncidentChange::Completed;
            for update in &mut incident.updates {
                incident.status.name().clone_into(&mut update.status);
                update.created_at = ends_at;
                if is_unsaid {
                    seat.locale.default_message(IncidentStatus::Completed).clone_into(&mut update.body);
                }
            }
        }
        Some(CreatedIncident { notify: incident.notify, incident, series, change: news })
    }

    /// Checks the syntax of the fields that belong to windows alone: a malformed time is always a mistake.
    /// Null is accepted: an incident is returned with null there, and may be sent back as it was read.
    pub(super) fn check_window_fields(&self, faults: &mut ValidationErrors) {
        self.starts_at.optional("startsAt", None, faults, |text| self.parse_time(text).map(Some));
        self.ends_at.optional("endsAt", None, faults, |text| self.parse_time(text).map(Some));
        self.repeat.optional("repeat", None, faults, |name| read_every(name).map(Some));
        self.check_timezone(faults);
    }

    /// Checks the syntax of the fields that belong to incidents alone. A window has statuses of its own.
    pub(super) fn check_incident_fields(&self, faults: &mut ValidationErrors) {
        self.status.optional("status", None, faults, |name| {
            text::one_of(name, &IncidentStatus::ALL, IncidentStatus::name).map(Some)
        });
        self.impact.optional("impact", None, faults, |name| read_impact(name).map(Some));
        self.started_at.optional("startedAt", None, faults, |text| self.parse_time(text).map(Some));
        self.resolved_at.optional("resolvedAt", None, faults, |text| self.parse_time(text).map(Some));
    }
}

fn read_every(name: &str) -> Result<Frequency, Rule> {
    text::one_of(name, &Frequency::ALL, Frequency::name)
}
