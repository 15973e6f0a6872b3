//! Data that the documents about one monitor are rendered from.

use parallax_core::deploy::Deploy;
use parallax_core::outage::Outage;
use parallax_core::page::Page;
use parallax_core::page_view::{IncidentView, MonitorView, TimeRange};
use parallax_core::time::Timestamp;

/// Input of a monitor's page.
#[derive(Debug)]
pub struct MonitorDetailView<'a> {
    /// The page.
    pub page: &'a Page,
    /// Path prefix of the page.
    pub root: &'a str,
    /// Current time.
    pub now: Timestamp,
    /// True if no agent is checking any more.
    pub is_stale: bool,
    /// The monitor.
    pub view: &'a MonitorView,
    /// Range of its uptime bars and chart.
    pub range: TimeRange,
    /// Its open incidents, and its current or upcoming maintenance.
    pub open: &'a [IncidentView],
    /// Its incidents and windows that have begun, newest first.
    pub incidents: &'a [IncidentView],
    /// Outages, newest first.
    pub outages: &'a [Outage],
    /// Deploys, newest first.
    pub deploys: &'a [Deploy],
}

impl MonitorDetailView<'_> {
    /// Its closed incidents and windows, newest first.
    pub(crate) fn closed_incidents(&self) -> impl Iterator<Item = &IncidentView> {
        self.incidents.iter().filter(|incident_view| !incident_view.incident.is_open())
    }
}
