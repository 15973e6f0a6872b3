//! Examples of requests and responses, one for each schema: a small shop and its status page.

mod alerts;
pub(super) mod incidents;
mod keys;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::sample_shop::{
    DELIVERY, DEPLOY, DESTINATION, HEARTBEAT, INCIDENT, MONITOR, PAGE, PAGE_URL, SUBSCRIBER, TARGET,
};
use super::webhooks;
use incidents::{affected, incident, public_entry, repeat, update, window};

/// Returns an example of a path parameter, or of a field that holds an id.
pub(super) fn id(name: &str) -> String {
    match name {
        "pageId" => PAGE.to_string(),
        "monitorId" => MONITOR.to_string(),
        "incidentId" => INCIDENT.to_string(),
        "deployId" => DEPLOY.to_string(),
        "destinationId" => DESTINATION.to_string(),
        "subscriberId" => SUBSCRIBER.to_string(),
        "deliveryId" => DELIVERY.to_string(),
        _ => String::new(),
    }
}

/// Adds an example to every component that has none: its own, or one composed from its parts.
pub(super) fn fill(components: &mut BTreeMap<String, Value>) {
    for (name, schema) in components.iter_mut() {
        let examples = examples_of(name);
        if !examples.is_empty() {
            schema["examples"] = json!(examples);
        }
    }
    let composed: Vec<(String, Value)> = components
        .iter()
        .filter(|(_, schema)| schema.get("examples").is_none())
        .filter_map(|(name, schema)| Some((name.clone(), compose(schema, components)?)))
        .collect();
    for (name, example) in composed {
        if let Some(schema) = components.get_mut(&name) {
            schema["examples"] = json!([example]);
        }
    }
}

/// Composes an example from the schema: the example of its reference, its first enum value, or all its properties.
fn compose(schema: &Value, components: &BTreeMap<String, Value>) -> Option<Value> {
    if let Some(first) = schema.pointer("/examples/0").or_else(|| schema.pointer("/enum/0")) {
        return Some(first.clone());
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return compose(components.get(reference.rsplit('/').next()?)?, components);
    }
    if let Some(items) = schema.get("items") {
        return Some(json!([compose(items, components)?]));
    }
    let properties = schema.get("properties")?.as_object()?;
    let all = properties.iter().map(|(name, property)| Some((name.clone(), compose(property, components)?)));
    all.collect::<Option<_>>().map(Value::Object)
}

