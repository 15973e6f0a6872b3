//! The document of Slack's status page: open incidents, and the services they affect.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, health_rank, lenient};

/// Names of Slack's services; the document contains only those with incidents.
const SERVICES: [&str; 11] = [
    "Login/SSO",
    "Messaging",
    "Notifications",
    "Search",
    "Workspace/Org Administration",
    "Canvases",
    "Connectivity",
    "Files",
    "Huddles",
    "Apps/Integrations/APIs",
    "Workflows",
];

#[derive(Deserialize)]
struct Current {
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(deserialize_with = "lenient::entries")]
    active_incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
    #[serde(default, rename = "type", deserialize_with = "lenient::text")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::list")]
    services: Vec<String>,
}

/// Reads the document; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let current: Current = lenient::object(body)?;
    let well = || StateLabel::new("ok", Some(VendorState::Operational));
    let unknown = || StateLabel::new(&current.status, None);
    // A service without an incident is operational, unless the document's own status is unknown, or an
    // incident names no service and may affect any.
    let is_open = |event: &Event| event.services.is_empty() && state(&event.kind) != Some(VendorState::Operational);
    let touches_any = current.active_incidents.is_empty() || current.active_incidents.iter().any(is_open);
    let (overall, unaffected) = match current.status.as_str() {
        "ok" => (well(), well()),
        "active" => (
            worst_label(current.active_incidents.iter()).unwrap_or_else(unknown),
            if touches_any { unknown() } else { well() },
        ),
        _ => (unknown(), unknown()),
    };
    let others = current.active_incidents.iter().flat_map(|event| &event.services).map(String::as_str);
    let mut names: Vec<&str> = SERVICES.into_iter().chain(others).collect();
    names.sort_unstable();
    names.dedup();
    let components = names.into_iter().map(|name| {
        let touching = current.active_incidents.iter().filter(|event| event.services.iter().any(|own| own == name));
        let label = worst_label(touching).unwrap_or_else(|| unaffected.clone());
        PageComponent { name: name.to_owned(), label, ..PageComponent::default() }
    });
    let components = components.collect();
    let incidents = current
        .active_incidents
        .into_iter()
        .map(|event| PageIncident { title: event.title, affected: Some(event.services) })
        .collect();
    Some(VendorPage { overall: Some(overall), components, incidents, ..VendorPage::default() })
}

fn worst_label<'a>(events: impl Iterator<Item = &'a Event>) -> Option<StateLabel> {
    events.map(|event| StateLabel::new(&event.kind, state(&event.kind))).min_by_key(|label| health_rank(label.state))
}

fn state(kind: &str) -> Option<VendorState> {
    Some(match kind {
        "notice" => VendorState::Operational,
        "maintenance" => VendorState::Maintenance,
        "incident" => VendorState::Degraded,
        "outage" => VendorState::MajorOutage,
        _ => return None,
    })
}
