//! The summary of Statuspal pages, whose services are nested.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, id_text, lenient};

#[derive(Deserialize)]
struct Summary {
    #[serde(deserialize_with = "lenient::nullable")]
    status_page: Option<StatusPage>,
    #[serde(deserialize_with = "lenient::entries")]
    services: Vec<Service>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    #[serde(default, deserialize_with = "lenient::list")]
    maintenances: Vec<Value>,
}

#[derive(Deserialize)]
struct StatusPage {
    /// Null means that all is well; a missing value carries no information.
    #[serde(default, deserialize_with = "lenient::value")]
    current_incident_type: Option<Value>,
}

#[derive(Deserialize)]
struct Service {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::value")]
    current_incident_type: Option<Value>,
    #[serde(default, deserialize_with = "lenient::entries")]
    children: Vec<Self>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
    #[serde(default, deserialize_with = "lenient::some_text")]
    ends_at: Option<String>,
}

/// Reads a summary; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let summary: Summary = lenient::object(body)?;
    let mut components = Vec::new();
    // Each with the names of its parents; the parser bounds the depth.
    let mut open: Vec<(Option<String>, Service)> =
        summary.services.into_iter().rev().map(|service| (None, service)).collect();
    while let Some((group, service)) = open.pop() {
        let path = group.as_ref().map_or_else(|| service.name.clone(), |group| format!("{group} / {}", service.name));
        open.extend(service.children.into_iter().rev().map(|child| (Some(path.clone()), child)));
        let label = label(service.current_incident_type.as_ref());
        components.push(PageComponent { name: service.name, group, label, ..PageComponent::default() });
    }
    let running = summary.incidents.into_iter().filter(|event| event.ends_at.is_none());
    Some(VendorPage {
        overall: summary.status_page.map(|page| label(page.current_incident_type.as_ref())),
        components,
        incidents: running.map(|event| PageIncident { title: event.title, affected: None }).collect(),
        in_maintenance: !summary.maintenances.is_empty(),
        ..VendorPage::default()
    })
}

/// Maps types. Those that a page has defined itself count as degraded: there is an incident, of unknown
/// severity.
fn label(kind: Option<&Value>) -> StateLabel {
    let Some(kind) = kind else { return StateLabel::new("", None) };
    if kind.is_null() {
        return StateLabel::new("operational", Some(VendorState::Operational));
    }
    let kind = id_text(kind).unwrap_or_default();
    let state = match kind.as_str() {
        "major" => VendorState::MajorOutage,
        "scheduled" => VendorState::Maintenance,
        _ => VendorState::Degraded,
    };
    StateLabel::new(&kind, Some(state))
}
