//! Limits that have been reached.

use super::{Plan, PlanLimits};
use crate::check::CheckKind;
use crate::destination::ChannelKind;

/// A limit of the plan, or of any page on any plan, that has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanLimitError {
    /// The account has reached its plan's number of monitors.
    #[error("the {} plan allows {limit} monitors, and the account has reached that limit", plan.name())]
    MonitorsFull {
        /// The account's plan.
        plan: Plan,
        /// The limit.
        limit: u32,
    },
    /// The account has reached its plan's number of pages.
    #[error("the {} plan allows {limit} pages, and the account has reached that limit", plan.name())]
    PagesFull {
        /// The account's plan.
        plan: Plan,
        /// The limit.
        limit: usize,
    },
    /// The account has reached the number of component monitors.
    #[error("an account may have {limit} component monitors, and this one has reached that limit")]
    ComponentsFull {
        /// The limit.
        limit: u32,
    },
    /// The account has reached its plan's number of incidents and windows, and none is old enough to be
    /// dropped.
    #[error(
        "the {} plan keeps {limit} incidents and maintenance windows, the account has reached that limit, and none has \
         been closed for 30 days: delete some",
        plan.name()
    )]
    IncidentsFull {
        /// The account's plan.
        plan: Plan,
        /// The limit.
        limit: u32,
    },
    /// The account has reached the number of API keys.
    #[error(
        "an account may have {} API keys, and this one has reached that limit: revoke one first",
        crate::key::MAX_KEYS
    )]
    KeysFull,
    /// The account has reached the number of members, or the person that of accounts.
    #[error(
        "an account may have {} members, and a person {} accounts: remove one first",
        crate::person::MAX_MEMBERS,
        crate::person::MAX_MEMBERSHIPS
    )]
    MembersFull,
    /// The account has reached the number of open invitations.
    #[error(
        "an account may have {} open invitations, and this one has reached that limit: revoke one first",
        crate::person::MAX_OPEN_INVITATIONS
    )]
    InvitationsFull,
    /// Component monitors need Pro.
    #[error("component monitors need the pro plan; this account is on the {} plan", plan.name())]
    ComponentsNeedPro {
        /// The account's plan.
        plan: Plan,
    },
    /// Webhooks and chats need Hobby.
    #[error("{} destinations need the hobby plan; this account is on the {} plan", kind.name(), plan.name())]
    ChannelNeedsHobby {
        /// The account's plan.
        plan: Plan,
        /// The channel.
        kind: ChannelKind,
    },
    /// The page has reached the number of destinations.
    #[error(
        "a page may have {} destinations, and this one has reached that limit",
        crate::destination::MAX_DESTINATIONS
    )]
    DestinationsFull,
    /// Too many email addresses of the account await confirmation.
    #[error(
        "an account may have {} unconfirmed addresses, and this one has reached that limit: each is removed after \
         two days, or delete some",
        crate::subscriber::confirmation_limit::MAX_UNCONFIRMED
    )]
    UnconfirmedFull,
    /// The page has reached the number of open incidents and unfinished windows.
    #[error(
        "a page may have {} open incidents and unfinished maintenance windows, and this one has reached that limit",
        crate::incident::MAX_OPEN_INCIDENTS
    )]
    OpenIncidentsFull,
    /// The page has reached the number of recurring maintenance series.
    #[error(
        "a page may have {} recurring maintenance series, and this one has reached that limit",
        crate::incident::series::MAX_ACTIVE_SERIES
    )]
    SeriesFull,
    /// The marker is older than all of the newest ones that the page keeps.
    #[error(
        "a page keeps its newest {} deploy markers, and this one is older than all of them",
        crate::deploy::MAX_DEPLOYS
    )]
    DeployTooOld,
}

impl PlanLimits {
    /// The limit that applies to another monitor of that type: component monitors are counted separately.
    ///
    /// # Errors
    /// The reason for which the plan does not allow the type at all.
    pub const fn monitor_limit(&self, plan: Plan, kind: CheckKind) -> Result<u32, PlanLimitError> {
        match kind {
            CheckKind::Component if plan.has_components() => Ok(self.components),
            CheckKind::Component => Err(PlanLimitError::ComponentsNeedPro { plan }),
            CheckKind::Http
            | CheckKind::Tcp
            | CheckKind::Dns
            | CheckKind::Ping
            | CheckKind::Certificate
            | CheckKind::Domain
            | CheckKind::Heartbeat => Ok(self.monitors(plan)),
        }
    }
}
