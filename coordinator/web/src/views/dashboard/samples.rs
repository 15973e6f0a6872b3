//! Monitors in every condition, for tests of screens.

use parallax_core::check::{Check, HeartbeatCheck};
use parallax_core::condition::Condition;
use parallax_core::event::MonitorStatus;
use parallax_core::machine::{LastCheck, MachineView};
use parallax_core::monitor::Monitor;
use parallax_core::observation::{CheckPhase, Failure, Measurements};
use parallax_core::page_view::UptimeSlice;
use parallax_core::rollup::OutcomeCounts;
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};
use parallax_core::uptime::{MonitoredTime, TimeSpan};
use parallax_core::vantage::{Region, RegionSet};

use super::{MonitorStatusInput, RowInput};
use crate::views::tests::monitor;

/// A monitor as a sample.
#[derive(Debug, Clone)]
pub(super) struct MonitorSample {
    pub(super) monitor: Monitor,
    pub(super) view: MachineView,
    pub(super) condition: Condition,
    slices: Vec<UptimeSlice>,
}

impl MonitorSample {
    /// Its status.
    pub(super) fn status(&self, now: Timestamp) -> MonitorStatusInput<'_> {
        MonitorStatusInput {
            monitor: &self.monitor,
            view: &self.view,
            condition: self.condition,
            maintenance_until: Some(now + 30 * MINUTE),
            paused_by_plan: false,
            now,
        }
    }

    /// Its row.
    pub(super) fn row(&self, now: Timestamp) -> RowInput<'_> {
        let is_known = !matches!(self.condition, Condition::Paused | Condition::NoData);
        RowInput {
            status: self.status(now),
            uptime: is_known.then_some(if self.condition == Condition::Down { 99.031 } else { 100.0 }),
            latency_ms: is_known.then_some(40 + 13 * self.monitor.slot),
            slices: &self.slices,
        }
    }
}

fn regions(list: &[Region]) -> RegionSet {
    list.iter().copied().collect()
}

fn slices(now: Timestamp, condition: Condition, slot: u32) -> Vec<UptimeSlice> {
    let slice = |back: i64| {
        let from = Timestamp::from_millis(now.hour() * HOUR) - back * HOUR;
        let mut counts = OutcomeCounts { passed: 360, ..OutcomeCounts::default() };
        match condition {
            Condition::Down if back < 2 => counts.failed = 200,
            Condition::Slow if back < 3 => counts.slow = 120,
            Condition::NoData => counts = OutcomeCounts::default(),
            Condition::Maintenance if back == 0 => counts = OutcomeCounts { excluded: 360, ..OutcomeCounts::default() },
            _ if (i64::from(slot) * 7 + back) % 61 == 0 => counts.failed = 20,
            _ => {}
        }
        let time = MonitoredTime::of_rounds(HOUR.unsigned_abs(), counts.tally());
        UptimeSlice { span: TimeSpan { from, to: from + HOUR }, counts, uptime: counts.tally().percent(), time }
    };
    (0..24).rev().map(slice).collect()
}

/// A monitor in that condition.
pub(super) fn sample(slot: u32, name: &str, group: &str, condition: Condition, now: Timestamp) -> MonitorSample {
    let mut monitor = monitor(slot, name, group);
    monitor.paused = condition == Condition::Paused;
    let passed = LastCheck { at: now - 20_000, ok: true, facts: Measurements::default(), error: None };
    let since = now - (i64::from(slot) * 37 + 14) * MINUTE;
    let known = MachineView {
        since: Some(since),
        last_check: Some(passed),
        seen_up: RegionSet::ALL,
        status: MonitorStatus::Up,
        ..MachineView::default()
    };
    let view = match condition {
        Condition::Down => MachineView {
            status: MonitorStatus::Down,
            down_from: Some(regions(&[Region::Asia])),
            down_reason: Some(Failure::Timeout(CheckPhase::Connect)),
            outage_since: Some(since),
            seen_up: regions(&[Region::Europe, Region::Africa, Region::Oceania, Region::NorthAmerica]),
            seen_down: regions(&[Region::Asia]),
            ..known
        },
        Condition::Slow => {
            let facts = Measurements { latency_ms: Some(702), ..Measurements::default() };
            let last_check = Some(LastCheck { at: now - 20_000, ok: true, facts, error: None });
            MachineView {
                status: MonitorStatus::Slow,
                slow_from: Some(regions(&[Region::Oceania])),
                last_check,
                ..known
            }
        }
        Condition::Unconfirmed => MachineView { unconfirmed_from: regions(&[Region::Africa]), ..known },
        Condition::Outdated => MachineView { status: MonitorStatus::Unknown, ..known },
        Condition::NoData | Condition::Paused => MachineView::default(),
        Condition::Maintenance | Condition::Up => known,
    };
    MonitorSample { slices: slices(now, condition, slot), monitor, view, condition }
}

/// The sample as a heartbeat without its ping.
pub(super) fn heartbeat(sample: MonitorSample, now: Timestamp) -> MonitorSample {
    let check = HeartbeatCheck { period_seconds: 900, grace_seconds: 60, token: "secret".to_owned() };
    let monitor = Monitor { check: Check::Heartbeat(check), created_at: now - 2 * DAY, ..sample.monitor };
    let view = match sample.condition {
        Condition::Down => MachineView {
            down_reason: Some(Failure::PingMissed),
            down_from: None,
            last_ping_at: Some(now - 49 * MINUTE),
            last_run_ms: Some(120_000),
            ..sample.view
        },
        _ => sample.view,
    };
    MonitorSample { monitor, view, ..sample }
}

/// One monitor in each condition, with some more that are up.
pub(super) fn samples(now: Timestamp) -> Vec<MonitorSample> {
    let plain = |slot, name, group, condition| sample(slot, name, group, condition, now);
    vec![
        plain(1, "Website", "Shop", Condition::Up),
        plain(2, "Checkout", "Shop", Condition::Up),
        plain(3, "Payments API", "Shop", Condition::Down),
        plain(4, "Search", "Shop", Condition::Slow),
        plain(5, "Sign-in", "Shop", Condition::Up),
        plain(6, "Warehouse gateway", "Delivery", Condition::Unconfirmed),
        heartbeat(plain(7, "Search index", "Delivery", Condition::Down), now),
        heartbeat(plain(8, "Nightly report", "Delivery", Condition::NoData), now),
        plain(9, "Map tiles", "Vendors", Condition::Outdated),
        plain(10, "Image CDN", "Vendors", Condition::Maintenance),
        plain(11, "Staging website", "Vendors", Condition::Paused),
        plain(12, "Mail server", "Vendors", Condition::Up),
    ]
}
