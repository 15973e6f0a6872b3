//! Freshness of a page's data: the time of the newest check, and whether agents are there to run the next
//! one.

use crate::check::CheckKind;
use crate::machine::View;
use crate::monitor::Monitor;
use crate::place::RegionSet;
use crate::time::{SECOND, Timestamp};

/// Grace period after the newest check before a page without regions in service counts as stale, in
/// milliseconds: agents take this long to reconnect to a restarted coordinator.
const AWAY: i64 = 15 * SECOND;

/// End time of the newest check of some monitors. Heartbeat pings are not checks by agents and count only if
/// there are no others.
pub fn newest_check<'a, I>(monitors: impl Fn() -> I) -> Option<Timestamp>
where
    I: Iterator<Item = (&'a Monitor, &'a View)>,
{
    let at = |(_, view): (&Monitor, &View)| view.last_check.as_ref().map(|check| check.at);
    let ours = monitors().filter(|(monitor, _)| is_probed(monitor)).filter_map(at).max();
    ours.or_else(|| monitors().filter_map(at).max())
}

/// Returns true if the data of some monitors is stale, given the regions in service: there are monitors to
/// check and no agent to check them. A short absence, such as the coordinator's restart, does not count.
pub fn none_looks<'a>(
    regions: RegionSet,
    mut monitors: impl Iterator<Item = (&'a Monitor, &'a View)> + Clone,
    now: Timestamp,
) -> bool {
    let newest = newest_check(|| monitors.clone().filter(|(monitor, _)| is_probed(monitor)));
    regions.is_empty()
        && newest.is_none_or(|at| now.since(at) >= AWAY)
        && monitors.any(|(monitor, _)| is_probed(monitor))
}

/// Returns true if agents probe the monitor; false for heartbeats and paused monitors.
pub fn is_probed(monitor: &Monitor) -> bool {
    !monitor.paused && monitor.check.kind() != CheckKind::Heartbeat
}
