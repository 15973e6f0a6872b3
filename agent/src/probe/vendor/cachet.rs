//! The documents of Cachet, of version 2 and of version 3, which is in the form of JSON:API.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Component, Incident, Page, Word, plain};

#[derive(Deserialize)]
struct Of<A> {
    data: A,
}

#[derive(Deserialize)]
struct Sheets<A> {
    data: Vec<A>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    current_page: u64,
    total_pages: u64,
}

#[derive(Deserialize)]
struct Part2 {
    id: Value,
    name: String,
    status: Value,
    /// In the page's own language.
    status_name: String,
}

#[derive(Deserialize)]
struct Group2 {
    name: String,
    #[serde(default)]
    enabled_components: Vec<Value>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    status: Value,
}

#[derive(Deserialize)]
struct Whole {
    status: String,
    #[serde(default)]
    message: String,
}

/// Version 3: a list, and what its items refer to.
#[derive(Deserialize)]
struct List3 {
    data: Vec<Item3>,
    #[serde(default)]
    included: Vec<Item3>,
    #[serde(default)]
    links: Links,
}

#[derive(Deserialize, Default)]
struct Links {
    #[serde(default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item3 {
    #[serde(default)]
    id: Value,
    #[serde(default, rename = "type")]
    kind: String,
    attributes: Attributes,
    #[serde(default)]
    relationships: Value,
}

#[derive(Deserialize)]
struct Attributes {
    name: String,
    #[serde(default)]
    status: Option<Status3>,
    #[serde(default)]
    latest_status: Option<Status3>,
}

#[derive(Deserialize)]
struct Status3 {
    #[serde(default)]
    human: String,
    value: Value,
}

/// Reads a sheet of version 2's components; `None` for another shape.
pub(super) fn components2(body: &[u8]) -> Option<Page> {
    let sheet: Sheets<Part2> = serde_json::from_slice(body).ok()?;
    let components = sheet.data.into_iter().map(|part| Component {
        id: plain(&part.id).unwrap_or_default(),
        word: Word::new(&part.status_name, state(&part.status)),
        name: part.name,
        ..Component::default()
    });
    let components = components.collect();
    Some(Page { components, goes_on: sheet.meta.goes_on(), ..Page::default() })
}

/// Reads a sheet of version 2's groups; `None` for another shape.
pub(super) fn groups2(body: &[u8]) -> Option<Page> {
    let sheet: Sheets<Group2> = serde_json::from_slice(body).ok()?;
    let goes_on = sheet.meta.goes_on();
    let groups = sheet.data.into_iter().flat_map(|group| {
        let Group2 { name, enabled_components } = group;
        enabled_components.into_iter().filter_map(move |part| Some((plain(part.get("id")?)?, name.clone())))
    });
    Some(Page { groups: groups.collect(), goes_on, ..Page::default() })
}

/// Reads version 2's word for the whole; `None` for another shape.
pub(super) fn status2(body: &[u8]) -> Option<Page> {
    whole(body, |word| {
        Some(match word {
            "success" => VendorState::Operational,
            "info" => VendorState::Degraded,
            "danger" => VendorState::MajorOutage,
            _ => return None,
        })
    })
}

/// Reads version 2's newest incidents; `None` for another shape.
pub(super) fn incidents2(body: &[u8]) -> Option<Page> {
    Some(incidents(parsed::<Of<Vec<Event>>>(body)?.data))
}

/// Reads a sheet of version 3's components; `None` for another shape.
pub(super) fn components3(body: &[u8]) -> Option<Page> {
    let list: List3 = parsed(body)?;
    let names: BTreeMap<String, &str> = list
        .included
        .iter()
        .filter_map(|item| Some((plain(&item.id)?, item.attributes.name.as_str())))
        .collect();
    let mut components = Vec::new();
    for item in &list.data {
        // Another JSON:API at the same place.
        if item.kind != "components" {
            return None;
        }
        let group = item.relationships.pointer("/group/data/id").and_then(plain);
        // The latest counts open incidents in.
        let status = item.attributes.latest_status.as_ref().or(item.attributes.status.as_ref());
        components.push(Component {
            name: item.attributes.name.clone(),
            group: group.and_then(|id| names.get(&id)).map(|name| (*name).to_owned()),
            word: status
                .map(|status| Word::new(&status.human, state(&status.value)))
                .unwrap_or_else(|| Word::new("no status", None)),
            ..Component::default()
        });
    }
    Some(Page { components, goes_on: list.links.next.is_some(), ..Page::default() })
}

/// Reads version 3's word for the whole; `None` for another shape.
pub(super) fn status3(body: &[u8]) -> Option<Page> {
    whole(body, |word| {
        Some(match word {
            "operational" => VendorState::Operational,
            "performance_issues" => VendorState::Degraded,
            "partial_outage" => VendorState::PartialOutage,
            "major_outage" => VendorState::MajorOutage,
            "under_maintenance" => VendorState::Maintenance,
            _ => return None,
        })
    })
}

/// Reads version 3's newest incidents; `None` for another shape.
pub(super) fn incidents3(body: &[u8]) -> Option<Page> {
    let list: List3 = parsed(body)?;
    let events = list.data.into_iter().filter_map(|item| {
        let Attributes { name, status, latest_status } = item.attributes;
        Some(Event { name, status: latest_status.or(status)?.value })
    });
    Some(incidents(events.collect()))
}

fn parsed<A: DeserializeOwned>(body: &[u8]) -> Option<A> {
    serde_json::from_slice(body).ok()
}

fn whole(body: &[u8], state: fn(&str) -> Option<VendorState>) -> Option<Page> {
    let Whole { status, message } = parsed::<Of<Whole>>(body)?.data;
    let word = match state(&status) {
        // The message is for people; a word that isn't known is shown itself.
        Some(state) if !message.is_empty() => Word::new(&message, Some(state)),
        state => Word::new(&status, state),
    };
    Some(Page { overall: Some(word), ..Page::default() })
}

/// Investigated, identified and watched ones are open.
fn incidents(events: Vec<Event>) -> Page {
    let open = events.into_iter().filter(|event| {
        plain(&event.status).is_some_and(|status| matches!(status.as_str(), "1" | "2" | "3"))
    });
    Page {
        incidents: open.map(|event| Incident { title: event.name, touches: None }).collect(),
        ..Page::default()
    }
}

/// Of both versions; 0 and 5 are the page's own `unknown`.
fn state(number: &Value) -> Option<VendorState> {
    Some(match plain(number)?.as_str() {
        "1" => VendorState::Operational,
        "2" => VendorState::Degraded,
        "3" => VendorState::PartialOutage,
        "4" => VendorState::MajorOutage,
        "6" => VendorState::Maintenance,
        _ => return None,
    })
}

impl Meta {
    fn goes_on(&self) -> bool {
        self.pagination.current_page < self.pagination.total_pages
    }
}
