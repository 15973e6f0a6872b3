//! The document of Slack's own page: open incidents, and which of its services they touch.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{Component, Incident, Page, Word, goodness};

/// The names of Slack's services; the document names only those in trouble.
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
    status: String,
    active_incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    title: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    services: Vec<String>,
}

/// Reads the document; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let current: Current = serde_json::from_slice(body).ok()?;
    let worst_of = |events: &mut dyn Iterator<Item = &Event>| {
        let words = events.map(|event| Word::new(&event.kind, state(&event.kind)));
        words
            .min_by_key(|word| goodness(word.state))
            .unwrap_or_else(|| Word::new("ok", Some(VendorState::Operational)))
    };
    let overall = match current.status.as_str() {
        "ok" => Word::new("ok", Some(VendorState::Operational)),
        "active" => worst_of(&mut current.active_incidents.iter()),
        other => Word::new(other, None),
    };
    let others = current.active_incidents.iter().flat_map(|event| &event.services).map(String::as_str);
    let mut names: Vec<&str> = SERVICES.into_iter().chain(others).collect();
    names.sort_unstable();
    names.dedup();
    let components = names.into_iter().map(|name| {
        let mut touching =
            current.active_incidents.iter().filter(|event| event.services.iter().any(|own| own == name));
        Component { name: name.to_owned(), group: None, word: worst_of(&mut touching) }
    });
    let components = components.collect();
    let incidents = current
        .active_incidents
        .into_iter()
        .map(|event| Incident { title: event.title, touches: Some(event.services) })
        .collect();
    Some(Page { overall: Some(overall), components, incidents, in_maintenance: false })
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
