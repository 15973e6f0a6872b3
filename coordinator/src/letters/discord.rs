//! Discord's webhooks: one embed, and nobody is addressed.
//!
//! Shape and bounds: Discord, "Execute Webhook" and "Embed Limits".

use serde_json::{Value, json};

use super::words::Story;
use super::{News, text};

const MAX_TITLE: usize = 256;
const MAX_DESCRIPTION: usize = 4_096;
const MAX_FIELD: usize = 1_024;
const MAX_CONTENT: usize = 2_000;

/// The body that is posted.
pub(super) fn body(news: &News<'_>) -> Value {
    let story = Story::tell(news);
    let headline = text::discord(&story.headline);
    let fields: Vec<Value> = story
        .facts
        .iter()
        .map(|(label, value)| {
            let value = text::cut(&text::discord(value), MAX_FIELD);
            json!({ "name": label, "value": value, "inline": value.len() <= 40 })
        })
        .collect();
    json!({
        "content": text::cut(&headline, MAX_CONTENT),
        // Whatever a name says, it rings nobody.
        "allowed_mentions": { "parse": [] },
        "embeds": [{
            "title": text::cut(&text::discord(&story.monitor), MAX_TITLE),
            "url": story.page_url,
            "description": text::cut(&text::discord(&story.evidence.join("\n")), MAX_DESCRIPTION),
            "color": story.grade.colour(),
            "fields": fields,
            "footer": { "text": text::nobody(&story.page) },
            "timestamp": news.at.to_string(),
        }],
    })
}
