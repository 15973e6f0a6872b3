//! Check-now data of a monitor: what to check, and from which regions.

use std::sync::Arc;

use parallax_core::check::Check;
use parallax_core::effective::regions_in_use;
use parallax_core::event::MonitorStatus;
use parallax_core::id::{AccountId, MonitorId, PageId};
use parallax_core::vantage::{Mesh, RegionSet};

use super::Machines;
use crate::{CheckNowSubject, UnsavedCheck};

/// Slot of the probe requests for an unsaved check. Their responses are found by number, so it is only logged.
const NO_SLOT: u32 = u32::MAX;

/// A monitor, or an unsaved check, as a check-now request needs it.
#[derive(Debug)]
pub(crate) struct CheckNowTarget {
    /// Its id.
    pub monitor: MonitorId,
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
    pub(crate) fn check_now_target(&self, subject: CheckNowSubject, mesh: &Mesh) -> Option<CheckNowTarget> {
        match subject {
            CheckNowSubject::Monitor(monitor) => self.stored_target(monitor, mesh),
            CheckNowSubject::Unsaved(unsaved) => Some(unsaved_target(unsaved, mesh)),
        }
    }

    fn stored_target(&self, monitor: MonitorId, mesh: &Mesh) -> Option<CheckNowTarget> {
        let slot = *self.slots.get(&monitor)?;
        let entry = self.get(slot)?;
        let settings = entry.machine.settings();
        let regions = regions_in_use(settings.kind, settings.pinned, mesh);
        let (account, revision) = (settings.account, settings.revision);
        Some(CheckNowTarget { monitor, slot, account, revision, check: Arc::clone(&entry.check), regions })
    }
}

fn unsaved_target(unsaved: UnsavedCheck, mesh: &Mesh) -> CheckNowTarget {
    let UnsavedCheck { id, account, check, pinned } = unsaved;
    let regions = regions_in_use(check.kind(), pinned, mesh);
    CheckNowTarget { monitor: id, slot: NO_SLOT, account, revision: 0, check, regions }
}
