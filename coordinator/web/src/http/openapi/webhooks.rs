//! Webhooks in the API description: their headers, their bodies, and signed examples that can be verified.

pub(super) mod subscriber_updates;

use std::collections::BTreeMap;

use parallax_core::event::{AlertKind, MonitorStatus, ProbeReason, RoundReport, StatusChange};
use parallax_core::observation::{Failure, Measurements, ProbeOutcome, RoundOutcome};
use parallax_core::time::Timestamp;
use parallax_core::vantage::{Region, RegionSet, VantageNo};
use parallax_notify::deliver::signature::{self, SigningSecret};
use parallax_notify::render::alert_payload::{AlertPayload, AlertSubject};
use parallax_notify::render::{AgentLabel, AgentLabels, Alert};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::sample_shop::{DELIVERY, EXAMPLE_SECRET, MONITOR, PAGE, PAGE_URL, TARGET, evidence_url};

/// Start of the example outage.
const DOWN_SINCE: Timestamp = Timestamp::from_millis(1_772_357_400_000);
/// Milliseconds between two examples.
const STEP: i64 = 300_000;

const ABOUT: &str = "Sent to a page's alert destinations of type webhook (Hobby and Pro), once for each change of \
state, and again at the repeat interval while an outage lasts. Any 2xx response accepts it; redirects are not \
followed, and the time-out is 10 seconds. Otherwise it is retried after 5 s, 30 s, 2 m, 10 m, 30 m, 1 h, 3 h, 6 h \
and 12 h (plus or minus 20 %; after a 429 or 503 at the time in `Retry-After`, at most 1 h), with the same body and \
the same `webhook-id`, so that receivers can detect duplicates. 410 switches the destination off.\n\nEach request is \
signed twice with the secret shown with the destination, over the raw bytes of the body:\n\n- `X-Service-Signature` \
is `sha256=` and the hex of HMAC-SHA256 of the body, keyed with the secret's whole text.\n- `webhook-signature` \
(Standard Webhooks 1.0) is `v1,` and the base64 of HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the body, \
joined by dots, keyed with the bytes whose base64 follows `whsec_`.\n\nAfter `rotate-secret` the new secret signs \
next to the old one in `webhook-signature`, separated by a space; `X-Service-Signature` uses the old one until \
`activate-secret`, or for 24 hours. A test alert has `X-Service-Test: 1` and `test` in its body.\n\nCompute either \
signature, compare in constant time, and drop the request if they differ. Refuse a `webhook-timestamp` more than \
five minutes old.";

/// Builds the webhooks; the schemas their bodies refer to are added to the generator.
pub(super) fn webhooks(generator: &mut SchemaGenerator) -> Value {
    let schema = generator.subschema_for::<AlertPayload>();
    let kind = AlertKind::WentDown;
    let bytes = alert(kind).to_json();
    let body = String::from_utf8_lossy(&bytes);
    let description = format!(
        "{ABOUT}\n\nThe headers in the example sign this body with the secret `{EXAMPLE_SECRET}`:\n\n```\n{body}\n```"
    );
    let mut headers =
        parameters(json!({ "$ref": "#/components/schemas/AlertEvent" }), example_time(kind) + 1_200, &bytes);
    headers.push(test_header());
    let mut webhooks = json!({ "alert": { "post": {
        "operationId": "receiveAlert",
        "tags": ["Webhooks"],
        "summary": "Receive an alert",
        "description": description,
        "security": [],
        "parameters": headers,
        "requestBody": { "required": true, "content": { "application/json": { "schema": schema, "examples": bodies() } } },
        "responses": {
            "204": { "description": "Accepted. Any other 2xx works too." },
            "410": { "description": "Gone: the destination is switched off." },
            "503": { "description": "Try again later; `Retry-After` is respected. Any other status is retried too." },
        },
    } } });
    for (name, webhook) in subscriber_updates::webhooks(generator) {
        webhooks[name] = webhook;
    }
    webhooks
}

/// Returns an example alert as it is sent, for the schema's own example.
pub(super) fn example() -> Value {
    json!(alert(AlertKind::WentDown))
}

