//! The JSON:API document of Better Stack pages.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, lenient};

#[derive(Deserialize)]
struct Document {
    #[serde(deserialize_with = "lenient::nullable")]
    data: Option<Item<PageAttributes>>,
    #[serde(default, deserialize_with = "lenient::entries")]
    included: Vec<Item<Value>>,
}

#[derive(Deserialize)]
struct Item<A> {
    #[serde(default)]
    id: Value,
    #[serde(default, rename = "type", deserialize_with = "lenient::text")]
    kind: String,
    #[serde(
        default = "Option::default",
        deserialize_with = "Option::deserialize",
        bound(deserialize = "A: Deserialize<'de>")
    )]
    attributes: Option<A>,
}

#[derive(Deserialize)]
struct PageAttributes {
    #[serde(deserialize_with = "lenient::text")]
    aggregate_state: String,
}

#[derive(Deserialize, Default)]
struct Resource {
    #[serde(default, deserialize_with = "lenient::text")]
    public_name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(default)]
    status_page_section_id: Value,
}

#[derive(Deserialize)]
struct Report {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
    #[serde(default, deserialize_with = "lenient::text")]
    report_type: String,
    #[serde(default, deserialize_with = "lenient::some_text")]
    ends_at: Option<String>,
    #[serde(default, deserialize_with = "lenient::list")]
    affected_resources: Vec<AffectedResource>,
}

#[derive(Deserialize)]
struct AffectedResource {
    #[serde(default)]
    status_page_resource_id: Value,
}

/// Reads a page; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let document: Document = lenient::object(body)?;
    let of_kind = |kind: &'static str| {
        document
            .included
            .iter()
            .filter(move |item| item.kind == kind)
            .filter_map(|item| Some((key(&item.id), item.attributes.as_ref()?)))
    };
    let sections: BTreeMap<String, String> = of_kind("status_page_section")
        .filter_map(|(id, section)| Some((id, section.get("name")?.as_str()?.to_owned())))
        .collect();
    // An unreadable item is kept, without a name or a known state; so is any that may be a resource.
    let resources: BTreeMap<String, Resource> = document
        .included
        .iter()
        .filter(|item| item.kind == "status_page_resource")
        .map(|item| {
            let resource = item.attributes.as_ref().and_then(|it| serde_json::from_value(it.clone()).ok());
            (key(&item.id), resource.unwrap_or_default())
        })
        .collect();
    if document.data.as_ref().is_none_or(|page| page.attributes.is_none()) && resources.is_empty() {
        return None;
    }
    let unread = document.included.iter().filter(|item| item.kind.is_empty());
    let unread = unread.map(|_| PageComponent { label: StateLabel::new("", None), ..PageComponent::default() });
    let components = resources.values().map(|resource| PageComponent {
        name: resource.public_name.clone(),
        group: sections.get(&key(&resource.status_page_section_id)).cloned(),
        label: StateLabel::new(&resource.status, state(&resource.status)),
        ..PageComponent::default()
    });
    let reports: Vec<Report> = of_kind("status_report")
        .filter_map(|(_, report)| serde_json::from_value(report.clone()).ok())
        .filter(|report: &Report| report.ends_at.is_none())
        .collect();
    let incidents = reports.iter().filter(|report| report.report_type != "maintenance").map(|report| {
        let names = report
            .affected_resources
            .iter()
            .filter_map(|affected| Some(resources.get(&key(&affected.status_page_resource_id))?.public_name.clone()));
        PageIncident {
            title: report.title.clone(),
            affected: Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty()),
        }
    });
    let status = document.data.and_then(|page| page.attributes).map(|page| page.aggregate_state);
    Some(VendorPage {
        overall: status.map(|status| StateLabel::new(&status, state(&status))),
        components: components.chain(unread).collect(),
        incidents: incidents.collect(),
        ..VendorPage::default()
    })
}

/// Ids are numbers or strings.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn state(status: &str) -> Option<VendorState> {
    Some(match status {
        "operational" => VendorState::Operational,
        "degraded" => VendorState::Degraded,
        "downtime" => VendorState::MajorOutage,
        "maintenance" => VendorState::Maintenance,
        _ => return None,
    })
}
