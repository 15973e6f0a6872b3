//! An incident as it was when a change was announced, even if more has happened since.

use super::{Incident, IncidentChange, IncidentEvent, IncidentKind, IncidentStatus};
use crate::time::Timestamp;

impl Incident {
    /// Returns the incident as of the change, announced at `at`: without later updates, and open if it was
    /// open then.
    #[must_use]
    pub fn as_of_event(&self, event: &IncidentEvent, at: Timestamp) -> Self {
        let mut then = self.clone();
        match event.update.and_then(|id| self.updates.iter().position(|update| update.id == id)) {
            Some(last) => then.updates.truncate(last.saturating_add(1)),
            None => then.updates.retain(|update| update.created_at <= at),
        }
        let last_status = then.updates.last().map(|update| update.status.as_str());
        let last_status =
            last_status.and_then(|name| IncidentStatus::ALL.into_iter().find(|status| status.name() == name));
        then.status = match (event.change, self.kind) {
            (IncidentChange::Resolved, _) => IncidentStatus::Resolved,
            (IncidentChange::Completed, _) => IncidentStatus::Completed,
            (_, IncidentKind::Maintenance) => IncidentStatus::Scheduled,
            (_, IncidentKind::Incident) => last_status.unwrap_or(self.status),
        };
        if !then.status.is_closed() {
            then.resolved_at = None;
            then.postmortem = None;
            then.started_at = then.planned_start();
            then.planned_at = None;
        }
        then.has_begun = match event.change {
            IncidentChange::Started | IncidentChange::Completed => true,
            IncidentChange::Scheduled | IncidentChange::Reminder(_) => false,
            _ => self.has_begun,
        };
        then
    }
}

#[cfg(test)]
mod tests {
    use super::super::IncidentUpdate;
    use super::super::edit::tests::{at, incident, window};
    use super::*;
    use crate::id::UpdateId;

    fn event(incident: &Incident, news: IncidentChange, update: Option<u128>) -> IncidentEvent {
        IncidentEvent { incident: incident.id, change: news, update: update.map(UpdateId::from_u128), notify: true }
    }

    fn update(id: u128, status: IncidentStatus, minute: i64) -> IncidentUpdate {
        IncidentUpdate {
            id: UpdateId::from_u128(id),
            status: status.name().to_owned(),
            body: String::new(),
            created_at: at(minute),
        }
    }

    #[test]
    fn each_change_is_rendered_as_of_its_time() {
        let updates = vec![
            update(1, IncidentStatus::Investigating, 0),
            update(2, IncidentStatus::Monitoring, 5),
            update(3, IncidentStatus::Resolved, 9),
        ];
        let over = Incident {
            updates,
            status: IncidentStatus::Resolved,
            resolved_at: Some(at(9)),
            postmortem: Some("A cable".to_owned()),
            ..incident()
        };
        for (news, id, status, count) in [
            (IncidentChange::Opened, 1, IncidentStatus::Investigating, 1),
            (IncidentChange::Updated, 2, IncidentStatus::Monitoring, 2),
            (IncidentChange::Resolved, 3, IncidentStatus::Resolved, 3),
        ] {
            let then = over.as_of_event(&event(&over, news, Some(id)), at(0));
            assert_eq!((then.status, then.updates.len()), (status, count), "{news:?}");
            assert_eq!(then.resolved_at.is_some(), status == IncidentStatus::Resolved, "{news:?}");
            assert_eq!(then.postmortem.is_some(), status == IncidentStatus::Resolved, "{news:?}");
        }
    }

    #[test]
    fn a_completed_window_is_scheduled_as_of_an_earlier_event() {
        let over = Incident {
            status: IncidentStatus::Completed,
            resolved_at: Some(at(60)),
            has_begun: true,
            updates: vec![update(1, IncidentStatus::Scheduled, -9), update(2, IncidentStatus::Completed, 60)],
            ..window(0, 90)
        };
        for (news, begun, status, count) in [
            (IncidentChange::Reminder(5), false, IncidentStatus::Scheduled, 1),
            (IncidentChange::Started, true, IncidentStatus::Scheduled, 1),
            (IncidentChange::Completed, true, IncidentStatus::Completed, 2),
        ] {
            let moment = if news == IncidentChange::Completed { at(60) } else { at(0) };
            let then = over.as_of_event(&event(&over, news, None), moment);
            assert_eq!((then.has_begun, then.status, then.updates.len()), (begun, status, count), "{news:?}");
        }
    }
}
