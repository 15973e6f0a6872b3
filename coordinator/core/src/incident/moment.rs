//! An incident as it was when a change was announced, even if more has happened since.

use super::{Incident, Kind, News, Progress, Told};
use crate::time::Timestamp;

impl Incident {
    /// Returns the incident as of the change, announced at `at`: without later updates, and open if it was
    /// open then.
    #[must_use]
    pub fn as_told(&self, told: &Told, at: Timestamp) -> Self {
        let mut then = self.clone();
        match told.update.and_then(|id| self.updates.iter().position(|update| update.id == id)) {
            Some(last) => then.updates.truncate(last.saturating_add(1)),
            None => then.updates.retain(|update| update.created_at <= at),
        }
        let said = then.updates.last().map(|update| update.status.as_str());
        let said = said.and_then(|name| Progress::ALL.into_iter().find(|status| status.name() == name));
        then.status = match (told.news, self.kind) {
            (News::Resolved, _) => Progress::Resolved,
            (News::Completed, _) => Progress::Completed,
            (_, Kind::Maintenance) => Progress::Scheduled,
            (_, Kind::Incident) => said.unwrap_or(self.status),
        };
        if !then.status.is_closed() {
            then.resolved_at = None;
            then.postmortem = None;
            then.started_at = then.planned_start();
            then.planned_at = None;
        }
        then.begun = match told.news {
            News::Started | News::Completed => true,
            News::Scheduled | News::Reminder(_) => false,
            _ => self.begun,
        };
        then
    }
}

#[cfg(test)]
mod tests {
    use super::super::Update;
    use super::super::edit::tests::{at, incident, window};
    use super::*;
    use crate::id::UpdateId;

    fn told(incident: &Incident, news: News, update: Option<u128>) -> Told {
        Told { incident: incident.id, news, update: update.map(UpdateId::from_u128), notify: true }
    }

    fn update(id: u128, status: Progress, minute: i64) -> Update {
        Update {
            id: UpdateId::from_u128(id),
            status: status.name().to_owned(),
            body: String::new(),
            created_at: at(minute),
        }
    }

    #[test]
    fn each_word_is_told_as_of_its_moment() {
        let updates = vec![
            update(1, Progress::Investigating, 0),
            update(2, Progress::Monitoring, 5),
            update(3, Progress::Resolved, 9),
        ];
        let over = Incident {
            updates,
            status: Progress::Resolved,
            resolved_at: Some(at(9)),
            postmortem: Some("A cable".to_owned()),
            ..incident()
        };
        for (news, id, status, count) in [
            (News::Opened, 1, Progress::Investigating, 1),
            (News::Updated, 2, Progress::Monitoring, 2),
            (News::Resolved, 3, Progress::Resolved, 3),
        ] {
            let then = over.as_told(&told(&over, news, Some(id)), at(0));
            assert_eq!((then.status, then.updates.len()), (status, count), "{news:?}");
            assert_eq!(then.resolved_at.is_some(), status == Progress::Resolved, "{news:?}");
            assert_eq!(then.postmortem.is_some(), status == Progress::Resolved, "{news:?}");
        }
    }

    #[test]
    fn a_window_that_is_over_was_once_to_come() {
        let over = Incident {
            status: Progress::Completed,
            resolved_at: Some(at(60)),
            begun: true,
            updates: vec![update(1, Progress::Scheduled, -9), update(2, Progress::Completed, 60)],
            ..window(0, 90)
        };
        for (news, begun, status, count) in [
            (News::Reminder(5), false, Progress::Scheduled, 1),
            (News::Started, true, Progress::Scheduled, 1),
            (News::Completed, true, Progress::Completed, 2),
        ] {
            let moment = if news == News::Completed { at(60) } else { at(0) };
            let then = over.as_told(&told(&over, news, None), moment);
            assert_eq!((then.begun, then.status, then.updates.len()), (begun, status, count), "{news:?}");
        }
    }
}
