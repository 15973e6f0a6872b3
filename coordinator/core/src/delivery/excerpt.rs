//! Excerpts of receivers' responses, as stored and shown in the delivery log.

use crate::text;

/// Bytes of a receiver's response that are read, to classify it.
pub const MAX_RESPONSE_BYTES: usize = 1024;
/// Characters of it that are stored and shown: enough for an error message, too few to read other content of
/// its address.
pub const EXCERPT_CHARACTERS: usize = 200;

/// Returns the start of a receiver's response on one line, without characters that alter its layout.
pub fn excerpt(answer: &str) -> String {
    let plain = answer.trim().chars().map(|sign| if sign.is_whitespace() { ' ' } else { sign });
    plain.filter(|sign| !text::alters_layout(*sign)).take(EXCERPT_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_of_one_line() {
        let answer = format!("\n a\tb\r\nc\u{1b}[31m\u{7f}\u{202e}\u{206a}{}", "é".repeat(300));
        let text = excerpt(&answer);
        assert!(text.starts_with("a b  c[31mé"), "{text}");
        assert_eq!(text.chars().count(), EXCERPT_CHARACTERS);
        assert_eq!(excerpt(&text), text);
        assert_eq!(excerpt("a\u{2028}b"), "a b");
    }
}
