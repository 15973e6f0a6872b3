//! The public document of Status.io, and the page's id, which only its HTML contains.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, id_text, lenient};

#[derive(Deserialize)]
struct Document {
    result: StatusResult,
}

#[derive(Deserialize)]
struct StatusResult {
    #[serde(deserialize_with = "lenient::nullable")]
    status_overall: Option<Part>,
    #[serde(default, deserialize_with = "lenient::entries")]
    status: Vec<Part>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    #[serde(default, deserialize_with = "lenient::nullable")]
    maintenance: Maintenance,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(default)]
    status_code: Value,
    #[serde(default, deserialize_with = "lenient::entries")]
    containers: Vec<Self>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::list")]
    components_affected: Vec<AffectedName>,
    #[serde(default, deserialize_with = "lenient::list")]
    containers_affected: Vec<AffectedName>,
}

#[derive(Deserialize)]
struct AffectedName {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
}

#[derive(Deserialize, Default)]
struct Maintenance {
    #[serde(default, deserialize_with = "lenient::list")]
    active: Vec<Value>,
}

/// Reads the document; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let result = lenient::object::<Document>(body)?.result;
    let components = result.status.iter().flat_map(|part| {
        let inner = part.containers.iter().map(|container| PageComponent {
            name: container.name.clone(),
            group: Some(part.name.clone()).filter(|name| !name.is_empty()),
            label: label(container),
            ..PageComponent::default()
        });
        let own = PageComponent { name: part.name.clone(), label: label(part), ..PageComponent::default() };
        std::iter::once(own).chain(inner)
    });
    let incidents = result.incidents.iter().map(|event| {
        let names = event.components_affected.iter().chain(&event.containers_affected);
        let names: Vec<_> = names.map(|named| named.name.clone()).collect();
        PageIncident { title: event.name.clone(), affected: Some(names).filter(|names| !names.is_empty()) }
    });
    Some(VendorPage {
        overall: result.status_overall.as_ref().map(label),
        components: components.collect(),
        incidents: incidents.collect(),
        in_maintenance: !result.maintenance.active.is_empty(),
        ..VendorPage::default()
    })
}

/// Returns the 24 hexadecimal digits that a page's script defines as `pageId`.
pub(super) fn page_id(body: &[u8]) -> Option<String> {
    let html = String::from_utf8_lossy(body);
    html.split("pageId").skip(1).find_map(|rest| {
        let given = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | '"' | '\''));
        let id = given.get(..24)?;
        let ends = given.get(24..).is_some_and(|rest| rest.starts_with(['"', '\'']));
        (ends && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
    })
}

/// Maps the code; the text, which a page may choose, counts only if there is none.
fn label(part: &Part) -> StateLabel {
    let state = match &part.status_code {
        Value::Null => state_of_text(&part.status),
        code => id_text(code).as_deref().and_then(state_of_code),
    };
    StateLabel::new(&part.status, state)
}

fn state_of_code(code: &str) -> Option<VendorState> {
    Some(match code {
        "100" => VendorState::Operational,
        "200" => VendorState::Maintenance,
        "300" | "600" => VendorState::Degraded,
        "400" => VendorState::PartialOutage,
        "500" => VendorState::MajorOutage,
        _ => return None,
    })
}

fn state_of_text(text: &str) -> Option<VendorState> {
    Some(match text {
        "Operational" => VendorState::Operational,
        "Planned Maintenance" => VendorState::Maintenance,
        "Degraded Performance" | "Security Event" => VendorState::Degraded,
        "Partial Service Disruption" => VendorState::PartialOutage,
        "Service Disruption" => VendorState::MajorOutage,
        _ => return None,
    })
}
