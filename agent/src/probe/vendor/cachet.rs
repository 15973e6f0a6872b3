//! Documents of Cachet, version 2 and version 3; the latter uses JSON:API.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, id_text, lenient};

/// Number of items per page of a list: a full page may be followed by another.
const PER_SHEET: usize = 100;

#[derive(Deserialize)]
struct StatusDocument {
    data: OverallStatus,
}

#[derive(Deserialize)]
#[serde(bound = "")]
struct PagedList<A: DeserializeOwned> {
    #[serde(deserialize_with = "lenient::whole_entries")]
    data: Vec<A>,
    #[serde(deserialize_with = "lenient::nullable")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(default, deserialize_with = "lenient::nullable")]
    pagination: Pagination,
}

#[derive(Deserialize, Default)]
struct Pagination {
    #[serde(default, deserialize_with = "lenient::number")]
    current_page: Option<u64>,
    #[serde(default, deserialize_with = "lenient::number")]
    total_pages: Option<u64>,
}

#[derive(Deserialize)]
struct Component2 {
    #[serde(default)]
    id: Value,
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default)]
    status: Value,
    /// State in the page's own language.
    #[serde(default, deserialize_with = "lenient::text")]
    status_name: String,
}

#[derive(Deserialize)]
struct Group2 {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::list")]
    enabled_components: Vec<Value>,
}

#[derive(Deserialize)]
struct Events {
    #[serde(deserialize_with = "lenient::whole_list")]
    data: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default)]
    status: Value,
}

#[derive(Deserialize)]
struct OverallStatus {
    #[serde(deserialize_with = "lenient::text")]
    status: String,
    #[serde(default, deserialize_with = "lenient::text")]
    message: String,
}

/// A list of version 3, with the resources that its items refer to.
#[derive(Deserialize)]
struct List3 {
    #[serde(deserialize_with = "lenient::whole_entries")]
    data: Vec<Item3>,
    #[serde(default, deserialize_with = "lenient::list")]
    included: Vec<Item3>,
    #[serde(default, deserialize_with = "lenient::nullable")]
    links: Links,
}

#[derive(Deserialize, Default)]
struct Links {
    #[serde(default, deserialize_with = "lenient::some_text")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item3 {
    #[serde(default)]
    id: Value,
    #[serde(default, rename = "type", deserialize_with = "lenient::text")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::nullable")]
    attributes: Attributes,
    #[serde(default)]
    relationships: Value,
}

#[derive(Deserialize, Default)]
struct Attributes {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    latest_status: Value,
}

/// Reads a list page of version 2's components; returns `None` for another shape.
pub(super) fn components2(body: &[u8]) -> Option<VendorPage> {
    let sheet: PagedList<Component2> = lenient::object(body)?;
    // Another API with paged lists.
    if !sheet.data.is_empty() && sheet.data.iter().all(|part| part.name.is_empty() || part.status_name.is_empty()) {
        return None;
    }
    let goes_on = sheet.has_next();
    let components = sheet.data.into_iter().map(|part| PageComponent {
        id: id_text(&part.id).unwrap_or_default(),
        label: StateLabel::new(&part.status_name, state(&part.status)),
        name: part.name,
        ..PageComponent::default()
    });
    let components = components.collect();
    Some(VendorPage { components, has_next: goes_on, ..VendorPage::default() })
}

/// Reads a list page of version 2's groups; returns `None` for another shape.
pub(super) fn groups2(body: &[u8]) -> Option<VendorPage> {
    let sheet: PagedList<Group2> = lenient::object(body)?;
    let goes_on = sheet.has_next();
    let groups = sheet.data.into_iter().flat_map(|group| {
        let Group2 { name, enabled_components } = group;
        enabled_components.into_iter().filter_map(move |part| Some((id_text(part.get("id")?)?, name.clone())))
    });
    Some(VendorPage { groups_by_id: groups.collect(), has_next: goes_on, ..VendorPage::default() })
}

/// Reads version 2's overall status; returns `None` for another shape.
pub(super) fn status2(body: &[u8]) -> Option<VendorPage> {
    whole(body, |status| {
        Some(match status {
            "success" => VendorState::Operational,
            "info" => VendorState::Degraded,
            "danger" => VendorState::MajorOutage,
            _ => return None,
        })
    })
}

