//! Slack incoming webhooks, in the older attachment format that Mattermost also supports.
//!
//! Format: Slack, "Reference: secondary message attachments"; Mattermost, "Message attachments".

use serde_json::{Value, json};

use super::alert_text::AlertText;
use super::text;

/// Maximum length of one text in characters.
const MAX_TEXT: usize = 3_000;

/// Builds the request body.
pub(super) fn body(story: &AlertText) -> Value {
    let headline = text::escape_slack(&story.headline);
    let shown = |words: &str| text::truncate(&text::escape_slack(words), MAX_TEXT);
    let fields: Vec<Value> = story
        .facts
        .iter()
        .map(|(label, value)| json!({ "title": label, "value": shown(value), "short": value.len() <= 40 }))
        .collect();
    json!({
        "text": headline,
        // Plain text: asterisks and underscores in names are shown as they are.
        "mrkdwn": false,
        "attachments": [{
            "fallback": headline,
            "color": story.severity.hex(),
            "title": shown(&story.monitor),
            "title_link": story.page_url,
            "text": shown(&story.evidence.join("\n")),
            "fields": fields,
            "footer": shown(&story.page),
            // No field is formatted.
            "mrkdwn_in": [],
            "ts": story.at.as_millis().div_euclid(1000),
        }],
    })
}
