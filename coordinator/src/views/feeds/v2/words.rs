//! Mapping to Statuspage's values: component status, impact, progress, and overall status.

use parallax_core::board::{Board, Shown};
use parallax_core::event::Status;
use parallax_core::headline::Indicator;
use parallax_core::incident::{Impact, Incident, Kind, Progress};
use parallax_core::time::Timestamp;
use serde::Serialize;

use super::is_under_way;

/// Description of a page whose status is no longer known.
const LOST: &str = "Status unknown";

/// Overall status, in their terms and in ours.
#[derive(Debug, Serialize)]
pub(super) struct Whole {
    indicator: &'static str,
    description: &'static str,
    parallax_indicator: &'static str,
}

/// Overall status of a page. More than half of the monitors down is worse than some; otherwise it follows
/// from the incidents.
pub(super) fn status(board: &Board) -> Whole {
    let is_told = board.incidents.iter().any(|notice| notice.incident.impact > Impact::None);
    let down = board.with_status(Status::Down).count();
    let (indicator, description) = match board.indicator {
        // Statuspage has no value for an unknown status. A page that had data is not reported as operational,
        // and one with monitors that were down is not reported as recovered.
        Indicator::Unknown if !was_ever_known(board) => ("none", board.indicator.headline()),
        Indicator::Unknown => (if down > 0 { "major" } else { "minor" }, LOST),
        Indicator::Operational => ("none", "All Systems Operational"),
        Indicator::Degraded if is_told => ("minor", "Minor Service Outage"),
        Indicator::Degraded => ("minor", "Partially Degraded Service"),
        Indicator::Partial if !is_told && down * 2 > board.monitors.len() => {
            ("critical", "Major Service Outage")
        }
        Indicator::Partial => ("major", "Partial System Outage"),
        Indicator::Major => ("critical", "Major Service Outage"),
        Indicator::Maintenance => ("maintenance", "Service Under Maintenance"),
    };
    Whole { indicator, description, parallax_indicator: board.indicator.name() }
}

/// Returns true if any monitor was ever checked, or received a ping.
fn was_ever_known(board: &Board) -> bool {
    board.monitors.iter().any(|shown| {
        let view = &shown.view;
        view.since.is_some()
            || view.last_check.is_some()
            || view.last_ping_at.is_some()
            || shown.past.days.iter().any(|day| day.uptime.is_some())
    })
}

/// Component status of a monitor. Statuspage has no value for an unknown status.
pub(super) fn state(shown: &Shown) -> &'static str {
    if shown.covered {
        return "under_maintenance";
    }
    match shown.view.status {
        Status::Up | Status::Unknown => "operational",
        Status::Slow => "degraded_performance",
        Status::Down if shown.view.down_from.is_some() => "partial_outage",
        Status::Down => "major_outage",
    }
}

/// Worst component status of some monitors.
pub(super) fn worst(children: &[&Shown]) -> &'static str {
    const ORDER: [&str; 5] =
        ["major_outage", "partial_outage", "degraded_performance", "under_maintenance", "operational"];
    let is_among = |word: &&str| children.iter().any(|shown| state(shown) == *word);
    ORDER.into_iter().find(is_among).unwrap_or("operational")
}

pub(super) fn impact(incident: &Incident) -> &'static str {
    match (incident.kind, incident.impact) {
        (Kind::Maintenance, _) => "maintenance",
        (Kind::Incident, Impact::None) => "none",
        (Kind::Incident, Impact::Degraded) => "minor",
        (Kind::Incident, Impact::Partial) => "major",
        (Kind::Incident, Impact::Major) => "critical",
    }
}

pub(super) fn progress(incident: &Incident, now: Timestamp) -> &'static str {
    if is_under_way(incident, now) {
        return "in_progress";
    }
    match incident.status {
        Progress::Investigating => "investigating",
        Progress::Identified => "identified",
        Progress::Monitoring => "monitoring",
        Progress::Resolved => "resolved",
        Progress::Scheduled => "scheduled",
        Progress::Completed => "completed",
    }
}
