//! The part of a receiver's answer that is kept and shown.

/// Bytes of a receiver's answer that are read, to judge it by.
pub const ANSWER_READ: usize = 1024;
/// Characters of it that are kept and shown: enough for an error, too few to read what else its address serves.
pub const ANSWER_KEPT: usize = 200;

/// The start of a receiver's answer in one line, without control characters.
pub fn excerpt(answer: &str) -> String {
    let plain = answer.trim().chars().map(|sign| if sign.is_whitespace() { ' ' } else { sign });
    plain.filter(|sign| !sign.is_control()).take(ANSWER_KEPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_of_one_line() {
        let answer = format!("\n a\tb\r\nc\u{1b}[31m\u{7f}{}", "é".repeat(300));
        let shown = excerpt(&answer);
        assert!(shown.starts_with("a b  c[31mé"), "{shown}");
        assert_eq!(shown.chars().count(), ANSWER_KEPT);
        assert_eq!(excerpt(&shown), shown);
    }
}