/// Returns the examples written by hand: of resources and of bodies.
fn examples_of(name: &str) -> Vec<Value> {
    match name {
        "Alert" => vec![webhooks::example()],
        "SubscriberNews" => vec![webhooks::subscriber_updates::example()],
        "SubscriberChallenge" => vec![webhooks::subscriber_updates::challenge()],
        "AlertRound" => vec![webhooks::example()["evidence"][0].clone()],
        "AlertSight" => vec![webhooks::example()["evidence"][0]["first"].clone()],
        "Key" | "Plan" | "PlanFeatures" | "Quota" => keys::examples_of(name),
        "RegionInService" => vec![json!({
            "region": "europe", "places": 2, "networks": ["AS64500", "AS64501"],
            "addresses": ["192.0.2.10", "2001:db8::10"],
        })],
        "Page" => vec![page()],
        "PublicPage" => vec![public_page()],
        "DomainVerification" => vec![domain_verification()],
        "PageAddressUpdate" => vec![json!({ "slug": "shop", "customDomain": "status.shop.example" })],
        "PageStatus" => vec![json!({ "indicator": "partial", "headline": "Partial outage" })],
        "StatusDocument" => vec![status()],
        "PublicMonitor" => vec![public_monitor()],
        "PublicEntry" => vec![public_entry()],
        "MoreUpdates" => vec![json!({ "count": 12, "url": format!("{PAGE_URL}/incidents/{INCIDENT}") })],
        "PublicRepeat" => vec![repeat(&json!(null))],
        "PublicUpdate" => vec![update(&json!(1_772_357_540_000_i64))],
        "Monitor" => vec![monitor(), heartbeat_monitor()],
        "Heartbeat" => vec![heartbeat()],
        "Flapping" => vec![json!({ "since": "2026-03-01T09:12:00.000Z", "changes": 7 })],
        "Acknowledgement" => vec![acknowledgement()],
        "LastCheck" => vec![last_check()],
        "CheckRecord" => vec![check()],
        "CheckListResponse" => vec![json!({ "checks": [check()], "nextCursor": "1772357405000-0" })],
        "Place" => vec![vantage("AS64500", 3)],
        "Sight" => vec![outcome("AS64500", 3)],
        "Phases" => vec![phases()],
        "MonitorEvent" => vec![event()],
        "EventListResponse" => vec![json!({ "events": [event()], "nextCursor": null })],
        "Away" => vec![absence()],
        "Round" => vec![round()],
        "UptimeDay" => vec![json!({
            "date": "2026-03-01", "uptime": 99.65, "passed": 2868, "failed": 10, "disputed": 1, "slow": 4,
            "excluded": 0, "unknown": 0,
        })],
        "Latency" => vec![latency()],
        "LatencyLine" => vec![latency_line()],
        "Sighting" => vec![json!({
            "region": "europe", "at": "2026-03-01T09:30:00.000Z", "seen": outcome("AS64500", 3), "error": null,
        })],
        "MonitorUpdateResult" => vec![json!({ "id": MONITOR.to_string(), "status": "changed", "error": null })],
        "ItemError" => vec![json!({
            "code": "not_found", "message": "not found, or not accessible with this key", "fields": null,
        })],
        "ItemErrorField" => vec![json!({ "field": "groupName", "rule": "must be at most 60 characters" })],
        "Ping" => vec![json!({
            "number": 412, "at": "2026-03-01T02:00:41.120Z", "kind": "fail", "exitCode": 3,
            "runId": "8e03978e-40d5-43e8-bc93-6894a57f9324", "durationMs": 41_000, "method": "POST",
            "address": "198.51.100.7", "userAgent": "runitor/1.4", "body": "disk is full",
        })],
        "Incident" => vec![incident(), window()],
        "Repeat" => vec![repeat(&json!(null))],
        "Update" => vec![update(&json!("2026-03-01T09:32:20.000Z"))],
        "AffectedMonitor" => vec![affected()],
        "Deploy" => vec![json!({
            "id": DEPLOY.to_string(), "pageId": PAGE.to_string(), "version": "v2.4.1",
            "url": "https://shop.example/releases/v2.4.1", "note": "New checkout", "monitorIds": [MONITOR.to_string()],
            "at": "2026-03-01T08:59:30.000Z", "createdAt": "2026-03-01T08:59:31.204Z",
        })],
        _ => bodies(name),
    }
}

/// Returns the examples of request bodies.
fn bodies(name: &str) -> Vec<Value> {
    match name {
        "PageCreate" => {
            vec![json!({ "name": "Example Shop", "slug": "example-shop", "timezone": "Europe/Berlin" })]
        }
        "PageUpdate" => vec![json!({
            "description": "Orders, payment and search", "uptimeTarget": 99.9, "showDeploys": true,
            "latencyLocations": ["europe", "north-america"], "supportUrl": null,
        })],
        "MonitorCreate" => vec![
            json!({
                "url": TARGET, "name": "Checkout", "groupName": "Shop", "keyword": "ok", "slowThresholdMs": 900,
                "slowThresholds": { "oceania": 1_800 }, "headers": { "Accept": "text/plain" },
            }),
            json!({ "type": "tcp", "host": "shop.example", "port": 5432, "pinnedRegion": "europe" }),
            json!({ "type": "dns", "host": "shop.example", "dnsType": "MX", "dnsExpect": "mail.shop.example" }),
            json!({ "type": "ping", "host": "shop.example" }),
            json!({ "type": "certificate", "host": "shop.example", "warnDays": 21 }),
            json!({ "type": "domain", "host": "shop.example" }),
            json!({ "type": "heartbeat", "name": "Nightly backup", "periodMinutes": 1440, "graceMinutes": 30 }),
            json!({
                "type": "component", "name": "Git hosting", "vendorUrl": "https://www.githubstatus.com",
                "vendorComponent": "Git Operations",
            }),
        ],
        "MonitorTest" => vec![
            json!({ "url": TARGET, "keyword": "ok", "pinnedRegion": "europe" }),
            json!({ "type": "tcp", "host": "shop.example", "port": 5432 }),
        ],
        "MonitorUpdate" => {
            vec![json!({ "name": "Checkout", "expectStatus": 204, "keyword": null }), json!({ "paused": true })]
        }
        "MonitorsUpdate" => vec![
            json!({
                "monitorIds": [MONITOR.to_string(), HEARTBEAT.to_string()],
                "set": { "paused": true, "groupName": "Shop" },
            }),
            json!({ "monitorIds": [HEARTBEAT.to_string()], "delete": true }),
        ],
        "MonitorOrder" => vec![json!({ "monitorIds": [HEARTBEAT.to_string(), MONITOR.to_string()] })],
        "MonitorOrderResponse" => vec![json!({ "monitorIds": [HEARTBEAT.to_string(), MONITOR.to_string()] })],
        "MonitorsUpdateSet" => vec![json!({ "slowThresholdMs": 900, "pinnedRegion": null })],
        "IncidentCreate" => vec![
            json!({
                "title": "Slow checkout", "impact": "degraded", "message": "We are looking into it.",
                "monitors": [{ "id": MONITOR.to_string(), "impact": "degraded" }], "remind": ["1h"],
            }),
            json!({
                "kind": "maintenance", "title": "Database upgrade", "startsAt": "2026-12-08T02:00:00.000Z",
                "endsAt": "2026-12-08T03:00:00.000Z", "monitorIds": [MONITOR.to_string()], "repeat": "monthly-weekday",
                "timezone": "Europe/Berlin", "remind": ["1d", "1h"],
            }),
        ],
        "IncidentUpdate" => {
            vec![json!({ "impact": "major", "postmortem": "A disk was full. There is an alarm for that now." })]
        }
        "UpdateCreate" => {
            vec![json!({ "status": "resolved", "message": "Orders go through again.", "notify": true })]
        }
        "DeployCreate" => vec![json!({
            "version": "v2.4.1", "url": "https://shop.example/releases/v2.4.1", "note": "New checkout",
            "monitorIds": [MONITOR.to_string()],
        })],
        "AffectedMonitorInput" => vec![json!({ "id": MONITOR.to_string(), "impact": "degraded" })],
        _ => alerts::examples_of(name),
    }
}

