//! Commands that act on an installation: over the admin socket while a coordinator runs, else on the store
//! directly.

use std::io;

use clap::{Args, Subcommand};
use parallax_core::plan::Plan;
use parallax_core::vantage::Region;
use serde_json::Value;

use super::page_set::PageSetArgs;
use super::{CliError, InstallationArgs, file_ownership};
use crate::admin::{AdminCommand, OperatorCommands, client};
use crate::app;
use crate::config::{ConfigError, CoordinatorConfig, Flags};
use crate::console;

/// A command, its target, and the format of its result.
#[derive(Debug)]
pub(super) struct CommandRequest {
    command: AdminCommand,
    target: CommandTarget,
    /// Columns of a list; a single object is printed with all its fields.
    columns: &'static [&'static str],
}

#[derive(Debug, Args)]
pub(super) struct CommandTarget {
    #[command(flatten)]
    installation: InstallationArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl CommandRequest {
    /// Creates a request with the columns of its list.
    pub(super) const fn new(command: AdminCommand, whither: CommandTarget, columns: &'static [&'static str]) -> Self {
        Self { command, target: whither, columns }
    }
}

impl CommandTarget {
    /// Loads the settings of the installation.
    pub(super) fn config(&self) -> Result<CoordinatorConfig, ConfigError> {
        let flags = Flags { data: self.installation.data.clone(), ..Flags::default() };
        self.installation.load(CoordinatorConfig::default(), &flags, self.installation.file())
    }
}

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
        whither: CommandTarget,
    },
    /// List invitations with their expiry and state
    Invitations {
        #[command(flatten)]
        whither: CommandTarget,
    },
    /// Revoke an invitation: its token no longer works
    RevokeInvitation {
        /// Id of the invitation, or name of its agent
        invitation: String,
        #[command(flatten)]
        whither: CommandTarget,
    },
    /// Revoke an agent: its connection is closed for good
    Revoke {
        /// Name or id of the agent
        agent: String,
        #[command(flatten)]
        whither: CommandTarget,
    },
    /// Revoke an agent and remove it from the list
    Forget {
        /// Name or id of the agent
        agent: String,
        #[command(flatten)]
        whither: CommandTarget,
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
        whither: CommandTarget,
    },
    /// Change an account's plan
    Plan {
        /// Id or email address of the account
        account: String,
        /// New plan: free, hobby or pro
        #[arg(value_parser = plan)]
        plan: Plan,
        #[command(flatten)]
        whither: CommandTarget,
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
    /// Release a hostname from the page that uses or recently used it, so that any page may claim it
    ReleaseHost {
        /// Hostname
        host: String,
        #[command(flatten)]
        whither: CommandTarget,
    },
    /// Show or change a page's alert settings
    Alerts(super::page_alerts::PageAlertsArgs),
    /// List pages
    List {
        /// Only pages of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        whither: CommandTarget,
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
        whither: CommandTarget,
    },
    /// Revoke an API key, at once and for good
    Revoke {
        /// Id of the key
        key: String,
        #[command(flatten)]
        whither: CommandTarget,
    },
}

/// Runs a request and prints its result.
pub(super) async fn run(order: CommandRequest) -> Result<(), CliError> {
    let config = order.target.config()?;
    let told = match client::send_command(&config.data, &order.command).await? {
        Some(reply) => reply?,
        None => run_offline(&config, &order.command).await?,
    };
    let shown = if order.target.json { console::json(&told) } else { show(&told, order.columns) };
    shown.map_err(CliError::Output)
}

/// Runs a command without a coordinator.
async fn run_offline(config: &CoordinatorConfig, command: &AdminCommand) -> Result<Value, CliError> {
    // Commands that prepare an installation create its store; others require one.
    let prepares = matches!(command, AdminCommand::AccountCreate { .. } | AdminCommand::AgentInvite { .. });
    if !prepares && !config.data.join("store").exists() {
        return Err(CliError::NoStore(config.data.clone()));
    }
    let done = run_on_store(config, command).await;
    file_ownership::restore_ownership(&config.data);
    done
}

async fn run_on_store(config: &CoordinatorConfig, command: &AdminCommand) -> Result<Value, CliError> {
    let opened = app::open(config).await?;
    let told = OperatorCommands::new(opened.service.clone(), opened.members.clone()).run(command).await;
    opened.close().await;
    Ok(told?)
}

