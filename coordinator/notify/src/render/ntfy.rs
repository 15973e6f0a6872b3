//! ntfy messages, published as plain text in JSON; the topic is added when the message is sent.
//!
//! Format and limits: ntfy, "Publish as JSON".

use serde_json::{Value, json};

use super::alert_text::{AlertSeverity, AlertText};
use super::text;

/// Maximum length of a message in bytes; ntfy turns a longer one into an attachment.
const MAX_MESSAGE: usize = 4_096;
/// Maximum length of a title in bytes.
const MAX_TITLE: usize = 250;

/// Builds the request body.
pub(super) fn body(alert_text: &AlertText) -> Value {
    // Priority 5 sounds until dismissed, 4 sounds once, 3 is the default.
    let (priority, tag) = match (alert_text.severity, alert_text.is_new) {
        (AlertSeverity::Critical, true) => (5, "rotating_light"),
        (AlertSeverity::Critical, false) => (4, "rotating_light"),
        (AlertSeverity::Warning, _) => (4, "warning"),
        (AlertSeverity::Resolved, _) => (3, "white_check_mark"),
    };
    json!({
        "title": text::truncate_bytes(&alert_text.headline, MAX_TITLE),
        "message": text::truncate_bytes(&alert_text.plain_text(), MAX_MESSAGE),
        "priority": priority,
        "tags": [tag],
        "click": alert_text.page_url,
    })
}
