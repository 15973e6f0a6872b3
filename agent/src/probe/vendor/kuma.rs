//! Documents of an Uptime Kuma page: its monitors by group, and each monitor's latest heartbeats.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, id_text, lenient, page_id::is_id};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "publicGroupList", deserialize_with = "lenient::list")]
    groups: Vec<Group>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    /// Versions before 2 have only one.
    #[serde(default, deserialize_with = "lenient::nullable")]
    incident: Option<Event>,
    #[serde(default, rename = "maintenanceList", deserialize_with = "lenient::list")]
    maintenance: Vec<Maintenance>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, rename = "monitorList", deserialize_with = "lenient::entries")]
    monitors: Vec<Monitor>,
}

#[derive(Deserialize)]
struct Monitor {
    #[serde(default)]
    id: Value,
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
}

#[derive(Deserialize)]
struct Maintenance {
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
}

#[derive(Deserialize)]
struct Heartbeats {
    #[serde(rename = "heartbeatList", deserialize_with = "lenient::nullable")]
    monitors: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type", deserialize_with = "lenient::text")]
    kind: String,
    #[serde(default, rename = "statusPageSlug", deserialize_with = "lenient::some_text")]
    slug: Option<String>,
    #[serde(default, rename = "entryPage", deserialize_with = "lenient::some_text")]
    page: Option<String>,
}

/// Reads the page: its monitors have no state until the heartbeats are read too. Returns `None` for another
/// shape.
pub(super) fn page(body: &[u8]) -> Option<VendorPage> {
    let document: Document = lenient::object(body)?;
    let components = document.groups.into_iter().flat_map(|group| {
        let Group { name, monitors } = group;
        monitors.into_iter().map(move |monitor| PageComponent {
            id: id_text(&monitor.id).unwrap_or_default(),
            name: monitor.name,
            group: Some(name.clone()).filter(|name| !name.is_empty()),
            label: StateLabel::new("no heartbeat", None),
        })
    });
    let events = document.incidents.into_iter().chain(document.incident);
    Some(VendorPage {
        components: components.collect(),
        incidents: events.map(|event| PageIncident { title: event.title, affected: None }).collect(),
        in_maintenance: document.maintenance.iter().any(|planned| planned.status == "under-maintenance"),
        ..VendorPage::default()
    })
}

/// Reads the heartbeats, of which each monitor's last counts; returns `None` for another shape.
pub(super) fn heartbeats(body: &[u8]) -> Option<VendorPage> {
    let beats: Heartbeats = lenient::object(body)?;
    let latest = beats.monitors.into_iter().filter_map(|(id, beats)| {
        let latest = match beats.as_array() {
            // A monitor that has not been checked yet.
            Some(beats) if beats.is_empty() => return None,
            Some(beats) => beats.last().and_then(|beat| beat.get("status")),
            None => None,
        };
        Some((id, label(latest.unwrap_or(&Value::Null))))
    });
    let labels: BTreeMap<String, StateLabel> = latest.collect();
    Some(VendorPage { overall: overall(&labels), states_by_id: labels, ..VendorPage::default() })
}

/// Returns the name of the page that a host serves at its root.
pub(super) fn slug(body: &[u8]) -> Option<String> {
    let entry: Entry = lenient::object(body)?;
    let slug = match entry.kind.as_str() {
        "statusPageMatchedDomain" => entry.slug?,
        "entryPage" => entry.page?.strip_prefix("statusPage-")?.to_owned(),
        _ => return None,
    };
    is_id(&slug).then_some(slug)
}

fn label(status: &Value) -> StateLabel {
    let number = id_text(status).unwrap_or_default();
    let (text, state) = match number.as_str() {
        "0" => ("down", VendorState::MajorOutage),
        "1" => ("up", VendorState::Operational),
        "2" => ("pending", VendorState::Degraded),
        "3" => ("maintenance", VendorState::Maintenance),
        other => return StateLabel::new(&format!("status {other}"), None),
    };
    StateLabel::new(text, Some(state))
}

/// Computes the overall state as the page itself does, except that maintenance hides no outage.
fn overall(labels: &BTreeMap<String, StateLabel>) -> Option<StateLabel> {
    let count = |state| labels.values().filter(|label| label.state == state).count();
    let up = count(Some(VendorState::Operational));
    let planned = count(Some(VendorState::Maintenance));
    let ill = count(Some(VendorState::MajorOutage)) + count(Some(VendorState::Degraded));
    Some(match (ill, labels.values().find(|label| label.state.is_none())) {
        (0, Some(unknown)) => unknown.clone(),
        (0, None) if planned > 0 => StateLabel::new("maintenance", Some(VendorState::Maintenance)),
        (0, None) if up > 0 => StateLabel::new("up", Some(VendorState::Operational)),
        (0, None) => return None,
        _ if up + planned > 0 || count(None) > 0 => StateLabel::new("partially degraded", Some(VendorState::Degraded)),
        _ if count(Some(VendorState::MajorOutage)) == 0 => StateLabel::new("pending", Some(VendorState::Degraded)),
        _ => StateLabel::new("down", Some(VendorState::MajorOutage)),
    })
}
