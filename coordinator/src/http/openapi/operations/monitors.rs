//! Monitors, as the description tells of them.

use ::http::Method;
use serde_json::json;

use crate::http::api::monitors::{body, pings::PingDocument, view::MonitorDocument};
use crate::http::openapi::operation::Operation;

const TAG: &str = "Monitors";
const ALL: &str = "/pages/{pageId}/monitors";
const ONE: &str = "/pages/{pageId}/monitors/{monitorId}";

const SENT: &str = "Only fields that belong to the type count. A component monitor needs the Pro plan; regions and \
thresholds of regions are stored on every plan and used on Hobby and Pro.";

pub(super) fn operations() -> Vec<Operation> {
    let warnings = || {
        json!({
            "type": "array", "items": { "type": "string" },
            "description": "What its owner should know: that no second network can confirm its failures, for one.",
        })
    };
    vec![
        Operation::new("listMonitors", Method::GET, ALL)
            .does(TAG, "List a page's monitors")
            .about("In the order of the page.")
            .gives::<Vec<MonitorDocument>>(200, "MonitorListResponse", "monitors", "The monitors."),
        Operation::new("createMonitor", Method::POST, ALL)
            .does(TAG, "Make a monitor")
            .about(SENT)
            .takes("MonitorCreate", |description| body::read(description))
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
            .takes("MonitorUpdate", |description| body::read(description))
            .gives::<MonitorDocument>(200, "MonitorResponse", "monitor", "The monitor after the change.")
            .beside("warnings", warnings()),
        Operation::new("deleteMonitor", Method::DELETE, ONE)
            .does(TAG, "Delete a monitor")
            .about("Removes the monitor and its history. It can't be undone.")
            .gives_nothing("It is gone."),
        Operation::new("listPings", Method::GET, "/pages/{pageId}/monitors/{monitorId}/pings")
            .does(TAG, "List a heartbeat's newest pings")
            .about("The newest ten, newest first.")
            .gives::<Vec<PingDocument>>(200, "PingListResponse", "pings", "The pings."),
    ]
}
