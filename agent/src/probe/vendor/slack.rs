//! The document of Slack's status page: open incidents, and the services they affect.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{Component, Incident, Page, Word, goodness, lenient};

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
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let current: Current = lenient::object(body)?;
    let well = || Word::new("ok", Some(VendorState::Operational));
    let odd = || Word::new(&current.status, None);
    // A service without an incident is operational, unless the document's own status is unknown, or an
    // incident names no service and may affect any.
    let is_open =
        |event: &Event| event.services.is_empty() && state(&event.kind) != Some(VendorState::Operational);
    let touches_any = current.active_incidents.is_empty() || current.active_incidents.iter().any(is_open);
    let (overall, other) = match current.status.as_str() {
        "ok" => (well(), well()),
        "active" => (
            worst_of(current.active_incidents.iter()).unwrap_or_else(odd),
            if touches_any { odd() } else { well() },
        ),
        _ => (odd(), odd()),
    };
    let others = current.active_incidents.iter().flat_map(|event| &event.services).map(String::as_str);
    let mut names: Vec<&str> = SERVICES.into_iter().chain(others).collect();
    names.sort_unstable();
    names.dedup();
    let components = names.into_iter().map(|name| {
        let touching =
            current.active_incidents.iter().filter(|event| event.services.iter().any(|own| own == name));
        let word = worst_of(touching).unwrap_or_else(|| other.clone());
        Component { name: name.to_owned(), word, ..Component::default() }
    });
    let components = components.collect();
    let incidents = current
        .active_incidents
        .into_iter()
        .map(|event| Incident { title: event.title, touches: Some(event.services) })
        .collect();
    Some(Page { overall: Some(overall), components, incidents, ..Page::default() })
}

fn worst_of<'a>(events: impl Iterator<Item = &'a Event>) -> Option<Word> {
    events.map(|event| Word::new(&event.kind, state(&event.kind))).min_by_key(|word| goodness(word.state))
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
