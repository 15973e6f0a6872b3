//! What goes over the admin socket: one command in, one reply out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parallax_core::page::access::Password;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::members::MemberError;
use crate::service::Error;

/// What an operator can ask for. Names, plans, regions and ids travel as text and are judged by whoever does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Invite an agent.
    AgentInvite {
        /// Its name.
        name: String,
        /// Where it stands.
        region: String,
        /// Label of its network.
        network: String,
        /// Seconds that the invitation is good; none: an hour.
        valid_seconds: Option<u32>,
    },
    /// List agents and open invitations.
    AgentList,
    /// List invitations.
    AgentInvitations,
    /// Take an invitation back.
    AgentRevokeInvitation {
        /// Id, or the name that it is for.
        invitation: String,
    },
    /// Close an agent's connection for good.
    AgentRevoke {
        /// Name or id.
        agent: String,
    },
    /// Revoke an agent and list it no longer.
    AgentForget {
        /// Name or id.
        agent: String,
    },
    /// Take a step of the exchange of the mesh's authority, or look at it.
    MeshRotate {
        /// `start`, `switch`, `finish`, `abort` or `status`.
        step: String,
        /// Go on without the agents that are not ready.
        force: bool,
    },
    /// Make an account.
    AccountCreate {
        /// Address of its owner.
        email: String,
        /// Its plan; none: Pro for the first, Free for later ones.
        plan: Option<String>,
    },
    /// List accounts.
    AccountList,
    /// Put an account on another plan.
    AccountPlan {
        /// Id or email address.
        account: String,
        /// The plan.
        plan: String,
    },
    /// Make a page.
    PageCreate {
        /// Whose; none: the only account's.
        account: Option<String>,
        /// Its name.
        name: String,
        /// Its address label.
        slug: String,
    },
    /// List pages.
    PageList {
        /// Whose; none: everybody's.
        account: Option<String>,
    },
    /// Set fields of a page.
    PageSet {
        /// Id or address label.
        page: String,
        /// Values by the fields' names; lists with commas between, pictures as `data:` URLs.
        set: BTreeMap<String, String>,
        /// Names of fields that are cleared.
        clear: Vec<String>,
        /// What visitors are asked for from now on.
        password: Option<Password>,
    },
    /// Take a hostname from the page that has it, and keep it for nobody.
    HostRelease {
        /// The hostname.
        host: String,
    },
    /// Change a page's alert settings, where any is given, and show them.
    PageAlerts {
        /// Id or address label.
        page: String,
        /// Minutes between two words on an outage that lasts.
        repeat_minutes: Option<i64>,
        /// One word alone.
        repeat_off: bool,
        /// Whether monitors that go down open incidents.
        automatic_incidents: Option<bool>,
    },
    /// Make an API key.
    KeyCreate {
        /// Whose; none: the only account's.
        account: Option<String>,
        /// Its name.
        name: String,
        /// `read` or `write`.
        access: String,
        /// Id of the one page that it reaches; none: every page of the account.
        page: Option<String>,
    },
    /// List API keys.
    KeyList {
        /// Whose; none: everybody's.
        account: Option<String>,
    },
    /// Take an API key out of use.
    KeyRevoke {
        /// Its id.
        key: String,
    },
    /// Stream a snapshot over the socket: see [`super::backup`].
    #[serde(rename = "stream-backup")]
    Backup,
    /// Read the whole store and prove it.
    Verify,
}

impl Command {
    /// How long it may take to be done.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Backup | Self::Verify => Duration::from_secs(7_200),
            _ => Duration::from_secs(30),
        }
    }
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// It was done; what there is to tell.
    Done(Value),
    /// It was not done.
    Fault(Fault),
}

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// One word for scripts.
    pub code: String,
    /// The reason, for people.
    pub message: String,
}

impl Fault {
    /// A fault with its code and its reason.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Unauthenticated | Error::ReadOnly | Error::DiskFull | Error::Internal(_) => "internal",
            Error::NotFound | Error::UnknownPing => {
                return Self::new("not_found", "there is nothing by that id");
            }
            Error::Invalid(_) => "invalid",
            Error::OnePage => "one_page",
            Error::KeyReused => "idempotency_key_reused",
            Error::CheckedJustNow { .. } | Error::DomainCheckedJustNow { .. } => "rate_limited",
            Error::PlanLimit(_) => "plan_limit",
            Error::TestedTooOften { .. }
            | Error::AccountTestedTooOften { .. }
            | Error::NotifiedTooOften { .. }
            | Error::PageAsks { .. }
            | Error::AccountAsks { .. } => "rate_limited",
            Error::TooManyPings | Error::Busy { .. } => "rate_limited",
        };
        Self::new(code, error.to_string())
    }
}

impl From<MemberError> for Fault {
    fn from(error: MemberError) -> Self {
        let code = match &error {
            MemberError::Invalid { .. }
            | MemberError::Ambiguous(_)
            | MemberError::NameInUse { .. }
            | MemberError::InvitationUsed(_)
            | MemberError::TooManyInvitations
            | MemberError::Waiting { .. } => "invalid",
            MemberError::Unknown(_) | MemberError::UnknownInvitation(_) => "not_found",
            MemberError::Store(_) | MemberError::Token(_) | MemberError::Mesh(_) => "internal",
        };
        Self::new(code, error.to_string())
    }
}
