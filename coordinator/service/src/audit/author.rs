//! Originators of changes, as the audit log names them.

use parallax_core::acknowledgement::ActorName;
use parallax_core::audit::AuditActor;
use parallax_core::id::AccountId;
use parallax_core::person::Person;

use crate::client_network::network_text;
use crate::{Actor, Caller};

/// Originator of changes of an account.
#[derive(Debug, Clone)]
pub(crate) struct ChangeAuthor {
    /// The account.
    pub(super) account: AccountId,
    /// The person, key or operator.
    pub(super) actor: AuditActor,
    /// Network that the request came from.
    pub(super) network: Option<String>,
}

impl ChangeAuthor {
    /// The operator of the installation, changing that account.
    pub(crate) const fn operator(account: AccountId) -> Self {
        Self { account, actor: AuditActor::Operator, network: None }
    }

    /// A person at their own sign-in, in an account that they are a member of.
    pub(crate) fn person(account: AccountId, person: &Person, network: Option<String>) -> Self {
        let name = ActorName::new(person.display_name());
        Self { account, actor: AuditActor::Person { id: person.id, name }, network }
    }

    /// Someone who is not signed in.
    pub(crate) const fn visitor(account: AccountId, network: Option<String>) -> Self {
        Self { account, actor: AuditActor::Visitor, network }
    }

    /// The service by itself.
    pub(crate) const fn service(account: AccountId) -> Self {
        Self { account, actor: AuditActor::Service, network: None }
    }
}

impl From<&Caller> for ChangeAuthor {
    fn from(caller: &Caller) -> Self {
        Self { account: caller.account, actor: caller.audit_actor(), network: caller.address.map(network_text) }
    }
}

impl Caller {
    /// The originator as the audit log names it.
    pub(crate) fn audit_actor(&self) -> AuditActor {
        match &self.actor {
            Actor::Key(key) => AuditActor::Key { id: key.id, name: self.actor_name() },
            Actor::Person { id, .. } => AuditActor::Person { id: *id, name: self.actor_name() },
        }
    }
}
