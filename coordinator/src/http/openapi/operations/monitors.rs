//! Monitors, as the description tells of them.

use ::http::Method;
use parallax_core::event::Status;
use serde_json::{Value, json};

use crate::http::api::monitors::seen::{CheckList, DayDocument, EventList, SightingDocument};
use crate::http::api::monitors::{body, pings::PingDocument, view::MonitorDocument};
use crate::http::openapi::operation::{LIMIT, Operation, limit};

const TAG: &str = "Monitors";
const ALL: &str = "/pages/{pageId}/monitors";
const ONE: &str = "/pages/{pageId}/monitors/{monitorId}";

const SENT: &str = "Only fields that belong to the type count. A component monitor needs the Pro plan; regions and \
thresholds of regions are stored on every plan and used on Hobby and Pro.";

pub(super) fn operations() -> Vec<Operation> {
    let warnings = || {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": "Warnings for its owner: that it fails and no second network can confirm that, for one.",
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
            .about("In the order of the page.")
            .query(
                "status",
                "Only those of this status: up, slow, down or unknown; several with commas between.",
                json!({ "type": "string", "pattern": format!("^({all})(,({all}))*$", all = statuses.join("|")) }),
                "down,slow",
            )
            .gives::<Vec<MonitorDocument>>(200, "MonitorListResponse", "monitors", "The monitors."),
        Operation::new("createMonitor", Method::POST, ALL)
            .does(TAG, "Make a monitor")
            .about(SENT)
            .note("Only fields that belong to the type count.")
            .reaches_out()
            .takes("MonitorCreate", |description| body::read(description))
            .may_be_null(&["type", "name"])
            .gives::<MonitorDocument>(201, "MonitorResponse", "monitor", "The monitor that was made.")
            .beside("warnings", warnings()),
        Operation::new("getMonitor", Method::GET, ONE)
            .does(TAG, "Show a monitor")
            .about("Its settings, its state and its figures of 24 hours.")
            .gives::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor.")
            .beside("warnings", warnings()),
        Operation::new("updateMonitor", Method::PATCH, ONE)
            .does(TAG, "Change a monitor")
            .about(SENT)
            .note("Only fields that belong to its type count.")
            .reaches_out()
            .takes("MonitorUpdate", |description| body::read_change(description))
            .gives::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor after the change.")
            .beside("warnings", warnings()),
        Operation::new("deleteMonitor", Method::DELETE, ONE)
            .does(TAG, "Delete a monitor")
            .about(
                "Removes the monitor and its history. It can't be undone. The automatic incident of a monitor that is down is \
                 over by it.",
            )
            .query(
                "notify",
                "Whether subscribers are told that its incident is over, since it is no longer monitored; they are not unless given.",
                json!({ "type": "boolean" }),
                false,
            )
            .gives_nothing("It is gone."),
        Operation::new("checkMonitor", Method::POST, "/pages/{pageId}/monitors/{monitorId}/check")
            .does(TAG, "Check a monitor now")
            .each_time()
            .reaches_out()
            .about(
                "Asks a place in each region that the monitor is checked from, of those that can run its type, to look \
                 now, and answers with what each saw, within 15 seconds. It counts for no figure.",
            )
            .note("One place of each region looks now, within 15 seconds. It counts for no figure.")
            .gives::<Vec<SightingDocument>>(200, "CheckNowResponse", "regions", "What each region saw."),
        Operation::new("listChecks", Method::GET, "/pages/{pageId}/monitors/{monitorId}/checks")
            .does(TAG, "List a monitor's finished checks")
            .about(
                "Newest first. What each place saw in words is kept for rounds that were no plain pass.",
            )
            .note("Newest first.")
            .query("cursor", "The `nextCursor` of the part before, for older ones.", json!({ "type": "string" }), "1772357405000-0")
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<CheckList>("CheckListResponse", "The checks."),
        Operation::new("listEvents", Method::GET, "/pages/{pageId}/monitors/{monitorId}/events")
            .does(TAG, "List a monitor's changes, each with what explains it")
            .about("Newest first: which rounds led to it, and what which places saw on which networks.")
            .query("cursor", "The `nextCursor` of the part before, for older ones.", json!({ "type": "string" }), "48213")
            .query("limit", LIMIT, limit(), 20)
            .gives_bare::<EventList>("EventListResponse", "The events."),
        Operation::new("getUptime", Method::GET, "/pages/{pageId}/monitors/{monitorId}/uptime")
            .does(TAG, "Show a monitor's uptime by days")
            .about(
                "Days are those of the page's time zone. Of a heartbeat and a component uptime is the share of time not \
                 down; pauses and maintenance are left out. Their outages are known for 400 days, but no more than the \
                 newest 96 of them: days before are null. Of more than 96 outages within a day the first are kept as a \
                 sum.",
            )
            .note("Days are those of the page's time zone.")
            .query("from", "The first day.", date(), "2026-03-01")
            .query("to", "The last day.", date(), "2026-03-31")
            .gives::<Vec<DayDocument>>(200, "UptimeResponse", "days", "The days."),
        Operation::new("listPings", Method::GET, "/pages/{pageId}/monitors/{monitorId}/pings")
            .does(TAG, "List a heartbeat's newest pings")
            .about("The newest ten, newest first.")
            .gives::<Vec<PingDocument>>(200, "PingListResponse", "pings", "The pings."),
    ]
}

fn date() -> Value {
    json!({ "type": "string", "format": "date", "examples": ["2026-11-28"] })
}
