//! Overall status of a page by its monitors, its incidents and its running windows.

use crate::event::MonitorStatus;
use crate::headline::Indicator;
use crate::incident::Impact;
use crate::machine::MachineView;
use crate::maintenance_window::MaintenanceWindow;
use crate::monitor::Monitor;

use super::freshness::is_probed;

/// Computes the overall status of a page, given the worst impact of its open incidents and the windows that run. A stale
/// page has monitors to check and no agent to check them: what was up is no longer known to be, what was down stays down,
/// and monitors that report by ping are unaffected.
pub fn page_indicator<'a>(
    impact: Option<Impact>,
    monitors: impl IntoIterator<Item = (&'a Monitor, &'a MachineView)>,
    running: &[MaintenanceWindow],
    is_stale: bool,
) -> Indicator {
    let counts = |(monitor, view): &(&Monitor, &MachineView)| {
        let is_known = !is_stale || view.status == MonitorStatus::Down || !is_probed(monitor);
        is_known && !running.iter().any(|window| window.covers(monitor.id))
    };
    let statuses = monitors.into_iter().filter(counts).map(|(_, view)| view.status);
    Indicator::of(impact, statuses, !running.is_empty())
}
