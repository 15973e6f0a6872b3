//! The two documents of Instatus: the summary, and the list of components.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{Component, Incident, Page, Word, goodness};

#[derive(Deserialize)]
struct Summary {
    page: Whole,
    #[serde(default, rename = "activeIncidents")]
    incidents: Vec<Event>,
    #[serde(default, rename = "activeMaintenances")]
    maintenances: Vec<Event>,
}

#[derive(Deserialize)]
struct Whole {
    status: String,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    impact: String,
}

#[derive(Deserialize)]
struct List {
    components: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    name: String,
    status: String,
    #[serde(default)]
    group: Option<Group>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Group {
    Named { name: String },
    Older(String),
}

/// Reads a summary; `None` for another shape.
pub(super) fn summary(body: &[u8]) -> Option<Page> {
    let summary: Summary = serde_json::from_slice(body).ok()?;
    let word = summary.page.status;
    let state = match word.as_str() {
        "UP" => Some(VendorState::Operational),
        "UNDERMAINTENANCE" => Some(VendorState::Maintenance),
        "HASISSUES" => {
            let impacts = summary.incidents.iter().filter_map(|event| state(&event.impact));
            impacts.chain([VendorState::Degraded]).min_by_key(|state| goodness(Some(*state)))
        }
        // Another product's summary may lie at the same place.
        _ if !word.bytes().all(|b| b.is_ascii_uppercase()) || word.is_empty() => return None,
        _ => None,
    };
    let open = summary.incidents.into_iter().filter(|event| event.status != "RESOLVED");
    Some(Page {
        overall: Some(Word::new(&word, state)),
        components: Vec::new(),
        incidents: open.map(|event| Incident { title: event.name, touches: None }).collect(),
        in_maintenance: summary
            .maintenances
            .iter()
            .any(|event| matches!(event.status.as_str(), "INPROGRESS" | "VERIFYING")),
        ..Page::default()
    })
}

/// Reads the list of components; `None` for another shape.
pub(super) fn components(body: &[u8]) -> Option<Page> {
    let list: List = serde_json::from_slice(body).ok()?;
    let components = list.components.into_iter().map(|part| Component {
        group: part.group.map(|group| match group {
            Group::Named { name } | Group::Older(name) => name,
        }),
        word: Word::new(&part.status, state(&part.status)),
        name: part.name,
        ..Component::default()
    });
    Some(Page { components: components.collect(), ..Page::default() })
}

fn state(word: &str) -> Option<VendorState> {
    Some(match word {
        "OPERATIONAL" => VendorState::Operational,
        "DEGRADEDPERFORMANCE" | "MINOROUTAGE" => VendorState::Degraded,
        "PARTIALOUTAGE" => VendorState::PartialOutage,
        "MAJOROUTAGE" => VendorState::MajorOutage,
        "UNDERMAINTENANCE" => VendorState::Maintenance,
        _ => return None,
    })
}
