//! Masks for addresses and secrets that a reader may not use: enough stays visible to tell them apart.

use parallax_core::destination::MASK;
use url::Url;

/// Mask of a whole secret.
pub(super) const FULL_MASK: &str = MASK;

/// Masks an address except for its scheme, host and port.
pub(in crate::http) fn url(address: &str) -> String {
    match Url::parse(address) {
        Ok(read) => format!("{}/{MASK}", read.origin().ascii_serialization()),
        Err(_) => MASK.to_owned(),
    }
}

/// Masks a mailbox except for its first character and its domain.
pub(in crate::http) fn email(mailbox: &str) -> String {
    let (name, domain) = mailbox.rsplit_once('@').unwrap_or((mailbox, ""));
    let first: String = name.chars().take(1).collect();
    format!("{first}{MASK}@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_enough_to_distinguish_values() {
        assert_eq!(url("https://hooks.slack.com/services/T0/B0/secret?x=y"), "https://hooks.slack.com/***");
        assert_eq!(url("http://[2001:db8::1]:8080/secret"), "http://[2001:db8::1]:8080/***");
        assert_eq!(email("ann@example.com"), "a***@example.com");
        assert_eq!(email("é@example.com"), "é***@example.com");
    }
}
