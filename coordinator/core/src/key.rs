//! API keys: what a key may do and which pages it reaches.

use serde::{Deserialize, Serialize};

use crate::id::{AccountId, KeyId, PageId};
use crate::page::Page;
use crate::time::Timestamp;

/// API keys of one account: at most so many.
pub const MAX_KEYS: usize = 1_000;

/// Read, or read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

impl Access {
    /// Every access.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Whether a key of this access may change things.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write)
    }
}

/// An API key as it is kept: the secret itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Whose pages it reaches.
    pub account: AccountId,
    /// Name given at creation.
    pub name: String,
    /// What it may do.
    pub access: Access,
    /// The one page it reaches; none means every page of the account.
    pub page: Option<PageId>,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl Key {
    /// Whether the key reaches the page: it is of the key's account, and the one page where the key names one.
    pub fn reaches(&self, page: &Page) -> bool {
        self.account == page.account && self.page.is_none_or(|only| only == page.id)
    }
}
