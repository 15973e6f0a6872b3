//! JSON body of an alert webhook, including the legacy name of the monitor field.

use std::borrow::Cow;

use parallax_core::check::Check;
use parallax_core::event::AlertKind;
use parallax_core::id::{MonitorId, PageId};
use parallax_core::monitor::Monitor;
use parallax_core::page::Page;
use parallax_core::time::Timestamp;
use parallax_core::vantage::Region;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::Alert;
use super::alert_evidence::{self, AlertRound};
use super::region_schema::RegionNameSchema;

/// Monitor that an alert is about, and its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSubject {
    /// The page.
    pub page_id: PageId,
    /// The page's name.
    pub page: String,
    /// The page's public URL.
    pub page_url: String,
    /// The monitor.
    pub monitor_id: MonitorId,
    /// The monitor's name.
    pub monitor: String,
    /// http: the URL; component: the URL of the vendor's status page; `None` for other types.
    pub url: Option<String>,
}

impl AlertSubject {
    /// Builds the subject of a monitor on a page that is served at `page_url`.
    pub fn for_monitor(page: &Page, page_url: String, monitor: &Monitor) -> Self {
        let url = match &monitor.check {
            Check::Http(check) => Some(check.url.clone()),
            Check::Component(check) => Some(check.url.clone()),
            Check::Tcp(_)
            | Check::Dns(_)
            | Check::Ping(_)
            | Check::Certificate(_)
            | Check::Domain(_)
            | Check::Heartbeat(_) => None,
        };
        Self {
            page_id: page.id,
            page: page.name.clone(),
            page_url,
            monitor_id: monitor.id,
            monitor: monitor.name.clone(),
            url,
        }
    }
}

/// A change of a monitor's state. Times are milliseconds since the epoch; durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Alert")]
pub struct AlertPayload {
    #[schemars(with = "AlertEventSchema")]
    event: &'static str,
    /// The page's name.
    page: String,
    /// The page's id.
    page_id: String,
    /// The monitor's name.
    monitor: String,
    /// The monitor's name again, for receivers that use the legacy field name.
    checkpoint: String,
    /// The monitor's id.
    monitor_id: String,
    /// http: the URL; component: the URL of the vendor's status page; null for other types.
    url: Option<String>,
    /// The page's public URL.
    page_url: String,
    /// Reason of the outage, also in recovered; null in events about speed.
    error: Option<String>,
    /// still-down, recovered: when the outage began; else null.
    down_since: Option<i64>,
    /// went-down, still-down: the regions that it is down from while it is up in others; null if it is down
    /// from all, and in other events.
    #[schemars(with = "Option<Vec<RegionNameSchema>>")]
    down_from: Option<Vec<&'static str>>,
    /// went-slow, back-to-normal: the deciding reading in milliseconds; recovered: that of the passing check,
    /// null if it has none; else null.
    latency_ms: Option<u32>,
    /// went-slow, back-to-normal: the threshold in milliseconds; else null.
    threshold_ms: Option<u32>,
    /// still-down: time since the outage began; recovered, back-to-normal: duration of what ended; else null.
    duration_ms: Option<u64>,
    /// Time of the event.
    at: i64,
    /// The monitor is flapping: it changed at least three times within 30 minutes, and since then never went
    /// 30 minutes without a change.
    flapping: bool,
    /// Rounds that led to the event, in order of their start; empty for events that are not decided by
    /// rounds.
    evidence: Vec<AlertRound>,
    /// went-down, still-down, recovered: page with the evidence of the outage, which works without sign-in for 7 days;
    /// null in other events, and unless the destination's `evidenceLink` is set.
    evidence_url: Option<String>,
    /// Present, and true, only in a test: nothing happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    test: bool,
}

impl AlertPayload {
    /// Builds the payload of an alert. A field that does not belong to the event is null, whatever the change
    /// contains.
    pub fn new(alert: &Alert<'_>) -> Self {
        use AlertKind::{BackToNormal, Recovered, StillDown, WentDown, WentSlow};
        let Alert { kind, subject, change, at, .. } = *alert;
        let is_one_of = |kinds: &[AlertKind]| kinds.contains(&kind);
        let down_since = change.down_since.filter(|_| is_one_of(&[StillDown, Recovered]));
        let outage_ms = down_since.and_then(|since| u64::try_from(at.since(since)).ok());
        Self {
            event: kind.name(),
            page: subject.page.clone(),
            page_id: subject.page_id.to_string(),
            monitor: subject.monitor.clone(),
            checkpoint: subject.monitor.clone(),
            monitor_id: subject.monitor_id.to_string(),
            url: subject.url.clone(),
            page_url: subject.page_url.clone(),
            error: change
                .reason
                .as_ref()
                .filter(|_| is_one_of(&[WentDown, StillDown, Recovered]))
                .map(ToString::to_string),
            down_since: down_since.map(Timestamp::as_millis),
            down_from: change
                .down_from
                .filter(|_| is_one_of(&[WentDown, StillDown]))
                .map(|regions| regions.iter().map(Region::name).collect()),
            latency_ms: change.latency_ms.filter(|_| is_one_of(&[Recovered, WentSlow, BackToNormal])),
            threshold_ms: change.threshold_ms.filter(|_| is_one_of(&[WentSlow, BackToNormal])),
            duration_ms: match kind {
                StillDown => outage_ms,
                Recovered | BackToNormal => change.duration_ms,
                WentDown | WentSlow => None,
            },
            at: at.as_millis(),
            flapping: change.flapping.is_some(),
            evidence: alert_evidence::alert_rounds(&change.evidence, alert.agents),
            evidence_url: alert.outage_evidence_url().map(str::to_owned),
            test: alert.is_test,
        }
    }

