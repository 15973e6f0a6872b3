//! Updates posted by a person, and their effect on the incident.

use super::edit::{MAX_MESSAGE, markdown};
use super::{Incident, IncidentChange, IncidentKind, IncidentStatus, MAX_UPDATES};
use crate::id::UpdateId;
use crate::locale::Locale;
use crate::patch::PatchField;
use crate::text;
use crate::time::Timestamp;
use crate::validation::{Rule, ValidationErrors};

/// An update's fields, as sent.
#[derive(Debug, Clone, Default)]
pub struct UpdatePost {
    /// New status; absent means unchanged.
    pub status: PatchField<String>,
    /// Text in Markdown.
    pub message: PatchField<String>,
    /// Notification of subscribers; true if absent.
    pub notify: PatchField<bool>,
}

impl UpdatePost {
    /// Validates the update; returns the incident with it, the change to announce, and whether subscribers
    /// are notified. A person's update takes over an automatic incident. An empty message is replaced with a
    /// standard text of `locale`.
    ///
    /// # Errors
    /// Every field that breaks a rule; `status` if the incident is closed.
    pub fn validate(
        &self,
        incident: &Incident,
        id: UpdateId,
        locale: &Locale,
        now: Timestamp,
    ) -> Result<(Incident, IncidentChange, bool), ValidationErrors> {
        let mut faults = ValidationErrors::new();
        let status = self.status.defaulted("status", Some(incident.status), incident.status, &mut faults, |name| {
            read_status(incident.kind, name)
        });
        let optional = status == Some(IncidentStatus::Completed);
        let message = self.message.optional("message", None, &mut faults, |text| markdown(text, MAX_MESSAGE));
        let is_good = !matches!(self.message, PatchField::Invalid(_)) && faults.iter().all(|it| it.field != "message");
        if message.is_none() && !optional && status.is_some() && is_good {
            faults.add("message", "is required");
        }
        let notify = self.notify.defaulted("notify", None, true, &mut faults, |notify| Ok(*notify));
        if !incident.is_open() {
            faults.add("status", format!("can't be changed: it is {}", incident.status.name()));
        } else if incident.updates.len() >= MAX_UPDATES {
            faults.add("message", format!("can't be added: an incident can have at most {MAX_UPDATES} updates"));
        }
        let (Some(status), Some(notify), true) = (status, notify, faults.is_empty()) else {
            return Err(faults);
        };
        let mut incident = incident.clone();
        incident.automatic = false;
        incident.status = status;
        if status == IncidentStatus::Completed && !incident.has_begun && now < incident.started_at {
            incident.planned_at = Some(incident.started_at);
            incident.started_at = now;
        }
        let line = || locale.default_closing_message(&incident).to_owned();
        let message = message.unwrap_or_else(line);
        incident.add_update(id, message, now);
        let news = match status {
            IncidentStatus::Resolved => IncidentChange::Resolved,
            IncidentStatus::Completed => IncidentChange::Completed,
            IncidentStatus::Investigating
            | IncidentStatus::Identified
            | IncidentStatus::Monitoring
            | IncidentStatus::Scheduled => IncidentChange::Updated,
        };
        if status.is_closed() {
            incident.resolved_at = Some(now);
        }
        Ok((incident, news, notify))
    }
}

