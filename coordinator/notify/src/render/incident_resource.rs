//! Incident or maintenance window in a webhook body, field by field as in the API; a test of the crate `web` compares
//! the two.

use parallax_core::id::MonitorId;
use parallax_core::incident::series::Series;
use parallax_core::incident::{Impact, Incident, IncidentUpdate};
use serde::Serialize;

/// Maximum number of updates in a body: the newest.
pub const MAX_UPDATES: usize = 20;
/// Maximum size of their texts in bytes, except that the newest is always included: every posted update
/// stores such a body.
const MAX_TEXT: usize = 32 * 1024;

/// An incident or a maintenance window. Times are ISO 8601.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentResource<'a> {
    id: String,
    kind: &'static str,
    title: &'a str,
    status: &'static str,
    impact: &'static str,
    started_at: String,
    ends_at: Option<String>,
    resolved_at: Option<String>,
    repeat: Option<RecurrenceResource>,
    postmortem: Option<&'a str>,
    monitors: Vec<AffectedMonitor<'a>>,
    updates: Vec<UpdateResource<'a>>,
    automatic: bool,
    remind: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecurrenceResource {
    every: &'static str,
    timezone: &'static str,
    series_id: String,
    stopped_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct AffectedMonitor<'a> {
    id: String,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    impact: Option<&'static str>,
}

/// An update.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateResource<'a> {
    id: String,
    status: &'a str,
    body: &'a str,
    created_at: String,
}

impl<'a> IncidentResource<'a> {
    /// Builds the resource from the current state.
    pub fn new(
        incident: &'a Incident,
        series: Option<&Series>,
        monitors: &'a [(MonitorId, String, Option<Impact>)],
    ) -> Self {
        let affected = |(id, name, impact): &'a (MonitorId, String, Option<Impact>)| AffectedMonitor {
            id: id.to_string(),
            name,
            impact: impact.map(Impact::name),
        };
        let remind: Vec<String> = incident.remind.iter().map(ToString::to_string).collect();
        Self {
            id: incident.id.to_string(),
            kind: incident.kind.name(),
            title: &incident.title,
            status: incident.status.name(),
            impact: incident.impact.name(),
            started_at: incident.started_at.to_string(),
            ends_at: incident.ends_at.map(|at| at.to_string()),
            resolved_at: incident.resolved_at.map(|at| at.to_string()),
            repeat: series.map(|series| RecurrenceResource {
                every: series.recurrence.frequency.name(),
                timezone: series.recurrence.zone.name(),
                series_id: series.id.to_string(),
                stopped_at: series.stopped_at.map(|at| at.to_string()),
            }),
            postmortem: incident.postmortem.as_deref(),
            monitors: monitors.iter().map(affected).collect(),
            updates: incident.newest_updates(MAX_UPDATES, MAX_TEXT).iter().rev().map(UpdateResource::new).collect(),
            automatic: incident.automatic,
            remind: (!remind.is_empty()).then_some(remind),
        }
    }
}

impl<'a> UpdateResource<'a> {
    /// Builds the resource of an update.
    pub fn new(update: &'a IncidentUpdate) -> Self {
        Self {
            id: update.id.to_string(),
            status: &update.status,
            body: &update.body,
            created_at: update.created_at.to_string(),
        }
    }
}
