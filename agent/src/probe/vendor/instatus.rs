//! Documents of Instatus: the summary, and the list of components.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, health_rank, lenient};

#[derive(Deserialize)]
struct Summary {
    page: SummaryPage,
    #[serde(default, rename = "activeIncidents", deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    #[serde(default, rename = "activeMaintenances", deserialize_with = "lenient::list")]
    maintenances: Vec<Event>,
}

#[derive(Deserialize)]
struct SummaryPage {
    #[serde(deserialize_with = "lenient::text")]
    status: String,
    /// If the status is null, this distinguishes the page from another product's.
    #[serde(default, deserialize_with = "lenient::text")]
    url: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(default, deserialize_with = "lenient::text")]
    impact: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(deserialize_with = "lenient::whole_entries")]
    components: Vec<ListedComponent>,
}

#[derive(Deserialize)]
struct ListedComponent {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    /// An object with a name, or in older versions the name itself.
    #[serde(default)]
    group: Value,
}

/// Reads a summary; returns `None` for another shape.
pub(super) fn summary(body: &[u8]) -> Option<VendorPage> {
    let summary: Summary = lenient::object(body)?;
    let status = summary.page.status;
    let state = match status.as_str() {
        "UP" => Some(VendorState::Operational),
        "UNDERMAINTENANCE" => Some(VendorState::Maintenance),
        "HASISSUES" => {
            let impacts = summary.incidents.iter().filter_map(|event| state(&event.impact));
            impacts.chain([VendorState::Degraded]).min_by_key(|state| health_rank(Some(*state)))
        }
        // Another product's summary may have the same address.
        _ if !status.bytes().all(|b| b.is_ascii_uppercase()) => return None,
        "" if summary.page.url.is_empty() => return None,
        _ => None,
    };
    let open = summary.incidents.into_iter().filter(|event| event.status != "RESOLVED");
    Some(VendorPage {
        overall: Some(StateLabel::new(&status, state)),
        components: Vec::new(),
        incidents: open.map(|event| PageIncident { title: event.name, affected: None }).collect(),
        in_maintenance: summary
            .maintenances
            .iter()
            .any(|event| matches!(event.status.as_str(), "INPROGRESS" | "VERIFYING")),
        ..VendorPage::default()
    })
}

/// Reads the list of components; returns `None` for another shape.
pub(super) fn components(body: &[u8]) -> Option<VendorPage> {
    let list: List = lenient::object(body)?;
    let components = list.components.into_iter().map(|part| PageComponent {
        group: part.group.get("name").unwrap_or(&part.group).as_str().map(str::to_owned),
        label: StateLabel::new(&part.status, state(&part.status)),
        name: part.name,
        ..PageComponent::default()
    });
    Some(VendorPage { components: components.collect(), ..VendorPage::default() })
}

fn state(status: &str) -> Option<VendorState> {
    Some(match status {
        "OPERATIONAL" => VendorState::Operational,
        "DEGRADEDPERFORMANCE" | "MINOROUTAGE" => VendorState::Degraded,
        "PARTIALOUTAGE" => VendorState::PartialOutage,
        "MAJOROUTAGE" => VendorState::MajorOutage,
        "UNDERMAINTENANCE" => VendorState::Maintenance,
        _ => return None,
    })
}