/// Reads version 2's newest incidents; returns `None` for another shape.
pub(super) fn incidents2(body: &[u8]) -> Option<VendorPage> {
    Some(incidents(lenient::object::<Events>(body)?.data))
}

/// Reads a list page of version 3's components; returns `None` for another shape.
pub(super) fn components3(body: &[u8]) -> Option<VendorPage> {
    let list: List3 = lenient::object(body)?;
    let names: BTreeMap<String, &str> =
        list.included.iter().filter_map(|item| Some((id_text(&item.id)?, item.attributes.name.as_str()))).collect();
    if !list.data.is_empty() && list.data.iter().all(|item| item.kind.is_empty()) {
        return None;
    }
    let mut components = Vec::new();
    for item in &list.data {
        // Another JSON:API at the same address.
        if !matches!(item.kind.as_str(), "components" | "") {
            return None;
        }
        let group = item.relationships.pointer("/group/data/id").and_then(id_text);
        components.push(PageComponent {
            name: item.attributes.name.clone(),
            group: group.and_then(|id| names.get(&id)).map(|name| (*name).to_owned()),
            label: item.attributes.newest().map_or_else(
                || StateLabel::new("", None),
                |status| {
                    let human = status.get("human").and_then(id_text).unwrap_or_default();
                    StateLabel::new(&human, status.get("value").and_then(state))
                },
            ),
            ..PageComponent::default()
        });
    }
    Some(VendorPage { components, has_next: list.links.next.is_some(), ..VendorPage::default() })
}

/// Reads version 3's overall status; returns `None` for another shape.
pub(super) fn status3(body: &[u8]) -> Option<VendorPage> {
    whole(body, |status| {
        Some(match status {
            "operational" => VendorState::Operational,
            "performance_issues" => VendorState::Degraded,
            "partial_outage" => VendorState::PartialOutage,
            "major_outage" => VendorState::MajorOutage,
            "under_maintenance" => VendorState::Maintenance,
            _ => return None,
        })
    })
}

/// Reads version 3's newest incidents; returns `None` for another shape.
pub(super) fn incidents3(body: &[u8]) -> Option<VendorPage> {
    let list: List3 = lenient::object(body)?;
    let events = list.data.into_iter().filter_map(|item| {
        let status = item.attributes.newest()?.get("value")?.clone();
        Some(Event { name: item.attributes.name, status })
    });
    Some(incidents(events.collect()))
}

impl Attributes {
    /// Returns the latest status, which includes open incidents, or else its own.
    fn newest(&self) -> Option<&Value> {
        [&self.latest_status, &self.status].into_iter().find(|status| !status.is_null())
    }
}

fn whole(body: &[u8], state: fn(&str) -> Option<VendorState>) -> Option<VendorPage> {
    let OverallStatus { status, message } = lenient::object::<StatusDocument>(body)?.data;
    let label = match state(&status) {
        // The message is for people; an unknown status is shown instead.
        Some(state) if !message.is_empty() => StateLabel::new(&message, Some(state)),
        state => StateLabel::new(&status, state),
    };
    Some(VendorPage { overall: Some(label), ..VendorPage::default() })
}

/// Incidents in the states investigating, identified and watching are open.
fn incidents(events: Vec<Event>) -> VendorPage {
    let open = events
        .into_iter()
        .filter(|event| id_text(&event.status).is_some_and(|status| matches!(status.as_str(), "1" | "2" | "3")));
    VendorPage {
        incidents: open.map(|event| PageIncident { title: event.name, affected: None }).collect(),
        ..VendorPage::default()
    }
}

/// States of both versions; 0 and 5 are the page's own `unknown`.
fn state(number: &Value) -> Option<VendorState> {
    Some(match id_text(number)?.as_str() {
        "1" => VendorState::Operational,
        "2" => VendorState::Degraded,
        "3" => VendorState::PartialOutage,
        "4" => VendorState::MajorOutage,
        "6" => VendorState::Maintenance,
        _ => return None,
    })
}

impl<A: DeserializeOwned> PagedList<A> {
    fn has_next(&self) -> bool {
        let Pagination { current_page, total_pages } = self.meta.pagination;
        match current_page.zip(total_pages) {
            Some((current, total)) => current < total,
            None => self.data.len() >= PER_SHEET,
        }
    }
}
