//! The summary of Statuspal pages, whose services nest.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{Component, Incident, Page, Word};

#[derive(Deserialize)]
struct Summary {
    status_page: Whole,
    services: Vec<Service>,
    #[serde(default)]
    incidents: Vec<Event>,
    #[serde(default)]
    maintenances: Vec<Value>,
}

#[derive(Deserialize)]
struct Whole {
    /// It may be null, but not absent: null says that all is well.
    #[serde(deserialize_with = "Option::deserialize")]
    current_incident_type: Option<String>,
}

#[derive(Deserialize)]
struct Service {
    name: String,
    #[serde(deserialize_with = "Option::deserialize")]
    current_incident_type: Option<String>,
    #[serde(default)]
    children: Vec<Self>,
}

#[derive(Deserialize)]
struct Event {
    title: String,
    #[serde(default)]
    ends_at: Option<String>,
}

/// Reads a summary; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let summary: Summary = serde_json::from_slice(body).ok()?;
    let mut components = Vec::new();
    // Each with the names of those around it; how deep they nest is bounded by the parser.
    let mut open: Vec<(Option<String>, Service)> =
        summary.services.into_iter().rev().map(|one| (None, one)).collect();
    while let Some((group, service)) = open.pop() {
        let path = group
            .as_ref()
            .map_or_else(|| service.name.clone(), |group| format!("{group} / {}", service.name));
        open.extend(service.children.into_iter().rev().map(|child| (Some(path.clone()), child)));
        let word = word(service.current_incident_type.as_deref());
        components.push(Component { name: service.name, group, word, ..Component::default() });
    }
    let running = summary.incidents.into_iter().filter(|event| event.ends_at.is_none());
    Some(Page {
        overall: Some(word(summary.status_page.current_incident_type.as_deref())),
        components,
        incidents: running.map(|event| Incident { title: event.title, touches: None }).collect(),
        in_maintenance: !summary.maintenances.is_empty(),
        ..Page::default()
    })
}

/// Types that a page has made up itself are read as degraded: there is an incident, of unknown weight.
fn word(kind: Option<&str>) -> Word {
    let Some(kind) = kind else { return Word::new("operational", Some(VendorState::Operational)) };
    let state = match kind {
        "major" => VendorState::MajorOutage,
        "scheduled" => VendorState::Maintenance,
        _ => VendorState::Degraded,
    };
    Word::new(kind, Some(state))
}
