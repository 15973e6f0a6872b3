//! Escapes user-supplied text for Markdown.

/// Returns one line in which every character that could start markup is escaped (CommonMark 0.31, section
/// 2.4); characters that do so only at the start of a line are escaped only there.
pub(in crate::views) fn escape_line(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => escaped.push(' '),
            character if character.is_control() => {}
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '#' | '|' => {
                escaped.push('\\');
                escaped.push(character);
            }
            character => escaped.push(character),
        }
    }
    let digits = escaped.bytes().take_while(u8::is_ascii_digit).count();
    match escaped.as_bytes().get(digits) {
        // A number followed by a period or parenthesis would start a list.
        Some(b'.' | b')') if digits > 0 => escaped.insert(digits, '\\'),
        Some(b'-' | b'+' | b'=') if digits == 0 => escaped.insert(0, '\\'),
        Some(_) | None => {}
    }
    escaped
}

/// Renders user-written Markdown as a block quote.
pub(super) fn block_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    for line in text.replace("\r\n", "\n").replace('\r', "\n").lines() {
        let plain: String = line.chars().filter(|character| !character.is_control() || *character == '\t').collect();
        quoted.push_str(if plain.is_empty() { ">" } else { "> " });
        quoted.push_str(&plain);
        quoted.push('\n');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_start_a_list_are_escaped() {
        for (text, escaped) in [
            ("1. one", "1\\. one"),
            ("12) x", "12\\) x"),
            ("- x", "\\- x"),
            ("+", "\\+"),
            ("3.14 is not", "3\\.14 is not"),
            ("# x", "\\# x"),
            ("api.example.com", "api.example.com"),
            ("a\r\nb\u{0}", "a  b"),
        ] {
            assert_eq!(escape_line(text), escaped);
        }
        assert_eq!(block_quote("a\r\n\r\n> b\u{1b}"), "> a\n>\n> > b\n");
    }
}
