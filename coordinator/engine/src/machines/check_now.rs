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
        self.get(slot).map(|entry| (entry.check.as_ref(), entry.page, entry.machine.status()))
    }

    /// Returns the target of a check-now request: the check, its revision and the regions.
    pub(crate) fn check_now_target(&self, monitor: MonitorId, mesh: &Mesh) -> Option<CheckNowTarget> {
        let slot = *self.slots.get(&monitor)?;
        let entry = self.get(slot)?;
        let settings = entry.machine.settings();
        let regions = regions_in_use(settings.kind, settings.pinned, mesh);
        let (account, revision) = (settings.account, settings.revision);
        Some(CheckNowTarget { slot, account, revision, check: Arc::clone(&entry.check), regions })
    }
}
