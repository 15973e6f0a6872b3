//! The body that makes or changes a monitor.

use parallax_core::check::edit::CheckEdit;
use parallax_core::monitor::edit::MonitorEdit;

use crate::http::json::Object;
use crate::http::patch;

/// The fields as they were sent; others are ignored, and so are later those that do not belong to the type.
pub(super) fn read(body: &Object) -> MonitorEdit {
    MonitorEdit {
        kind: patch::text(body, "type"),
        name: patch::text(body, "name"),
        group: patch::text(body, "groupName"),
        slow_threshold_ms: patch::whole(body, "slowThresholdMs"),
        slow_thresholds: patch::thresholds(body, "slowThresholds"),
        latency_regions: patch::regions(body, "latencyLocations"),
        pinned: patch::text(body, "pinnedRegion"),
        paused: patch::flag(body, "paused"),
        check: CheckEdit {
            url: patch::text(body, "url"),
            host: patch::text(body, "host"),
            port: patch::whole(body, "port"),
            dns_type: patch::text(body, "dnsType"),
            dns_expect: patch::text(body, "dnsExpect"),
            warn_days: patch::whole(body, "warnDays"),
            period_minutes: patch::whole(body, "periodMinutes"),
            grace_minutes: patch::whole(body, "graceMinutes"),
            vendor_url: patch::text(body, "vendorUrl"),
            vendor_component: patch::text(body, "vendorComponent"),
            method: patch::text(body, "method"),
            headers: patch::pairs(body, "headers"),
            body: patch::text(body, "body"),
            expect_status: patch::whole(body, "expectStatus"),
            keyword: patch::text(body, "keyword"),
            keyword_mode: patch::text(body, "keywordMode"),
        },
    }
}
