//! The list of monitors that UptimeRobot's public pages load, page by page.

use parallax_protocol::result::VendorState;
use serde::Deserialize;

use super::{PageComponent, StateLabel, VendorPage, lenient};

#[derive(Deserialize)]
struct Document {
    #[serde(deserialize_with = "lenient::nullable")]
    psp: Option<MonitorList>,
    /// Older deployments have the list here.
    #[serde(default, deserialize_with = "lenient::entries")]
    data: Vec<Monitor>,
}

#[derive(Deserialize)]
struct MonitorList {
    #[serde(default, deserialize_with = "lenient::entries")]
    monitors: Vec<Monitor>,
    #[serde(default, rename = "perPage", deserialize_with = "lenient::number")]
    per_sheet: Option<u64>,
    #[serde(rename = "totalMonitors", deserialize_with = "lenient::number")]
    total: Option<u64>,
}

#[derive(Deserialize)]
struct Monitor {
    #[serde(default, deserialize_with = "lenient::text")]
    name: String,
    #[serde(default, rename = "statusClass", deserialize_with = "lenient::text")]
    class: String,
}

/// Reads a page of the list; returns `None` for another shape.
pub(super) fn read(body: &[u8]) -> Option<VendorPage> {
    let Document { psp, data } = lenient::object(body)?;
    // Other products have a list there, too.
    if psp.is_none() && data.iter().all(|monitor| monitor.name.is_empty() && monitor.class.is_empty()) {
        return None;
    }
    let MonitorList { monitors, per_sheet, total } =
        psp.unwrap_or(MonitorList { monitors: Vec::new(), per_sheet: None, total: None });
    let monitors = if monitors.is_empty() { data } else { monitors };
    let count = monitors.len() as u64;
    let is_full = per_sheet.is_some_and(|most| count >= most);
    let components = monitors.into_iter().map(|monitor| PageComponent {
        label: StateLabel::new(&monitor.class, state(&monitor.class)),
        name: monitor.name,
        ..PageComponent::default()
    });
    Some(VendorPage {
        components: components.collect(),
        // A page contains the total length, but not its own number: only a full page can be followed by
        // another.
        has_next: count > 0 && total.map_or(is_full, |total| count < total && (is_full || per_sheet.is_none())),
        ..VendorPage::default()
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
