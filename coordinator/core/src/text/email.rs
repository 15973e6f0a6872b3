//! Email addresses.

use crate::validation::Rule;

/// Validates an email address as far as is possible without sending to it: one `@` with text on both sides,
/// no white space, at most 254 characters (RFC 5321 section 4.5.3.1.3).
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_email(text: &str) -> Result<String, Rule> {
    let email = super::line(text, 3..=254)?;
    match email.split_once('@') {
        Some((name, host))
            if !name.is_empty() && !email.contains(char::is_whitespace) && super::domain(host).is_ok() =>
        {
            Ok(email)
        }
        Some(_) | None => Err("must be an email address".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_name_and_a_host() {
        for (address, fits) in [
            ("ann@example.com", true),
            (" ann+x@example.com ", true),
            ("ann", false),
            ("@example.com", false),
            ("ann@", false),
            ("a b@example.com", false),
            ("ann@x@example.com", false),
            ("ann@example.com\nBcc: x@example.com", false),
        ] {
            assert_eq!(parse_email(address).is_ok(), fits, "{address:?}");
        }
    }
}
