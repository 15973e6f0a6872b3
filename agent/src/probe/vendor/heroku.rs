//! The document of Heroku's own page: a colour for each of its systems.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{Component, Incident, Page, Word};

#[derive(Deserialize)]
struct Current {
    status: Vec<System>,
    #[serde(default)]
    incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct System {
    system: String,
    status: String,
}

#[derive(Deserialize)]
struct Event {
    title: String,
}

/// Reads the document; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let current: Current = serde_json::from_slice(body).ok()?;
    let components = current.status.into_iter().map(|system| Component {
        word: Word::new(&system.status, state(&system.status)),
        name: system.system,
        ..Component::default()
    });
    let incidents = current.incidents.into_iter().map(|event| Incident { title: event.title, touches: None });
    Some(Page { components: components.collect(), incidents: incidents.collect(), ..Page::default() })
}

fn state(colour: &str) -> Option<VendorState> {
    Some(match colour {
        "green" => VendorState::Operational,
        "yellow" => VendorState::Degraded,
        "red" => VendorState::MajorOutage,
        "blue" => VendorState::Maintenance,
        _ => return None,
    })
}
