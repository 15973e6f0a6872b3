//! Cleaning of user-supplied text: one line, truncated, escaped for its context.

use parallax_core::text;

/// Marks truncated text.
const ELLIPSIS: char = '…';
/// Zero-width space: separates characters that would otherwise form markup, and is invisible.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// Returns one line of at most `max` UTF-16 units (no service counts more). Line breaks and tabs become
/// spaces; other control characters and bidirectional marks are removed.
pub(super) fn single_line(text: &str, max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(max));
    for character in text.chars() {
        match character {
            '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                if !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            character if is_hidden(character) => {}
            character => line.push(character),
        }
    }
    truncate(line.trim(), max)
}

/// Same as [`single_line`], but keeps paragraphs and lines.
pub(super) fn lines(text: &str, max: usize) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let cleaned: String =
        text.chars().filter(|character| *character == '\n' || *character == '\t' || !is_hidden(*character)).collect();
    truncate(cleaned.trim(), max)
}

/// Truncates a text to at most `max` UTF-16 units, with an ellipsis if anything was removed.
pub(super) fn truncate(text: &str, max: usize) -> String {
    truncate_by(text, max, char::len_utf16)
}

/// Truncates a text to at most `max` bytes, with an ellipsis if anything was removed.
pub(super) fn truncate_bytes(text: &str, max: usize) -> String {
    truncate_by(text, max, char::len_utf8)
}

fn truncate_by(text: &str, max: usize, length: fn(char) -> usize) -> String {
    let mut used = 0;
    let mut end = 0;
    for (at, character) in text.char_indices() {
        used += length(character);
        if used > max {
            let mut start = text.get(..end).unwrap_or_default().to_owned();
            start.push(ELLIPSIS);
            return start;
        }
        if used + length(ELLIPSIS) <= max {
            end = at + character.len_utf8();
        }
    }
    text.to_owned()
}

/// Characters that alter the layout, and the other bidirectional marks (UAX 9), which can make a text look like
/// another.
fn is_hidden(character: char) -> bool {
    text::alters_layout(character) || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

/// Escapes for HTML text and quoted attributes, and for Telegram's HTML, which supports only these four
/// entities.
pub(super) fn escape_html(text: &str) -> String {
    replace_chars(text, |character| match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        _ => None,
    })
}

/// Escapes for Slack's mrkdwn, so that no link or mention can start. Mattermost accepts the same format but
/// also supports Markdown links and mentions without brackets.
pub(super) fn escape_slack(text: &str) -> String {
    let escaped = replace_chars(text, |character| match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        _ => None,
    });
    disable_mentions(
        &escaped.replace("](", &format!("]{ZERO_WIDTH_SPACE}(")).replace("][", &format!("]{ZERO_WIDTH_SPACE}[")),
    )
}

/// Disables mentions: inserts a zero-width space after each `@` that starts a word.
pub(super) fn disable_mentions(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut previous = ' ';
    for character in text.chars() {
        output.push(character);
        if character == '@' && !previous.is_alphanumeric() {
            output.push(ZERO_WIDTH_SPACE);
        }
        previous = character;
    }
    output
}

/// Escapes for text runs in Teams cards, which don't interpret Markdown: breaks up `{{…}}`, which a card
/// would expand.
pub(super) fn escape_teams(text: &str) -> String {
    text.replace("{{", &format!("{{{ZERO_WIDTH_SPACE}{{"))
}

fn replace_chars(text: &str, by: fn(char) -> Option<&'static str>) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match by(character) {
            Some(entity) => escaped.push_str(entity),
            None => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_line_has_no_line_breaks_or_hidden_characters() {
        for (text, expected) in [
            ("Cart\r\nBcc: a@b.example", "Cart Bcc: a@b.example"),
            ("a\u{0}b\u{7f}c\u{9b}d", "abcd"),
            ("\u{202e}exe.cod\u{202c} \u{2066}x\u{2069}", "exe.cod x"),
            ("a\u{2028}b\u{2029}c", "a b c"),
            ("a\u{206a}b\u{206f}c\u{61c}\u{200e}\u{feff}", "abc"),
            ("👩\u{200d}🚀 é", "👩\u{200d}🚀 é"),
        ] {
            assert_eq!(single_line(text, 100), expected, "{text:?}");
        }
        assert_eq!(lines("a\r\nb\u{0}\r\rc\u{202e}", 100), "a\nb\n\nc");
    }

    #[test]
    fn a_text_is_truncated_between_characters() {
        assert_eq!(truncate("abcd", 4), "abcd");
        assert_eq!(truncate("abcde", 4), "abc…");
        assert_eq!(truncate("ab🚀d", 4), "ab…");
        assert_eq!(truncate_bytes("ééé", 6), "ééé");
        assert_eq!(truncate_bytes("éééé", 6), "é…");
        assert_eq!(truncate("abc", 0), "…");
    }

    #[test]
    fn mentions_and_links_are_disabled() {
        assert_eq!(escape_slack("<!channel> & [x](https://e.example) @all a@b"), {
            "&lt;!channel&gt; &amp; [x]\u{200b}(https://e.example) @\u{200b}all a@b"
        });
        assert_eq!(escape_html("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        assert_eq!(escape_teams("{{DATE(x)}} {{{"), "{\u{200b}{DATE(x)}} {\u{200b}{{");
    }
}
