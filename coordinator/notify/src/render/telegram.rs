//! Telegram's `sendMessage` in HTML mode; the chat id is added when the message is sent.
//!
//! Format and limits: Telegram, "Bot API", `sendMessage` and "HTML style". Text is truncated before tags are
//! added, so no tag is left open.

use serde_json::{Value, json};

use super::alert_text::{AlertSeverity, AlertText, EVIDENCE_LABEL};
use super::text;

/// Maximum length of a message in UTF-16 units, without tags.
const MAX_TEXT: usize = 4_096;

/// Builds the request body.
pub(super) fn body(alert_text: &AlertText) -> Value {
    let emoji = match alert_text.severity {
        AlertSeverity::Critical => "🔴",
        AlertSeverity::Warning => "🟠",
        AlertSeverity::Resolved => "🟢",
    };
    let escaped = |text: &str| text::escape_html(&text::disable_mentions(text));
    let mut message = format!("{emoji} <b>{}</b>\n", escaped(&alert_text.headline));
    for (label, value) in &alert_text.facts {
        message.push_str(&format!("{label}: {}\n", escaped(value)));
    }
    let anchor = |url: &str, label: &str| format!("\n<a href=\"{}\">{label}</a>", text::escape_html(url));
    let mut link = alert_text.evidence_url.as_deref().map(|url| anchor(url, EVIDENCE_LABEL)).unwrap_or_default();
    link.push_str(&anchor(&alert_text.page_url, "Status page"));
    let used_units = message.encode_utf16().count() + link.encode_utf16().count();
    // Escapes only make it longer than what is counted.
    let evidence = text::truncate(&alert_text.evidence.join("\n"), MAX_TEXT.saturating_sub(used_units) / 2);
    if !evidence.is_empty() {
        message.push_str(&format!("\n{}\n", escaped(&evidence)));
    }
    message.push_str(&link);
    json!({ "text": message, "parse_mode": "HTML", "link_preview_options": { "is_disabled": true } })
}
