//! Log lines of alerts: one for each event that people are notified about.

use parallax_core::event::{AlertKind, EventKind, MonitorStatus, StatusChange};
use parallax_core::incident::{IncidentChange, IncidentEvent};
use parallax_core::vantage::RegionSet;
use parallax_store::JournalEvent;
use tracing::info;

/// Logs a notifiable event, once, when the alert consumer has passed it.
pub(super) fn log_event(journal_event: &JournalEvent) {
    let event = &journal_event.event;
    let page = event.page.map(tracing::field::display);
    let monitor = event.monitor.map(tracing::field::display);
    match &event.kind {
        EventKind::StatusChanged(change) => {
            let Some(text) = alert_text(change) else { return };
            let since = tracing::field::display(change.since);
            let reason = change.reason.as_ref().map(tracing::field::display);
            let seconds = change.duration_ms.map(|ms| ms / 1000);
            let regions = regions(change.down_from);
            info!(page, monitor, since, regions, reason, seconds, "{text}");
        }
        EventKind::FlappingEnded(_) => info!(page, monitor, "monitor is stable again"),
        EventKind::Incident(incident_event) => {
            let Some(text) = incident_text(incident_event) else { return };
            info!(page, incident = %incident_event.incident, "{text}");
        }
        _ => {}
    }
}

fn alert_text(change: &StatusChange) -> Option<&'static str> {
    Some(match change.alert? {
        AlertKind::WentDown => "monitor went down",
        AlertKind::StillDown => "monitor is still down",
        AlertKind::Recovered if change.to == MonitorStatus::Slow => "monitor recovered but is slow",
        AlertKind::Recovered => "monitor recovered",
        AlertKind::WentSlow => "monitor became slow",
        AlertKind::BackToNormal => "monitor is back to normal speed",
    })
}

/// Regions that it is down from; `None` if that is all of them or it is not down.
fn regions(down_from: Option<RegionSet>) -> Option<String> {
    down_from.map(|regions| regions.iter().map(|region| region.name()).collect::<Vec<_>>().join(","))
}

fn incident_text(event: &IncidentEvent) -> Option<&'static str> {
    match event.change {
        IncidentChange::Opened => Some("incident opened"),
        IncidentChange::Resolved => Some("incident resolved"),
        _ => None,
    }
}
