//! The summary of Atlassian Statuspage, which incident.io, OpenStatus and pages of Parallax serve too.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Component, Incident, Page, Word};

#[derive(Deserialize)]
struct Summary {
    /// Only its presence counts: it tells this shape from others.
    #[serde(rename = "page")]
    _page: Map<String, Value>,
    status: Status,
    #[serde(default)]
    components: Vec<Part>,
    #[serde(default)]
    incidents: Vec<Event>,
    #[serde(default)]
    scheduled_maintenances: Vec<Event>,
}

#[derive(Deserialize)]
struct Status {
    indicator: String,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    id: Option<String>,
    name: String,
    status: String,
    /// A group is a part that holds others.
    #[serde(default)]
    group: Option<bool>,
    #[serde(default)]
    group_id: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    components: Option<Vec<Touched>>,
}

#[derive(Deserialize)]
struct Touched {
    name: String,
}

/// Reads a summary; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let summary: Summary = serde_json::from_slice(body).ok()?;
    let groups: BTreeMap<&str, &str> = summary
        .components
        .iter()
        .filter(|part| part.group == Some(true))
        .filter_map(|group| Some((group.id.as_deref()?, group.name.as_str())))
        .collect();
    let components =
        summary.components.iter().filter(|part| part.group != Some(true)).map(|part| Component {
            name: part.name.clone(),
            group: part.group_id.as_deref().and_then(|id| groups.get(id)).map(|name| (*name).to_owned()),
            word: Word::new(&part.status, state(&part.status)),
            ..Component::default()
        });
    let incidents =
        summary.incidents.into_iter().filter(|event| is_open(&event.status)).map(|event| Incident {
            title: event.name,
            touches: event
                .components
                .filter(|touched| !touched.is_empty())
                .map(|touched| touched.into_iter().map(|part| part.name).collect()),
        });
    let indicator = summary.status.indicator.as_str();
    let word = match (overall(indicator), summary.status.description.as_deref()) {
        // The description is for people; an indicator that isn't known is shown itself.
        (Some(state), Some(description)) if !description.is_empty() => Word::new(description, Some(state)),
        (state, _) => Word::new(indicator, state),
    };
    Some(Page {
        overall: Some(word),
        components: components.collect(),
        incidents: incidents.collect(),
        in_maintenance: summary.scheduled_maintenances.iter().any(|event| {
            matches!(event.status.as_str(), "in_progress" | "verifying" | "maintenance_in_progress")
        }),
        ..Page::default()
    })
}

fn overall(indicator: &str) -> Option<VendorState> {
    Some(match indicator {
        "none" => VendorState::Operational,
        "minor" => VendorState::Degraded,
        "major" => VendorState::PartialOutage,
        "critical" => VendorState::MajorOutage,
        "maintenance" => VendorState::Maintenance,
        _ => return None,
    })
}

fn state(word: &str) -> Option<VendorState> {
    Some(match word {
        "operational" => VendorState::Operational,
        "degraded_performance" => VendorState::Degraded,
        "partial_outage" => VendorState::PartialOutage,
        "major_outage" | "full_outage" => VendorState::MajorOutage,
        "under_maintenance" => VendorState::Maintenance,
        _ => return None,
    })
}

fn is_open(status: &str) -> bool {
    !matches!(status, "resolved" | "postmortem" | "completed")
}
