//! The public document of Status.io, and the page's id, which only its HTML contains.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{Component, Incident, Page, Word, lenient, plain};

#[derive(Deserialize)]
struct Document {
    result: Whole,
}

#[derive(Deserialize)]
struct Whole {
    #[serde(deserialize_with = "lenient::nullable")]
    status_overall: Option<Part>,
    #[serde(default, deserialize_with = "lenient::entries")]
    status: Vec<Part>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
    #[serde(default, deserialize_with = "lenient::nullable")]
    maintenance: Planned,
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
    components_affected: Vec<Named>,
    #[serde(default, deserialize_with = "lenient::list")]
    containers_affected: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
}

#[derive(Deserialize, Default)]
struct Planned {
    #[serde(default, deserialize_with = "lenient::list")]
    active: Vec<Value>,
}

/// Reads the document; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let whole = lenient::object::<Document>(body)?.result;
    let components = whole.status.iter().flat_map(|part| {
        let inner = part.containers.iter().map(|container| Component {
            name: container.name.clone(),
            group: Some(part.name.clone()).filter(|name| !name.is_empty()),
            word: word(container),
            ..Component::default()
        });
        let own = Component { name: part.name.clone(), word: word(part), ..Component::default() };
        std::iter::once(own).chain(inner)
    });
    let incidents = whole.incidents.iter().map(|event| {
        let names = event.components_affected.iter().chain(&event.containers_affected);
        let names: Vec<_> = names.map(|named| named.name.clone()).collect();
        Incident { title: event.name.clone(), touches: Some(names).filter(|names| !names.is_empty()) }
    });
    Some(Page {
        overall: whole.status_overall.as_ref().map(word),
        components: components.collect(),
        incidents: incidents.collect(),
        in_maintenance: !whole.maintenance.active.is_empty(),
        ..Page::default()
    })
}

/// Returns the 24 hexadecimal digits that a page's script defines as `pageId`.
pub(super) fn page_id(body: &[u8]) -> Option<String> {
    let html = String::from_utf8_lossy(body);
    html.split("pageId").skip(1).find_map(|rest| {
        let given =
            rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | '"' | '\''));
        let id = given.get(..24)?;
        let ends = given.get(24..).is_some_and(|rest| rest.starts_with(['"', '\'']));
        (ends && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
    })
}

/// Maps the code; the text, which a page may choose, counts only if there is none.
fn word(part: &Part) -> Word {
    let state = match &part.status_code {
        Value::Null => named(&part.status),
        code => plain(code).as_deref().and_then(coded),
    };
    Word::new(&part.status, state)
}

fn coded(code: &str) -> Option<VendorState> {
    Some(match code {
        "100" => VendorState::Operational,
        "200" => VendorState::Maintenance,
        "300" | "600" => VendorState::Degraded,
        "400" => VendorState::PartialOutage,
        "500" => VendorState::MajorOutage,
        _ => return None,
    })
}

fn named(word: &str) -> Option<VendorState> {
    Some(match word {
        "Operational" => VendorState::Operational,
        "Planned Maintenance" => VendorState::Maintenance,
        "Degraded Performance" | "Security Event" => VendorState::Degraded,
        "Partial Service Disruption" => VendorState::PartialOutage,
        "Service Disruption" => VendorState::MajorOutage,
        _ => return None,
    })
}
