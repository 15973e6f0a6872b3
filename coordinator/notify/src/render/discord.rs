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
pub(super) fn body(story: &AlertText) -> Value {
    let headline = escape_markdown(&story.headline);
    let fields: Vec<Value> = story
        .facts
        .iter()
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
            "title": text::truncate(&escape_markdown(&story.monitor), MAX_TITLE),
            "url": story.page_url,
            "description": text::truncate(&escape_markdown(&story.evidence.join("\n")), MAX_DESCRIPTION),
            "color": story.severity.rgb(),
            "fields": fields,
            "footer": { "text": text::disable_mentions(&story.page) },
            "timestamp": story.at.to_string(),
        }],
    })
}

/// Escapes a text so that Discord's Markdown shows it literally. Adds a backslash only where a character
/// would be markup, since backslashes are visible in notifications and copied text. Links are left as they
/// are: a backslash would break them.
fn escape_markdown(text: &str) -> String {
    let signs: Vec<char> = text.chars().collect();
    let last_link = signs.windows(2).rposition(|pair| pair == [']', '(']);
    let mut shown = String::with_capacity(text.len());
    let (mut escaped, mut link_end) = (String::new(), 0);
    for (at, sign) in signs.iter().enumerate() {
        if at >= link_end {
            link_end = at + link_length(signs.get(at..).unwrap_or_default());
        }
        if at < link_end {
            shown.push_str(&text::disable_mentions(&std::mem::take(&mut escaped)));
            shown.push(*sign);
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| signs.get(at)).copied();
        let rest = signs.get(at + 1..).unwrap_or_default();
        let next = rest.first().copied();
        let begins_line = signs
            .get(..at)
            .is_none_or(|start| start.iter().rev().take_while(|sign| **sign != '\n').all(|sign| sign.is_whitespace()));
        let is_blank = |sign: Option<char>| sign.is_none_or(char::is_whitespace);
        let is_word = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
        let is_markup = match sign {
            // Before a letter or a space it is a plain backslash.
            '\\' => !is_blank(next) && !is_word(next),
            '`' => true,
            '*' => begins_line || !(is_blank(before) && is_blank(next)),
            '_' => !(is_word(before) && is_word(next)),
            '~' | '|' => before == Some(*sign) || next == Some(*sign),
            '#' | '>' | '-' => begins_line,
            '<' => next.is_some_and(|next| next.is_alphabetic() || "@#:/".contains(next)),
            '[' => last_link.is_some_and(|link| at < link),
            ':' => starts_emoji(rest),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(*sign);
    }
    shown + &text::disable_mentions(&escaped)
}

/// Length of the link at the start of the text; 0 if there is none.
fn link_length(text: &[char]) -> usize {
    let begins_with = |scheme: &str| text.iter().copied().take(scheme.len()).eq(scheme.chars());
    if !begins_with("http://") && !begins_with("https://") {
        return 0;
    }
    text.iter().take_while(|sign| !sign.is_whitespace() && !matches!(sign, '<' | '>')).count()
}

/// Returns true if a colon starts an emoji name such as `:tada:`. The minutes of a time are not one.
fn starts_emoji(rest: &[char]) -> bool {
    let is_of_name = |sign: &char| sign.is_ascii_alphanumeric() || "_+-".contains(*sign);
    let length = rest.iter().take_while(|sign| is_of_name(sign)).count();
    let name = rest.get(..length).unwrap_or_default();
    rest.get(length) == Some(&':') && name.iter().any(|sign| !sign.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::escape_markdown;

    #[test]
    fn names_that_people_give_have_no_backslashes_and_markup_is_none() {
        for name in [
            "Checkout (EU): v1.2-rc",
            "api_v2_health",
            "C:\\shop #3 > 5 * 2 ~ 1 | a",
            "2026-03-01 10:30:05 (Europe/Berlin, UTC+01:00)",
            "https://shop.example/a_b-c?x=[1]&y=(2)",
            "<3 & < 5 ms, 2001:db8::1",
            "[EU] Checkout",
        ] {
            let shown = escape_markdown(name);
            assert!(!shown.contains('\\') || shown == name || name.contains("db8"), "{shown}");
        }
        for (text, shown) in [
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
            assert_eq!(escape_markdown(text), shown, "{text}");
        }
    }
}
