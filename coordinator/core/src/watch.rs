//! What a machine must know of its monitor: the settings that count, after page and plan have had their say.

use std::collections::BTreeMap;

use crate::check::{Check, CheckKind};
use crate::id::{AccountId, MonitorId};
use crate::monitor::Monitor;
use crate::page::Page;
use crate::place::{Mesh, Region, RegionSet};
use crate::plan::{Plan, PlanLimits};
use crate::telling::Telling;
use crate::time::{MINUTE, SECOND};

/// How failures are confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirmation {
    /// By a place on another network, always.
    #[default]
    OtherNetwork,
    /// While the whole mesh is on one network, by the same network five seconds later.
    Repeat,
}

/// A monitor as its machine sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Its id.
    pub monitor: MonitorId,
    /// Account that its page belongs to.
    pub account: AccountId,
    /// Revision of what is checked.
    pub revision: u32,
    /// Its type.
    pub kind: CheckKind,
    /// Milliseconds between two rounds in one region; 0 for a heartbeat.
    pub interval_ms: u32,
    /// The one region it is checked from.
    pub pinned: Option<Region>,
    /// Regions that count toward up and down; none means all.
    pub uptime_regions: Option<RegionSet>,
    /// Regions whose readings can make it slow.
    pub latency_regions: RegionSet,
    /// Threshold in milliseconds where the region has none of its own.
    pub slow_threshold_ms: Option<u32>,
    /// Thresholds of single regions, in milliseconds.
    pub slow_thresholds: BTreeMap<Region, u32>,
    /// Heartbeat: milliseconds between pings, and of grace after them.
    pub beat: Option<(i64, i64)>,
    /// How failures are confirmed.
    pub confirmation: Confirmation,
    /// Minutes between two words on an outage that lasts; none: one word.
    pub repeat_minutes: Option<u16>,
    /// Not checked while set.
    pub paused: bool,
}

impl Watch {
    /// What counts for a monitor of that page on that plan, where the page says every outage once.
    pub fn new(
        monitor: &Monitor,
        page: &Page,
        plan: Plan,
        limits: &PlanLimits,
        confirmation: Confirmation,
    ) -> Self {
        let kind = monitor.check.kind();
        let used = plan.uses_regions();
        let pinned = monitor.pinned.filter(|_| used);
        let latency = if used { monitor.latency_regions.or(page.latency_regions) } else { None };
        let beat = match &monitor.check {
            Check::Heartbeat(check) => {
                Some((i64::from(check.period_seconds) * SECOND, i64::from(check.grace_seconds) * SECOND))
            }
            Check::Http(_)
            | Check::Tcp(_)
            | Check::Dns(_)
            | Check::Ping(_)
            | Check::Certificate(_)
            | Check::Domain(_)
            | Check::Component(_) => None,
        };
        Self {
            monitor: monitor.id,
            account: page.account,
            revision: monitor.revision,
            kind,
            interval_ms: limits.interval_ms(plan, kind).unwrap_or(0),
            pinned,
            uptime_regions: page.uptime_regions.filter(|set| used && !set.is_empty()),
            latency_regions: latency.unwrap_or(RegionSet::only(Region::Europe)),
            slow_threshold_ms: monitor.slow_threshold_ms,
            slow_thresholds: monitor.slow_thresholds.clone().filter(|_| used).unwrap_or_default(),
            beat,
            confirmation,
            repeat_minutes: None,
            paused: monitor.paused || (kind == CheckKind::Component && !plan.has_components()),
        }
    }

    /// The same on a page with those alert settings.
    #[must_use]
    pub fn told_by(self, telling: &Telling) -> Self {
        Self { repeat_minutes: telling.repeat_minutes, ..self }
    }

    /// The lane that a region's rounds are judged in: its own, or the only one where regions do not judge.
    pub const fn lane(&self, region: Region) -> usize {
        if self.kind.is_regional() { region.index() } else { 0 }
    }

    /// Regions that rounds are run in. One stands for all where regions do not judge for themselves.
    pub fn regions(&self, mesh: &Mesh) -> RegionSet {
        let regions = crate::assign::regions_in_use(self.kind, self.pinned, mesh);
        if self.kind.is_regional() { regions } else { RegionSet::only(Region::Europe) }
    }

    /// Regions with a say in up and down. Where none of the wanted has a place enrolled, every region that has one counts.
    pub fn counted(&self, mesh: &Mesh) -> RegionSet {
        if !self.kind.is_regional() {
            return RegionSet::only(Region::Europe);
        }
        self.settle(self.uptime_regions.unwrap_or(RegionSet::ALL), mesh)
    }

    /// Regions whose readings are judged as slow, by the same rule.
    pub fn latency(&self, mesh: &Mesh) -> RegionSet {
        if self.kind.has_latency() { self.settle(self.latency_regions, mesh) } else { RegionSet::NONE }
    }

    /// The threshold of a reading from that region, in milliseconds.
    pub fn threshold(&self, region: Region) -> Option<u32> {
        self.slow_thresholds.get(&region).copied().or(self.slow_threshold_ms)
    }

    /// Milliseconds without a fresh round after which a region is stale.
    pub fn stale_after(&self) -> i64 {
        match self.kind {
            CheckKind::Component => 30 * MINUTE,
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Certificate
            | CheckKind::Domain
            | CheckKind::Heartbeat => self.intervals(3).max(5 * MINUTE),
        }
    }

    /// So many intervals, in milliseconds.
    pub fn intervals(&self, count: i64) -> i64 {
        i64::from(self.interval_ms) * count
    }

    fn settle(&self, wanted: RegionSet, mesh: &Mesh) -> RegionSet {
        if let Some(region) = self.pinned {
            return RegionSet::only(region);
        }
        let enrolled = mesh.enrolled_regions();
        let counted = wanted.intersection(enrolled);
        if counted.is_empty() { enrolled } else { counted }
    }
}
