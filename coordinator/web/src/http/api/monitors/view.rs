//! A monitor as the API returns it: every field of the contract, null if it does not apply to the type.

use std::collections::BTreeMap;

use parallax_core::check::Check;
use parallax_core::event::MonitorStatus;
use parallax_core::machine::{LastCheck, MachineView};
use parallax_core::observation::Failure;
use parallax_core::vantage::{Region, RegionSet};
use parallax_service::monitors::MonitorWithState;
use schemars::JsonSchema;
use serde::Serialize;

use super::acknowledgement::{self, AcknowledgementDocument};
use crate::http::openapi::value_schemas;

/// A monitor. Request headers and body are stored and never returned.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Monitor")]
pub(in crate::http) struct MonitorDocument {
    /// Monitor id.
    id: String,
    /// Page it is on.
    page_id: String,
    /// Shown on the page.
    name: String,
    #[schemars(with = "value_schemas::MonitorType")]
    r#type: &'static str,
    /// URL, host and port, or record, in words.
    target: String,
    /// http: URL requested.
    url: Option<String>,
    /// tcp, dns, ping, certificate, domain: host.
    host: Option<String>,
    /// tcp, certificate: port.
    port: Option<u16>,
    /// dns: record type.
    #[schemars(with = "Option<value_schemas::DnsType>")]
    dns_type: Option<&'static str>,
    /// dns: text an answer must contain.
    dns_expect: Option<String>,
    /// certificate, domain: fails this many days before expiry.
    warn_days: Option<u16>,
    /// certificate, domain: expiry as the newest check read it.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    expires_at: Option<String>,
    /// heartbeat: its pings.
    heartbeat: Option<HeartbeatDocument>,
    /// Monitors with the same group are shown together.
    group: Option<String>,
    /// http: request method.
    #[schemars(with = "Option<value_schemas::Method>")]
    method: Option<&'static str>,
    /// http: exact status expected; null means any 2xx.
    expect_status: Option<u16>,
    /// http: text the body must contain, or must not.
    keyword: Option<String>,
    /// http: whether the keyword must be present or absent.
    #[schemars(with = "Option<value_schemas::Presence>")]
    keyword_mode: Option<&'static str>,
    /// A successful response slower than this many milliseconds is slow.
    slow_threshold_ms: Option<u32>,
    /// Per-region thresholds, in milliseconds.
    #[schemars(with = "Option<BTreeMap<String, u32>>")]
    slow_thresholds: Option<BTreeMap<&'static str, u32>>,
    /// The monitor's own regions for response times; null means the page's.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    latency_locations: Option<Vec<&'static str>>,
    /// Only region it is checked from; null means every region.
    #[schemars(with = "Option<value_schemas::Region>")]
    pinned_region: Option<&'static str>,
    /// component: vendor status page.
    vendor_url: Option<String>,
    /// component: one component on that page, by name.
    vendor_component: Option<String>,
    /// Order on the page, from 0.
    position: u32,
    #[schemars(with = "value_schemas::MonitorStatus")]
    status: &'static str,
    /// Start of the current status.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    since: Option<String>,
    /// While down from some regions and up in others: those regions.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    down_from: Option<Vec<&'static str>>,
    /// While down: the reason, from the first failed round of the outage, and the regions it is seen from. Null
    /// when not down.
    down_reason: Option<String>,
    /// Acknowledgement of the running outage, which has no still-down alerts then; null without one.
    acknowledged: Option<AcknowledgementDocument>,
    /// The newest finished check.
    last_check: Option<LastCheckDocument>,
    /// True if a second network can confirm its failures; otherwise it is never marked down.
    confirmable: bool,
    /// While failures can't be confirmed by a second network, so that it isn't marked down: the regions it fails
    /// from.
    #[schemars(with = "Option<Vec<value_schemas::Region>>")]
    unconfirmed_from: Option<Vec<&'static str>>,
    /// Time since which networks contradict each other in every check of a region; null under 5 minutes.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    disputed_since: Option<String>,
    /// True if it is paused and not checked.
    paused: bool,
    /// Cause of a pause: `owner`, by setting `paused`, or `plan`, which does not include its type. Null while it is
    /// checked.
    #[schemars(with = "Option<value_schemas::PausedBy>")]
    paused_by: Option<&'static str>,
    /// While it is flapping: start and number of changes. Null otherwise.
    flapping: Option<FlappingDocument>,
    /// Share of checks passed in the last 24 hours, in percent; null while paused.
    uptime24h: Option<f64>,
    /// Median response time over 24 hours, in milliseconds.
    latency_ms24h: Option<u32>,
    /// Creation time.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    created_at: String,
}

