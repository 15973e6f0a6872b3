//! A monitor as the API shows it: every field of the contract, null where it does not belong to the type.

use std::collections::BTreeMap;

use parallax_core::check::Check;
use parallax_core::machine::LastCheck;
use parallax_core::place::{Region, RegionSet};
use serde::Serialize;

use crate::service::monitors::Shown;

/// A monitor as the API shows it. Request headers and body are stored and never shown.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MonitorDocument {
    id: String,
    page_id: String,
    name: String,
    r#type: &'static str,
    target: String,
    url: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    dns_type: Option<&'static str>,
    dns_expect: Option<String>,
    warn_days: Option<u16>,
    expires_at: Option<String>,
    heartbeat: Option<HeartbeatDocument>,
    group: Option<String>,
    method: Option<&'static str>,
    expect_status: Option<u16>,
    keyword: Option<String>,
    keyword_mode: Option<&'static str>,
    slow_threshold_ms: Option<u32>,
    slow_thresholds: Option<BTreeMap<&'static str, u32>>,
    latency_locations: Option<Vec<&'static str>>,
    pinned_region: Option<&'static str>,
    vendor_url: Option<String>,
    vendor_component: Option<String>,
    position: u32,
    status: &'static str,
    since: Option<String>,
    down_from: Option<Vec<&'static str>>,
    last_check: Option<LastCheckDocument>,
    confirmable: bool,
    paused: bool,
    uptime24h: Option<f64>,
    latency_ms24h: Option<u32>,
    created_at: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HeartbeatDocument {
    period_seconds: u32,
    grace_seconds: u32,
    last_ping_at: Option<String>,
    last_run_ms: Option<u64>,
    ping_url: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LastCheckDocument {
    at: String,
    ok: bool,
    status_code: Option<u16>,
    latency_ms: Option<u32>,
    error: Option<String>,
}

/// The document of a monitor; `ping_url` where the reader may know it.
pub(super) fn document(shown: &Shown, ping_url: Option<String>) -> MonitorDocument {
    let Shown { monitor, view, figure } = shown;
    let kind = monitor.check.kind();
    let common = MonitorDocument {
        id: monitor.id.to_string(),
        page_id: monitor.page.to_string(),
        name: monitor.name.clone(),
        r#type: kind.name(),
        target: monitor.check.target(),
        group: monitor.group.clone(),
        slow_threshold_ms: monitor.slow_threshold_ms,
        slow_thresholds: monitor
            .slow_thresholds
            .as_ref()
            .map(|thresholds| thresholds.iter().map(|(region, ms)| (region.name(), *ms)).collect()),
        latency_locations: monitor.latency_regions.map(names),
        pinned_region: monitor.pinned.map(Region::name),
        position: monitor.position,
        status: view.status.name(),
        since: view.since.map(|since| since.to_string()),
        down_from: view.down_from.map(names),
        last_check: view.last_check.as_ref().map(last_check),
        confirmable: !view.unconfirmable,
        paused: monitor.paused,
        uptime24h: figure.uptime,
        latency_ms24h: figure.latency_ms.filter(|_| kind.has_latency()),
        created_at: monitor.created_at.to_string(),
        ..MonitorDocument::default()
    };
    let expires_at = || view.expires_at.map(|expiry| expiry.to_string());
    match &monitor.check {
        Check::Http(http) => MonitorDocument {
            url: Some(http.url.clone()),
            method: Some(http.method.name()),
            expect_status: http.expect_status,
            keyword_mode: http.keyword.as_ref().map(|_| http.keyword_mode.name()),
            keyword: http.keyword.clone(),
            ..common
        },
        Check::Tcp(tcp) => MonitorDocument { host: Some(tcp.host.clone()), port: Some(tcp.port), ..common },
        Check::Dns(dns) => MonitorDocument {
            host: Some(dns.host.clone()),
            dns_type: Some(dns.record.name()),
            dns_expect: dns.expect.clone(),
            ..common
        },
        Check::Ping(ping) => MonitorDocument { host: Some(ping.host.clone()), ..common },
        Check::Certificate(certificate) => MonitorDocument {
            host: Some(certificate.host.clone()),
            port: Some(certificate.port),
            warn_days: Some(certificate.warn_days),
            expires_at: expires_at(),
            ..common
        },
        Check::Domain(domain) => MonitorDocument {
            host: Some(domain.host.clone()),
            warn_days: Some(domain.warn_days),
            expires_at: expires_at(),
            ..common
        },
        Check::Heartbeat(heartbeat) => MonitorDocument {
            heartbeat: Some(HeartbeatDocument {
                period_seconds: heartbeat.period_seconds,
                grace_seconds: heartbeat.grace_seconds,
                last_ping_at: view.last_ping_at.map(|at| at.to_string()),
                last_run_ms: view.last_run_ms,
                ping_url,
            }),
            ..common
        },
        Check::Component(component) => MonitorDocument {
            vendor_url: Some(component.url.clone()),
            vendor_component: component.component.clone(),
            ..common
        },
    }
}

/// What an owner is told who saves a monitor whose failures no second network can confirm.
pub(super) fn warnings(shown: &Shown) -> Vec<String> {
    if !shown.view.unconfirmable {
        return Vec::new();
    }
    let words = match shown.monitor.pinned {
        Some(region) => format!(
            "no outage of this monitor can be confirmed, so it will not be called down: {} has no two agents on \
             different networks",
            region.title()
        ),
        None => "no outage of this monitor can be confirmed, so it will not be called down: there are no two agents \
                 on different networks"
            .to_owned(),
    };
    vec![words]
}

fn last_check(check: &LastCheck) -> LastCheckDocument {
    LastCheckDocument {
        at: check.at.to_string(),
        ok: check.ok,
        status_code: check.facts.status_code,
        latency_ms: check.facts.latency_ms,
        error: check.error.as_ref().map(ToString::to_string),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}
