//! Operations of monitors.

use ::http::Method;
use parallax_core::event::Status;
use serde_json::{Value, json};

use crate::http::api::monitors::seen::{CheckList, DayDocument, EventList, SightingDocument};
use crate::http::api::monitors::{body, pings::PingDocument, view::MonitorDocument};
use crate::http::openapi::operation::{LIMIT, Operation, limit};

const TAG: &str = "Monitors";
const ALL: &str = "/pages/{pageId}/monitors";
const ONE: &str = "/pages/{pageId}/monitors/{monitorId}";

const SENT: &str = "Only fields relevant to the type count. Component monitors need the Pro plan; regions and \
per-region thresholds are stored on every plan and used on Hobby and Pro.";

pub(super) fn operations() -> Vec<Operation> {
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
    let statuses = Status::ALL.map(Status::name);
    vec![
        Operation::new("listMonitors", Method::GET, ALL)
            .does(TAG, "List a page's monitors")
            .about("In page order.")
            .query(
                "status",
                "Only monitors with this status: up, slow, down or unknown; separate several with commas.",
                json!({ "type": "string", "pattern": format!("^({all})(,({all}))*$", all = statuses.join("|")) }),
                "down,slow",
            )
            .gives::<Vec<MonitorDocument>>(200, "MonitorListResponse", "monitors", "The monitors."),
        Operation::new("createMonitor", Method::POST, ALL)
            .does(TAG, "Create a monitor")
            .about(SENT)
            .note("Only fields relevant to the type count.")
            .reaches_out()
            .takes("MonitorCreate", |description| body::read(description))
            .may_be_null(&["type", "name"])
            .gives::<MonitorDocument>(201, "MonitorResponse", "monitor", "The new monitor.")
            .beside("warnings", warnings()),
        Operation::new("getMonitor", Method::GET, ONE)
            .does(TAG, "Show a monitor")
            .about("Settings, state and 24-hour statistics.")
            .gives::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor.")
            .beside("warnings", warnings()),
        Operation::new("updateMonitor", Method::PATCH, ONE)
            .does(TAG, "Change a monitor")
            .about(SENT)
            .note("Only fields relevant to its type count.")
            .reaches_out()
            .takes("MonitorUpdate", |description| body::read_change(description))
            .gives::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor after the change.")
            .beside("warnings", warnings()),
        Operation::new("deleteMonitor", Method::DELETE, ONE)
            .does(TAG, "Delete a monitor")
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
            .gives_nothing("Deleted."),
        Operation::new("checkMonitor", Method::POST, "/pages/{pageId}/monitors/{monitorId}/check")
            .does(TAG, "Check a monitor now")
            .each_time()
            .reaches_out()
            .about(
                "Runs one check in each of the monitor's regions, from an agent that can run its type, \
                 and returns the results within 15 seconds. They don't affect status or uptime.",
            )
            .note("One agent in each region checks now, within 15 seconds. Status and uptime are unaffected.")
            .gives::<Vec<SightingDocument>>(200, "CheckNowResponse", "regions", "The result of each region."),
        Operation::new("listChecks", Method::GET, "/pages/{pageId}/monitors/{monitorId}/checks")
            .does(TAG, "List a monitor's finished checks")
            .about(
                "Newest first. Each agent's outcome is kept for rounds that did not simply pass.",
            )
            .note("Newest first.")
            .query("cursor", "Cursor: `nextCursor` of the previous page.", json!({ "type": "string" }), "1772357405000-0")
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<CheckList>("CheckListResponse", "The checks."),
        Operation::new("listEvents", Method::GET, "/pages/{pageId}/monitors/{monitorId}/events")
            .does(TAG, "List a monitor's events, with evidence")
            .about("Newest first, each with the rounds that led to it and each agent's outcome and network.")
            .query("cursor", "Cursor: `nextCursor` of the previous page.", json!({ "type": "string" }), "48213")
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<EventList>("EventListResponse", "The events."),
        Operation::new("getUptime", Method::GET, "/pages/{pageId}/monitors/{monitorId}/uptime")
            .does(TAG, "Show a monitor's daily uptime")
            .about(
                "Days are in the page's time zone. For heartbeat and component monitors, uptime is the share of time \
                 not down, without pauses and maintenance. Their outages are kept for 400 days, but only the newest \
                 96; earlier days are null. If a day has more than 96 outages, the first ones are kept as a total.",
            )
            .note("Days are in the page's time zone.")
            .query("from", "The first day.", date(), "2026-03-01")
            .query("to", "The last day.", date(), "2026-03-31")
            .gives::<Vec<DayDocument>>(200, "UptimeResponse", "days", "The days."),
        Operation::new("listPings", Method::GET, "/pages/{pageId}/monitors/{monitorId}/pings")
            .does(TAG, "List a heartbeat monitor's latest pings")
            .about("The last ten, newest first.")
            .gives::<Vec<PingDocument>>(200, "PingListResponse", "pings", "The pings."),
    ]
}

fn date() -> Value {
    json!({ "type": "string", "format": "date", "examples": ["2026-11-28"] })
}
