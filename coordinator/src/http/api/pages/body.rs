//! The bodies that make and change a page.

use parallax_core::page::edit::PageEdit;

use crate::http::json::Object;
use crate::http::patch;
use crate::service::pages::making::NewPage;

/// A new page: what may be changed later, and the address label.
pub(super) fn read_new(body: &Object) -> NewPage {
    NewPage { slug: patch::text(body, "slug"), edit: read(body) }
}

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