/// Returns the header parameters of a request sent at that time; `schema` describes the event's name.
fn parameters(schema: Value, at: Timestamp, body: &[u8]) -> Vec<Value> {
    let description = [
        "Event name, so that a receiver can route without parsing the body.",
        "`sha256=` and the hex of HMAC-SHA256 of the raw body, keyed with the secret as shown.",
        "Delivery id, the same for all attempts.",
        "The same id, as Standard Webhooks names it.",
        "Time of this attempt, in seconds since the epoch.",
        "`v1,` and base64 (Standard Webhooks); several, separated by spaces, while a secret is being replaced.",
    ];
    let schemas = [
        schema,
        json!({ "type": "string", "pattern": "^sha256=[0-9a-f]{64}$" }),
        json!({ "type": "string" }),
        json!({ "type": "string", "pattern": "^[^.]+$" }),
        json!({ "type": "string", "pattern": "^[0-9]+$" }),
        json!({ "type": "string" }),
    ];
    let Ok(secret) = SigningSecret::parse(EXAMPLE_SECRET) else { return Vec::new() };
    let headers = signature::signature_headers(&secret, None, DELIVERY, at, body).unwrap_or_default();
    headers
        .into_iter()
        .zip(description)
        .zip(schemas)
        .map(|(((name, example), description), schema)| {
            json!({
                "name": name, "in": "header", "required": true, "description": description, "schema": schema,
                "example": example,
            })
        })
        .collect()
}

/// Returns the header that only test alerts have.
fn test_header() -> Value {
    json!({
        "name": signature::TEST_HEADER, "in": "header", "required": false,
        "description": "Present only in test alerts.",
        "schema": { "type": "string", "const": "1" }, "example": "1",
    })
}

/// Returns one body for each event.
fn bodies() -> Map<String, Value> {
    let example = |kind: AlertKind| (kind.name().to_owned(), json!({ "summary": summary(kind), "value": alert(kind) }));
    AlertKind::ALL.into_iter().map(example).collect()
}

const fn summary(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::WentDown => "A monitor went down.",
        AlertKind::StillDown => "The monitor is still down.",
        AlertKind::Recovered => "The monitor is back up.",
        AlertKind::WentSlow => "A monitor became slow.",
        AlertKind::BackToNormal => "The monitor is back to normal speed.",
    }
}

/// Returns the time of the example of that kind.
fn example_time(kind: AlertKind) -> Timestamp {
    match kind {
        AlertKind::WentDown => DOWN_SINCE + 5_600,
        AlertKind::StillDown => DOWN_SINCE + STEP,
        AlertKind::Recovered => DOWN_SINCE + 2 * STEP,
        AlertKind::WentSlow => DOWN_SINCE + 3 * STEP,
        AlertKind::BackToNormal => DOWN_SINCE + 4 * STEP,
    }
}

fn alert(kind: AlertKind) -> AlertPayload {
    let subject = AlertSubject {
        page_id: PAGE,
        page: "Example Shop".to_owned(),
        page_url: PAGE_URL.to_owned(),
        monitor_id: MONITOR,
        monitor: "Checkout".to_owned(),
        url: Some(TARGET.to_owned()),
    };
    let ended = matches!(kind, AlertKind::Recovered | AlertKind::BackToNormal);
    let change = StatusChange {
        from: MonitorStatus::Up,
        to: MonitorStatus::Down,
        alert: Some(kind),
        since: DOWN_SINCE,
        down_since: Some(DOWN_SINCE),
        reason: Some(Failure::UnexpectedStatus(503)),
        down_from: Some(RegionSet::only(Region::Europe)),
        latency_ms: Some(if kind == AlertKind::WentSlow { 2_310 } else { 184 }),
        threshold_ms: Some(900),
        duration_ms: ended.then_some(600_000),
        evidence: if matches!(kind, AlertKind::WentDown | AlertKind::StillDown) { rounds() } else { Vec::new() },
        flapping: None,
    };
    AlertPayload::new(&Alert {
        kind,
        subject: &subject,
        change: &change,
        at: example_time(kind),
        zone: chrono_tz::UTC,
        agents: &agent_labels(),
        evidence_url: Some(&evidence_url(48_213, example_time(kind))),
        is_test: false,
    })
}

/// Returns the two rounds that are the evidence of the example outage.
fn rounds() -> Vec<RoundReport> {
    let failed = |latency| {
        let measurements =
            Measurements { status_code: Some(503), latency_ms: Some(latency), ..Measurements::default() };
        ProbeOutcome::Failed(measurements, Failure::UnexpectedStatus(503))
    };
    let round = |reason, started: Timestamp, round| RoundReport {
        region: Region::Europe,
        reason,
        round,
        started,
        round_outcome: RoundOutcome::Failed,
        first_vantage: VantageNo(0),
        first_outcome: failed(41),
        second: Some((VantageNo(1), failed(47))),
        third: None,
    };
    vec![
        round(ProbeReason::Scheduled, DOWN_SINCE, Some(59_078_580)),
        round(ProbeReason::Second, DOWN_SINCE + 5_000, None),
    ]
}

fn agent_labels() -> AgentLabels {
    let agent_label = |name: &str, network: &str| AgentLabel { name: name.to_owned(), network: network.to_owned() };
    BTreeMap::from([
        (VantageNo(0), agent_label("frankfurt-1", "AS64500")),
        (VantageNo(1), agent_label("paris-1", "AS64501")),
    ])
}