fn read_status(kind: IncidentKind, name: &str) -> Result<IncidentStatus, Rule> {
    match kind {
        IncidentKind::Incident => text::one_of(name, &IncidentStatus::OF_INCIDENT, IncidentStatus::name),
        IncidentKind::Maintenance => text::one_of(name, &IncidentStatus::OF_MAINTENANCE, IncidentStatus::name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::{at, incident, value, window};
    use super::*;

    fn post(status: &str, message: &str) -> UpdatePost {
        UpdatePost { status: value(status), message: value(message), notify: PatchField::Absent }
    }

    fn settle(post: &UpdatePost, incident: &Incident) -> Result<(Incident, IncidentChange, bool), String> {
        let english = Locale::of(crate::page::branding::Language::En);
        post.validate(incident, UpdateId::from_u128(7), english, at(5)).map_err(|faults| faults.to_string())
    }

    #[test]
    fn an_update_sets_the_status_and_takes_an_automatic_incident_over() {
        let automatic = Incident { automatic: true, ..incident() };
        let (after, news, notify) = settle(&post("identified", "A *cable*\n"), &automatic).unwrap();
        assert_eq!((after.status, news, notify), (IncidentStatus::Identified, IncidentChange::Updated, true));
        assert!(!after.automatic && after.resolved_at.is_none());
        let last = after.updates.last().unwrap();
        assert_eq!((last.body.as_str(), last.status.as_str()), ("A *cable*\n", "identified"));
        assert_eq!(last.created_at, at(5));
    }

    #[test]
    fn resolved_closes_and_nothing_follows() {
        let (closed, news, _) = settle(&post("resolved", "Done"), &incident()).unwrap();
        assert_eq!((closed.resolved_at, news, closed.is_open()), (Some(at(5)), IncidentChange::Resolved, false));
        let refused = settle(&post("monitoring", "Once more"), &closed).unwrap_err();
        assert_eq!(refused, "status can't be changed: it is resolved");
    }

    #[test]
    fn completed_ends_a_window_now_and_needs_no_message() {
        let post = UpdatePost { status: value("completed"), notify: PatchField::Value(false), ..UpdatePost::default() };
        let (after, news, notify) = settle(&post, &window(-5, 1000)).unwrap();
        assert_eq!((after.resolved_at, after.ends_at), (Some(at(5)), Some(at(1000))));
        assert_eq!((news, notify), (IncidentChange::Completed, false));
        assert_eq!(after.updates.last().unwrap().body, "The maintenance has been completed.");
    }

    #[test]
    fn a_window_that_is_completed_before_it_began_is_cancelled_and_its_times_are_in_order() {
        let post = UpdatePost { status: value("completed"), ..UpdatePost::default() };
        let (after, news, _) = settle(&post, &window(500, 1000)).unwrap();
        assert_eq!((after.started_at, after.resolved_at, after.ends_at), (at(5), Some(at(5)), Some(at(1000))));
        assert_eq!((after.planned_start(), after.is_cancelled(), news), (at(500), true, IncidentChange::Completed));
        assert_eq!(after.updates.last().unwrap().body, "The maintenance has been cancelled.");
        let told =
            |news, update| crate::incident::IncidentEvent { incident: after.id, change: news, update, notify: true };
        let planned = after.as_of_event(&told(IncidentChange::Scheduled, None), at(0));
        assert_eq!((planned.started_at, planned.is_cancelled()), (at(500), false), "as it was when it was planned");
        let over = after.as_of_event(&told(IncidentChange::Completed, Some(UpdateId::from_u128(7))), at(5));
        assert!(over.is_cancelled());
        let begun = Incident { has_begun: true, ..window(-5, 1000) };
        assert!(!settle(&post, &begun).unwrap().0.is_cancelled());
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let wrong = UpdatePost {
            status: value("completed"),
            message: value(&"x".repeat(4001)),
            notify: PatchField::Invalid("must be true or false".to_owned()),
        };
        assert_eq!(
            settle(&wrong, &incident()).unwrap_err(),
            "status must be one of investigating, identified, monitoring, resolved; message must be at most 4000 \
             characters; notify must be true or false"
        );
        assert_eq!(settle(&post("resolved", " \n"), &incident()).unwrap_err(), "message is required");
        let silent = UpdatePost { message: value("Still on it"), ..UpdatePost::default() };
        assert_eq!(settle(&silent, &incident()).unwrap().0.status, IncidentStatus::Investigating);
        assert!(settle(&post("scheduled", "x"), &window(0, 9)).is_err());
        let full = Incident { updates: vec![incident().updates[0].clone(); MAX_UPDATES], ..incident() };
        assert!(settle(&post("monitoring", "x"), &full).unwrap_err().starts_with("message can't be added"));
    }
}
