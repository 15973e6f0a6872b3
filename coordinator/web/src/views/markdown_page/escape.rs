//! Escapes user-supplied text for Markdown.

/// Returns one line in which every character that could start markup is escaped (CommonMark 0.31, section
/// 2.4); characters that do so only at the start of a line are escaped only there.
pub(in crate::views) fn escape_line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        match sign {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => safe.push(' '),
            sign if sign.is_control() => {}
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '#' | '|' => {
                safe.push('\\');
                safe.push(sign);
            }
            sign => safe.push(sign),
        }
    }
    let digits = safe.bytes().take_while(u8::is_ascii_digit).count();
    match safe.as_bytes().get(digits) {
        // A number followed by a period or parenthesis would start a list.
        Some(b'.' | b')') if digits > 0 => safe.insert(digits, '\\'),
        Some(b'-' | b'+' | b'=') if digits == 0 => safe.insert(0, '\\'),
        Some(_) | None => {}
    }
    safe
}

/// Renders user-written Markdown as a block quote.
pub(super) fn block_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    for line in text.replace("\r\n", "\n").replace('\r', "\n").lines() {
        let plain: String = line.chars().filter(|sign| !sign.is_control() || *sign == '\t').collect();
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
    fn what_begins_a_line_begins_no_list() {
        for (text, safe) in [
            ("1. one", "1\\. one"),
            ("12) x", "12\\) x"),
            ("- x", "\\- x"),
            ("+", "\\+"),
            ("3.14 is not", "3\\.14 is not"),
            ("# x", "\\# x"),
            ("api.example.com", "api.example.com"),
            ("a\r\nb\u{0}", "a  b"),
        ] {
            assert_eq!(escape_line(text), safe);
        }
        assert_eq!(block_quote("a\r\n\r\n> b\u{1b}"), "> a\n>\n> > b\n");
    }
}
