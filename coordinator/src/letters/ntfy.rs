//! ntfy: a message published as JSON; its topic is added when it is sent.
//!
//! Shape and bounds: ntfy, "Publish as JSON". It is plain text.

use serde_json::{Value, json};

use super::text;
use super::words::{Grade, Story};

/// Bytes of a message at most; a longer one becomes an attachment.
const MAX_MESSAGE: usize = 4_096;
/// Bytes of a title.
const MAX_TITLE: usize = 250;

/// The body that is posted.
pub(super) fn body(story: &Story) -> Value {
    // 5 rings on, 4 rings once, 3 is the usual.
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
