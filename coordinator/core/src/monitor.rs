//! Monitors: the stored record, and the settings that people edit.

pub mod bulk_edit;
pub mod edit;
pub mod order_edit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::acknowledgement::Acknowledgement;
use crate::check::Check;
use crate::compat;
use crate::id::{MonitorId, PageId};
use crate::plan::Plan;
use crate::time::Timestamp;
use crate::vantage::{Region, RegionSet};

/// A monitor on a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// The page it is on.
    pub page: PageId,
    /// Dense number assigned at creation; it identifies the monitor on the mesh and in readings.
    pub slot: u32,
    /// Incremented whenever the check changes; results of an earlier revision are history only.
    pub revision: u32,
    /// Name shown on the page.
    pub name: String,
    /// Monitors of the same group are shown together.
    pub group: Option<String>,
    /// The check.
    pub check: Check,
    /// Response time in milliseconds above which a passed check is slow.
    pub slow_threshold_ms: Option<u32>,
    /// Thresholds by region, in milliseconds.
    pub slow_thresholds: Option<BTreeMap<Region, u32>>,
    /// The monitor's own regions for response times; none means the page's.
    pub latency_regions: Option<RegionSet>,
    /// The only region to check from.
    pub pinned_region: Option<Region>,
    /// Order on the page, from 0.
    pub position: u32,
    /// True while it is not checked.
    pub paused: bool,
    /// Creation time.
    pub created_at: Timestamp,
    /// Newest acknowledgement, also of an outage that is over. Older records lack this field.
    #[serde(deserialize_with = "compat::or_default")]
    pub acknowledgement: Option<Box<Acknowledgement>>,
}

/// The part of a monitor that its owner edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorSettings {
    /// Name shown on the page.
    pub name: String,
    /// Monitors of the same group are shown together.
    pub group: Option<String>,
    /// The check.
    pub check: Check,
    /// Response time in milliseconds above which a passed check is slow.
    pub slow_threshold_ms: Option<u32>,
    /// Thresholds by region, in milliseconds.
    pub slow_thresholds: Option<BTreeMap<Region, u32>>,
    /// The monitor's own regions for response times.
    pub latency_regions: Option<RegionSet>,
    /// The only region to check from.
    pub pinned_region: Option<Region>,
    /// True while it is not checked.
    pub paused: bool,
}

/// Assigned values of a new monitor, besides its settings.
#[derive(Debug, Clone, Copy)]
pub struct NewMonitor {
    /// Its id.
    pub id: MonitorId,
    /// The page it is on.
    pub page: PageId,
    /// Its dense number.
    pub slot: u32,
    /// Order on the page, from 0.
    pub position: u32,
    /// Current time.
    pub now: Timestamp,
}

impl Monitor {
    /// Creates a monitor at revision 0.
    pub fn new(seat: NewMonitor, settings: MonitorSettings) -> Self {
        Self {
            id: seat.id,
            page: seat.page,
            slot: seat.slot,
            revision: 0,
            name: settings.name,
            group: settings.group,
            check: settings.check,
            slow_threshold_ms: settings.slow_threshold_ms,
            slow_thresholds: settings.slow_thresholds,
            latency_regions: settings.latency_regions,
            pinned_region: settings.pinned_region,
            position: seat.position,
            paused: settings.paused,
            created_at: seat.now,
            acknowledgement: None,
        }
    }

    /// Returns the acknowledgement of the outage that began at `outage`; none for any other outage.
    pub fn acknowledgement_of(&self, outage: Timestamp) -> Option<&Acknowledgement> {
        self.acknowledgement.as_deref().filter(|acknowledgement| acknowledgement.outage == outage)
    }

    /// The slow threshold for readings from that region, in milliseconds. Thresholds by region need a plan
    /// with region settings.
    pub fn slow_threshold(&self, region: Region, plan: Plan) -> Option<u32> {
        let own = self.slow_thresholds.as_ref().filter(|_| plan.uses_regions());
        own.and_then(|own| own.get(&region).copied()).or(self.slow_threshold_ms)
    }

    /// The settings that its owner edits.
    pub fn settings(&self) -> MonitorSettings {
        MonitorSettings {
            name: self.name.clone(),
            group: self.group.clone(),
            check: self.check.clone(),
            slow_threshold_ms: self.slow_threshold_ms,
            slow_thresholds: self.slow_thresholds.clone(),
            latency_regions: self.latency_regions,
            pinned_region: self.pinned_region,
            paused: self.paused,
        }
    }

    /// Returns the monitor with other settings. The revision is incremented if the check or its region
    /// changes.
    #[must_use]
    pub fn with_settings(&self, settings: MonitorSettings) -> Self {
        let is_checked_otherwise = settings.check != self.check || settings.pinned_region != self.pinned_region;
        Self {
            revision: self.revision.wrapping_add(u32::from(is_checked_otherwise)),
            name: settings.name,
            group: settings.group,
            check: settings.check,
            slow_threshold_ms: settings.slow_threshold_ms,
            slow_thresholds: settings.slow_thresholds,
            latency_regions: settings.latency_regions,
            pinned_region: settings.pinned_region,
            paused: settings.paused,
            acknowledgement: self.acknowledgement.clone(),
            ..*self
        }
    }
}
