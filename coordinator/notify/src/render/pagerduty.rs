//! PagerDuty events (Events API v2); the routing key is added when the event is sent.
//!
//! Format and limits: PagerDuty, "Events API v2 overview" and "PD-CEF". Each monitor has one deduplication
//! key for outages and one for slowness, and PagerDuty keeps at most one open incident per key: a resolve
//! closes it whenever it began, and the next trigger opens another. `recovered` also ends slowness, so it
//! carries a second event under [`FOLLOW_UP_FIELD`].

use parallax_core::event::AlertKind;
use serde_json::{Value, json};

use super::alert_text::{AlertText, EVIDENCE_LABEL};
use super::{Alert, text};

/// Field of a message that holds the follow-up event; the field itself is not sent.
pub(crate) const FOLLOW_UP_FIELD: &str = "then";

/// Maximum length of a summary in characters.
const MAX_SUMMARY: usize = 1_024;

/// Builds the request body.
pub(super) fn body(alert: &Alert<'_>) -> Value {
    let alert_text = AlertText::for_alert(alert);
    let details: serde_json::Map<String, Value> =
        alert_text.facts.iter().map(|(label, value)| ((*label).to_owned(), json!(value))).collect();
    let (action, problem, severity) = match alert.kind {
        AlertKind::WentDown | AlertKind::StillDown => ("trigger", "down", "critical"),
        AlertKind::WentSlow => ("trigger", "slow", "warning"),
        AlertKind::Recovered => ("resolve", "down", "info"),
        AlertKind::BackToNormal => ("resolve", "slow", "info"),
    };
    let link = |url: &str, text: &str| json!({ "href": url, "text": text });
    let mut links = vec![link(&alert_text.page_url, "Status page")];
    links.extend(alert_text.evidence_url.as_deref().map(|url| link(url, EVIDENCE_LABEL)));
    let severity = if alert.is_test { "info" } else { severity };
    let mut body = json!({
        "event_action": action,
        "dedup_key": dedup_key(alert, problem),
        "payload": {
            "summary": text::truncate(&alert_text.headline, MAX_SUMMARY),
            "source": alert_text.monitor,
            "severity": severity,
            "timestamp": alert.at.to_string(),
            "component": alert_text.monitor,
            "group": alert_text.page,
            "class": problem,
            "custom_details": { "facts": details, "evidence": alert_text.evidence },
        },
        "client": "Parallax",
        "client_url": alert_text.page_url,
        "links": links,
    });
    if alert.kind == AlertKind::Recovered
        && let Some(fields) = body.as_object_mut()
    {
        let slow = json!({ "event_action": "resolve", "dedup_key": dedup_key(alert, "slow") });
        fields.insert(FOLLOW_UP_FIELD.to_owned(), slow);
    }
    body
}

fn dedup_key(alert: &Alert<'_>, problem: &str) -> String {
    let test = if alert.is_test { "test/" } else { "" };
    format!("{test}{}/{problem}", alert.subject.monitor_id)
}
