//! The person who is signed in, as the caller of a request for a screen.

use parallax_core::role::Role;
use parallax_service::Caller;
use parallax_service::people::CurrentSession;

/// A signed-in person, in one of their accounts.
#[derive(Debug, Clone)]
pub(in crate::http) struct SignedIn {
    /// The person, as the services know them.
    pub(in crate::http) caller: Caller,
    /// Their email address.
    pub(in crate::http) email: String,
    /// Their name, if they gave one.
    pub(in crate::http) name: Option<String>,
    /// Their role in the account.
    pub(in crate::http) role: Role,
    /// True if they operate the installation.
    pub(in crate::http) is_operator: bool,
    /// Number of their accounts.
    pub(in crate::http) accounts: usize,
    /// Token of this session, which every form holds in its field `form_token`.
    pub(in crate::http) form_token: String,
    /// Path of the requested screen.
    pub(in crate::http) path: String,
    /// The session.
    pub(in crate::http) session: CurrentSession,
}
