//! Slack incoming webhooks, in the older attachment format that Mattermost also supports.
//!
//! Format: Slack, "Reference: secondary message attachments"; Mattermost, "Message attachments".

use serde_json::{Value, json};

use super::alert_text::AlertText;
use super::text;

/// Maximum length of one text in characters.
const MAX_TEXT: usize = 3_000;

/// Builds the request body.
pub(super) fn body(alert_text: &AlertText) -> Value {
    let headline = text::escape_slack(&alert_text.headline);
    let escaped = |text: &str| text::truncate(&text::escape_slack(text), MAX_TEXT);
    let fields: Vec<Value> = alert_text
        .facts_with_link()
        .map(|(label, value)| json!({ "title": label, "value": escaped(value), "short": value.len() <= 40 }))
        .collect();
    json!({
        "text": headline,
        // Plain text: asterisks and underscores in names are shown as they are.
        "mrkdwn": false,
        "attachments": [{
            "fallback": headline,
            "color": alert_text.severity.hex(),
            "title": escaped(&alert_text.monitor),
            "title_link": alert_text.page_url,
            "text": escaped(&alert_text.evidence.join("\n")),
            "fields": fields,
            "footer": escaped(&alert_text.page),
            // No field is formatted.
            "mrkdwn_in": [],
            "ts": alert_text.at.as_millis().div_euclid(1000),
        }],
    })
}
