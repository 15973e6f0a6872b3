//! Messages on the admin socket: one command in, one reply out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parallax_core::page::access::PagePassword;
use parallax_mesh::members::MemberError;
use parallax_service::ServiceError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operator's command. Names, plans, regions and ids are text and validated by the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum AdminCommand {
    /// Invite an agent.
    AgentInvite {
        /// Name of the agent.
        name: String,
        /// Region of the agent.
        region: String,
        /// Label of its network.
        network: String,
        /// Seconds the invitation is valid; none: an hour.
        valid_seconds: Option<u32>,
    },
    /// List agents and open invitations.
    AgentList,
    /// List invitations.
    AgentInvitations,
    /// Revoke an invitation.
    AgentRevokeInvitation {
        /// Id of the invitation, or name of its agent.
        invitation: String,
    },
    /// Revoke an agent and close its connection for good.
    AgentRevoke {
        /// Name or id of the agent.
        agent: String,
    },
    /// Revoke an agent and remove it from the list.
    AgentForget {
        /// Name or id of the agent.
        agent: String,
    },
    /// Take a step in rotating the mesh's certificate authority, or show its state.
    MeshRotate {
        /// `start`, `switch`, `finish`, `abort` or `status`.
        step: String,
        /// Continue without the agents that are not ready.
        force: bool,
    },
    /// Create an account.
    AccountCreate {
        /// Email address of its owner.
        email: String,
        /// Plan; none: Pro for the first account, then Free.
        plan: Option<String>,
    },
    /// List accounts.
    AccountList,
    /// Change an account's plan.
    AccountPlan {
        /// Id or email address of the account.
        account: String,
        /// New plan.
        plan: String,
    },
    /// Make a one-time link by which an account's owner chooses a password.
    AccountLink {
        /// Id or email address of the account; none: the only one.
        account: Option<String>,
    },
    /// Make a person an operator of the installation, or take that back.
    AccountOperator {
        /// Email address of the person.
        email: String,
        /// True to make them an operator.
        is_operator: bool,
    },
    /// Remove a person's lost second factor and passkeys.
    AccountFactorOff {
        /// Email address of the person.
        email: String,
    },
    /// Create a page.
    PageCreate {
        /// Account; none: the only one.
        account: Option<String>,
        /// Name of the page.
        name: String,
        /// Slug.
        slug: String,
    },
    /// List pages.
    PageList {
        /// Account; none: all.
        account: Option<String>,
    },
    /// Change fields of a page.
    PageSet {
        /// Id or slug of the page.
        page: String,
        /// Values by field name; lists are comma-separated, images are `data:` URLs.
        set: BTreeMap<String, String>,
        /// Names of fields to clear.
        clear: Vec<String>,
        /// New password for visitors.
        password: Option<PagePassword>,
    },
    /// Release a hostname from the page or company sign-in that uses it, so that others may claim it.
    HostRelease {
        /// Hostname.
        host: String,
    },
    /// Change a page's alert settings, if any is given, and show them.
    PageAlerts {
        /// Id or slug of the page.
        page: String,
        /// Minutes between repeated alerts during an outage.
        repeat_minutes: Option<i64>,
        /// Turns repeated alerts off.
        repeat_off: bool,
        /// True if an incident opens automatically when a monitor goes down.
        automatic_incidents: Option<bool>,
    },
    /// Create an API key.
    KeyCreate {
        /// Account; none: the only one.
        account: Option<String>,
        /// Name of the key.
        name: String,
        /// `read` or `write`.
        access: String,
        /// Id of the only page it can access; none: every page of the account.
        page: Option<String>,
    },
    /// List API keys.
    KeyList {
        /// Account; none: all.
        account: Option<String>,
    },
    /// Revoke an API key.
    KeyRevoke {
        /// Id of the key.
        key: String,
    },
    /// Show a monitor's state in the engine.
    DebugMonitor {
        /// Id of the monitor.
        monitor: String,
    },
    /// Stream a backup over the socket: see [`super::backup`].
    #[serde(rename = "stream-backup")]
    Backup,
    /// Verify the integrity of the store.
    Verify,
}

impl AdminCommand {
    /// Returns the command's time limit.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Backup | Self::Verify => Duration::from_secs(7_200),
            _ => Duration::from_secs(30),
        }
    }
}

/// Reply to a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdminReply {
    /// Result of a successful command.
    Done(Value),
    /// The command failed.
    Fault(CommandError),
}

/// Reason a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandError {
    /// Machine-readable code.
    pub code: String,
    /// Human-readable reason.
    pub message: String,
}

impl CommandError {
    /// Creates a fault from its code and reason.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

impl From<ServiceError> for CommandError {
    fn from(error: ServiceError) -> Self {
        let code = match &error {
            ServiceError::Unauthenticated
            | ServiceError::ReadOnly
            | ServiceError::DiskFull
            | ServiceError::Internal(_) => "internal",
            ServiceError::NotFound | ServiceError::UnknownPing => {
                return Self::new("not_found", "nothing has this id");
            }
            ServiceError::Invalid(_) => "invalid",
            ServiceError::KeyBoundToPage => "one_page",
            ServiceError::IdempotencyKeyReused => "idempotency_key_reused",
            ServiceError::CheckNowTooSoon { .. }
            | ServiceError::CheckNowLimit { .. }
            | ServiceError::MonitorTestLimit { .. }
            | ServiceError::DomainCheckTooSoon { .. } => "rate_limited",
            ServiceError::RoleForbids { .. } | ServiceError::WrongCredentials | ServiceError::ConfirmationRequired => {
                "forbidden"
            }
            ServiceError::PlanLimit(_) => "plan_limit",
            ServiceError::PageTestLimit { .. }
            | ServiceError::AccountTestLimit { .. }
            | ServiceError::NotificationLimit { .. }
            | ServiceError::InvitationLimit { .. }
            | ServiceError::PageConfirmationLimit { .. }
            | ServiceError::AccountConfirmationLimit { .. } => "rate_limited",
            ServiceError::TooManyPings | ServiceError::TooManyTries { .. } | ServiceError::Busy { .. } => {
                "rate_limited"
            }
        };
        Self::new(code, error.to_string())
    }
}

impl From<MemberError> for CommandError {
    fn from(error: MemberError) -> Self {
        let code = match &error {
            MemberError::Invalid { .. }
            | MemberError::Ambiguous(_)
            | MemberError::NameInUse { .. }
            | MemberError::InvitationUsed(_)
            | MemberError::TooManyInvitations
            | MemberError::AgentsNotReady { .. } => "invalid",
            MemberError::UnknownAgent(_) | MemberError::UnknownInvitation(_) => "not_found",
            MemberError::Store(_) | MemberError::Token(_) | MemberError::Mesh(_) => "internal",
        };
        Self::new(code, error.to_string())
    }
}
