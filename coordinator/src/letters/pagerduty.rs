//! PagerDuty's Events API v2; the routing key is added when it is sent.
//!
//! Shape and bounds: PagerDuty, "Events API v2 overview" and "PD-CEF". An outage and slowness each have a key of the
//! monitor's own, under which PagerDuty has one open incident at most: what is over closes it, whenever it began, and
//! the next one opens another. `recovered` ends slowness too, so it carries a second event under [`THEN`].

use parallax_core::event::AlertKind;
use serde_json::{Value, json};

use super::words::Story;
use super::{News, text};

/// Where a letter holds the event that is to be sent after it; the field itself is not sent.
pub const THEN: &str = "then";

/// Characters of a summary at most.
const MAX_SUMMARY: usize = 1_024;

/// The body that is posted.
pub(super) fn body(news: &News<'_>) -> Value {
    let story = Story::tell(news);
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
        "dedup_key": key(news, of),
        "payload": {
            "summary": text::cut(&story.headline, MAX_SUMMARY),
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
        let slow = json!({ "event_action": "resolve", "dedup_key": key(news, "slow") });
        fields.insert(THEN.to_owned(), slow);
    }
    body
}

fn key(news: &News<'_>, of: &str) -> String {
    let test = if news.is_test { "test/" } else { "" };
    format!("{test}{}/{of}", news.subject.monitor_id)
}
