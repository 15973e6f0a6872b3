//! Persons who sign in to the dashboard, and their places in accounts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::compat;
use crate::id::{AccountId, PersonId};
use crate::passkey::PersonPasskeys;
use crate::role::Role;
use crate::second_factor::SecondFactor;
use crate::time::Timestamp;
use crate::validation::Rule;

/// Persons of one account, at most.
pub const MAX_MEMBERS: usize = 100;
/// Open invitations of one account, at most.
pub const MAX_OPEN_INVITATIONS: usize = 50;
/// Accounts of one person, at most.
pub const MAX_MEMBERSHIPS: usize = 100;
/// Shortest password, in characters (NIST SP 800-63B, section 3.1.1.2, asks for 8).
pub const MIN_PASSWORD: usize = 10;
/// Longest password, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 1024;

/// A person. Their password is stored as a hash alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Their id.
    pub id: PersonId,
    /// Their email address in canonical form, which no other person has.
    pub email: String,
    /// Their name, if they gave one.
    pub name: Option<String>,
    /// Hash of their password; none if they sign in by mailed link alone.
    pub password_hash: Option<String>,
    /// True if they operate the installation.
    pub is_operator: bool,
    /// Time at which they were added.
    pub created_at: Timestamp,
    /// Their second factor. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub second_factor: SecondFactor,
    /// Their passkeys. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub passkeys: PersonPasskeys,
}

impl Person {
    /// Creates a person without a second factor and passkeys, who operates nothing.
    pub fn new(
        (id, email): (PersonId, String),
        name: Option<String>,
        password_hash: Option<String>,
        now: Timestamp,
    ) -> Self {
        let (second_factor, passkeys) = (SecondFactor::default(), PersonPasskeys::default());
        Self { id, email, name, password_hash, is_operator: false, created_at: now, second_factor, passkeys }
    }

    /// The name to show: their own, or their email address.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.email)
    }
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, email, name, password_hash, is_operator, created_at, second_factor, passkeys } = self;
        f.debug_struct("Person")
            .field("id", id)
            .field("email", email)
            .field("name", name)
            .field("has_password", &password_hash.is_some())
            .field("is_operator", is_operator)
            .field("created_at", created_at)
            .field("second_factor", second_factor)
            .field("passkeys", passkeys)
            .finish()
    }
}

/// Membership of a person in an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountMember {
    /// The account.
    pub account: AccountId,
    /// The person.
    pub person: PersonId,
    /// Their role in it.
    pub role: Role,
    /// Time at which they joined it.
    pub joined_at: Timestamp,
    /// Hash of who they are at the company's provider, since their first company sign-in. Older records end here.
    #[serde(deserialize_with = "compat::or_default")]
    pub company_subject: Option<[u8; 32]>,
    /// True if they enter by company sign-in alone: they had a password or passkey before it made them a member, and nobody
    /// has shown that who has it is who the provider means. An invitation that they accept ends it.
    #[serde(deserialize_with = "compat::or_default")]
    pub is_company_only: bool,
}

impl AccountMember {
    /// Creates a membership as of now.
    pub const fn new((account, person): (AccountId, PersonId), role: Role, now: Timestamp) -> Self {
        Self { account, person, role, joined_at: now, company_subject: None, is_company_only: false }
    }
}

/// Validates a new password. Nothing is trimmed.
///
/// # Errors
/// The rule that it breaks.
pub fn check_password(password: &str) -> Result<(), Rule> {
    if password.chars().count() < MIN_PASSWORD {
        return Err(format!("must be at least {MIN_PASSWORD} characters"));
    }
    if password.len() > MAX_PASSWORD_BYTES {
        return Err(format!("must be at most {MAX_PASSWORD_BYTES} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_ten_characters_and_at_most_1024_bytes() {
        for (password, is_valid) in [
            ("", false),
            ("123456789", false),
            ("1234567890", true),
            ("äöüäöüäöü", false),
            ("äöüäöüäöüä", true),
            ("          ", true),
            (&"a".repeat(MAX_PASSWORD_BYTES), true),
            (&"a".repeat(MAX_PASSWORD_BYTES + 1), false),
        ] {
            assert_eq!(check_password(password).is_ok(), is_valid, "{password}");
        }
    }

    #[test]
    fn a_record_from_before_second_factors_or_passkeys_is_read() {
        let person = Person {
            id: PersonId::from_u128(1),
            email: "ann@example.com".to_owned(),
            name: None,
            password_hash: None,
            is_operator: true,
            created_at: Timestamp::from_millis(7),
            second_factor: SecondFactor::default(),
            passkeys: PersonPasskeys::default(),
        };
        let bytes = postcard::to_allocvec(&person).unwrap();
        assert_eq!(bytes[bytes.len() - 3..], [0, 0, 0], "no app, none that waits, no passkeys");
        for missing in [1, 3] {
            assert_eq!(postcard::from_bytes::<Person>(&bytes[..bytes.len() - missing]).unwrap(), person, "{missing}");
        }
        assert!(postcard::from_bytes::<Person>(&bytes[..bytes.len() - 2]).is_err(), "a part of the field is damage");
    }

    #[test]
    fn a_membership_from_before_company_sign_in_is_read() {
        let now = Timestamp::from_millis(7);
        let member = AccountMember::new((AccountId::from_u128(1), PersonId::from_u128(2)), Role::Viewer, now);
        let bytes = postcard::to_allocvec(&member).unwrap();
        assert_eq!(postcard::from_bytes::<AccountMember>(&bytes[..bytes.len() - 2]).unwrap(), member);
    }

    #[test]
    fn debug_output_has_no_password_hash() {
        let person = Person {
            id: PersonId::from_u128(1),
            email: "ann@example.com".to_owned(),
            name: None,
            password_hash: Some("$argon2id$secret".to_owned()),
            is_operator: false,
            created_at: Timestamp::from_millis(0),
            second_factor: SecondFactor::default(),
            passkeys: PersonPasskeys::default(),
        };
        assert!(!format!("{person:?}").contains("secret"));
        assert_eq!(person.display_name(), "ann@example.com");
    }
}
