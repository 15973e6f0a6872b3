//! The status document of a Parallax page.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{PageComponent, PageIncident, StateLabel, VendorPage, lenient};

#[derive(Deserialize)]
struct Document {
    /// Only its presence counts: it distinguishes this shape from others.
    #[serde(rename = "page", deserialize_with = "lenient::nullable")]
    _page: Map<String, Value>,
    #[serde(deserialize_with = "lenient::nullable")]
    status: Option<OverallStatus>,
    #[serde(deserialize_with = "lenient::entries")]
    monitors: Vec<Monitor>,
    #[serde(default, deserialize_with = "lenient::list")]
    incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct OverallStatus {
    #[serde(deserialize_with = "lenient::text")]
    indicator: String,
    #[serde(default, deserialize_with = "lenient::text")]
    headline: String,
}

#[derive(Deserialize)]
struct Monitor {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
    #[serde(default, deserialize_with = "lenient::some_text")]
    group: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, deserialize_with = "lenient::text")]
    title: String,
    #[serde(default, deserialize_with = "lenient::text")]
    status: String,
}

/// Reads the document; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let document: Document = lenient::object(body)?;
    if document.status.is_none() && document.monitors.is_empty() {
        return None;
    }
    // Without an overall state, the monitors determine it.
    let label = document.status.map(|OverallStatus { indicator, headline }| {
        let state = overall(&indicator);
        // The headline is for people; an unknown indicator is shown instead.
        let text = if state.is_some() && !headline.is_empty() { headline } else { indicator };
        StateLabel::new(&text, state)
    });
    let components = document.monitors.into_iter().map(|monitor| PageComponent {
        label: StateLabel::new(&monitor.status, status(&monitor.status)),
        name: monitor.name,
        group: monitor.group,
        ..PageComponent::default()
    });
    let open = document.incidents.into_iter().filter(|event| event.status != "resolved");
    Some(VendorPage {
        overall: label,
        components: components.collect(),
        incidents: open.map(|event| PageIncident { title: event.title, affected: None }).collect(),
        ..VendorPage::default()
    })
}

fn overall(indicator: &str) -> Option<VendorState> {
    Some(match indicator {
        "operational" | "none" => VendorState::Operational,
        "degraded" | "minor" => VendorState::Degraded,
        "partial" => VendorState::PartialOutage,
        "major" | "critical" => VendorState::MajorOutage,
        "maintenance" => VendorState::Maintenance,
        _ => return None,
    })
}

/// A monitor's `unknown` carries no information for its followers.
fn status(text: &str) -> Option<VendorState> {
    Some(match text {
        "up" => VendorState::Operational,
        "slow" => VendorState::Degraded,
        "down" => VendorState::MajorOutage,
        _ => return None,
    })
}
