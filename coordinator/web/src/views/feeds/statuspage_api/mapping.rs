//! Mapping to Statuspage's values: component status, impact, progress, and overall status.

use parallax_core::event::MonitorStatus;
use parallax_core::headline::Indicator;
use parallax_core::incident::{Impact, Incident, IncidentKind, IncidentStatus};
use parallax_core::page_view::{MonitorView, PageView};
use parallax_core::time::Timestamp;
use serde::Serialize;

use super::is_in_progress;

/// Description of a page whose status is no longer known.
const STATUS_UNKNOWN: &str = "Status unknown";

/// Overall status, in Statuspage's terms and in Parallax's.
#[derive(Debug, Serialize)]
pub(super) struct StatuspageStatus {
    indicator: &'static str,
    description: &'static str,
    parallax_indicator: &'static str,
}

/// Overall status of a page. More than half of the monitors down is worse than some; otherwise it follows
/// from the incidents.
pub(super) fn overall_status(page_view: &PageView) -> StatuspageStatus {
    let is_reported = page_view.incidents.iter().any(|incident_view| incident_view.incident.impact > Impact::None);
    let down_count = page_view.with_status(MonitorStatus::Down).count();
    let (indicator, description) = match page_view.indicator {
        // Statuspage has no value for an unknown status. A page that had data is not reported as operational,
        // and one with monitors that were down is not reported as recovered.
        Indicator::Unknown if !had_data(page_view) => ("none", page_view.indicator.headline()),
        Indicator::Unknown => (if down_count > 0 { "major" } else { "minor" }, STATUS_UNKNOWN),
        Indicator::Operational => ("none", "All Systems Operational"),
        Indicator::Degraded if is_reported => ("minor", "Minor Service Outage"),
        Indicator::Degraded => ("minor", "Partially Degraded Service"),
        Indicator::Partial if !is_reported && down_count * 2 > page_view.monitors.len() => {
            ("critical", "Major Service Outage")
        }
        Indicator::Partial => ("major", "Partial System Outage"),
        Indicator::Major => ("critical", "Major Service Outage"),
        Indicator::Maintenance => ("maintenance", "Service Under Maintenance"),
    };
    StatuspageStatus { indicator, description, parallax_indicator: page_view.indicator.name() }
}

/// Returns true if any monitor was ever checked, or received a ping.
fn had_data(page_view: &PageView) -> bool {
    page_view.monitors.iter().any(|view| {
        let state = &view.state;
        state.since.is_some()
            || state.last_check.is_some()
            || state.last_ping_at.is_some()
            || view.history.days.iter().any(|day| day.uptime.is_some())
    })
}

/// Component status of a monitor. Statuspage has no value for an unknown status.
pub(super) fn component_status(view: &MonitorView) -> &'static str {
    if view.in_maintenance {
        return "under_maintenance";
    }
    match view.state.status {
        MonitorStatus::Up | MonitorStatus::Unknown => "operational",
        MonitorStatus::Slow => "degraded_performance",
        MonitorStatus::Down if view.state.down_from.is_some() => "partial_outage",
        MonitorStatus::Down => "major_outage",
    }
}

/// Worst component status of some monitors.
pub(super) fn worst_status(children: &[&MonitorView]) -> &'static str {
    const ORDER: [&str; 5] =
        ["major_outage", "partial_outage", "degraded_performance", "under_maintenance", "operational"];
    let is_among = |status: &&str| children.iter().any(|view| component_status(view) == *status);
    ORDER.into_iter().find(is_among).unwrap_or("operational")
}

pub(super) fn impact(incident: &Incident) -> &'static str {
    match (incident.kind, incident.impact) {
        (IncidentKind::Maintenance, _) => "maintenance",
        (IncidentKind::Incident, Impact::None) => "none",
        (IncidentKind::Incident, Impact::Degraded) => "minor",
        (IncidentKind::Incident, Impact::Partial) => "major",
        (IncidentKind::Incident, Impact::Major) => "critical",
    }
}

pub(super) fn incident_status(incident: &Incident, now: Timestamp) -> &'static str {
    if is_in_progress(incident, now) {
        return "in_progress";
    }
    match incident.status {
        IncidentStatus::Investigating => "investigating",
        IncidentStatus::Identified => "identified",
        IncidentStatus::Monitoring => "monitoring",
        IncidentStatus::Resolved => "resolved",
        IncidentStatus::Scheduled => "scheduled",
        IncidentStatus::Completed => "completed",
    }
}
