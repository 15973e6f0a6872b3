//! Accounts: the owners of pages, each on a plan.

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::AccountId;
use crate::plan::Plan;
use crate::text;
use crate::time::Timestamp;
use crate::validation::Rule;

/// An account: the owner of pages, monitors and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Address for alerts and sign-in links.
    pub email: String,
    /// Its plan.
    pub plan: Plan,
    /// Creation time.
    pub created_at: Timestamp,
    /// Start of the present plan; none while the account is on its first. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub plan_since: Option<Timestamp>,
}

/// Validates an email address as far as is possible without sending to it: one `@` with text on both sides,
/// no white space, at most 254 characters (RFC 5321 section 4.5.3.1.3).
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_email(text: &str) -> Result<String, Rule> {
    let email = text::line(text, 3..=254)?;
    match email.split_once('@') {
        Some((name, host))
            if !name.is_empty() && !email.contains(char::is_whitespace) && text::domain(host).is_ok() =>
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
