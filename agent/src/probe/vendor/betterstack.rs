//! The document of Better Stack pages, in the form of JSON:API.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{Component, Incident, Page, Word};

#[derive(Deserialize)]
struct Document {
    data: Item<Whole>,
    #[serde(default)]
    included: Vec<Item<Value>>,
}

#[derive(Deserialize)]
struct Item<A> {
    #[serde(default)]
    id: Value,
    #[serde(rename = "type")]
    kind: String,
    attributes: A,
}

#[derive(Deserialize)]
struct Whole {
    aggregate_state: String,
}

#[derive(Deserialize)]
struct Resource {
    public_name: String,
    status: String,
    #[serde(default)]
    status_page_section_id: Value,
}

#[derive(Deserialize)]
struct Report {
    title: String,
    #[serde(default)]
    report_type: String,
    #[serde(default)]
    ends_at: Option<String>,
    #[serde(default)]
    affected_resources: Vec<Affected>,
}

#[derive(Deserialize)]
struct Affected {
    status_page_resource_id: Value,
}

/// Reads a page; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let document: Document = serde_json::from_slice(body).ok()?;
    let of_kind = |kind: &'static str| {
        document
            .included
            .iter()
            .filter(move |item| item.kind == kind)
            .map(|item| (key(&item.id), &item.attributes))
    };
    let sections: BTreeMap<String, String> = of_kind("status_page_section")
        .filter_map(|(id, section)| Some((id, section.get("name")?.as_str()?.to_owned())))
        .collect();
    let resources: BTreeMap<String, Resource> = of_kind("status_page_resource")
        .filter_map(|(id, resource)| Some((id, serde_json::from_value(resource.clone()).ok()?)))
        .collect();
    let components = resources.values().map(|resource| Component {
        name: resource.public_name.clone(),
        group: sections.get(&key(&resource.status_page_section_id)).cloned(),
        word: Word::new(&resource.status, state(&resource.status)),
        ..Component::default()
    });
    let reports: Vec<Report> = of_kind("status_report")
        .filter_map(|(_, report)| serde_json::from_value(report.clone()).ok())
        .filter(|report: &Report| report.ends_at.is_none())
        .collect();
    let incidents = reports.iter().filter(|report| report.report_type != "maintenance").map(|report| {
        let names = report.affected_resources.iter().filter_map(|affected| {
            Some(resources.get(&key(&affected.status_page_resource_id))?.public_name.clone())
        });
        Incident {
            title: report.title.clone(),
            touches: Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty()),
        }
    });
    let word = &document.data.attributes.aggregate_state;
    Some(Page {
        overall: Some(Word::new(word, state(word))),
        components: components.collect(),
        incidents: incidents.collect(),
        ..Page::default()
    })
}

/// Ids come as numbers and as texts.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn state(word: &str) -> Option<VendorState> {
    Some(match word {
        "operational" => VendorState::Operational,
        "degraded" => VendorState::Degraded,
        "downtime" => VendorState::MajorOutage,
        "maintenance" => VendorState::Maintenance,
        _ => return None,
    })
}
