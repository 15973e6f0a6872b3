//! Arguments of the commands that act on an installation, and the requests that they become.

use clap::{Subcommand, ValueEnum};
use parallax_core::plan::Plan;
use parallax_core::vantage::Region;

use super::CliError;
use super::command_request::{CommandRequest, CommandTarget, PAGE_COLUMNS};
use super::page_alerts::PageAlertsArgs;
use super::page_set::PageSetArgs;
use crate::admin::AdminCommand;

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Create a one-time token for a new agent
    Invite {
        /// Name of the agent
        #[arg(long)]
        name: String,
        /// Region of the agent
        #[arg(long)]
        region: Region,
        /// Network of the agent: AS number or provider. Outages are confirmed across networks, so it must be
        /// correct
        #[arg(long)]
        network: String,
        /// Seconds the token is valid, from a minute to 30 days [default: an hour]
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=2_592_000))]
        valid_seconds: Option<u32>,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// List agents and open invitations
    List {
        #[command(flatten)]
        target: CommandTarget,
    },
    /// List invitations with their expiry and state
    Invitations {
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Revoke an invitation: its token no longer works
    RevokeInvitation {
        /// Id of the invitation, or name of its agent
        invitation: String,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Revoke an agent: its connection is closed for good
    Revoke {
        /// Name or id of the agent
        agent: String,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Revoke an agent and remove it from the list
    Forget {
        /// Name or id of the agent
        agent: String,
        #[command(flatten)]
        target: CommandTarget,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MeshCommand {
    /// Rotate the certificate authority of the mesh: start, then switch, then finish
    Rotate {
        /// status; start: create a new authority and distribute it to agents; switch: sign with it, and agents
        /// renew; finish: remove the old one; abort: go back one phase
        #[arg(value_parser = ["status", "start", "switch", "finish", "abort"], default_value = "status")]
        step: String,
        /// Continue without the agents that are not ready: they have to join again
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: CommandTarget,
    },
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Off alone: only the person can turn their second factor on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FactorSwitch {
    /// Off.
    Off,
}

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Create an account
    Create {
        /// Email address of its owner
        #[arg(long)]
        email: String,
        /// Plan: free, hobby or pro [default: pro for the first account, then free]
        #[arg(long, value_parser = plan)]
        plan: Option<Plan>,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// List accounts
    List {
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Change an account's plan
    Plan {
        /// Id or email address of the account
        account: String,
        /// New plan: free, hobby or pro
        #[arg(value_parser = plan)]
        plan: Plan,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Print a link, valid once for a day, by which an account's owner chooses a password for the dashboard
    Link {
        /// Email address or id of the account; optional if there is only one
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Make a person an operator of the installation, who sees the mesh and all accounts
    Operator {
        /// Email address with which the person signs in
        #[arg(long)]
        email: String,
        /// Turn it on or off
        state: Switch,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Remove the second factor and passkeys of a person who lost them; they are signed out everywhere
    Factor {
        /// Email address with which the person signs in
        #[arg(long)]
        email: String,
        /// `off`; the person sets up new ones by themselves
        state: FactorSwitch,
        #[command(flatten)]
        target: CommandTarget,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum PageCommand {
    /// Create a page
    Create {
        /// Id or email address of its account; optional if there is only one
        #[arg(long)]
        account: Option<String>,
        /// Name of the page
        #[arg(long)]
        name: String,
        /// Address label of the page
        #[arg(long)]
        slug: String,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Change a page's settings
    Set(Box<PageSetArgs>),
    /// Release a hostname from the page or company sign-in that uses it, or recently did, so that others may claim it
    ReleaseHost {
        /// Hostname
        host: String,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Show or change a page's alert settings
    Alerts(PageAlertsArgs),
    /// List pages
    List {
        /// Only pages of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        target: CommandTarget,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create an API key; it is shown only once
    Create {
        /// Id or email address of its account; optional if there is only one, or with --page
        #[arg(long)]
        account: Option<String>,
        /// Name of the key
        #[arg(long)]
        name: String,
        /// Access: read or write
        #[arg(long, value_parser = ["read", "write"], default_value = "read")]
        access: String,
        /// Id of the only page it can access [default: every page of the account]
        #[arg(long)]
        page: Option<String>,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// List API keys
    List {
        /// Only keys of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        target: CommandTarget,
    },
    /// Revoke an API key, at once and for good
    Revoke {
        /// Id of the key
        key: String,
        #[command(flatten)]
        target: CommandTarget,
    },
}

fn plan(name: &str) -> Result<Plan, String> {
    Plan::read(name)
}

impl From<AgentCommand> for CommandRequest {
    fn from(command: AgentCommand) -> Self {
        let columns = match &command {
            AgentCommand::Invitations { .. } | AgentCommand::RevokeInvitation { .. } => {
                &["name", "region", "network", "status", "createdAt", "expiresAt", "id"]
            }
            _ => &["name", "region", "network", "status", "software", "note", "id"],
        };
        let (command, target) = match command {
            AgentCommand::Invite { name, region, network, valid_seconds, target } => {
                (AdminCommand::AgentInvite { name, region: region.to_string(), network, valid_seconds }, target)
            }
            AgentCommand::Invitations { target } => (AdminCommand::AgentInvitations, target),
            AgentCommand::RevokeInvitation { invitation, target } => {
                (AdminCommand::AgentRevokeInvitation { invitation }, target)
            }
            AgentCommand::List { target } => (AdminCommand::AgentList, target),
            AgentCommand::Revoke { agent, target } => (AdminCommand::AgentRevoke { agent }, target),
            AgentCommand::Forget { agent, target } => (AdminCommand::AgentForget { agent }, target),
        };
        Self::new(command, target, columns)
    }
}

impl From<MeshCommand> for CommandRequest {
    fn from(command: MeshCommand) -> Self {
        let MeshCommand::Rotate { step, force, target } = command;
        Self::new(AdminCommand::MeshRotate { step, force }, target, &[])
    }
}

impl From<AccountCommand> for CommandRequest {
    fn from(command: AccountCommand) -> Self {
        let name = |plan: Plan| plan.name().to_owned();
        let (command, target) = match command {
            AccountCommand::Create { email, plan, target } => {
                (AdminCommand::AccountCreate { email, plan: plan.map(name) }, target)
            }
            AccountCommand::List { target } => (AdminCommand::AccountList, target),
            AccountCommand::Plan { account, plan, target } => {
                (AdminCommand::AccountPlan { account, plan: name(plan) }, target)
            }
            AccountCommand::Link { email, target } => (AdminCommand::AccountLink { account: email }, target),
            AccountCommand::Operator { email, state, target } => {
                (AdminCommand::AccountOperator { email, is_operator: state == Switch::On }, target)
            }
            AccountCommand::Factor { email, state: FactorSwitch::Off, target } => {
                (AdminCommand::AccountFactorOff { email }, target)
            }
        };
        Self::new(command, target, &["id", "email", "plan", "createdAt"])
    }
}

impl TryFrom<PageCommand> for CommandRequest {
    type Error = CliError;

    fn try_from(command: PageCommand) -> Result<Self, CliError> {
        let (command, target) = match command {
            PageCommand::Create { account, name, slug, target } => {
                (AdminCommand::PageCreate { account, name, slug }, target)
            }
            PageCommand::ReleaseHost { host, target } => {
                let command = AdminCommand::HostRelease { host };
                return Ok(Self::new(command, target, &["host", "page", "account"]));
            }
            PageCommand::Alerts(alerts) => alerts.into_request(),
            PageCommand::List { account, target } => (AdminCommand::PageList { account }, target),
            PageCommand::Set(set) => return set.into_request(),
        };
        Ok(Self::new(command, target, PAGE_COLUMNS))
    }
}

impl From<KeyCommand> for CommandRequest {
    fn from(command: KeyCommand) -> Self {
        let (command, target) = match command {
            KeyCommand::Create { account, name, access, page, target } => {
                (AdminCommand::KeyCreate { account, name, access, page }, target)
            }
            KeyCommand::List { account, target } => (AdminCommand::KeyList { account }, target),
            KeyCommand::Revoke { key, target } => (AdminCommand::KeyRevoke { key }, target),
        };
        Self::new(command, target, &["id", "name", "access", "page", "lastUsedAt", "account"])
    }
}
