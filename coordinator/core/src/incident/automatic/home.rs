//! Choice of the incident for an outage: an existing one, a new one, or none.

use super::{Desk, JOINABLE};
use crate::id::{IncidentId, MonitorId};
use crate::incident::{Impact, Incident, MAX_OPEN};
use crate::time::Timestamp;

/// The incident that an outage belongs to.
pub(super) enum Home {
    /// The automatic incident that already lists the monitor.
    Own(IncidentId),
    /// A person's incident, which covers the outage.
    Persons(IncidentId),
    /// A recent automatic incident.
    Joins(IncidentId),
    /// A new incident.
    New,
    /// None.
    Nowhere,
}

impl Desk {
    /// Chooses the incident for a monitor's outage.
    pub(super) fn home(&self, monitor: MonitorId, at: Timestamp) -> Home {
        let names = |incident: &Incident| incident.affected.iter().any(|one| one.monitor == monitor);
        if let Some(own) = self.automatic().find(|incident| names(incident)) {
            return Home::Own(own.id);
        }
        // A person has already reported at least this impact.
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
