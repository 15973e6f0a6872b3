//! Callers of the service: API keys and signed-in persons, with their reach and permissions.

use std::fmt;
use std::net::IpAddr;

use parallax_core::acknowledgement::ActorName;
use parallax_core::id::{AccountId, KeyId, PageId, PersonId};
use parallax_core::key::ApiKey;
use parallax_core::page::Page;
use parallax_core::role::{Permission, Role};

use crate::{ServiceError, ServiceResult};

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key or person.
    pub actor: Actor,
    /// The account whose pages it reaches.
    pub account: AccountId,
    /// The only page that it reaches, if it is bound to one.
    pub page: Option<PageId>,
    /// Address that the request came from, for the audit log; none if unknown.
    pub address: Option<IpAddr>,
}

/// An API key, or a person who is signed in to the dashboard.
#[derive(Debug, Clone)]
pub enum Actor {
    /// An API key.
    Key(ApiKey),
    /// A person.
    Person {
        /// Their id.
        id: PersonId,
        /// Their name, or their email address if they have none.
        name: String,
        /// Their role in the caller's account.
        role: Role,
        /// True if they operate the installation.
        is_operator: bool,
    },
}

/// Identity of a caller, for idempotency keys and the limits of single operations. Requests as such are counted by API
/// key, or by session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorId {
    /// An API key.
    Key(KeyId),
    /// A person.
    Person(PersonId),
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => id.fmt(f),
            Self::Person(id) => id.fmt(f),
        }
    }
}

impl Caller {
    /// Makes a caller of an API key.
    pub fn of_key(key: ApiKey) -> Self {
        Self { account: key.account, page: key.page, address: None, actor: Actor::Key(key) }
    }

    /// The same caller, whose request came from that address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Returns true if the caller reaches the page: same account and, for a key of one page, that page.
    pub fn reaches(&self, page: &Page) -> bool {
        self.account == page.account && self.page.is_none_or(|only| only == page.id)
    }

    /// Returns true if the caller has the permission.
    pub const fn allows(&self, permission: Permission) -> bool {
        match &self.actor {
            Actor::Key(key) => key.access.allows(permission),
            Actor::Person { role, .. } => role.allows(permission),
        }
    }

    /// Checks that the caller has the permission.
    ///
    /// # Errors
    /// [`ServiceError::ReadOnly`] for a read key, [`ServiceError::RoleForbids`] for a person,
    /// [`ServiceError::NotFound`] for a write key, to which the management of its account does not exist.
    pub fn require(&self, permission: Permission) -> ServiceResult<()> {
        match &self.actor {
            _ if self.allows(permission) => Ok(()),
            Actor::Key(key) if key.access.can_write() => Err(ServiceError::NotFound),
            Actor::Key(_) => Err(ServiceError::ReadOnly),
            Actor::Person { role, .. } => Err(ServiceError::RoleForbids { role: *role }),
        }
    }

    /// Returns the identity that idempotency keys and the limits of single operations count for.
    pub const fn limit_id(&self) -> ActorId {
        match &self.actor {
            Actor::Key(key) => ActorId::Key(key.id),
            Actor::Person { id, .. } => ActorId::Person(*id),
        }
    }

    /// Returns the name under which its changes are recorded.
    pub fn actor_name(&self) -> ActorName {
        ActorName::new(match &self.actor {
            Actor::Key(key) => &key.name,
            Actor::Person { name, .. } => name,
        })
    }

    /// Returns the API key; none for a person.
    pub const fn key(&self) -> Option<&ApiKey> {
        match &self.actor {
            Actor::Key(key) => Some(key),
            Actor::Person { .. } => None,
        }
    }
}
