//! A monitor: what a customer made, as it is kept, and the part of it that people set.

pub mod edit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::id::{MonitorId, PageId};
use crate::place::{Region, RegionSet};
use crate::plan::Plan;
use crate::time::Timestamp;

/// A monitor on a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// The page it is on.
    pub page: PageId,
    /// Dense number, given at creation; it names the monitor on the mesh and in readings.
    pub slot: u32,
    /// Grows by one with each change of what is checked; results of another revision are history only.
    pub revision: u32,
    /// Shown on the page.
    pub name: String,
    /// Monitors of the same group are shown together.
    pub group: Option<String>,
    /// What is checked.
    pub check: Check,
    /// A passed check slower than this many milliseconds is slow.
    pub slow_threshold_ms: Option<u32>,
    /// Thresholds of single regions, in milliseconds.
    pub slow_thresholds: Option<BTreeMap<Region, u32>>,
    /// Regions of its own for response times; none means the page's.
    pub latency_regions: Option<RegionSet>,
    /// Checked from this region alone.
    pub pinned: Option<Region>,
    /// Order on the page, from 0.
    pub position: u32,
    /// Not checked while set.
    pub paused: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The part of a monitor that its owner sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Shown on the page.
    pub name: String,
    /// Monitors of the same group are shown together.
    pub group: Option<String>,
    /// What is checked.
    pub check: Check,
    /// A passed check slower than this many milliseconds is slow.
    pub slow_threshold_ms: Option<u32>,
    /// Thresholds of single regions, in milliseconds.
    pub slow_thresholds: Option<BTreeMap<Region, u32>>,
    /// Regions of its own for response times.
    pub latency_regions: Option<RegionSet>,
    /// Checked from this region alone.
    pub pinned: Option<Region>,
    /// Not checked while set.
    pub paused: bool,
}

/// What a new monitor is given beside its settings.
#[derive(Debug, Clone, Copy)]
pub struct Seat {
    /// Its id.
    pub id: MonitorId,
    /// The page it is on.
    pub page: PageId,
    /// Its dense number.
    pub slot: u32,
    /// Its place on the page, from 0.
    pub position: u32,
    /// The present moment.
    pub now: Timestamp,
}

impl Monitor {
    /// A new monitor, at revision 0.
    pub fn new(seat: Seat, settings: Settings) -> Self {
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
            pinned: settings.pinned,
            position: seat.position,
            paused: settings.paused,
            created_at: seat.now,
        }
    }

    /// The threshold of a reading from that region, in milliseconds. A region's own needs a plan that uses regions.
    pub fn threshold(&self, region: Region, plan: Plan) -> Option<u32> {
        let own = self.slow_thresholds.as_ref().filter(|_| plan.uses_regions());
        own.and_then(|own| own.get(&region).copied()).or(self.slow_threshold_ms)
    }

    /// What its owner has set.
    pub fn settings(&self) -> Settings {
        Settings {
            name: self.name.clone(),
            group: self.group.clone(),
            check: self.check.clone(),
            slow_threshold_ms: self.slow_threshold_ms,
            slow_thresholds: self.slow_thresholds.clone(),
            latency_regions: self.latency_regions,
            pinned: self.pinned,
            paused: self.paused,
        }
    }

    /// The same monitor with other settings. Its revision grows when what is checked, or from where, changes.
    #[must_use]
    pub fn with(&self, settings: Settings) -> Self {
        let is_checked_otherwise = settings.check != self.check || settings.pinned != self.pinned;
        Self {
            revision: self.revision.wrapping_add(u32::from(is_checked_otherwise)),
            name: settings.name,
            group: settings.group,
            check: settings.check,
            slow_threshold_ms: settings.slow_threshold_ms,
            slow_thresholds: settings.slow_thresholds,
            latency_regions: settings.latency_regions,
            pinned: settings.pinned,
            paused: settings.paused,
            ..*self
        }
    }
}
