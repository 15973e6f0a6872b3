//! Documents of the AWS health dashboard: current events, in UTF-16, and the list of services.

use std::collections::BTreeMap;

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::Value;

use super::{PageComponent, PageIncident, StateLabel, VendorPage, health_rank, id_text, lenient};

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    service: String,
    #[serde(default, deserialize_with = "lenient::text")]
    service_name: String,
    #[serde(default)]
    status: Value,
    #[serde(default, deserialize_with = "lenient::text")]
    summary: String,
    #[serde(default, deserialize_with = "lenient::nullable")]
    impacted_services: BTreeMap<String, ImpactedService>,
}

#[derive(Deserialize)]
#[serde(from = "Value")]
struct ImpactedService {
    service_name: String,
    current: Value,
}

impl From<Value> for ImpactedService {
    fn from(mut value: Value) -> Self {
        let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
        Self { service_name: id_text(&take("service_name")).unwrap_or_default(), current: take("current") }
    }
}

#[derive(Deserialize)]
struct Service {
    #[serde(default, deserialize_with = "lenient::text")]
    service: String,
    #[serde(default, deserialize_with = "lenient::text")]
    service_name: String,
    #[serde(default, deserialize_with = "lenient::some_text")]
    region_name: Option<String>,
}

/// Reads current events; an empty list means that there are none. Returns `None` for another shape.
pub(super) fn events(body: &[u8]) -> Option<VendorPage> {
    let events: Vec<Event> = lenient::items(body)?;
    let overall = events.iter().map(|event| label(&event.status)).min_by_key(|text| health_rank(text.state));
    let components = events.iter().flat_map(|event| {
        let impacted = event.impacted_services.iter().map(|(id, service)| PageComponent {
            name: service.service_name.clone(),
            group: Some(id.clone()),
            label: label(&service.current),
            ..PageComponent::default()
        });
        // A service has an id and a name: the id takes the place of a group.
        let own = PageComponent {
            name: event.service_name.clone(),
            group: Some(event.service.clone()),
            label: label(&event.status),
            ..PageComponent::default()
        };
        std::iter::once(own).chain(impacted)
    });
    let components = components.collect();
    let incidents = events.into_iter().filter(|event| label(&event.status).text != "resolved");
    let incidents = incidents.map(|event| {
        let impacted = event.impacted_services.into_values().map(|service| service.service_name);
        PageIncident {
            title: event.summary,
            affected: Some(std::iter::once(event.service_name).chain(impacted).collect()),
        }
    });
    Some(VendorPage {
        overall: Some(overall.unwrap_or_else(operational)),
        components,
        incidents: incidents.collect(),
        ..VendorPage::default()
    })
}

/// Reads the services: each is operational unless an event names it. Returns `None` for another shape.
pub(super) fn services(body: &[u8]) -> Option<VendorPage> {
    let services: Vec<Service> = lenient::items(body)?;
    if services.is_empty() {
        return None;
    }
    let components = services.into_iter().map(|service| PageComponent {
        name: match service.region_name.filter(|region| !service.service_name.contains(region.as_str())) {
            Some(region) => format!("{} ({region})", service.service_name),
            None => service.service_name,
        },
        group: Some(service.service),
        label: operational(),
        ..PageComponent::default()
    });
    Some(VendorPage { components: components.collect(), ..VendorPage::default() })
}

fn operational() -> StateLabel {
    StateLabel::new("no event", Some(VendorState::Operational))
}

fn label(status: &Value) -> StateLabel {
    let number = id_text(status).unwrap_or_default();
    let (text, state) = match number.as_str() {
        "0" => ("resolved", VendorState::Operational),
        "1" => ("informational", VendorState::Operational),
        "2" => ("degradation", VendorState::Degraded),
        "3" => ("disruption", VendorState::MajorOutage),
        other => return StateLabel::new(&format!("status {other}"), None),
    };
    StateLabel::new(text, Some(state))
}
