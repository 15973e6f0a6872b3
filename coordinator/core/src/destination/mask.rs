//! Masks for addresses and secrets that a reader may not use: enough stays visible to tell them apart.

use ::url::Url;

use crate::validation::Rule;

/// Replaces secrets in responses. A value that contains it is rejected.
pub const MASK: &str = "***";

/// Rejects the mask that replaces secrets in responses.
pub(super) fn unmasked(text: &str) -> Result<&str, Rule> {
    if text.contains(MASK) {
        return Err("is masked: send the full value, or omit the field to keep it".to_owned());
    }
    Ok(text.trim())
}

/// Masks an address except for its scheme, host and port.
pub fn masked_url(address: &str) -> String {
    match Url::parse(address) {
        Ok(read) => format!("{}/{MASK}", read.origin().ascii_serialization()),
        Err(_) => MASK.to_owned(),
    }
}

/// Masks a mailbox except for its first character and its domain.
pub fn masked_email(mailbox: &str) -> String {
    let (name, domain) = mailbox.rsplit_once('@').unwrap_or((mailbox, ""));
    let first: String = name.chars().take(1).collect();
    format!("{first}{MASK}@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_enough_to_distinguish_values() {
        assert_eq!(masked_url("https://hooks.slack.com/services/T0/B0/secret?x=y"), "https://hooks.slack.com/***");
        assert_eq!(masked_url("http://[2001:db8::1]:8080/secret"), "http://[2001:db8::1]:8080/***");
        assert_eq!(masked_email("ann@example.com"), "a***@example.com");
        assert_eq!(masked_email("é@example.com"), "é***@example.com");
    }
}
