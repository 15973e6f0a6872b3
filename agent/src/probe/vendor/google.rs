//! Documents of Google's dashboards: years of incidents, of which some may be open, and the products.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, health_rank, lenient};

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    external_desc: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status_impact: String,
    #[serde(default, deserialize_with = "lenient::some_text")]
    end: Option<String>,
    #[serde(default, deserialize_with = "lenient::list")]
    affected_products: Vec<Product>,
}

#[derive(Deserialize)]
struct Products {
    #[serde(deserialize_with = "lenient::whole_list")]
    products: Vec<Product>,
}

#[derive(Deserialize)]
struct Product {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
}

/// Reads the incidents; returns `None` for another shape.
pub(super) fn incidents(body: &[u8]) -> Option<VendorPage> {
    let events: Vec<Event> = lenient::items(body)?;
    // The list covers years; an empty one is another document.
    if events.iter().all(|event| event.external_desc.is_empty() && event.status_impact.is_empty()) {
        return None;
    }
    let open: Vec<Event> = events.into_iter().filter(|event| event.end.as_deref().is_none_or(str::is_empty)).collect();
    let labels = open.iter().map(|event| StateLabel::new(&event.status_impact, state(&event.status_impact)));
    let overall = labels.min_by_key(|label| health_rank(label.state)).unwrap_or_else(operational);
    let components = open.iter().flat_map(|event| {
        event.affected_products.iter().map(|product| PageComponent {
            name: product.title.clone(),
            label: StateLabel::new(&event.status_impact, state(&event.status_impact)),
            ..PageComponent::default()
        })
    });
    let components = components.collect();
    let incidents = open
        .into_iter()
        .map(|event| PageIncident {
            title: event.external_desc,
            affected: Some(event.affected_products.into_iter().map(|product| product.title).collect()),
        })
        .collect();
    Some(VendorPage { overall: Some(overall), components, incidents, ..VendorPage::default() })
}

/// Reads the products: each is operational unless an open incident names it. Returns `None` for another
/// shape.
pub(super) fn products(body: &[u8]) -> Option<VendorPage> {
    let list: Products = lenient::object(body)?;
    let components = list.products.into_iter().map(|product| PageComponent {
        name: product.title,
        label: operational(),
        ..PageComponent::default()
    });
    Some(VendorPage { components: components.collect(), ..VendorPage::default() })
}

fn operational() -> StateLabel {
    StateLabel::new("AVAILABLE", Some(VendorState::Operational))
}

fn state(impact: &str) -> Option<VendorState> {
    Some(match impact {
        "AVAILABLE" | "SERVICE_INFORMATION" => VendorState::Operational,
        "SERVICE_DISRUPTION" => VendorState::Degraded,
        "SERVICE_OUTAGE" => VendorState::MajorOutage,
        _ => return None,
    })
}
