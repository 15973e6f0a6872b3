//! The list of monitors that UptimeRobot's public pages read, sheet by sheet.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{Component, Page, Word};

#[derive(Deserialize)]
struct Document {
    psp: Sheet,
    /// Older deployments have the list here.
    #[serde(default)]
    data: Vec<Monitor>,
}

#[derive(Deserialize)]
struct Sheet {
    #[serde(default)]
    monitors: Vec<Monitor>,
    #[serde(default, rename = "perPage")]
    per_sheet: u64,
    #[serde(rename = "totalMonitors")]
    total: u64,
}

#[derive(Deserialize)]
struct Monitor {
    name: String,
    #[serde(rename = "statusClass")]
    class: String,
}

/// Reads a sheet; `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<Page> {
    let Document { psp, data } = serde_json::from_slice(body).ok()?;
    let monitors = if psp.monitors.is_empty() { data } else { psp.monitors };
    let count = monitors.len() as u64;
    let components = monitors.into_iter().map(|monitor| Component {
        word: Word::new(&monitor.class, state(&monitor.class)),
        name: monitor.name,
        ..Component::default()
    });
    Some(Page {
        components: components.collect(),
        // A sheet says how long the whole list is, but not which sheet it is: only a full one can have a next.
        goes_on: count > 0 && count < psp.total && count >= psp.per_sheet,
        ..Page::default()
    })
}

fn state(class: &str) -> Option<VendorState> {
    Some(match class {
        "success" => VendorState::Operational,
        "warning" => VendorState::Degraded,
        "danger" => VendorState::MajorOutage,
        "black" | "paused" | "info" => VendorState::Maintenance,
        _ => return None,
    })
}
