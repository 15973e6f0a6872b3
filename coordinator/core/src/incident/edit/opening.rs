//! New incidents and windows, built from the fields of their kind.

use super::zoned::read_zone;
use super::{AHEAD, Common, IncidentEdit, Opened, Seat, check_length, of_the_past, read_impact};
use crate::incident::series::Series;
use crate::incident::{Impact, Incident, Kind, News, Progress};
use crate::recurrence::{Every, Recurrence};
use crate::refusal::{Refusals, Rule};
use crate::text;

impl IncidentEdit {
    pub(super) fn incident(&self, seat: Seat<'_>, common: Common, faults: &mut Refusals) -> Option<Opened> {
        self.read_of_window(faults);
        let now = seat.now;
        let status = self.status.defaulted("status", None, Progress::Investigating, faults, |name| {
            text::one_of(name, &Progress::OF_NEW, Progress::name)
        });
        let impact = self.impact.defaulted("impact", None, Impact::Partial, faults, |name| read_impact(name));
        let started_at = self.started_at.defaulted("startedAt", None, now, faults, |text| {
            self.time(text).and_then(|at| of_the_past(at, now))
        });
        let resolved_at = self.resolved_at.optional("resolvedAt", None, faults, |text| {
            let at = self.time(text)?;
            if at > now + AHEAD {
                return Err("must not be in the future".to_owned());
            }
            if started_at.is_some_and(|started_at| at < started_at) {
                return Err("must not be before startedAt".to_owned());
            }
            Ok(Some(at))
        });
        let status = if resolved_at.is_some() { Progress::Resolved } else { status? };
        let mut incident = Incident {
            id: seat.names.incident,
            page: seat.page,
            kind: Kind::Incident,
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
            begun: true,
            reminded_until: now,
            created_at: now,
            edited_at: None,
            planned_at: None,
        };
        let message = common.message.unwrap_or_else(|| seat.tongue.standard_line(status).to_owned());
        incident.say(seat.names.update, message, resolved_at.unwrap_or(now));
        let news = if resolved_at.is_some() { News::Resolved } else { News::Opened };
        Some(Opened { notify: incident.notify, incident, series: None, news })
    }

    pub(super) fn window(&self, seat: Seat<'_>, common: Common, faults: &mut Refusals) -> Option<Opened> {
        self.read_of_incident(faults);
        let now = seat.now;
        let starts_at = self.starts_at.required("startsAt", None, faults, |text| self.time(text));
        let ends_at = self.ends_at.required("endsAt", None, faults, |text| {
            let ends_at = self.time(text)?;
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
            recurrence: Recurrence { every: every.unwrap_or(Every::Weekly), zone, first: starts_at },
            length: ends_at.since(starts_at),
            next: 1,
            stopped_at: None,
            title: String::new(),
            message: common
                .message
                .unwrap_or_else(|| seat.tongue.standard_line(Progress::Scheduled).to_owned()),
            affected: common.affected,
            remind: common.remind,
            notify: common.notify,
        };
        let mut incident = series.window(starts_at, now, seat.names);
        let series = every.map(|_| series);
        incident.series = series.as_ref().map(|series| series.id);
        let mut news = News::Scheduled;
        if ends_at <= now {
            incident.status = Progress::Completed;
            incident.resolved_at = Some(ends_at);
            incident.begun = true;
            incident.notify = false;
            news = News::Completed;
            for update in &mut incident.updates {
                incident.status.name().clone_into(&mut update.status);
                update.created_at = ends_at;
                if is_unsaid {
                    seat.tongue.standard_line(Progress::Completed).clone_into(&mut update.body);
                }
            }
        }
        Some(Opened { notify: incident.notify, incident, series, news })
    }

    /// Checks the syntax of the fields that belong to windows alone: a malformed time is always a mistake.
    /// Null is accepted: an incident is returned with null there, and may be sent back as it was read.
    pub(super) fn read_of_window(&self, faults: &mut Refusals) {
        self.starts_at.optional("startsAt", None, faults, |text| self.time(text).map(Some));
        self.ends_at.optional("endsAt", None, faults, |text| self.time(text).map(Some));
        self.repeat.optional("repeat", None, faults, |name| read_every(name).map(Some));
        self.read_of_zone(faults);
    }

    /// Checks the syntax of the fields that belong to incidents alone. A window has statuses of its own.
    pub(super) fn read_of_incident(&self, faults: &mut Refusals) {
        self.status.optional("status", None, faults, |name| {
            text::one_of(name, &Progress::ALL, Progress::name).map(Some)
        });
        self.impact.optional("impact", None, faults, |name| read_impact(name).map(Some));
        self.started_at.optional("startedAt", None, faults, |text| self.time(text).map(Some));
        self.resolved_at.optional("resolvedAt", None, faults, |text| self.time(text).map(Some));
    }
}

fn read_every(name: &str) -> Result<Every, Rule> {
    text::one_of(name, &Every::ALL, Every::name)
}
