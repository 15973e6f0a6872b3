//! The summary of Atlassian Statuspage, which incident.io, OpenStatus and Parallax pages serve too.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{PageComponent, PageIncident, StateLabel, VendorPage, lenient};

#[derive(Deserialize)]
struct Summary {
    /// Distinguishes this shape from others, together with the status.
    #[serde(deserialize_with = "lenient::nullable")]
    page: Map<String, Value>,
    #[serde(deserialize_with = "lenient::nullable")]
    status: Option<Status>,
    #[serde(default, deserialize_with = "lenient::entries")]
    components: Vec<SummaryComponent>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    #[serde(default, deserialize_with = "lenient::list")]
    scheduled_maintenances: Vec<Event>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(deserialize_with = "lenient::text")]
    indicator: String,
    #[serde(default, deserialize_with = "lenient::text")]
    description: String,
}

#[derive(Deserialize)]
struct SummaryComponent {
    #[serde(default, deserialize_with = "lenient::some_text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    /// A group is a component that contains others.
    #[serde(default, deserialize_with = "lenient::flag")]
    group: bool,
    #[serde(default, deserialize_with = "lenient::some_text")]
    group_id: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(default, deserialize_with = "lenient::list")]
    components: Vec<AffectedComponent>,
}

#[derive(Deserialize)]
struct AffectedComponent {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
}

/// Reads a summary; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let summary: Summary = lenient::object(body)?;
    if summary.page.is_empty() && summary.status.is_none() {
        return None;
    }
    let groups: BTreeMap<&str, &str> = summary
        .components
        .iter()
        .filter(|part| part.group)
        .filter_map(|group| Some((group.id.as_deref()?, group.name.as_str())))
        .collect();
    let components = summary.components.iter().filter(|part| !part.group).map(|part| PageComponent {
        name: part.name.clone(),
        group: part.group_id.as_deref().and_then(|id| groups.get(id)).map(|name| (*name).to_owned()),
        label: StateLabel::new(&part.status, state(&part.status)),
        ..PageComponent::default()
    });
    let incidents = summary.incidents.into_iter().filter(|event| is_open(&event.status)).map(|event| PageIncident {
        title: event.name,
        affected: Some(event.components.into_iter().map(|part| part.name).collect())
            .filter(|touched: &Vec<_>| !touched.is_empty()),
    });
    // Without an overall state, the components determine it.
    let label = summary.status.map(|Status { indicator, description }| match overall(&indicator) {
        // The description is for people; an unknown indicator is shown instead.
        Some(state) if !description.is_empty() => StateLabel::new(&description, Some(state)),
        state => StateLabel::new(&indicator, state),
    });
    Some(VendorPage {
        overall: label,
        components: components.collect(),
        incidents: incidents.collect(),
        in_maintenance: summary
            .scheduled_maintenances
            .iter()
            .any(|event| matches!(event.status.as_str(), "in_progress" | "verifying" | "maintenance_in_progress")),
        ..VendorPage::default()
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

fn state(status: &str) -> Option<VendorState> {
    Some(match status {
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
