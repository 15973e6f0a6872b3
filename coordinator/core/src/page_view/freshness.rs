//! Freshness of a page's data: the time of the newest check, and whether agents are there to run the next
//! one.

use crate::check::CheckKind;
use crate::machine::MachineView;
use crate::monitor::Monitor;
use crate::time::{SECOND, Timestamp};
use crate::vantage::RegionSet;

/// Grace period after the newest check before a page without regions in service counts as stale, in
/// milliseconds: agents take this long to reconnect to a restarted coordinator.
const STALE_AFTER: i64 = 15 * SECOND;

/// End time of the newest check of some monitors. Heartbeat pings are not checks by agents and count only if
/// there are no others.
pub fn newest_check_at<'a, I>(monitors: impl Fn() -> I) -> Option<Timestamp>
where
    I: Iterator<Item = (&'a Monitor, &'a MachineView)>,
{
    let at = |(_, view): (&Monitor, &MachineView)| view.last_check.as_ref().map(|check| check.at);
    let ours = monitors().filter(|(monitor, _)| is_probed(monitor)).filter_map(at).max();
    ours.or_else(|| monitors().filter_map(at).max())
}

/// Returns true if the data of some monitors is stale, given the regions in service: there are monitors to
/// check and no agent to check them. A short absence, such as the coordinator's restart, does not count.
pub fn is_stale<'a>(
    regions: RegionSet,
    mut monitors: impl Iterator<Item = (&'a Monitor, &'a MachineView)> + Clone,
    now: Timestamp,
) -> bool {
    let newest = newest_check_at(|| monitors.clone().filter(|(monitor, _)| is_probed(monitor)));
    regions.is_empty()
        && newest.is_none_or(|at| now.since(at) >= STALE_AFTER)
        && monitors.any(|(monitor, _)| is_probed(monitor))
}

/// Returns true if agents probe the monitor; false for heartbeats and paused monitors.
pub fn is_probed(monitor: &Monitor) -> bool {
    !monitor.paused && monitor.check.kind() != CheckKind::Heartbeat
}
