//! Choice of the incident for an outage: an existing one, a new one, or none.

use super::{AutomaticIncidents, JOINABLE};
use crate::id::{IncidentId, MonitorId};
use crate::incident::{Impact, Incident, MAX_OPEN_INCIDENTS};
use crate::time::Timestamp;

/// The incident that an outage belongs to.
pub(super) enum IncidentChoice {
    /// The automatic incident that already lists the monitor.
    Existing(IncidentId),
    /// A person's incident, which covers the outage.
    Manual(IncidentId),
    /// A recent automatic incident.
    Join(IncidentId),
    /// A new incident.
    New,
    /// No incident.
    NoIncident,
}

impl AutomaticIncidents {
    /// Chooses the incident for a monitor's outage.
    pub(super) fn choose_incident(&self, monitor: MonitorId, at: Timestamp) -> IncidentChoice {
        let names = |incident: &Incident| incident.affected.iter().any(|one| one.monitor == monitor);
        if let Some(own) = self.automatic().find(|incident| names(incident)) {
            return IncidentChoice::Existing(own.id);
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
            return IncidentChoice::Manual(persons.id);
        }
        if !self.opens_incidents {
            return IncidentChoice::NoIncident;
        }
        let is_young = |incident: &&Incident| at.since(incident.created_at) < JOINABLE;
        match self.automatic().filter(is_young).max_by_key(|incident| (incident.created_at, incident.id)) {
            Some(young) => IncidentChoice::Join(young.id),
            None if self.open < MAX_OPEN_INCIDENTS => IncidentChoice::New,
            None => IncidentChoice::NoIncident,
        }
    }
}
