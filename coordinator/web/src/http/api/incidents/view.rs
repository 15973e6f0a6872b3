//! An incident or a maintenance window as the API returns it, and as the status document does.

use parallax_core::incident::IncidentUpdate;
use parallax_core::incident::edit::MAX_MESSAGE;
use parallax_core::time::Timestamp;
use parallax_service::incidents::{IncidentDetail, IncidentSlice};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::value_schemas::{self, Iso, Millis, TimeFormat};

/// A page of a list of incidents and maintenance windows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IncidentList {
    incidents: Vec<IncidentDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<String>,
}

/// An incident or a maintenance window, as its owner sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Incident")]
pub(in crate::http) struct IncidentDocument {
    #[serde(flatten)]
    entry: IncidentEntry<Iso>,
    /// Opened by a monitor that went down; it resolves itself.
    automatic: bool,
    /// Reminder times, for subscribers (maintenance) or the owner (incident).
    remind: Option<Vec<String>>,
}

/// An incident or a maintenance window as visitors see it, with times in milliseconds since the epoch.
pub(in crate::http) type PublicIncident = IncidentEntry<Millis>;

/// The public fields of an incident or a maintenance window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Entry")]
pub(in crate::http) struct IncidentEntry<T> {
    /// Incident id.
    id: String,
    #[schemars(with = "value_schemas::IncidentKind")]
    kind: &'static str,
    /// Title.
    title: String,
    #[schemars(with = "value_schemas::IncidentStatus")]
    status: &'static str,
    #[schemars(with = "value_schemas::Impact")]
    impact: &'static str,
    /// Start time.
    started_at: T,
    /// maintenance: end time.
    ends_at: Option<T>,
    /// Time it was resolved or completed.
    resolved_at: Option<T>,
    /// maintenance: its repetition.
    repeat: Option<RepeatDocument<T>>,
    /// Post-mortem, in Markdown, once it is written.
    postmortem: Option<String>,
    /// Affected monitors.
    monitors: Vec<AffectedDocument>,
    /// Newest first; in a page's status document the newest ten.
    updates: Vec<UpdateDocument<T>>,
    /// In a page's status document: older updates, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MoreUpdates")]
    more_updates: Option<MoreUpdates>,
}

/// Updates left out of a document.
#[derive(Debug, Serialize, JsonSchema)]
struct MoreUpdates {
    /// Number of updates left out.
    count: usize,
    /// Page that shows all updates.
    url: String,
}

/// Repetition of a maintenance window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Repeat")]
struct RepeatDocument<T> {
    #[schemars(with = "value_schemas::Every")]
    every: &'static str,
    /// Zone in which it keeps its local time.
    timezone: &'static str,
    /// Shared by every window of the same repeating entry.
    series_id: String,
    /// Time it was stopped.
    stopped_at: Option<T>,
}

/// An affected monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AffectedMonitor")]
struct AffectedDocument {
    /// Monitor id.
    id: String,
    /// Shown on the page.
    name: String,
    /// Severity for this monitor, if it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "value_schemas::Impact")]
    impact: Option<&'static str>,
}

/// An update of an incident.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Update")]
pub(in crate::http) struct UpdateDocument<T> {
    /// Update id.
    id: String,
    /// Incident status when it was posted; imported history may carry other values.
    status: String,
    /// Text, in Markdown.
    body: String,
    /// Creation time.
    created_at: T,
}

/// Builds one page of the list.
pub(super) fn list(slice: &IncidentSlice) -> IncidentList {
    IncidentList {
        incidents: slice.incidents.iter().map(document).collect(),
        next_before: slice.next.map(|id| id.to_string()),
    }
}

/// Builds the document for the owner, with times in ISO 8601.
pub(super) fn document(detail: &IncidentDetail) -> IncidentDocument {
    let incident = &detail.incident;
    let remind: Vec<String> = incident.remind.iter().map(ToString::to_string).collect();
    IncidentDocument {
        entry: entry(detail),
        automatic: incident.automatic,
        remind: (!remind.is_empty()).then_some(remind),
    }
}

/// Builds the document for visitors of the page at that URL, with times in milliseconds since the epoch.
pub(in crate::http::api) fn public(detail: &IncidentDetail, page: &str) -> PublicIncident {
    let mut entry: PublicIncident = entry(detail);
    for update in &mut entry.updates {
        if let Some((end, _)) = update.body.char_indices().nth(MAX_MESSAGE) {
            update.body.truncate(end);
        }
    }
    let url = || format!("{page}/incidents/{}", detail.incident.id);
    entry.more_updates =
        (detail.omitted_updates > 0).then(|| MoreUpdates { count: detail.omitted_updates, url: url() });
    entry
}

