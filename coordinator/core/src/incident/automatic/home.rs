//! Incidents that outages belong to: one that is there, a new one, or none.

use super::{Desk, JOINABLE};
use crate::id::{IncidentId, MonitorId};
use crate::incident::{Impact, Incident, MAX_OPEN};
use crate::time::Timestamp;

/// Where an outage belongs.
pub(super) enum Home {
    /// To an automatic incident that it was in before.
    Own(IncidentId),
    /// To a person's incident, which says it already.
    Persons(IncidentId),
    /// To an automatic incident that is young.
    Joins(IncidentId),
    /// To one that is opened for it.
    New,
    /// To none.
    Nowhere,
}

impl Desk {
    /// Where a monitor's outage belongs.
    pub(super) fn home(&self, monitor: MonitorId, at: Timestamp) -> Home {
        let names = |incident: &Incident| incident.affected.iter().any(|one| one.monitor == monitor);
        if let Some(own) = self.automatic().find(|incident| names(incident)) {
            return Home::Own(own.id);
        }
        // Somebody has said that much of it already.
        let says_it = |incident: &&Incident| {
            incident
                .affected
                .iter()
                .any(|one| one.monitor == monitor && one.impact.unwrap_or(incident.impact) >= Impact::Partial)
        };
        let persons = self.incidents.values().filter(|incident| incident.is_open() && !incident.automatic);
        if let Some(persons) = persons.rev().find(says_it) {
            return Home::Persons(persons.id);
        }
        if !self.opens {
            return Home::Nowhere;
        }
        let is_young = |incident: &&Incident| at.since(incident.created_at) < JOINABLE;
        match self.automatic().filter(is_young).max_by_key(|incident| (incident.created_at, incident.id)) {
            Some(young) => Home::Joins(young.id),
            None if self.open < MAX_OPEN => Home::New,
            None => Home::Nowhere,
        }
    }
}
