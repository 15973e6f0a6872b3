//! A new incident or window out of the fields that belong to its kind.

use super::{AHEAD, Common, IncidentEdit, Opened, Seat, read_end, read_impact, read_past, read_time};
use crate::incident::series::Series;
use crate::incident::{Impact, Incident, Kind, News, Progress};
use crate::recurrence::{Every, Recurrence};
use crate::refusal::Refusals;
use crate::text;

impl IncidentEdit {
    pub(super) fn incident(&self, seat: Seat<'_>, common: Common, faults: &mut Refusals) -> Option<Opened> {
        let now = seat.now;
        let status = self.status.defaulted("status", None, Progress::Investigating, faults, |name| {
            text::one_of(name, &Progress::OF_NEW, Progress::name)
        });
        let impact = self.impact.defaulted("impact", None, Impact::Partial, faults, |name| read_impact(name));
        let started_at =
            self.started_at.defaulted("startedAt", None, now, faults, |text| read_past(text, now));
        let resolved_at = self.resolved_at.optional("resolvedAt", None, faults, |text| {
            let at = read_time(text)?;
            if at > now + AHEAD {
                return Err("must not lie ahead".to_owned());
            }
            if started_at.is_some_and(|started_at| at < started_at) {
                return Err("must not lie before startedAt".to_owned());
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
        };
        let message = common.message.unwrap_or_else(|| seat.tongue.standard_line(status).to_owned());
        incident.say(seat.names.update, message, resolved_at.unwrap_or(now));
        let news = if resolved_at.is_some() { News::Resolved } else { News::Opened };
        Some(Opened { notify: incident.notify, incident, series: None, news })
    }

    pub(super) fn window(&self, seat: Seat<'_>, common: Common, faults: &mut Refusals) -> Option<Opened> {
        let now = seat.now;
        let starts_at = self.starts_at.required("startsAt", None, faults, |text| read_time(text));
        let ends_at = self.ends_at.required("endsAt", None, faults, |text| read_end(text, starts_at));
        let every = self
            .repeat
            .optional("repeat", None, faults, |name| text::one_of(name, &Every::ALL, Every::name).map(Some));
        let zone = match every {
            Some(_) => self.timezone.defaulted("timezone", None, chrono_tz::UTC, faults, |zone| {
                zone.trim().parse().map_err(|_| "must be an IANA time zone".to_owned())
            }),
            None => Some(chrono_tz::UTC),
        };
        let (starts_at, ends_at, zone) = (starts_at?, ends_at?, zone?);
        // A window that repeats is the first of a series; every other is made as if it were.
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
            }
        }
        Some(Opened { notify: incident.notify, incident, series, news })
    }
}
