//! Commands that act on an installation: over the admin socket while a coordinator runs, else on the store itself.

use std::io;

use clap::{Args, Subcommand};
use parallax_core::place::Region;
use parallax_core::plan::Plan;
use serde_json::Value;

use super::page::PageSet;
use super::{CliError, Place, owner};
use crate::admin::{Command, Operator, client};
use crate::app;
use crate::config::{Config, ConfigError, Flags};
use crate::out;

/// A command, where to do it, and how to show what came of it.
#[derive(Debug)]
pub(super) struct Order {
    command: Command,
    whither: Whither,
    /// Fields shown of a list's entries; of a single thing all are shown.
    columns: &'static [&'static str],
}

#[derive(Debug, Args)]
pub(super) struct Whither {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Order {
    /// A command with the fields that a list of its kind shows.
    pub(super) const fn new(command: Command, whither: Whither, columns: &'static [&'static str]) -> Self {
        Self { command, whither, columns }
    }
}

impl Whither {
    /// The settings of the installation that is meant.
    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        let flags = Flags { data: self.place.data.clone(), ..Flags::default() };
        self.place.load(Config::default(), &flags, self.place.file())
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Make a one-time token for a new agent
    Invite {
        /// Its name
        #[arg(long)]
        name: String,
        /// Where it stands
        #[arg(long)]
        region: Region,
        /// Its network: AS number or provider. Outages are confirmed across networks, so say it truly
        #[arg(long)]
        network: String,
        /// Seconds that the token is good, a minute to 30 days [default: an hour]
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(60..=2_592_000))]
        valid_seconds: Option<u32>,
        #[command(flatten)]
        whither: Whither,
    },
    /// List agents and open invitations
    List {
        #[command(flatten)]
        whither: Whither,
    },
    /// List invitations with their end and state
    Invitations {
        #[command(flatten)]
        whither: Whither,
    },
    /// Take an invitation back: its token is refused from now on
    RevokeInvitation {
        /// Its id, or the name that it is for
        invitation: String,
        #[command(flatten)]
        whither: Whither,
    },
    /// Close an agent's connection for good
    Revoke {
        /// Name or id
        agent: String,
        #[command(flatten)]
        whither: Whither,
    },
    /// Revoke an agent and list it no longer
    Forget {
        /// Name or id
        agent: String,
        #[command(flatten)]
        whither: Whither,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MeshCommand {
    /// Exchange the authority that vouches for every agent: start, then switch, then finish
    Rotate {
        /// status; start: make a new authority, which agents are told of; switch: have it sign, and agents renew;
        /// finish: forget the old one; abort: one phase back
        #[arg(value_parser = ["status", "start", "switch", "finish", "abort"], default_value = "status")]
        step: String,
        /// Go on without the agents that are not ready: they would have to join anew
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        whither: Whither,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Make an account
    Create {
        /// Address of its owner
        #[arg(long)]
        email: String,
        /// free, hobby or pro [default: pro for the first account, then free]
        #[arg(long, value_parser = plan)]
        plan: Option<Plan>,
        #[command(flatten)]
        whither: Whither,
    },
    /// List accounts
    List {
        #[command(flatten)]
        whither: Whither,
    },
    /// Put an account on another plan
    Plan {
        /// Id or email address
        account: String,
        /// free, hobby or pro
        #[arg(value_parser = plan)]
        plan: Plan,
        #[command(flatten)]
        whither: Whither,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum PageCommand {
    /// Make a page
    Create {
        /// Id or email address of its account; may be left out where there is only one
        #[arg(long)]
        account: Option<String>,
        /// Its name
        #[arg(long)]
        name: String,
        /// Its address label
        #[arg(long)]
        slug: String,
        #[command(flatten)]
        whither: Whither,
    },
    /// Change a page
    Set(Box<PageSet>),
    /// Take a hostname from the page that has it, or has lately had it: any page may ask for it at once
    ReleaseHost {
        /// The hostname
        host: String,
        #[command(flatten)]
        whither: Whither,
    },
    /// Show or set what a page tells of its monitors
    Alerts(super::alerts::Alerts),
    /// List pages
    List {
        /// Of this account alone
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        whither: Whither,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make an API key; it is shown this once
    Create {
        /// Id or email address of its account; may be left out where there is only one, or with --page
        #[arg(long)]
        account: Option<String>,
        /// Its name
        #[arg(long)]
        name: String,
        /// read or write
        #[arg(long, value_parser = ["read", "write"], default_value = "read")]
        access: String,
        /// Id of the one page that it reaches [default: every page of the account]
        #[arg(long)]
        page: Option<String>,
        #[command(flatten)]
        whither: Whither,
    },
    /// List API keys
    List {
        /// Of this account alone
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        whither: Whither,
    },
    /// Take an API key out of use, at once and for good
    Revoke {
        /// Its id
        key: String,
        #[command(flatten)]
        whither: Whither,
    },
}

/// Does an order and prints what came of it.
pub(super) async fn run(order: Order) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let told = match client::ask(&config.data, &order.command).await? {
        Some(reply) => reply?,
        None => alone(&config, &order.command).await?,
    };
    let shown = if order.whither.json { out::json(&told) } else { show(&told, order.columns) };
    shown.map_err(CliError::Output)
}

/// Does a command where no coordinator runs.
async fn alone(config: &Config, command: &Command) -> Result<Value, CliError> {
    // Preparing an installation makes its store; looking for one that is not there does not.
    let prepares = matches!(command, Command::AccountCreate { .. } | Command::AgentInvite { .. });
    if !prepares && !config.data.join("store").exists() {
        return Err(CliError::NoStore(config.data.clone()));
    }
    let done = done_alone(config, command).await;
    owner::hand_over(&config.data);
    done
}

async fn done_alone(config: &Config, command: &Command) -> Result<Value, CliError> {
    let opened = app::open(config).await?;
    let told = Operator::new(opened.service.clone(), opened.members.clone()).run(command).await;
    opened.close().await;
    Ok(told?)
}

/// Prints a list as a table of these columns, and one thing as lines of all that it has.
pub(super) fn show(told: &Value, columns: &[&str]) -> io::Result<()> {
    match told {
        Value::Array(entries) => {
            let row = |entry: &Value| columns.iter().map(|column| cell(&entry[*column])).collect();
            out::table(columns, &entries.iter().map(row).collect::<Vec<Vec<String>>>())
        }
        Value::Object(fields) => {
            // In the order of the list, then what only a single thing has: a key or a token.
            let listed = columns.iter().filter_map(|column| fields.get_key_value(*column));
            let others = fields.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
            for (name, value) in listed.chain(others).filter(|(_, value)| !value.is_null()) {
                out::line(&format!("{name}: {}", cell(value)))?;
            }
            Ok(())
        }
        other => out::line(&cell(other)),
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

impl From<AgentCommand> for Order {
    fn from(command: AgentCommand) -> Self {
        let columns = match &command {
            AgentCommand::Invitations { .. } | AgentCommand::RevokeInvitation { .. } => {
                &["name", "region", "network", "status", "createdAt", "expiresAt", "id"]
            }
            _ => &["name", "region", "network", "status", "software", "note", "id"],
        };
        let (command, whither) = match command {
            AgentCommand::Invite { name, region, network, valid_seconds, whither } => {
                (Command::AgentInvite { name, region: region.to_string(), network, valid_seconds }, whither)
            }
            AgentCommand::Invitations { whither } => (Command::AgentInvitations, whither),
            AgentCommand::RevokeInvitation { invitation, whither } => {
                (Command::AgentRevokeInvitation { invitation }, whither)
            }
            AgentCommand::List { whither } => (Command::AgentList, whither),
            AgentCommand::Revoke { agent, whither } => (Command::AgentRevoke { agent }, whither),
            AgentCommand::Forget { agent, whither } => (Command::AgentForget { agent }, whither),
        };
        Self { command, whither, columns }
    }
}

impl From<MeshCommand> for Order {
    fn from(command: MeshCommand) -> Self {
        let MeshCommand::Rotate { step, force, whither } = command;
        Self { command: Command::MeshRotate { step, force }, whither, columns: &[] }
    }
}

impl From<AccountCommand> for Order {
    fn from(command: AccountCommand) -> Self {
        let name = |plan: Plan| plan.name().to_owned();
        let (command, whither) = match command {
            AccountCommand::Create { email, plan, whither } => {
                (Command::AccountCreate { email, plan: plan.map(name) }, whither)
            }
            AccountCommand::List { whither } => (Command::AccountList, whither),
            AccountCommand::Plan { account, plan, whither } => {
                (Command::AccountPlan { account, plan: name(plan) }, whither)
            }
        };
        Self { command, whither, columns: &["id", "email", "plan", "createdAt"] }
    }
}

/// What a list of pages shows.
pub(super) const PAGE_COLUMNS: &[&str] = &["id", "name", "slug", "url", "account"];

impl TryFrom<PageCommand> for Order {
    type Error = CliError;

    fn try_from(command: PageCommand) -> Result<Self, CliError> {
        let (command, whither) = match command {
            PageCommand::Create { account, name, slug, whither } => {
                (Command::PageCreate { account, name, slug }, whither)
            }
            PageCommand::ReleaseHost { host, whither } => {
                let command = Command::HostRelease { host };
                return Ok(Self { command, whither, columns: &["host", "page", "account"] });
            }
            PageCommand::Alerts(alerts) => alerts.order(),
            PageCommand::List { account, whither } => (Command::PageList { account }, whither),
            PageCommand::Set(set) => return set.order(),
        };
        Ok(Self { command, whither, columns: PAGE_COLUMNS })
    }
}

impl From<KeyCommand> for Order {
    fn from(command: KeyCommand) -> Self {
        let (command, whither) = match command {
            KeyCommand::Create { account, name, access, page, whither } => {
                (Command::KeyCreate { account, name, access, page }, whither)
            }
            KeyCommand::List { account, whither } => (Command::KeyList { account }, whither),
            KeyCommand::Revoke { key, whither } => (Command::KeyRevoke { key }, whither),
        };
        Self { command, whither, columns: &["id", "name", "access", "page", "lastUsedAt", "account"] }
    }
}