/// Changes of a flapping monitor between up and down, or slow and normal: at least three within 30 minutes, until
/// there is none for 30 minutes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Flapping")]
struct FlappingDocument {
    /// Time of the first change.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    since: String,
    /// Number of changes.
    changes: u32,
}

/// Settings and pings of a heartbeat monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Heartbeat")]
struct HeartbeatDocument {
    /// Seconds between expected pings.
    period_seconds: u32,
    /// Seconds of grace after the period.
    grace_seconds: u32,
    /// Time of the newest ping.
    #[schemars(with = "Option<value_schemas::IsoTimeSchema>")]
    last_ping_at: Option<String>,
    /// Duration of the newest measured run, in milliseconds.
    last_run_ms: Option<u64>,
    /// URL that the job requests on each run, by GET, HEAD or POST: as it is for success, or followed by `/start`,
    /// `/fail`, `/log` or an exit code; null for a read key.
    ping_url: Option<String>,
}

/// The newest finished check of a monitor.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LastCheck")]
struct LastCheckDocument {
    /// End of the check.
    #[schemars(with = "value_schemas::IsoTimeSchema")]
    at: String,
    /// True if it passed.
    ok: bool,
    /// http: status received.
    status_code: Option<u16>,
    /// Response time in milliseconds.
    latency_ms: Option<u32>,
    /// Reason it failed; or the reason it could not be judged, if that lies with a registry, a vendor's page or the
    /// server's TLS: `ok` is false then, and the status unchanged.
    error: Option<String>,
}

/// Builds the document of a monitor; `ping_url` is set if the reader may know it.
pub(super) fn document(current: &MonitorWithState, ping_url: Option<String>) -> MonitorDocument {
    let MonitorWithState { monitor, view, statistics, paused_by_plan } = current;
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
        pinned_region: monitor.pinned_region.map(Region::name),
        position: monitor.position,
        status: view.status.name(),
        since: view.since.map(|since| since.to_string()),
        down_from: view.down_from.map(names),
        down_reason: down_reason(current),
        acknowledged: acknowledgement::document(current),
        last_check: view.last_check.as_ref().map(|check| last_check(check, unconfirmed(view))),
        confirmable: !view.unconfirmable,
        unconfirmed_from: unconfirmed(view).map(names),
        disputed_since: view.disputed_since.map(|since| since.to_string()),
        paused: monitor.paused,
        paused_by: monitor.paused.then_some(if *paused_by_plan { "plan" } else { "owner" }),
        flapping: view.flapping.map(|it| FlappingDocument { since: it.since.to_string(), changes: it.changes }),
        uptime24h: statistics.uptime,
        latency_ms24h: statistics.latency_ms.filter(|_| kind.has_latency()),
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

/// Returns why a monitor is down and in which regions; none while it is not down. For the owner only, since the
/// text may name hosts that visitors of a page must not see.
pub(in crate::http) fn down_reason(current: &MonitorWithState) -> Option<String> {
    let reason = current.view.down_reason.as_ref()?;
    let regions = current.view.down_from.unwrap_or(current.view.seen_down);
    if !current.monitor.check.kind().is_regional() || regions.is_empty() {
        return Some(reason.to_string());
    }
    let regions: Vec<&str> = regions.iter().map(Region::title).collect();
    Some(format!("{reason} (from {})", regions.join(", ")))
}

/// Returns warnings for the owner of a monitor that fails without a second network to confirm it, on which networks
/// contradict each other, or whose failures can't be confirmed at present.
pub(super) fn warnings(current: &MonitorWithState) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(regions) = unconfirmed(&current.view) {
        warnings.push(format!("{}, so it isn't called down", unconfirmed_failure_text(regions)));
    }
    if let Some(since) = current.view.disputed_since {
        warnings.push(format!("disputed since {since}: some networks see it fail, others see it up"));
    }
    if current.view.unconfirmable {
        warnings.push(match current.monitor.pinned_region {
            Some(region) => format!(
                "no outage of this monitor can be confirmed, so it will not be called down: {} has no two working \
                 agents on different networks",
                region.title()
            ),
            None => "no outage of this monitor can be confirmed, so it will not be called down: there are no two \
                     working agents on different networks"
                .to_owned(),
        });
    }
    warnings
}