fn page() -> Value {
    json!({
        "id": PAGE.to_string(), "name": "Example Shop", "slug": "example-shop", "url": PAGE_URL,
        "customDomain": "status.shop.example", "description": "Orders, payment and search",
        "supportUrl": "mailto:help@shop.example", "timezone": "Europe/Berlin", "uptimeTarget": 99.9,
        "passwordProtected": false, "private": false, "privateFeedUrl": null, "showDeploys": true, "showLocations": false,
        "latencyLocations": null, "uptimeRegions": null, "createdAt": "2026-03-01T08:58:00.000Z",
        "customDomainProblem": null, "domainVerification": domain_verification(), "allowedPeople": [], "allowedDomains": ["shop.example"],
        "noindex": false, "theme": "auto", "accentColor": "#1a7f4b",
        "logo": format!("{PAGE_URL}/logo/5f2a9d1c0b7e4a3688c1d2e3f4a5b6c7"), "favicon": null, "language": "en",
    })
}

fn domain_verification() -> Value {
    json!({
        "host": "status.new-shop.example", "recordName": "_parallax-challenge.status.new-shop.example",
        "recordValue": "parallax-domain-verification=2f6d1b0c9e8a7f5d4c3b2a190817f6e5d4c3b2a1",
        "checkedAt": "2026-03-01T09:58:00.000Z", "problem": "there is no such record yet",
    })
}

fn public_page() -> Value {
    json!({
        "id": PAGE.to_string(), "name": "Example Shop", "url": PAGE_URL, "description": "Orders, payment and search",
        "supportUrl": "mailto:help@shop.example", "timezone": "Europe/Berlin",
    })
}

fn status() -> Value {
    json!({
        "page": public_page(), "status": { "indicator": "partial", "headline": "Partial outage" },
        "monitors": [public_monitor()], "incidents": [public_entry()], "maintenance": [],
        "checkedAt": "2026-03-01T09:33:12.000Z", "seenFrom": ["europe", "north-america"], "stale": false,
        "generatedAt": 1_772_357_600_000_i64,
    })
}

fn public_monitor() -> Value {
    json!({
        "id": MONITOR.to_string(), "name": "Checkout", "group": "Shop", "type": "http", "position": 0,
        "status": "down", "since": "2026-03-01T09:30:00.000Z", "downFrom": ["europe"], "uptime24h": 99.65,
        "latencyMs24h": 184,
    })
}

fn monitor() -> Value {
    json!({
        "id": MONITOR.to_string(), "pageId": PAGE.to_string(), "name": "Checkout", "type": "http", "target": TARGET,
        "url": TARGET, "host": null, "port": null, "dnsType": null, "dnsExpect": null, "warnDays": null,
        "expiresAt": null, "heartbeat": null, "group": "Shop", "method": "GET", "expectStatus": null, "keyword": "ok",
        "keywordMode": "present", "slowThresholdMs": 900, "slowThresholds": { "oceania": 1_800 },
        "latencyLocations": null, "pinnedRegion": null, "vendorUrl": null, "vendorComponent": null, "position": 0,
        "status": "down", "since": "2026-03-01T09:30:00.000Z", "downFrom": ["europe"],
        "downReason": "unexpected status 503 (from Europe)", "acknowledged": acknowledgement(), "lastCheck": last_check(),
        "confirmable": true, "unconfirmedFrom": null, "disputedSince": null, "paused": false, "pausedBy": null, "flapping": null, "uptime24h": 99.65, "latencyMs24h": 184,
        "createdAt": "2026-03-01T08:59:24.000Z",
    })
}