/// Prints a list as a table of these columns, and a single object as lines of all its fields.
pub(super) fn show(told: &Value, columns: &[&str]) -> io::Result<()> {
    match told {
        Value::Array(entries) => {
            let row = |entry: &Value| columns.iter().map(|column| cell(&entry[*column])).collect();
            console::table(columns, &entries.iter().map(row).collect::<Vec<Vec<String>>>())
        }
        Value::Object(fields) => {
            // The list's columns first, then fields that only a single object has: a key or a token.
            let listed = columns.iter().filter_map(|column| fields.get_key_value(*column));
            let others = fields.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
            for (name, value) in listed.chain(others).filter(|(_, value)| !value.is_null()) {
                console::line(&format!("{name}: {}", cell(value)))?;
            }
            Ok(())
        }
        other => console::line(&cell(other)),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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
        let (command, whither) = match command {
            AgentCommand::Invite { name, region, network, valid_seconds, target: whither } => {
                (AdminCommand::AgentInvite { name, region: region.to_string(), network, valid_seconds }, whither)
            }
            AgentCommand::Invitations { whither } => (AdminCommand::AgentInvitations, whither),
            AgentCommand::RevokeInvitation { invitation, whither } => {
                (AdminCommand::AgentRevokeInvitation { invitation }, whither)
            }
            AgentCommand::List { whither } => (AdminCommand::AgentList, whither),
            AgentCommand::Revoke { agent, whither } => (AdminCommand::AgentRevoke { agent }, whither),
            AgentCommand::Forget { agent, whither } => (AdminCommand::AgentForget { agent }, whither),
        };
        Self { command, target: whither, columns }
    }
}

impl From<MeshCommand> for CommandRequest {
    fn from(command: MeshCommand) -> Self {
        let MeshCommand::Rotate { step, force, target: whither } = command;
        Self { command: AdminCommand::MeshRotate { step, force }, target: whither, columns: &[] }
    }
}

impl From<AccountCommand> for CommandRequest {
    fn from(command: AccountCommand) -> Self {
        let name = |plan: Plan| plan.name().to_owned();
        let (command, whither) = match command {
            AccountCommand::Create { email, plan, target: whither } => {
                (AdminCommand::AccountCreate { email, plan: plan.map(name) }, whither)
            }
            AccountCommand::List { whither } => (AdminCommand::AccountList, whither),
            AccountCommand::Plan { account, plan, whither } => {
                (AdminCommand::AccountPlan { account, plan: name(plan) }, whither)
            }
        };
        Self { command, target: whither, columns: &["id", "email", "plan", "createdAt"] }
    }
}

/// Columns of a list of pages.
pub(super) const PAGE_COLUMNS: &[&str] = &["id", "name", "slug", "url", "account"];

impl TryFrom<PageCommand> for CommandRequest {
    type Error = CliError;

    fn try_from(command: PageCommand) -> Result<Self, CliError> {
        let (command, whither) = match command {
            PageCommand::Create { account, name, slug, target: whither } => {
                (AdminCommand::PageCreate { account, name, slug }, whither)
            }
            PageCommand::ReleaseHost { host, whither } => {
                let command = AdminCommand::HostRelease { host };
                return Ok(Self { command, target: whither, columns: &["host", "page", "account"] });
            }
            PageCommand::Alerts(alerts) => alerts.into_request(),
            PageCommand::List { account, whither } => (AdminCommand::PageList { account }, whither),
            PageCommand::Set(set) => return set.into_request(),
        };
        Ok(Self { command, target: whither, columns: PAGE_COLUMNS })
    }
}

impl From<KeyCommand> for CommandRequest {
    fn from(command: KeyCommand) -> Self {
        let (command, whither) = match command {
            KeyCommand::Create { account, name, access, page, target: whither } => {
                (AdminCommand::KeyCreate { account, name, access, page }, whither)
            }
            KeyCommand::List { account, whither } => (AdminCommand::KeyList { account }, whither),
            KeyCommand::Revoke { key, whither } => (AdminCommand::KeyRevoke { key }, whither),
        };
        Self { command, target: whither, columns: &["id", "name", "access", "page", "lastUsedAt", "account"] }
    }
}
