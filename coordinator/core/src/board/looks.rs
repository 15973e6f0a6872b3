//! Who looks at what a page shows, and when somebody last did.

use crate::check::CheckKind;
use crate::machine::View;
use crate::monitor::Monitor;
use crate::place::RegionSet;
use crate::time::{SECOND, Timestamp};

/// How long after the newest check nobody is said to look, where no region is in service, in milliseconds: what agents
/// take to come back to a coordinator that was started again.
const AWAY: i64 = 15 * SECOND;

/// When the newest check of some monitors ended. What heartbeats report is no check of ours, and counts only where there
/// is none.
pub fn newest_check<'a, I>(monitors: impl Fn() -> I) -> Option<Timestamp>
where
    I: Iterator<Item = (&'a Monitor, &'a View)>,
{
    let at = |(_, view): (&Monitor, &View)| view.last_check.as_ref().map(|check| check.at);
    let ours = monitors().filter(|(monitor, _)| is_probed(monitor)).filter_map(at).max();
    ours.or_else(|| monitors().filter_map(at).max())
}

/// Whether what is shown of some monitors is no longer what is seen, with those regions in service: there is something to
/// be checked, and nobody to check it. Agents that come back within moments, as after a restart, were not away.
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

/// Whether somebody is to look at a monitor, rather than wait for what it reports itself.
pub fn is_probed(monitor: &Monitor) -> bool {
    !monitor.paused && monitor.check.kind() != CheckKind::Heartbeat
}
