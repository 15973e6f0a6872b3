//! Script of the simulated past, by days before today: outages, a slow afternoon, a disputed round, maintenance and
//! deploys. Days are those of UTC, the demo page's time zone.

use parallax_core::observation::{CheckPhase, Failure};
use parallax_core::time::{DAY, HOUR, MINUTE, Timestamp};
use parallax_core::uptime::{TimeSpan, TimeSpans};
use parallax_core::vantage::{Region, RegionSet};

/// Days of simulated history before today.
pub(super) const HISTORY_DAYS: i64 = 90;
/// Days before today from which rounds are a minute apart and stored singly; older ones are five minutes apart, and in
/// roll-ups only.
const FINE_DAYS: i64 = 3;
/// Milliseconds between two rounds of the newest days, and of older ones.
const FINE_CADENCE: i64 = MINUTE;
const COARSE_CADENCE: i64 = 5 * MINUTE;

/// The present, from which the script counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) now: Timestamp,
    today: Timestamp,
}

impl Calendar {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { now, today: Timestamp::from_millis(now.as_millis().div_euclid(DAY) * DAY) }
    }

    /// Creation of the page and its monitors: the start of the history.
    pub(super) fn from(self) -> Timestamp {
        self.today - HISTORY_DAYS * DAY + 9 * HOUR
    }

    /// First hour since the epoch whose rounds are stored singly.
    pub(super) fn fine_from(self) -> i64 {
        (self.today - FINE_DAYS * DAY).hour()
    }

    /// Milliseconds between two rounds of that hour.
    pub(super) fn cadence(self, hour: i64) -> i64 {
        if hour < self.fine_from() { COARSE_CADENCE } else { FINE_CADENCE }
    }

    pub(super) fn time(self, moment: Moment) -> Timestamp {
        self.today - moment.days_ago * DAY + moment.minute * MINUTE
    }

    pub(super) fn span(self, start: Moment, minutes: i64) -> TimeSpan {
        let from = self.time(start);
        TimeSpan { from, to: from + minutes * MINUTE }
    }

    /// Maintenance that covered a monitor.
    pub(super) fn windows_of(self, monitor: &str) -> TimeSpans {
        let covering = WINDOWS.iter().filter(|window| window.monitors.contains(&monitor));
        covering.map(|window| self.span(window.start, window.minutes)).collect()
    }
}

/// A time of a day before today, or after it if the number of days is negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    days_ago: i64,
    /// Minute of the day.
    minute: i64,
}

const fn moment(days_ago: i64, hour: i64, minute: i64) -> Moment {
    Moment { days_ago, minute: hour * 60 + minute }
}

/// An outage. Its start and length are multiples of the time between rounds, so that figures are exact.
#[derive(Debug)]
pub(super) struct ScriptedOutage {
    pub(super) key: &'static str,
    /// Monitors, by their keys.
    pub(super) monitors: &'static [&'static str],
    pub(super) regions: RegionSet,
    pub(super) start: Moment,
    pub(super) minutes: i64,
    pub(super) failure: fn() -> Failure,
}

/// Keys of the outages whose incidents nobody took over.
pub(super) const UNATTENDED: [&str; 2] = ["vendor", "stock"];

/// Every outage, oldest first.
pub(super) const OUTAGES: &[ScriptedOutage] = &[
    ScriptedOutage {
        key: "connections",
        monitors: &["website", "checkout"],
        regions: RegionSet::ALL,
        start: moment(68, 14, 20),
        minutes: 40,
        failure: || Failure::UnexpectedStatus(503),
    },
    ScriptedOutage {
        key: "legacy",
        monitors: &["legacy"],
        regions: RegionSet::ALL,
        start: moment(41, 3, 10),
        minutes: 25,
        failure: || Failure::Refused,
    },
    ScriptedOutage {
        key: "vendor",
        monitors: &["payments"],
        regions: RegionSet::ALL,
        start: moment(22, 15, 30),
        minutes: 35,
        failure: || Failure::VendorOutage("Partial outage: Card payments".to_owned()),
    },
    ScriptedOutage {
        key: "images",
        monitors: &["images"],
        regions: RegionSet::only(Region::Asia),
        start: moment(17, 11, 5),
        minutes: 20,
        failure: || Failure::Timeout(CheckPhase::Connect),
    },
    ScriptedOutage {
        key: "checkout",
        monitors: &["checkout"],
        regions: RegionSet::ALL,
        start: moment(9, 18, 35),
        minutes: 15,
        failure: || Failure::UnexpectedStatus(502),
    },
    ScriptedOutage {
        key: "stock",
        monitors: &["stock"],
        regions: RegionSet::ALL,
        start: moment(2, 22, 10),
        minutes: 4,
        failure: || Failure::Timeout(CheckPhase::FirstByte),
    },
];

