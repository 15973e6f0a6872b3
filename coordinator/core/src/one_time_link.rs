//! Links that work once: to set up an account, sign in, reset a password, or join an account.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::compat::or_default;
use crate::id::{AccountId, PersonId};
use crate::role::Role;
use crate::time::{DAY, HOUR, MINUTE, Timestamp};

/// Stored links of one account or person, at most: a further one ends the oldest.
pub const MAX_LINKS: usize = 100;

/// Identifier of a link: the hash of its 256-bit token, which is stored nowhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkId(pub [u8; 32]);

impl LinkId {
    /// The first eight bytes in hexadecimal, which name the link in a list of its account's.
    pub fn short(self) -> String {
        self.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// Purpose of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkKind {
    /// Makes its bearer the account's owner, who chooses a password.
    SetUp {
        /// The account.
        account: AccountId,
        /// True if the owner operates the installation, too.
        is_operator: bool,
    },
    /// Signs a person in, in the browser that requested it.
    SignIn {
        /// The person.
        person: PersonId,
        /// Hash of the browser's identifier.
        browser: [u8; 32],
        /// Path to go to afterwards; may be empty.
        next: String,
    },
    /// Lets a person choose a new password.
    PasswordReset {
        /// The person.
        person: PersonId,
    },
    /// Makes its bearer a member of the account.
    Invitation {
        /// The account.
        account: AccountId,
        /// The invited person's email address.
        email: String,
        /// Their role.
        role: Role,
    },
}

impl LinkKind {
    /// Lifetime of a link of this kind, in milliseconds.
    pub const fn life(&self) -> i64 {
        match self {
            Self::SetUp { .. } => DAY,
            Self::SignIn { .. } => 15 * MINUTE,
            Self::PasswordReset { .. } => HOUR,
            Self::Invitation { .. } => 7 * DAY,
        }
    }

    /// The account or person that the link counts for.
    pub const fn owner(&self) -> LinkOwner {
        match self {
            Self::SetUp { account, .. } | Self::Invitation { account, .. } => LinkOwner::Account(*account),
            Self::SignIn { person, .. } | Self::PasswordReset { person } => LinkOwner::Person(*person),
        }
    }
}

/// Account or person that links count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOwner {
    /// An account.
    Account(AccountId),
    /// A person.
    Person(PersonId),
}

/// A link as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneTimeLink {
    /// Its id.
    pub id: LinkId,
    /// Its purpose.
    pub kind: LinkKind,
    /// Time at which it expires.
    pub expires_at: Timestamp,
    /// True if the session that it starts is kept: "Keep me signed in".
    #[serde(deserialize_with = "or_default")]
    pub is_kept: bool,
}

impl OneTimeLink {
    /// Makes a link that begins to live now. The session that it starts is not kept.
    pub fn new(id: LinkId, kind: LinkKind, now: Timestamp) -> Self {
        let expires_at = now + kind.life();
        Self { id, kind, expires_at, is_kept: false }
    }

    /// Returns true while the link works. One that ends too late was made before the clock was set back.
    pub const fn is_valid(&self, now: Timestamp) -> bool {
        let left = self.expires_at.since(now);
        left > 0 && left <= self.kind.life()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_link_has_its_lifetime_and_owner() {
        let (account, person) = (AccountId::from_u128(1), PersonId::from_u128(2));
        for (kind, life, owner) in [
            (LinkKind::SetUp { account, is_operator: true }, 24 * HOUR, LinkOwner::Account(account)),
            (
                LinkKind::SignIn { person, browser: [1; 32], next: String::new() },
                15 * MINUTE,
                LinkOwner::Person(person),
            ),
            (LinkKind::PasswordReset { person }, HOUR, LinkOwner::Person(person)),
            (
                LinkKind::Invitation { account, email: "ann@example.com".to_owned(), role: Role::Viewer },
                7 * DAY,
                LinkOwner::Account(account),
            ),
        ] {
            let now = Timestamp::from_millis(1000);
            let link = OneTimeLink::new(LinkId([7; 32]), kind, now);
            assert_eq!((link.kind.life(), link.kind.owner()), (life, owner));
            assert!(link.is_valid(now) && link.is_valid(now + (life - 1)), "{link:?}");
            assert!(!link.is_valid(now + life) && !link.is_valid(now - 1), "{link:?}");
        }
    }
}
