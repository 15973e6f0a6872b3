//! Discord webhook messages: one embed, with all mentions disabled.
//!
//! Format and limits: Discord, "Execute Webhook" and "Embed Limits".

use serde_json::{Value, json};

use super::alert_text::AlertText;
use super::text;

const MAX_TITLE: usize = 256;
const MAX_DESCRIPTION: usize = 4_096;
const MAX_FIELD: usize = 1_024;
const MAX_CONTENT: usize = 2_000;

/// Builds the request body.
pub(super) fn body(alert_text: &AlertText) -> Value {
    let headline = escape_markdown(&alert_text.headline);
    let fields: Vec<Value> = alert_text
        .facts_with_link()
        .map(|(label, value)| {
            let value = text::truncate(&escape_markdown(value), MAX_FIELD);
            json!({ "name": label, "value": value, "inline": value.len() <= 40 })
        })
        .collect();
    json!({
        "content": text::truncate(&headline, MAX_CONTENT),
        // A name in the text must not notify anyone.
        "allowed_mentions": { "parse": [] },
        "embeds": [{
            "title": text::truncate(&escape_markdown(&alert_text.monitor), MAX_TITLE),
            "url": alert_text.page_url,
            "description": text::truncate(&escape_markdown(&alert_text.evidence.join("\n")), MAX_DESCRIPTION),
            "color": alert_text.severity.rgb(),
            "fields": fields,
            "footer": { "text": text::disable_mentions(&alert_text.page) },
            "timestamp": alert_text.at.to_string(),
        }],
    })
}

/// Escapes a text so that Discord's Markdown shows it literally. Adds a backslash only where a character
/// would be markup, since backslashes are visible in notifications and copied text. Links are left as they
/// are: a backslash would break them.
fn escape_markdown(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let last_link = characters.windows(2).rposition(|pair| pair == [']', '(']);
    let mut output = String::with_capacity(text.len());
    let (mut escaped, mut link_end) = (String::new(), 0);
    for (at, character) in characters.iter().enumerate() {
        if at >= link_end {
            link_end = at + link_length(characters.get(at..).unwrap_or_default());
        }
        if at < link_end {
            output.push_str(&text::disable_mentions(&std::mem::take(&mut escaped)));
            output.push(*character);
            continue;
        }
        let previous = at.checked_sub(1).and_then(|at| characters.get(at)).copied();
        let rest = characters.get(at + 1..).unwrap_or_default();
        let next = rest.first().copied();
        let is_line_start = characters.get(..at).is_none_or(|start| {
            start.iter().rev().take_while(|character| **character != '\n').all(|character| character.is_whitespace())
        });
        let is_blank = |character: Option<char>| character.is_none_or(char::is_whitespace);
        let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let is_markup = match character {
            // Before a letter or a space it is a plain backslash.
            '\\' => !is_blank(next) && !is_word(next),
            '`' => true,
            '*' => is_line_start || !(is_blank(previous) && is_blank(next)),
            '_' => !(is_word(previous) && is_word(next)),
            '~' | '|' => previous == Some(*character) || next == Some(*character),
            '#' | '>' | '-' => is_line_start,
            '<' => next.is_some_and(|next| next.is_alphabetic() || "@#:/".contains(next)),
            '[' => last_link.is_some_and(|link| at < link),
            ':' => starts_emoji(rest),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(*character);
    }
    output + &text::disable_mentions(&escaped)
}

/// Length of the link at the start of the text; 0 if there is none.
fn link_length(text: &[char]) -> usize {
    let begins_with = |scheme: &str| text.iter().copied().take(scheme.len()).eq(scheme.chars());
    if !begins_with("http://") && !begins_with("https://") {
        return 0;
    }
    text.iter().take_while(|character| !character.is_whitespace() && !matches!(character, '<' | '>')).count()
}

/// Returns true if a colon starts an emoji name such as `:tada:`. The minutes of a time are not one.
fn starts_emoji(rest: &[char]) -> bool {
    let is_name_character = |character: &char| character.is_ascii_alphanumeric() || "_+-".contains(*character);
    let length = rest.iter().take_while(|character| is_name_character(character)).count();
    let name = rest.get(..length).unwrap_or_default();
    rest.get(length) == Some(&':') && name.iter().any(|character| !character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::escape_markdown;

    #[test]
    fn usual_names_get_no_backslashes_and_markup_is_escaped() {
        for name in [
            "Checkout (EU): v1.2-rc",
            "api_v2_health",
            "C:\\shop #3 > 5 * 2 ~ 1 | a",
            "2026-03-01 10:30:05 (Europe/Berlin, UTC+01:00)",
            "https://shop.example/a_b-c?x=[1]&y=(2)",
            "<3 & < 5 ms, 2001:db8::1",
            "[EU] Checkout",
        ] {
            let escaped = escape_markdown(name);
            assert!(!escaped.contains('\\') || escaped == name || name.contains("db8"), "{escaped}");
        }
        for (text, escaped) in [
            ("**a** *b*", "\\*\\*a\\*\\* \\*b\\*"),
            ("__a__ _b_ c_d_", "\\_\\_a\\_\\_ \\_b\\_ c_d\\_"),
            ("~~a~~ ||b|| `c`", "\\~\\~a\\~\\~ \\|\\|b\\|\\| \\`c\\`"),
            ("# a\n> b\n- c\n* d\n -# e", "\\# a\n\\> b\n\\- c\n\\* d\n \\-# e"),
            ("[x](y) [z]", "\\[x](y) [z]"),
            ("<@1> <#2> <:a:3> <t:4> <https://e.example>", {
                "\\<@\u{200b}1> \\<#2> \\<\\:a:3> \\<t:4> \\<https://e.example>"
            }),
            (":tada: 10:30:05", "\\:tada: 10:30:05"),
            ("a\\*b \\", "a\\\\\\*b \\"),
            ("@everyone", "@\u{200b}everyone"),
            ("https://shop.example/_health *a*", "https://shop.example/_health \\*a\\*"),
            ("_https://e.example/_a_/@b|c~~_\n- _b_", "\\_https://e.example/_a_/@b|c~~_\n\\- \\_b\\_"),
            ("<http://e.example/*>_a_ [x](https://e.example/*)", {
                "\\<http://e.example/*>\\_a\\_ \\[x](https://e.example/*)"
            }),
            ("(http://e.example/`a) http:/_a", "(http://e.example/`a) http:/\\_a"),
        ] {
            assert_eq!(escape_markdown(text), escaped, "{text}");
        }
    }
}
