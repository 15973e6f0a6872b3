//! What a look at a monitor on request needs to know of it.

use std::sync::Arc;

use parallax_core::assign;
use parallax_core::check::Check;
use parallax_core::event::Status;
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::place::{Mesh, RegionSet};

use super::Machines;

/// What a look on request is told of a monitor.
#[derive(Debug)]
pub struct Target {
    /// Its dense number.
    pub slot: u32,
    /// Account that its page belongs to.
    pub account: AccountId,
    /// Revision of what is checked.
    pub revision: u32,
    /// What to check.
    pub check: Arc<Check>,
    /// The regions it is checked from.
    pub regions: RegionSet,
}

impl Machines {
    /// The monitor's check, its page, and its status.
    pub fn named(&self, slot: u32) -> Option<(&Check, PageId, Status)> {
        self.get(slot).map(|kept| (kept.check.as_ref(), kept.page, kept.machine.status()))
    }

    /// What is to be checked for a look on request, and where from.
    pub fn target(&self, monitor: MonitorId, mesh: &Mesh) -> Option<Target> {
        let slot = *self.numbers.get(&monitor)?;
        let kept = self.get(slot)?;
        let watch = kept.machine.watch();
        let regions = assign::regions_in_use(watch.kind, watch.pinned, mesh);
        let (account, revision) = (watch.account, watch.revision);
        Some(Target { slot, account, revision, check: Arc::clone(&kept.check), regions })
    }
}
