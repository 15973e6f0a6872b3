//! API keys and their access.

use serde::{Deserialize, Serialize};

use crate::id::{AccountId, KeyId, PageId};
use crate::time::Timestamp;

/// Maximum number of API keys of one account.
pub const MAX_KEYS: usize = 1_000;

/// Access level: read, or read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyAccess {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

impl KeyAccess {
    /// Every access level.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The name that the API uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns true if keys of this access may write.
    pub const fn can_write(self) -> bool {
        matches!(self, Self::Write)
    }
}

/// An API key as stored: the secret itself is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// Account whose pages it reaches.
    pub account: AccountId,
    /// Name given at creation.
    pub name: String,
    /// Access level.
    pub access: KeyAccess,
    /// The one page it reaches; none means every page of the account.
    pub page: Option<PageId>,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last use, to the minute.
    pub last_used_at: Option<Timestamp>,
}
