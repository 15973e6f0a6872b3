//! ntfy messages, published as plain text in JSON; the topic is added when the message is sent.
//!
//! Format and limits: ntfy, "Publish as JSON".

use serde_json::{Value, json};

use super::text;
use super::words::{Grade, Story};

/// Maximum length of a message in bytes; ntfy turns a longer one into an attachment.
const MAX_MESSAGE: usize = 4_096;
/// Maximum length of a title in bytes.
const MAX_TITLE: usize = 250;

/// Builds the request body.
pub(super) fn body(story: &Story) -> Value {
    // Priority 5 sounds until dismissed, 4 sounds once, 3 is the default.
    let (priority, tag) = match (story.grade, story.is_new) {
        (Grade::Bad, true) => (5, "rotating_light"),
        (Grade::Bad, false) => (4, "rotating_light"),
        (Grade::Poor, _) => (4, "warning"),
        (Grade::Good, _) => (3, "white_check_mark"),
    };
    json!({
        "title": text::cut_bytes(&story.headline, MAX_TITLE),
        "message": text::cut_bytes(&story.plain(), MAX_MESSAGE),
        "priority": priority,
        "tags": [tag],
        "click": story.page_url,
    })
}
