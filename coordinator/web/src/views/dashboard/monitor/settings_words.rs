//! Settings of a monitor in words: one line for the heading, and a list.

use parallax_core::check::{Check, HttpCheck, KeywordMode};
use parallax_core::explanation::{capitalized, period_text, short_duration};
use parallax_core::monitor::Monitor;
use parallax_core::time::{MINUTE, SECOND};
use parallax_core::vantage::{Region, RegionSet};

/// Where and how often a monitor is checked, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CheckPlan {
    /// Milliseconds between two rounds in one region.
    pub interval_ms: Option<u32>,
    /// Regions that check it.
    pub regions: RegionSet,
}

/// One line with everything that matters.
pub(crate) fn lead(monitor: &Monitor, plan: CheckPlan) -> String {
    let target = match &monitor.check {
        Check::Http(check) => format!("{} {}", check.method.name(), check.url),
        Check::Tcp(_) => format!("TCP {}", monitor.check.target()),
        Check::Dns(_) => format!("DNS {}", monitor.check.target()),
        Check::Ping(_) => format!("Ping {}", monitor.check.target()),
        Check::Certificate(check) => {
            format!("Certificate of {}, fails {} before it ends", monitor.check.target(), days(check.warn_days))
        }
        Check::Domain(check) => format!("Domain {}, fails {} before it ends", check.host, days(check.warn_days)),
        Check::Heartbeat(check) => return heartbeat(check.period_seconds, check.grace_seconds),
        Check::Component(_) => monitor.check.target(),
    };
    let every = plan.interval_ms.filter(|it| *it > 0).map(|it| format!(", every {}", interval(it)));
    let from = regions_text(monitor, plan.regions).map(|text| format!(" from {text}"));
    let slow = slow_text(monitor).map(|text| format!(", slow above {text}"));
    [Some(target), every, from, slow].into_iter().flatten().collect()
}

/// Settings with their labels.
pub(crate) fn settings(monitor: &Monitor, plan: CheckPlan) -> Vec<(&'static str, String)> {
    let mut rows = vec![("Type", monitor.check.kind().name().to_owned())];
    match &monitor.check {
        Check::Heartbeat(check) => {
            rows.push(("Expected", heartbeat(check.period_seconds, check.grace_seconds)));
        }
        Check::Http(check) => {
            rows.push(("Target", format!("{} {}", check.method.name(), check.url)));
            rows.extend(http(check));
        }
        Check::Dns(check) => {
            rows.push(("Target", monitor.check.target()));
            rows.push(("Answer contains", check.expect.clone().unwrap_or_else(|| "anything".to_owned())));
        }
        Check::Certificate(check) => {
            rows.push(("Target", monitor.check.target()));
            rows.push(("Fails", format!("{} before it ends", days(check.warn_days))));
        }
        Check::Domain(check) => {
            rows.push(("Target", monitor.check.target()));
            rows.push(("Fails", format!("{} before it ends", days(check.warn_days))));
        }
        Check::Tcp(_) | Check::Ping(_) | Check::Component(_) => rows.push(("Target", monitor.check.target())),
    }
    if let Some(interval_ms) = plan.interval_ms.filter(|it| *it > 0) {
        rows.push(("Checked", format!("every {}", interval(interval_ms))));
    }
    if !matches!(monitor.check, Check::Heartbeat(_) | Check::Component(_)) {
        let from = monitor.pinned_region.map_or_else(|| "every region".to_owned(), |it| format!("{} only", it.title()));
        rows.push(("Checked from", from));
    }
    if monitor.check.kind().has_latency() {
        rows.push(("Slow above", slow_text(monitor).unwrap_or_else(|| "no threshold".to_owned())));
        let counted = monitor.latency_regions.map_or_else(|| "the page's regions".to_owned(), titles);
        rows.push(("Response time counts from", counted));
    }
    rows.push(("Group", monitor.group.clone().unwrap_or_else(|| "none".to_owned())));
    rows
}

