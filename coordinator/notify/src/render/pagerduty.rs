//! PagerDuty events (Events API v2); the routing key is added when the event is sent.
//!
//! Format and limits: PagerDuty, "Events API v2 overview" and "PD-CEF". Each monitor has one deduplication
//! key for outages and one for slowness, and PagerDuty keeps at most one open incident per key: a resolve
//! closes it whenever it began, and the next trigger opens another. `recovered` also ends slowness, so it
//! carries a second event under [`FOLLOW_UP_FIELD`].

use parallax_core::event::AlertKind;
use serde_json::{Value, json};

use super::alert_text::AlertText;
use super::{Alert, text};

/// Field of a message that holds the follow-up event; the field itself is not sent.
pub(crate) const FOLLOW_UP_FIELD: &str = "then";

/// Maximum length of a summary in characters.
const MAX_SUMMARY: usize = 1_024;

/// Builds the request body.
pub(super) fn body(news: &Alert<'_>) -> Value {
    let story = AlertText::for_alert(news);
    let details: serde_json::Map<String, Value> =
        story.facts.iter().map(|(label, value)| ((*label).to_owned(), json!(value))).collect();
    let (action, of, severity) = match news.kind {
        AlertKind::WentDown | AlertKind::StillDown => ("trigger", "down", "critical"),
        AlertKind::WentSlow => ("trigger", "slow", "warning"),
        AlertKind::Recovered => ("resolve", "down", "info"),
        AlertKind::BackToNormal => ("resolve", "slow", "info"),
    };
    let severity = if news.is_test { "info" } else { severity };
    let mut body = json!({
        "event_action": action,
        "dedup_key": dedup_key(news, of),
        "payload": {
            "summary": text::truncate(&story.headline, MAX_SUMMARY),
            "source": story.monitor,
            "severity": severity,
            "timestamp": news.at.to_string(),
            "component": story.monitor,
            "group": story.page,
            "class": of,
            "custom_details": { "facts": details, "evidence": story.evidence },
        },
        "client": "Parallax",
        "client_url": story.page_url,
        "links": [{ "href": story.page_url, "text": "Status page" }],
    });
    if news.kind == AlertKind::Recovered
        && let Some(fields) = body.as_object_mut()
    {
        let slow = json!({ "event_action": "resolve", "dedup_key": dedup_key(news, "slow") });
        fields.insert(FOLLOW_UP_FIELD.to_owned(), slow);
    }
    body
}

fn dedup_key(news: &Alert<'_>, of: &str) -> String {
    let test = if news.is_test { "test/" } else { "" };
    format!("{test}{}/{of}", news.subject.monitor_id)
}
