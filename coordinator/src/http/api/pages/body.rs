//! The body that changes a page.

use parallax_core::page::edit::PageEdit;

use crate::http::json::Object;
use crate::http::patch;

/// The fields as they were sent; others are ignored.
pub(super) fn read(body: &Object) -> PageEdit {
    PageEdit {
        name: patch::text(body, "name"),
        description: patch::text(body, "description"),
        support_url: patch::text(body, "supportUrl"),
        uptime_target: patch::number(body, "uptimeTarget"),
        timezone: patch::text(body, "timezone"),
        show_deploys: patch::flag(body, "showDeploys"),
        show_locations: patch::flag(body, "showLocations"),
        latency_regions: patch::regions(body, "latencyLocations"),
        uptime_regions: patch::regions(body, "uptimeRegions"),
    }
}
