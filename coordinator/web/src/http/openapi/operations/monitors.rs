//! Operations of monitors.

use ::http::Method;
use parallax_core::check::CheckKind;
use parallax_core::event::MonitorStatus;
use parallax_core::page_view::{MAX_POINTS, TimeRange};
use serde_json::{Value, json};

use crate::http::api::monitors::bulk::{self, BulkResultDocument};
use crate::http::api::monitors::history_view::{CheckList, CheckNowDocument, EventList, UptimeDayDocument};
use crate::http::api::monitors::latency::LatencyDocument;
use crate::http::api::monitors::{acknowledgement, body, order, pings::PingDocument, view::MonitorDocument};
use crate::http::openapi::operation::{ApiOperation, LIMIT_ABOUT, limit};
use crate::http::openapi::sample_shop::MONITOR;

const TAG: &str = "Monitors";
const ALL: &str = "/pages/{pageId}/monitors";
const ONE: &str = "/pages/{pageId}/monitors/{monitorId}";

const ACKNOWLEDGE: &str = "/pages/{pageId}/monitors/{monitorId}/acknowledge";

const BODY_ABOUT: &str = "Only fields relevant to the type count. Component monitors need the Pro plan; regions and \
per-region thresholds are stored on every plan and used on Hobby and Pro.";

