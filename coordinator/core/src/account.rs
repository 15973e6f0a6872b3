//! An account: who owns pages and on which plan.

use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::late;
use crate::plan::Plan;
use crate::refusal::Rule;
use crate::text;
use crate::time::Timestamp;

/// Who owns pages, monitors and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Where alerts and sign-in links go.
    pub email: String,
    /// Its plan.
    pub plan: Plan,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was put on its present plan; none while it has its first. Older records end here.
    #[serde(deserialize_with = "late::or_default")]
    pub plan_since: Option<Timestamp>,
}

/// An email address, as far as it can be judged without sending to it: one `@` with something on both sides, no
/// white space, at most 254 characters (RFC 5321 section 4.5.3.1.3).
///
/// # Errors
/// The rule that the text breaks.
pub fn email(text: &str) -> Result<String, Rule> {
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
            assert_eq!(email(address).is_ok(), fits, "{address:?}");
        }
    }
}