fn entry<T: TimeFormat>(detail: &IncidentDetail) -> IncidentEntry<T> {
    let incident = &detail.incident;
    let time = |at: Timestamp| T::format(at);
    IncidentEntry {
        id: incident.id.to_string(),
        kind: incident.kind.name(),
        title: incident.title.clone(),
        status: incident.status.name(),
        impact: incident.impact.name(),
        started_at: time(incident.started_at),
        ends_at: incident.ends_at.map(time),
        resolved_at: incident.resolved_at.map(time),
        repeat: detail.series.as_ref().map(|series| RepeatDocument {
            every: series.recurrence.frequency.name(),
            timezone: series.recurrence.zone.name(),
            series_id: series.id.to_string(),
            stopped_at: series.stopped_at.map(time),
        }),
        postmortem: incident.postmortem.clone(),
        monitors: detail
            .monitors
            .iter()
            .map(|(id, name, impact)| AffectedDocument {
                id: id.to_string(),
                name: name.clone(),
                impact: impact.map(|impact| impact.name()),
            })
            .collect(),
        updates: incident.updates.iter().rev().map(update).collect(),
        more_updates: None,
    }
}

fn update<T: TimeFormat>(update: &IncidentUpdate) -> UpdateDocument<T> {
    UpdateDocument {
        id: update.id.to_string(),
        status: update.status.clone(),
        body: update.body.clone(),
        created_at: T::format(update.created_at),
    }
}

#[cfg(test)]
mod tests {
    use parallax_core::id::{IncidentId, MonitorId, PageId, SeriesId, UpdateId};
    use parallax_core::incident::series::Series;
    use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus, MonitorImpact};
    use parallax_core::recurrence::{Frequency, Recurrence};
    use parallax_core::reminder::ReminderInterval;
    use parallax_notify::render::incident_resource::IncidentResource;

    use super::*;

    #[test]
    fn subscribers_get_an_incident_in_the_format_of_the_api() {
        let at = Timestamp::from_millis(1_772_357_400_000);
        let monitor = MonitorId::from_u128(2);
        let remind = vec![ReminderInterval::parse("1h").unwrap()];
        let affected = vec![MonitorImpact { monitor, impact: Some(Impact::Major) }];
        let incident = Incident {
            id: IncidentId::from_u128(1),
            page: PageId::from_u128(3),
            kind: IncidentKind::Maintenance,
            title: "Upgrade".to_owned(),
            status: IncidentStatus::Completed,
            impact: Impact::Partial,
            started_at: at,
            ends_at: Some(at + 1),
            resolved_at: Some(at + 2),
            automatic: true,
            notify: true,
            remind: remind.clone(),
            series: Some(SeriesId::from_u128(5)),
            postmortem: Some("A disk was full.".to_owned()),
            affected: affected.clone(),
            updates: vec![IncidentUpdate {
                id: UpdateId::from_u128(4),
                status: "completed".to_owned(),
                body: "Done.".to_owned(),
                created_at: at + 2,
            }],
            has_begun: true,
            reminded_until: at,
            created_at: at,
            edited_at: None,
            planned_at: None,
        };
        let series = Series {
            id: SeriesId::from_u128(5),
            page: incident.page,
            recurrence: Recurrence { frequency: Frequency::Weekly, zone: chrono_tz::Europe::Berlin, first: at },
            length: 1,
            next_index: 1,
            stopped_at: Some(at),
            title: String::new(),
            message: String::new(),
            affected,
            remind,
            notify: true,
        };
        let monitors = vec![
            (monitor, "Checkout".to_owned(), Some(Impact::Major)),
            (MonitorId::from_u128(6), "Search".to_owned(), None),
        ];
        let bare = Incident { remind: Vec::new(), ends_at: None, postmortem: None, ..incident.clone() };
        for (incident, series) in [(incident, Some(series)), (bare, None)] {
            let sent = serde_json::to_string(&IncidentResource::new(&incident, series.as_ref(), &monitors)).unwrap();
            let detail = IncidentDetail { incident, series, monitors: monitors.clone(), omitted_updates: 0 };
            assert_eq!(sent, serde_json::to_string(&document(&detail)).unwrap());
        }
    }
}