pub(super) fn operations() -> Vec<ApiOperation> {
    let warnings = || {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": "Warnings for the owner, such as failures that no second network can confirm.",
            "examples": [[
                "failing from 6 regions, can't be confirmed, so it isn't called down",
                "no outage of this monitor can be confirmed, so it will not be called down: there are no two working \
                 agents on different networks",
            ]],
        })
    };
    let ranges = TimeRange::ALL.map(TimeRange::name);
    let statuses = MonitorStatus::ALL.map(MonitorStatus::name);
    vec![
        ApiOperation::new("listMonitors", Method::GET, ALL)
            .with_summary(TAG, "List a page's monitors")
            .about("In page order.")
            .query(
                "status",
                "Only monitors with this status: up, slow, down or unknown; separate several with commas.",
                json!({ "type": "string", "pattern": format!("^({all})(,({all}))*$", all = statuses.join("|")) }),
                "down,slow",
            )
            .responds::<Vec<MonitorDocument>>(200, "MonitorListResponse", "monitors", "The monitors."),
        ApiOperation::new("createMonitor", Method::POST, ALL)
            .with_summary(TAG, "Create a monitor")
            .about(BODY_ABOUT)
            .tool_description("Only fields relevant to the type count.")
            .reaches_out()
            .accepts("MonitorCreate", |description| body::read(description))
            .nullable(&["type", "name"])
            .responds::<MonitorDocument>(201, "MonitorResponse", "monitor", "The new monitor.")
            .with_field("warnings", warnings()),
        ApiOperation::new("getMonitor", Method::GET, ONE)
            .with_summary(TAG, "Show a monitor")
            .about("Settings, state and 24-hour statistics.")
            .responds::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor.")
            .with_field("warnings", warnings()),
        ApiOperation::new("updateMonitor", Method::PATCH, ONE)
            .with_summary(TAG, "Change a monitor")
            .about(BODY_ABOUT)
            .tool_description("Only fields relevant to its type count.")
            .reaches_out()
            .accepts("MonitorUpdate", |description| body::read_change(description))
            .responds::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor after the change.")
            .with_field("warnings", warnings()),
        ApiOperation::new("deleteMonitor", Method::DELETE, ONE)
            .with_summary(TAG, "Delete a monitor")
            .about(
                "Removes the monitor and its history. This can't be undone. If it is down, its automatic incident \
                 ends.",
            )
            .query(
                "notify",
                "Notify subscribers that its incident is over because it is no longer monitored. Default: false.",
                json!({ "type": "boolean" }),
                false,
            )
            .responds_empty("Deleted."),
        ApiOperation::new("updateMonitors", Method::POST, "/pages/{pageId}/monitors/bulk")
            .with_summary(TAG, "Change or delete many monitors")
            .reaches_out()
            .overwrites()
            .about(
                "Sets the same fields on up to 500 monitors, or deletes them. Fields that do not apply to a monitor's \
                 type do not count. Each monitor has a result, in the order of `monitorIds`: a refused one does not \
                 stop the others. All changes are made together.",
            )
            .tool_description("Sets the same fields on each, or deletes them. A refused one does not stop the others.")
            .accepts("MonitorsUpdate", |description| bulk::read(description))
            .responds::<Vec<BulkResultDocument>>(
                200,
                "MonitorsUpdateResponse",
                "results",
                "The result of each monitor.",
            )
            .with_field("warnings", ApiOperation::warnings_schema()),
        ApiOperation::new("updateMonitorOrder", Method::PATCH, "/pages/{pageId}/monitors/order")
            .with_summary(TAG, "Order a page's monitors")
            .about("`monitorIds` names every monitor of the page once. The order is changed as a whole or not at all.")
            .tool_description("Name every monitor of the page once.")
            .accepts("MonitorOrder", |description| order::read(description))
            .responds::<Vec<String>>(200, "MonitorOrderResponse", "monitorIds", "Ids of the monitors in page order.")
            .with_field("warnings", ApiOperation::warnings_schema()),
        ApiOperation::new("checkMonitor", Method::POST, "/pages/{pageId}/monitors/{monitorId}/check")
            .with_summary(TAG, "Check a monitor now")
            .runs_every_time()
            .reaches_out()
            .about(
                "Runs one check in each of the monitor's regions, from an agent that can run its type, \
                 and returns the results within 15 seconds. They don't affect status or uptime.",
            )
            .tool_description(
                "One agent in each region checks now, within 15 seconds. Status and uptime are unaffected.",
            )
            .responds::<Vec<CheckNowDocument>>(200, "CheckNowResponse", "regions", "The result of each region."),
        ApiOperation::new("testMonitor", Method::POST, "/pages/{pageId}/monitors/test")
            .with_summary(TAG, "Test a monitor before it is saved")
            .runs_every_time()
            .reaches_out()
            .about(
                "Takes the body of a new monitor, runs one check in each region, and returns the results within 15 \
                 seconds. Nothing is saved. Heartbeats can't be tested. At most 20 tests a minute for an account.",
            )
            .tool_description("One agent in each region checks now, within 15 seconds. Nothing is saved.")
            .fields_of_tool("create_monitor")
            .accepts("MonitorTest", |description| body::read(description))
            .nullable(&["type", "name"])
            .without(&["periodMinutes", "graceMinutes"])
            .without_value("type", CheckKind::Heartbeat.name())
            .responds::<Vec<CheckNowDocument>>(200, "MonitorTestResponse", "regions", "The result of each region.")
            .with_field("warnings", ApiOperation::warnings_schema()),
        ApiOperation::new("acknowledgeOutage", Method::POST, ACKNOWLEDGE)
            .with_summary(TAG, "Acknowledge a monitor's running outage")
            .about(
                "Records under the key's name that somebody works on it, and stops the still-down alerts of this outage. \
                 The next outage isn't acknowledged. A repetition keeps the first acknowledgement and returns it. The \
                 body is optional.",
            )
            .tool_description("Stops its still-down alerts. Only while down.")
            .accepts("OutageAcknowledgement", |description| acknowledgement::read(description))
            .body_optional()
            .responds::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor.")
            .with_field("warnings", warnings()),
        ApiOperation::new("deleteAcknowledgement", Method::DELETE, ACKNOWLEDGE)
            .with_summary(TAG, "Take back an acknowledgement")
            .about("Still-down alerts go on with the next interval. Without an acknowledgement nothing changes.")
            .tool_description("Still-down alerts go on.")
            .responds_empty("The outage isn't acknowledged."),
        ApiOperation::new("listChecks", Method::GET, "/pages/{pageId}/monitors/{monitorId}/checks")
            .with_summary(TAG, "List a monitor's finished checks")
            .about("Newest first. Each agent's outcome is kept for rounds that did not simply pass.")
            .tool_description("Newest first.")
            .query(
                "cursor",
                "Cursor: `nextCursor` of the previous page.",
                json!({ "type": "string" }),
                "1772357405000-0",
            )
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds_bare::<CheckList>("CheckListResponse", "The checks."),
        ApiOperation::new("listEvents", Method::GET, "/pages/{pageId}/monitors/{monitorId}/events")
            .with_summary(TAG, "List a monitor's events, with evidence")
            .about("Newest first, each with the rounds that led to it and each agent's outcome and network.")
            .query("cursor", "Cursor: `nextCursor` of the previous page.", json!({ "type": "string" }), "48213")
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds_bare::<EventList>("EventListResponse", "The events."),
        ApiOperation::new("listPageEvents", Method::GET, "/pages/{pageId}/events")
            .with_summary(TAG, "List the events of a page's monitors")
            .about(
                "Newest first, in the form of a monitor's events. A page may hold fewer items than `limit`, or none, and \
                 still have a `nextCursor`.",
            )
            .tool_description("Newest first.")
            .query("monitor", "Only events of this monitor.", json!({ "type": "string" }), MONITOR.to_string())
            .query("cursor", "Cursor: `nextCursor` of the previous page.", json!({ "type": "string" }), "48213")
            .query("limit", LIMIT_ABOUT, limit(), 20)
            .responds_bare::<EventList>("EventListResponse", "The events."),
        ApiOperation::new("getUptime", Method::GET, "/pages/{pageId}/monitors/{monitorId}/uptime")
            .with_summary(TAG, "Show a monitor's daily uptime")
            .about(
                "Days are in the page's time zone. For heartbeat and component monitors, uptime is the share of time \
                 not down, without pauses and maintenance. Their outages are kept for 400 days, but only the newest \
                 96; earlier days are null. If a day has more than 96 outages, the first ones are kept as a total.",
            )
            .tool_description("Days are in the page's time zone.")
            .query("from", "The first day.", date(), "2026-03-01")
            .query("to", "The last day.", date(), "2026-03-31")
            .responds::<Vec<UptimeDayDocument>>(200, "UptimeResponse", "days", "The days."),
        ApiOperation::new("getLatency", Method::GET, "/pages/{pageId}/monitors/{monitorId}/latency")
            .with_summary(TAG, "Show a monitor's response times by region")
            .about(
                "A line for each region, in buckets of equal length: the median of each, with the lowest and highest. \
                 A monitor that is younger than the range has a shorter one with finer buckets.",
            )
            .tool_description("Medians by region, in buckets of equal length.")
            .query("range", "Default: 24h.", json!({ "type": "string", "enum": ranges }), "7d")
            .query(
                "points",
                "Maximum number of points in a line. Default: 96.",
                json!({ "type": "integer", "minimum": 1, "maximum": MAX_POINTS }),
                24,
            )
            .responds::<LatencyDocument>(200, "LatencyResponse", "latency", "The response times."),
        ApiOperation::new("listPings", Method::GET, "/pages/{pageId}/monitors/{monitorId}/pings")
            .with_summary(TAG, "List a heartbeat monitor's latest pings")
            .about("The last ten, newest first.")
            .responds::<Vec<PingDocument>>(200, "PingListResponse", "pings", "The pings."),
    ]
}

fn date() -> Value {
    json!({ "type": "string", "format": "date", "examples": ["2026-11-28"] })
}