fn http(check: &HttpCheck) -> Vec<(&'static str, String)> {
    let status = check.expect_status.map_or_else(|| "any 2xx".to_owned(), |status| status.to_string());
    let mut rows = vec![("Expected status", status)];
    if let Some(keyword) = &check.keyword {
        let mode = match check.keyword_mode {
            KeywordMode::Present => "contains",
            KeywordMode::Absent => "does not contain",
        };
        rows.push(("Answer", format!("{mode} “{keyword}”")));
    }
    let stored = stored_text(check);
    if !stored.is_empty() {
        rows.push(("Stored, never shown", stored));
    }
    rows
}

/// Secrets of a request by their number: `2 headers, a body`; empty without any.
pub(crate) fn stored_text(check: &HttpCheck) -> String {
    let headers = match check.headers.len() {
        0 => None,
        1 => Some("1 header".to_owned()),
        count => Some(format!("{count} headers")),
    };
    let credentials = check.credentials.as_ref().map(|_| "a user name and password".to_owned());
    let body = check.body.as_ref().map(|_| "a body".to_owned());
    [headers, credentials, body].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Threshold with those of single regions: `250 ms (Oceania 400 ms)`; none without any.
pub(crate) fn slow_text(monitor: &Monitor) -> Option<String> {
    let own = monitor.slow_thresholds.iter().flatten().map(|(region, ms)| format!("{} {ms} ms", region.title()));
    let own = own.collect::<Vec<_>>().join(", ");
    match (monitor.slow_threshold_ms, own.is_empty()) {
        (Some(ms), true) => Some(format!("{ms} ms")),
        (Some(ms), false) => Some(format!("{ms} ms ({own})")),
        (None, false) => Some(own),
        (None, true) => None,
    }
}

/// Regions that check it: a number, or the name of the only one.
fn regions_text(monitor: &Monitor, regions: RegionSet) -> Option<String> {
    match (monitor.pinned_region, regions.len()) {
        (Some(region), _) => Some(format!("{} only", region.title())),
        (None, 0) => None,
        (None, 1) => Some(titles(regions)),
        (None, count) => Some(format!("{count} regions")),
    }
}

fn titles(regions: RegionSet) -> String {
    regions.iter().map(Region::title).collect::<Vec<_>>().join(", ")
}

/// Period and grace of a heartbeat.
pub(crate) fn heartbeat(period_seconds: u32, grace_seconds: u32) -> String {
    let grace = match grace_seconds {
        0 => "without grace".to_owned(),
        seconds => format!("with {} grace", short_duration(i64::from(seconds) * SECOND)),
    };
    capitalized(&format!("{} {grace}", period_text(period_seconds)))
}

fn interval(millis: u32) -> String {
    let millis = i64::from(millis);
    // Up to two minutes, as plans are compared by.
    if millis <= 2 * MINUTE { format!("{} s", millis / SECOND) } else { short_duration(millis) }
}

fn days(days: u16) -> String {
    if days == 1 { "1 day".to_owned() } else { format!("{days} days") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::views::tests::monitor;

    #[test]
    fn the_heading_says_what_where_and_how_often() {
        let plain = monitor(1, "Payments", "Shop");
        let plan = CheckPlan { interval_ms: Some(60_000), regions: RegionSet::ALL };
        assert_eq!(lead(&plain, plan), "GET https://example.com, every 60 s from 6 regions, slow above 250 ms");
        let own = Monitor {
            slow_thresholds: Some(BTreeMap::from([(Region::Oceania, 400)])),
            pinned_region: Some(Region::Africa),
            ..plain.clone()
        };
        assert_eq!(
            lead(&own, CheckPlan::default()),
            "GET https://example.com from Africa only, slow above 250 ms (Oceania 400 ms)"
        );
        assert_eq!(heartbeat(86_400, 3_600), "Every day with 1 h grace");
        assert_eq!([300_000, 90_000].map(interval), ["5 min", "90 s"]);
        let rows = settings(&plain, plan);
        assert!(rows.contains(&("Checked from", "every region".to_owned())), "{rows:?}");
        assert!(!rows.iter().any(|(label, _)| label.starts_with("Stored")), "{rows:?}");
    }
}
