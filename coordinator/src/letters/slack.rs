//! Slack's incoming webhooks, in the older form with attachments that Mattermost reads too.
//!
//! Shape: Slack, "Reference: secondary message attachments"; Mattermost, "Message attachments".

use serde_json::{Value, json};

use super::text;
use super::words::Story;

/// Characters of one text at most.
const MAX_TEXT: usize = 3_000;

/// The body that is posted.
pub(super) fn body(story: &Story) -> Value {
    let headline = text::slack(&story.headline);
    let shown = |words: &str| text::cut(&text::slack(words), MAX_TEXT);
    let fields: Vec<Value> = story
        .facts
        .iter()
        .map(|(label, value)| json!({ "title": label, "value": shown(value), "short": value.len() <= 40 }))
        .collect();
    json!({
        "text": headline,
        // The text is no markup: a name's stars and underscores are shown as they are.
        "mrkdwn": false,
        "attachments": [{
            "fallback": headline,
            "color": story.grade.hex(),
            "title": shown(&story.monitor),
            "title_link": story.page_url,
            "text": shown(&story.evidence.join("\n")),
            "fields": fields,
            "footer": shown(&story.page),
            // In none of them is anything formatting.
            "mrkdwn_in": [],
            "ts": story.at.as_millis().div_euclid(1000),
        }],
    })
}
