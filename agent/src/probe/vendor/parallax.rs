//! The status document of another Parallax page.

use parallax_protocol::result::VendorState;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Component, Incident, Page, Word};

#[derive(Deserialize)]
struct Document {
    /// Only its presence counts: it tells this shape from others.
    #[serde(rename = "page")]
    _page: Map<String, Value>,
    status: Whole,
    monitors: Vec<Monitor>,
    #[serde(default)]
    incidents: Vec<Event>,
}

#[derive(Deserialize)]
struct Whole {
    indicator: String,
    headline: String,
}

#[derive(Deserialize)]
struct Monitor {
    name: String,
    status: String,
    #[serde(default)]
    group: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    title: String,
    #[serde(default)]
    status: String,
}

/// Reads the document; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let document: Document = serde_json::from_slice(body).ok()?;
    let Whole { indicator, headline } = document.status;
    let state = overall(&indicator);
    // The headline is for people; an indicator that isn't known is shown itself.
    let shown = if state.is_some() && !headline.is_empty() { headline } else { indicator };
    let components = document.monitors.into_iter().map(|monitor| Component {
        word: Word::new(&monitor.status, status(&monitor.status)),
        name: monitor.name,
        group: monitor.group,
        ..Component::default()
    });
    let open = document.incidents.into_iter().filter(|event| event.status != "resolved");
    Some(Page {
        overall: Some(Word::new(&shown, state)),
        components: components.collect(),
        incidents: open.map(|event| Incident { title: event.title, touches: None }).collect(),
        ..Page::default()
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

/// A monitor's `unknown` is no word that means anything to whoever follows it.
fn status(word: &str) -> Option<VendorState> {
    Some(match word {
        "up" => VendorState::Operational,
        "slow" => VendorState::Degraded,
        "down" => VendorState::MajorOutage,
        _ => return None,
    })
}
