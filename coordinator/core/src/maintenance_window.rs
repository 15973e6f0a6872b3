//! Maintenance windows as spans of time: the monitors they cover, and when.

use serde::{Deserialize, Serialize};

use crate::id::MonitorId;
use crate::incident::{Incident, IncidentKind};
use crate::uptime::TimeSpan;

/// A maintenance window as monitors see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceWindow {
    /// From its start to its planned end, or to when it was completed earlier.
    pub span: TimeSpan,
    /// Set while it is recorded as running: alerts of its monitors are suppressed.
    pub running: bool,
    /// Monitors it covers; an empty list means every monitor of the page.
    pub monitors: Vec<MonitorId>,
}

impl MaintenanceWindow {
    /// Returns the window of an incident; none if it is not a maintenance, or was cancelled before it began.
    pub fn of(incident: &Incident) -> Option<Self> {
        let (IncidentKind::Maintenance, Some(ends_at)) = (incident.kind, incident.ends_at) else {
            return None;
        };
        let to = incident.resolved_at.map_or(ends_at, |resolved_at| resolved_at.min(ends_at));
        let span = TimeSpan { from: incident.started_at, to };
        (span.from < span.to).then(|| Self {
            span,
            running: incident.is_running(),
            monitors: incident.affected.iter().map(|affected| affected.monitor).collect(),
        })
    }

    /// Returns true if it covers a monitor of its page.
    pub fn covers(&self, monitor: MonitorId) -> bool {
        self.monitors.is_empty() || self.monitors.contains(&monitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::edit::tests::{at, incident, window};
    use crate::incident::{IncidentStatus, MonitorImpact};

    #[test]
    fn a_window_covers_its_monitors_or_the_whole_page() {
        let whole = window(1, 10);
        let one = MonitorImpact { monitor: MonitorId::from_u128(1), impact: None };
        let named = Incident { affected: vec![one], ..whole.clone() };
        let covers = |incident: &Incident, monitor| {
            MaintenanceWindow::of(incident).is_some_and(|window| window.covers(MonitorId::from_u128(monitor)))
        };
        assert!(covers(&whole, 1) && covers(&whole, 2));
        assert!(covers(&named, 1) && !covers(&named, 2));
        assert!(!covers(&incident(), 1));
    }

    #[test]
    fn a_window_lasts_until_its_end_or_completion() {
        let planned = window(1, 10);
        let ended = |at| Incident { status: IncidentStatus::Completed, resolved_at: Some(at), ..planned.clone() };
        let span = |incident: &Incident| MaintenanceWindow::of(incident).map(|window| window.span);
        assert_eq!(span(&planned), Some(TimeSpan { from: at(1), to: at(10) }));
        assert_eq!(span(&ended(at(4))), Some(TimeSpan { from: at(1), to: at(4) }));
        assert_eq!(span(&ended(at(0))), None, "it never began");
        let begun = Incident { has_begun: true, ..planned.clone() };
        assert!(MaintenanceWindow::of(&begun).unwrap().running && !MaintenanceWindow::of(&planned).unwrap().running);
    }
}