fn heartbeat_monitor() -> Value {
    let mut monitor = monitor();
    for (name, value) in [
        ("id", json!(HEARTBEAT.to_string())),
        ("name", json!("Nightly backup")),
        ("type", json!("heartbeat")),
        ("target", json!("a ping every 24 hours")),
        ("heartbeat", heartbeat()),
        ("status", json!("up")),
        ("position", json!(1)),
    ] {
        monitor[name] = value;
    }
    for name in [
        "url",
        "method",
        "keyword",
        "keywordMode",
        "slowThresholdMs",
        "slowThresholds",
        "downFrom",
        "downReason",
        "acknowledged",
        "latencyMs24h",
    ] {
        monitor[name] = Value::Null;
    }
    monitor["lastCheck"] = json!({
        "at": "2026-03-01T02:00:41.120Z", "ok": true, "statusCode": null, "latencyMs": null, "error": null,
    });
    monitor
}

fn heartbeat() -> Value {
    json!({
        "periodSeconds": 86_400, "graceSeconds": 1_800, "lastPingAt": "2026-03-01T02:00:41.120Z",
        "lastRunMs": 41_000, "pingUrl": "https://status.example/ping/5f1c2a80-3f0e-4c55-9d0a-6b1f7f4f2f4e",
    })
}

fn latency() -> Value {
    json!({
        "range": "24h", "from": "2026-02-28T09:30:00.000Z", "to": "2026-03-01T09:30:00.000Z", "bucketMs": 28_800_000,
        "regions": [latency_line()],
    })
}

fn latency_line() -> Value {
    json!({
        "region": "europe", "counted": true, "thresholdMs": 900, "medianMs": [184, null, 190],
        "minMs": [171, null, 168], "maxMs": [312, null, 905],
    })
}

fn acknowledgement() -> Value {
    json!({ "by": "On-call phone", "at": "2026-03-01T09:33:12.000Z", "note": "Restarting the cache" })
}

fn last_check() -> Value {
    json!({
        "at": "2026-03-01T09:32:00.214Z", "ok": false, "statusCode": 503, "latencyMs": 214,
        "error": "unexpected status 503",
    })
}

fn vantage(network: &str, number: u16) -> Value {
    json!({ "number": number, "region": "europe", "network": network })
}

fn phases() -> Value {
    json!({ "dnsUs": 1_840, "connectUs": 11_200, "tlsUs": 24_900, "firstByteUs": 171_400, "transferUs": 4_660 })
}

fn outcome(network: &str, number: u16) -> Value {
    json!({
        "place": vantage(network, number), "ok": false, "statusCode": 503, "latencyMs": 214, "address": "203.0.113.20",
        "phases": phases(), "error": "unexpected status 503",
    })
}

fn check() -> Value {
    json!({
        "at": "2026-03-01T09:30:05.000Z", "region": "europe", "round": 59_078_580, "result": "failed",
        "latencyMs": 214, "place": vantage("AS64500", 3), "first": outcome("AS64500", 3), "second": outcome("AS64501", 8), "third": null,
    })
}

fn round() -> Value {
    json!({
        "region": "europe", "why": "scheduled", "round": 59_078_580, "startedAt": "2026-03-01T09:30:00.000Z",
        "result": "failed", "first": outcome("AS64500", 3), "second": outcome("AS64501", 8),
    })
}

fn event() -> Value {
    json!({
        "id": "48213", "monitorId": MONITOR.to_string(), "at": "2026-03-01T09:30:05.600Z", "kind": "status-changed", "from": "up", "to": "down",
        "since": "2026-03-01T09:30:00.000Z", "downSince": "2026-03-01T09:30:00.000Z", "downFrom": ["europe"],
        "reason": "unexpected status 503", "latencyMs": null, "thresholdMs": null, "durationMs": null,
        "flapping": false, "evidence": [round()], "away": null, "deadline": null, "deadlineBefore": null,
        "by": null, "note": null,
    })
}

fn absence() -> Value {
    json!({ "from": "2026-03-01T02:03:10.000Z", "until": "2026-03-01T02:07:30.000Z" })
}