    /// Serializes the bytes that are sent and signed: compact, in the order of the fields.
    pub fn to_json(&self) -> Vec<u8> {
        // A struct of strings and numbers always serializes.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Schema of the alert events' names.
struct AlertEventSchema;

impl JsonSchema for AlertEventSchema {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("AlertEvent")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = AlertKind::ALL.map(AlertKind::name);
        json_schema!({ "type": "string", "enum": names, "description": "The monitor's change of state." })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::AlertFixture;
    use super::*;

    fn payload_of(kind: AlertKind) -> Value {
        let fixture = AlertFixture { monitor: "Cart \u{2028}\"é\"", ..AlertFixture::default() };
        fixture.with_alert(kind, |alert| serde_json::from_slice(&AlertPayload::new(alert).to_json()).unwrap())
    }

    #[test]
    fn each_event_sets_its_own_fields_and_null_in_the_others() {
        let fields = ["error", "downSince", "downFrom", "latencyMs", "thresholdMs", "durationMs"];
        let reason = json!("unexpected status 503");
        let asia = json!(["asia"]);
        let none = Value::Null;
        for (kind, expected) in [
            (AlertKind::WentDown, [&reason, &none, &asia, &none, &none, &none]),
            (AlertKind::StillDown, [&reason, &json!(1_000), &asia, &none, &none, &json!(30_000)]),
            (AlertKind::Recovered, [&reason, &json!(1_000), &none, &json!(1_500), &none, &json!(60_000)]),
            (AlertKind::WentSlow, [&none, &none, &none, &json!(1_500), &json!(900), &none]),
            (AlertKind::BackToNormal, [&none, &none, &none, &json!(1_500), &json!(900), &json!(60_000)]),
        ] {
            let payload = payload_of(kind);
            assert_eq!(fields.map(|name| &payload[name]), expected, "{payload}");
            assert_eq!((&payload["event"], &payload["at"]), (&json!(kind.name()), &json!(31_000)));
            assert_eq!(
                (&payload["monitor"], &payload["url"]),
                (&payload["checkpoint"], &json!("https://shop.example/cart"))
            );
        }
    }

    #[test]
    fn the_fields_of_the_contract_are_sent_in_a_fixed_order() {
        let names: Vec<String> = payload_of(AlertKind::WentDown).as_object().unwrap().keys().cloned().collect();
        let expected = [
            "event",
            "page",
            "pageId",
            "monitor",
            "checkpoint",
            "monitorId",
            "url",
            "pageUrl",
            "error",
            "downSince",
            "downFrom",
            "latencyMs",
            "thresholdMs",
            "durationMs",
            "at",
            "flapping",
            "evidence",
            "evidenceUrl",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn evidence_has_both_agents_and_their_results() {
        let payload = payload_of(AlertKind::WentDown);
        let check_result = |place: &str, network: &str| {
            json!({
                "place": place, "network": network, "ok": false, "statusCode": 503, "latencyMs": 41,
                "address": "192.0.2.7", "error": "unexpected status 503",
            })
        };
        let round = json!({
            "region": "asia", "reason": "scheduled", "round": 7, "startedAt": 1_000, "result": "failed",
            "first": check_result("tokyo-1", "AS64500"), "second": check_result("tokyo-2", "AS64501"),
        });
        assert_eq!(payload["evidence"][0], round);
        assert_eq!(payload["evidence"][1]["reason"], "second-round");
        assert_eq!(payload["evidence"][1]["first"]["place"], Value::Null, "a removed agent");
        assert_eq!(payload["evidence"][2]["first"]["ok"], true);
    }

    #[test]
    fn only_a_test_alert_has_the_test_field() {
        assert_eq!(payload_of(AlertKind::WentDown).get("test"), None);
        let fixture = AlertFixture { is_test: true, ..AlertFixture::default() };
        let payload: Value =
            fixture.with_alert(AlertKind::WentDown, |alert| serde_json::to_value(AlertPayload::new(alert)).unwrap());
        assert_eq!(payload["test"], true);
    }
}