/// Returns the regions it fails from without confirmation by a second network, while it isn't down.
fn unconfirmed(view: &MachineView) -> Option<RegionSet> {
    (view.status != MonitorStatus::Down && !view.unconfirmed_from.is_empty()).then_some(view.unconfirmed_from)
}

fn unconfirmed_failure_text(regions: RegionSet) -> String {
    let mut all = regions.iter();
    match (all.next(), regions.len()) {
        (Some(region), 1) => format!("failing from {}, can't be confirmed", region.title()),
        (_, count) => format!("failing from {count} regions, can't be confirmed"),
    }
}

fn last_check(check: &LastCheck, unconfirmed: Option<RegionSet>) -> LastCheckDocument {
    let error_text = |error: &Failure| match unconfirmed {
        Some(regions) => format!("{error} ({})", unconfirmed_failure_text(regions)),
        None => error.to_string(),
    };
    LastCheckDocument {
        at: check.at.to_string(),
        ok: check.ok,
        status_code: check.facts.status_code,
        latency_ms: check.facts.latency_ms,
        error: check.error.as_ref().map(error_text),
    }
}

fn names(regions: RegionSet) -> Vec<&'static str> {
    regions.iter().map(Region::name).collect()
}

#[cfg(test)]
mod tests {
    use parallax_core::observation::Measurements;
    use parallax_service::statistics::MonitorStatistics;
    use parallax_store::samples::{at, monitor};
    use serde_json::{Value, json};

    use super::*;

    fn with_status(status: MonitorStatus, from: &[Region]) -> MonitorWithState {
        let error = Some(Failure::Refused);
        let last_check = Some(LastCheck { at: at(0), ok: false, facts: Measurements::default(), error });
        let unconfirmed_from = from.iter().copied().collect();
        let view = MachineView { status, last_check, unconfirmed_from, ..MachineView::default() };
        MonitorWithState {
            monitor: monitor(1, 1, 0),
            view,
            statistics: MonitorStatistics::default(),
            paused_by_plan: false,
        }
    }

    #[test]
    fn an_owner_reads_since_when_it_is_disputed() {
        let view = MachineView { status: MonitorStatus::Up, disputed_since: Some(at(0)), ..MachineView::default() };
        let current = MonitorWithState { view, ..with_status(MonitorStatus::Up, &[]) };
        let document = serde_json::to_value(document(&current, None)).unwrap();
        assert_eq!(document["disputedSince"], json!(at(0).to_string()));
        let warned = format!("disputed since {}: some networks see it fail, others see it up", at(0));
        assert_eq!(warnings(&current), [warned]);
    }

    #[test]
    fn an_owner_reads_from_where_it_fails_unconfirmed() {
        let read = |current: &MonitorWithState| {
            let document = serde_json::to_value(document(current, None)).unwrap();
            let error = document["lastCheck"]["error"].as_str().unwrap_or_default().to_owned();
            (document["unconfirmedFrom"].clone(), error, warnings(current))
        };
        let (from, error, warned) = read(&with_status(MonitorStatus::Up, &[Region::Asia]));
        assert_eq!(from, json!(["asia"]));
        assert_eq!(error, "connection refused (failing from Asia, can't be confirmed)");
        assert_eq!(warned, ["failing from Asia, can't be confirmed, so it isn't called down"]);
        let (_, error, _) = read(&with_status(MonitorStatus::Up, &Region::ALL));
        assert_eq!(error, "connection refused (failing from 6 regions, can't be confirmed)");
        for confirmed in [with_status(MonitorStatus::Up, &[]), with_status(MonitorStatus::Down, &Region::ALL)] {
            assert_eq!(read(&confirmed), (Value::Null, "connection refused".to_owned(), Vec::new()));
        }
    }
}
