//! Microsoft Teams: an Adaptive Card in the message that a workflow ("when a webhook request is received")
//! posts.
//!
//! Format: Microsoft, "Create incoming webhooks with Workflows" and Adaptive Cards 1.4. All text is in text
//! runs, which don't interpret Markdown.

use serde_json::{Value, json};

use super::alert_text::{AlertSeverity, AlertText, EVIDENCE_LABEL};
use super::text;

/// Builds the request body.
pub(super) fn body(alert_text: &AlertText) -> Value {
    let color = match alert_text.severity {
        AlertSeverity::Critical => "Attention",
        AlertSeverity::Warning => "Warning",
        AlertSeverity::Resolved => "Good",
    };
    let mut body = vec![line(vec![json!({
        "type": "TextRun", "text": text::escape_teams(&alert_text.headline), "size": "Large", "weight": "Bolder",
        "color": color,
    })])];
    body.extend(alert_text.facts.iter().map(|(label, value)| {
        line(vec![
            json!({ "type": "TextRun", "text": format!("{label}: "), "weight": "Bolder" }),
            json!({ "type": "TextRun", "text": text::escape_teams(value) }),
        ])
    }));
    body.extend(alert_text.evidence.iter().map(|sentence| {
        line(vec![json!({ "type": "TextRun", "text": text::escape_teams(sentence), "isSubtle": true })])
    }));
    let action = |title: &str, url: &str| json!({ "type": "Action.OpenUrl", "title": title, "url": url });
    let mut actions = vec![action("Status page", &alert_text.page_url)];
    actions.extend(alert_text.evidence_url.as_deref().map(|url| action(EVIDENCE_LABEL, url)));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "fallbackText": text::escape_teams(&alert_text.headline),
                "msteams": { "width": "Full" },
                "body": body,
                "actions": actions,
            },
        }],
    })
}

fn line(runs: Vec<Value>) -> Value {
    json!({ "type": "RichTextBlock", "inlines": runs })
}
