//! Check-now data of a monitor: what to check, and from which regions.

use std::sync::Arc;

use parallax_core::check::Check;
use parallax_core::effective::regions_in_use;
use parallax_core::event::MonitorStatus;
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::vantage::{Mesh, RegionSet};

use super::Machines;

/// A monitor as a check-now request needs it.
#[derive(Debug)]
pub(crate) struct CheckNowTarget {
    /// Its slot.
    pub slot: u32,
    /// Account that its page belongs to.
    pub account: AccountId,
    /// Revision of the check.
    pub revision: u32,
    /// The check to run.
    pub check: Arc<Check>,
    /// The regions it is checked from.
    pub regions: RegionSet,
}

impl Machines {
    /// Returns the monitor's check, page and status.
    pub(crate) fn check_page_status(&self, slot: u32) -> Option<(&Check, PageId, MonitorStatus)> {
        self.get(slot).map(|kept| (kept.check.as_ref(), kept.page, kept.machine.status()))
    }

    /// Returns what a check-now request is to check, and from where.
    pub(crate) fn check_now_target(&self, monitor: MonitorId, mesh: &Mesh) -> Option<CheckNowTarget> {
        let slot = *self.slots.get(&monitor)?;
        let kept = self.get(slot)?;
        let watch = kept.machine.settings();
        let regions = regions_in_use(watch.kind, watch.pinned, mesh);
        let (account, revision) = (watch.account, watch.revision);
        Some(CheckNowTarget { slot, account, revision, check: Arc::clone(&kept.check), regions })
    }
}
