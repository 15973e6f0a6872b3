//! Effective settings: the settings of a monitor that apply after its page and plan are taken into account.

use std::collections::BTreeMap;

use crate::alert_settings::AlertSettings;
use crate::check::{Check, CheckKind};
use crate::id::{AccountId, MonitorId};
use crate::monitor::Monitor;
use crate::page::Page;
use crate::plan::{Plan, PlanLimits};
use crate::time::{MINUTE, SECOND, Timestamp};
use crate::vantage::{Mesh, Region, RegionSet};

/// Policy for confirming failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfirmationPolicy {
    /// By a vantage on another network, always.
    #[default]
    OtherNetwork,
    /// While the whole mesh is on one network: by the same network, five seconds later.
    Repeat,
}

/// Effective settings of a monitor, as its machine uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSettings {
    /// Monitor id.
    pub monitor: MonitorId,
    /// Account of the page.
    pub account: AccountId,
    /// Revision of the check.
    pub revision: u32,
    /// Type of the check.
    pub kind: CheckKind,
    /// Milliseconds between two rounds in one region; 0 for a heartbeat.
    pub interval_ms: u32,
    /// Region it is pinned to, if any.
    pub pinned: Option<Region>,
    /// Regions that count for up and down; none means all.
    pub uptime_regions: Option<RegionSet>,
    /// Regions whose readings can make it slow.
    pub latency_regions: RegionSet,
    /// Slow threshold in milliseconds, for regions without their own.
    pub slow_threshold_ms: Option<u32>,
    /// Slow thresholds of single regions, in milliseconds.
    pub slow_thresholds: BTreeMap<Region, u32>,
    /// Heartbeat: period and grace, in milliseconds.
    pub heartbeat: Option<(i64, i64)>,
    /// Policy for confirming failures.
    pub confirmation: ConfirmationPolicy,
    /// Minutes between still-down alerts; none disables them.
    pub repeat_minutes: Option<u16>,
    /// Set while paused: no checks are run.
    pub paused: bool,
    /// Start of the outage that was acknowledged last: it has no still-down alerts.
    pub acknowledged_outage: Option<Timestamp>,
}

impl EffectiveSettings {
    /// Computes the settings of a monitor on that page and plan; without still-down alerts.
    pub fn new(
        monitor: &Monitor,
        page: &Page,
        plan: Plan,
        limits: &PlanLimits,
        confirmation: ConfirmationPolicy,
    ) -> Self {
        let kind = monitor.check.kind();
        let used = plan.uses_regions();
        let pinned = monitor.pinned_region.filter(|_| used);
        let latency = if used { monitor.latency_regions.or(page.latency_regions) } else { None };
        let heartbeat = match &monitor.check {
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
            heartbeat,
            confirmation,
            repeat_minutes: None,
            paused: monitor.paused || (kind == CheckKind::Component && !plan.has_components()),
            acknowledged_outage: monitor.acknowledgement.as_ref().map(|acknowledgement| acknowledgement.outage),
        }
    }

    /// Adds the alert settings of the page.
    #[must_use]
    pub fn with_alert_settings(self, alert_settings: &AlertSettings) -> Self {
        Self { repeat_minutes: alert_settings.repeat_minutes, ..self }
    }

    /// Index of the region state that a region's rounds affect: its own, or the only one for types not judged by
    /// region.
    pub const fn state_index(&self, region: Region) -> usize {
        if self.kind.is_regional() { region.index() } else { 0 }
    }

    /// Regions in which rounds are run. For types not judged by region, one region represents all.
    pub fn checked_regions(&self, mesh: &Mesh) -> RegionSet {
        let regions = regions_in_use(self.kind, self.pinned, mesh);
        if self.kind.is_regional() { regions } else { RegionSet::only(Region::Europe) }
    }

    /// Regions that count for up and down. If none of the selected regions has an enrolled vantage, every region with
    /// one counts.
    pub fn counted_regions(&self, mesh: &Mesh) -> RegionSet {
        if !self.kind.is_regional() {
            return RegionSet::only(Region::Europe);
        }
        self.enrolled_or_all(self.uptime_regions.unwrap_or(RegionSet::ALL), mesh)
    }

    /// Regions whose response times count, by the same rule.
    pub fn judged_latency_regions(&self, mesh: &Mesh) -> RegionSet {
        if self.kind.has_latency() { self.enrolled_or_all(self.latency_regions, mesh) } else { RegionSet::NONE }
    }

    /// Slow threshold for a region, in milliseconds.
    pub fn threshold(&self, region: Region) -> Option<u32> {
        self.slow_thresholds.get(&region).copied().or(self.slow_threshold_ms)
    }

    /// Milliseconds after which a region is stale if all its rounds since are inconclusive, or there are none.
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

    /// Length of this many intervals, in milliseconds.
    pub fn intervals(&self, count: i64) -> i64 {
        i64::from(self.interval_ms) * count
    }

    fn enrolled_or_all(&self, wanted: RegionSet, mesh: &Mesh) -> RegionSet {
        if let Some(region) = self.pinned {
            return RegionSet::only(region);
        }
        let enrolled = mesh.enrolled_regions();
        let counted = wanted.intersection(enrolled);
        if counted.is_empty() { enrolled } else { counted }
    }
}

/// Regions from which a monitor is checked: every region with an enrolled vantage, or the pinned one.
pub fn regions_in_use(kind: CheckKind, pinned: Option<Region>, mesh: &Mesh) -> RegionSet {
    match kind {
        CheckKind::Heartbeat => RegionSet::NONE,
        CheckKind::Http
        | CheckKind::Tcp
        | CheckKind::Dns
        | CheckKind::Ping
        | CheckKind::Certificate
        | CheckKind::Domain
        | CheckKind::Component => pinned.map_or_else(|| mesh.enrolled_regions(), RegionSet::only),
    }
}
