//! Excerpts of receivers' responses, as stored and shown in the delivery log.

use crate::text;

/// Bytes of a receiver's response that are read, to classify it.
pub const MAX_RESPONSE_BYTES: usize = 1024;
/// Characters of it that are stored and shown: enough for an error message, too few to read other content of
/// its address.
pub const EXCERPT_CHARACTERS: usize = 200;

/// Returns the start of a receiver's response on one line. Characters that alter its layout are shown as replacement
/// characters: without them, a hostile text would read as another one.
pub fn excerpt(answer: &str) -> String {
    let plain = answer.trim().chars().map(|sign| if sign.is_whitespace() { ' ' } else { sign });
    text::with_visible_controls(&plain.take(EXCERPT_CHARACTERS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_of_one_line() {
        let answer = format!("\n a\tb\r\nc\u{1b}[31m\u{7f}\u{202e}\u{206a}{}", "é".repeat(300));
        let text = excerpt(&answer);
        assert!(text.starts_with("a b  c\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}é"), "{text}");
        assert_eq!(text.chars().count(), EXCERPT_CHARACTERS);
        assert_eq!(excerpt(&text), text);
        assert_eq!(excerpt("a\u{2028}b"), "a b");
    }
}
