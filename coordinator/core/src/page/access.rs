//! Access to private pages: email addresses and email domains, compared exactly.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;
use crate::validation::Rule;

/// Maximum number of email addresses allowed on a page.
pub const MAX_PEOPLE: usize = 200;
/// Maximum number of email domains allowed on a page.
pub const MAX_DOMAINS: usize = 50;
/// Allowed length of a page's password, in characters.
pub const PASSWORD: std::ops::RangeInclusive<usize> = 1..=200;

/// A page's password as sent. It is never logged or stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PagePassword(String);

impl PagePassword {
    /// Wraps the text that was sent.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Validates a new password. Nothing is trimmed.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn validate(&self) -> Result<(), Rule> {
        if PASSWORD.contains(&self.0.chars().count()) {
            Ok(())
        } else {
            Err(format!("must be {} to {} characters", PASSWORD.start(), PASSWORD.end()))
        }
    }
}

impl fmt::Debug for PagePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// People who may see a private page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedVisitors {
    /// Email addresses in canonical form ([`normalize_email`]), sorted.
    pub people: Vec<String>,
    /// Email domains in canonical form, sorted; subdomains are not included.
    pub domains: Vec<String>,
}

impl AllowedVisitors {
    /// Returns true if an email address in canonical form is allowed, by itself or by its domain. Names are
    /// compared whole.
    pub fn allows(&self, mailbox: &str) -> bool {
        let domain = mailbox.rsplit_once('@').map(|(_, domain)| domain);
        self.people.iter().any(|it| it == mailbox)
            || domain.is_some_and(|domain| self.domains.iter().any(|it| it == domain))
    }
}

/// Normalizes an email address: lower case, domain in ASCII (IDNA), plain ASCII before the `@`.
///
/// # Errors
/// The rule that the text breaks.
pub fn normalize_email(text: &str) -> Result<String, Rule> {
    let email = text::parse_email(text)?;
    let rule = || "must be an email address".to_owned();
    let (name, host) = email.rsplit_once('@').ok_or_else(rule)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
    let has_dots_inside = !name.starts_with('.') && !name.ends_with('.') && !name.contains("..");
    if name.len() <= 64 && name.bytes().all(is_plain) && has_dots_inside {
        Ok(format!("{}@{}", name.to_ascii_lowercase(), normalize_email_domain(host)?))
    } else {
        Err(rule())
    }
}

/// Normalizes an email domain: lower-case ASCII, at least two labels, no `@`.
///
/// # Errors
/// The rule that the text breaks.
pub fn normalize_email_domain(text: &str) -> Result<String, Rule> {
    let domain = text::domain(text).map_err(|_| "must be a domain such as example.com".to_owned())?;
    if domain.contains('.') { Ok(domain) } else { Err("must be a domain such as example.com".to_owned()) }
}

/// Validates a list of email addresses; sorts it and removes duplicates.
///
/// # Errors
/// The rule that the list breaks, with the index of the entry from 0.
pub fn read_emails(list: &[String]) -> Result<Vec<String>, Rule> {
    read(list, MAX_PEOPLE, "email addresses", normalize_email)
}

/// Validates a list of email domains; sorts it and removes duplicates.
///
/// # Errors
/// The rule that the list breaks, with the index of the entry from 0.
pub fn read_email_domains(list: &[String]) -> Result<Vec<String>, Rule> {
    read(list, MAX_DOMAINS, "domains", normalize_email_domain)
}

fn read(
    list: &[String],
    most: usize,
    what: &str,
    one: impl Fn(&str) -> Result<String, Rule>,
) -> Result<Vec<String>, Rule> {
    if list.len() > most {
        return Err(format!("must be at most {most} {what}"));
    }
    let mut found = BTreeSet::new();
    for (index, text) in list.iter().enumerate() {
        found.insert(one(text).map_err(|rule| format!("must be a list of {what}: entry {index} {rule}"))?);
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_are_compared_whole_in_canonical_form() {
        assert_eq!(normalize_email(" Ann@Example.COM ").as_deref(), Ok("ann@example.com"));
        assert_eq!(normalize_email("ann@b\u{fc}cher.example").as_deref(), Ok("ann@xn--bcher-kva.example"));
        for bad in ["ann", "@example.com", "ann@", "ann@localhost", "a b@example.com", "ann@127.0.0.1", ".a@b.cc"] {
            assert!(normalize_email(bad).is_err(), "{bad}");
        }
        let allowed = AllowedVisitors {
            people: read_emails(&["Bob@else.example".to_owned()]).unwrap(),
            domains: read_email_domains(&["Example.com.".to_owned()]).unwrap(),
        };
        for (who, is_in) in [
            ("bob@else.example", true),
            ("ann@else.example", false),
            ("ann@example.com", true),
            ("ann@evil-example.com", false),
            ("ann@example.com.evil", false),
            ("ann@mail.example.com", false),
            ("example.com", false),
        ] {
            assert_eq!(allowed.allows(who), is_in, "{who}");
        }
    }

    #[test]
    fn a_password_is_not_logged_and_has_a_bounded_length() {
        let of = |length: usize| PagePassword::new("\u{e9}".repeat(length));
        assert_eq!(format!("{:?}", of(3)), "Password");
        for (length, is_good) in [(0, false), (1, true), (200, true), (201, false)] {
            assert_eq!(of(length).validate().is_ok(), is_good, "{length}");
        }
    }

    #[test]
    fn lists_are_bounded_and_without_duplicates() {
        let many = |count: usize| (0..count).map(|n| format!("a{n}@example.com")).collect::<Vec<_>>();
        assert_eq!(read_emails(&many(MAX_PEOPLE)).map(|it| it.len()), Ok(MAX_PEOPLE));
        assert_eq!(read_emails(&many(MAX_PEOPLE + 1)), Err("must be at most 200 email addresses".to_owned()));
        let names = |count: usize| (0..count).map(|n| format!("a{n}.example")).collect::<Vec<_>>();
        assert_eq!(read_email_domains(&names(MAX_DOMAINS)).map(|it| it.len()), Ok(MAX_DOMAINS));
        assert_eq!(read_email_domains(&names(MAX_DOMAINS + 1)), Err("must be at most 50 domains".to_owned()));
        let twice = ["A.example".to_owned(), "a.example".to_owned()];
        assert_eq!(read_email_domains(&twice), Ok(vec!["a.example".to_owned()]));
        let wrong = read_email_domains(&["a.example".to_owned(), "localhost".to_owned()]).unwrap_err();
        assert!(wrong.contains("entry 1 must be a domain"), "{wrong}");
    }
}
