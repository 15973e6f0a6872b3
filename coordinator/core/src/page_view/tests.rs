//! Figures over many days are weighted by what was counted: they are never a mean of days.

use proptest::prelude::*;

use super::*;
use crate::check::{Check, HeartbeatCheck, PingCheck};
use crate::id::PageId;
use crate::time::MINUTE;

/// A monitor of that kind with this monitored time and downtime on its newest days, oldest first, in minutes.
fn view(check: Check, days: &[(u64, u64)]) -> MonitorView {
    let minute = MINUTE.unsigned_abs();
    let start = NaiveDate::from_ymd_opt(2026, 9, 1).unwrap();
    let day = |(date, (watched, down)): (NaiveDate, &(u64, u64))| {
        let time = MonitoredTime { monitored: watched * minute, down: down * minute };
        let passed = u32::try_from(watched - down).unwrap();
        let counts = OutcomeCounts { passed, failed: u32::try_from(*down).unwrap(), ..OutcomeCounts::default() };
        UptimeDay { date, counts, uptime: time.percent(), time }
    };
    let monitor = Monitor {
        id: MonitorId::from_u128(1),
        page: PageId::from_u128(1),
        slot: 1,
        revision: 1,
        name: "Backup".to_owned(),
        group: None,
        check,
        slow_threshold_ms: None,
        slow_thresholds: None,
        latency_regions: None,
        pinned_region: None,
        position: 0,
        paused: false,
        created_at: Timestamp::from_millis(0),
        acknowledgement: None,
    };
    MonitorView {
        monitor,
        state: MachineView::default(),
        uptime_24h: Some(99.0),
        latency_ms: Some(80),
        in_maintenance: false,
        history: MonitorHistory { days: start.iter_days().zip(days).map(day).collect(), ..MonitorHistory::default() },
    }
}

fn heartbeat() -> Check {
    Check::Heartbeat(HeartbeatCheck { period_seconds: 60, grace_seconds: 0, token: "secret".to_owned() })
}

fn ping() -> Check {
    Check::Ping(PingCheck { host: "shop.example".to_owned() })
}

#[test]
fn days_with_little_data_have_little_weight() {
    // A job that was down for all of the ten minutes that its first day had, and a tenth of the next.
    let days = [(10, 10), (1440, 144)];
    for check in [heartbeat(), ping()] {
        assert_eq!(view(check, &days).uptime_over(7), Some(89.379), "and not the 45 that is the days' mean");
    }
}

#[test]
fn an_error_budget_is_spent_by_monitored_time_and_not_by_pauses() {
    // Half an hour's outage on the one monitored day, and then a pause of twenty days.
    let mut days = vec![(300, 30)];
    days.extend([(0, 0); 20]);
    for check in [heartbeat(), ping()] {
        let view = view(check, &days);
        let budget = view.error_budget(99.9).unwrap();
        assert_eq!(budget.used_minutes, 30.0);
        assert!((budget.left_minutes() - 13.2).abs() < 1e-9);
    }
}

#[test]
fn what_is_paused_has_no_figure() {
    for check in [heartbeat(), ping()] {
        let mut view = view(check, &[(1440, 10)]);
        assert!(TimeRange::ALL.iter().all(|range| view.uptime_in(*range).is_some()));
        view.monitor.paused = true;
        assert!(TimeRange::ALL.iter().all(|range| view.uptime_in(*range).is_none()));
        assert_eq!(view.error_budget(99.9), None);
    }
}

#[test]
fn without_data_there_is_no_budget() {
    for check in [heartbeat(), ping()] {
        assert_eq!(view(check, &[(0, 0), (0, 0)]).error_budget(99.9), None);
    }
}

proptest! {
    #[test]
    fn uptime_over_days_is_weighted_by_minutes(
        days in proptest::collection::vec((0_u64..1441, 0_u64..1441), 0..40), over in 1_usize..50,
    ) {
        let days: Vec<(u64, u64)> = days.into_iter().map(|(one, other)| (one.max(other), one.min(other))).collect();
        let newest = || days.iter().rev().take(over);
        let (watched, down) = newest().fold((0, 0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
        let expected = (watched > 0).then(|| ((watched - down) * 100_000 / watched) as f64 / 1000.0);
        prop_assert_eq!(view(heartbeat(), &days).uptime_over(over), expected);
        prop_assert_eq!(view(ping(), &days).uptime_over(over), expected);
    }
}