/// The slow afternoon.
#[derive(Debug)]
pub(super) struct SlowPeriod {
    pub(super) key: &'static str,
    pub(super) monitor: &'static str,
    pub(super) region: Region,
    pub(super) start: Moment,
    pub(super) minutes: i64,
    /// Lowest response time, in milliseconds.
    pub(super) latency_ms: u32,
}

/// An afternoon in Sydney.
pub(super) const SLOW: SlowPeriod = SlowPeriod {
    key: "oceania",
    monitor: "search",
    region: Region::Oceania,
    start: moment(12, 3, 30),
    minutes: 240,
    latency_ms: 620,
};

/// The round on which two networks disagreed.
#[derive(Debug)]
pub(super) struct DisputedRound {
    pub(super) monitor: &'static str,
    pub(super) region: Region,
    /// The round is the next one due.
    pub(super) start: Moment,
}

pub(super) const DISPUTED: DisputedRound =
    DisputedRound { monitor: "website", region: Region::Africa, start: moment(1, 13, 20) };

/// A maintenance window.
#[derive(Debug)]
pub(super) struct ScriptedWindow {
    pub(super) monitors: &'static [&'static str],
    pub(super) planned: Moment,
    pub(super) start: Moment,
    pub(super) minutes: i64,
    pub(super) title: &'static str,
    pub(super) message: &'static str,
}

/// One window in the past and one ahead. Neither covers a monitor of the demo's mail subscribers, so that none of them is
/// mailed when the second one starts.
pub(super) const WINDOWS: &[ScriptedWindow] = &[
    ScriptedWindow {
        monitors: &["database", "dns"],
        planned: moment(28, 10, 0),
        start: moment(24, 2, 0),
        minutes: 60,
        title: "Database upgrade",
        message: "We upgrade the database to a new major version. Orders are accepted throughout, and reports may be \
                  up to an hour late.",
    },
    ScriptedWindow {
        monitors: &["database", "router"],
        planned: moment(1, 10, 0),
        start: moment(-3, 2, 0),
        minutes: 120,
        title: "Move of the database to new hosts",
        message: "We move the database to new hosts. Connections are interrupted for a few seconds at about 02:30 UTC.",
    },
];

/// A deploy.
#[derive(Debug)]
pub(super) struct ScriptedDeploy {
    pub(super) at: Moment,
    pub(super) version: &'static str,
    pub(super) note: &'static str,
    /// Monitors, by their keys; none means all.
    pub(super) monitors: &'static [&'static str],
}

/// Every deploy, oldest first. Two of them caused an outage.
pub(super) const DEPLOYS: &[ScriptedDeploy] = &[
    deploy(moment(83, 9, 40), "v4.8.0", "New product pages", &["website", "images"]),
    deploy(moment(68, 14, 5), "v4.9.0", "Recommendations on every page", &["website", "checkout"]),
    deploy(moment(68, 14, 55), "v4.9.1", "Fewer connections for recommendations", &["website", "checkout"]),
    deploy(moment(54, 10, 15), "v4.10.0", "Search by colour", &["search"]),
    deploy(moment(33, 8, 50), "v4.11.0", "Framework update", &[]),
    deploy(moment(21, 9, 30), "v4.12.0", "Smaller images", &["images"]),
    deploy(moment(9, 18, 30), "v4.13.0", "One-page checkout", &["checkout"]),
    deploy(moment(9, 18, 48), "v4.12.0", "Rollback", &["checkout"]),
    deploy(moment(6, 10, 20), "v4.13.1", "One-page checkout, with its tables", &["checkout"]),
    deploy(moment(1, 9, 5), "v4.14.0", "Faster stock levels", &["stock"]),
];

const fn deploy(
    at: Moment,
    version: &'static str,
    note: &'static str,
    monitors: &'static [&'static str],
) -> ScriptedDeploy {
    ScriptedDeploy { at, version, note, monitors }
}
