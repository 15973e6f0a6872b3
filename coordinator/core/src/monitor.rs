//! A monitor: what a customer made, as it is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::id::{MonitorId, PageId};
use crate::place::{Region, RegionSet};
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
