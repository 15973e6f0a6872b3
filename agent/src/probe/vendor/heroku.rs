//! The document of Heroku's status page: a colour for each of its systems.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, lenient};

#[derive(Deserialize)]
struct Current {
    #[serde(deserialize_with = "lenient::whole_entries")]
    status: Vec<System>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct System {
    #[serde(default, deserialize_with = "lenient::text")]
    system: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
}

/// Reads the document; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let current: Current = lenient::object(body)?;
    let components = current.status.into_iter().map(|system| PageComponent {
        label: StateLabel::new(&system.status, state(&system.status)),
        name: system.system,
        ..PageComponent::default()
    });
    let incidents = current.incidents.into_iter().map(|event| PageIncident { title: event.title, affected: None });
    Some(VendorPage { components: components.collect(), incidents: incidents.collect(), ..VendorPage::default() })
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
