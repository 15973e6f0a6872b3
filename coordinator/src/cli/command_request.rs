//! Runs a command of the operator: over the admin socket while a coordinator runs, else on the store directly.

use std::io;

use clap::Args;
use serde_json::Value;

use super::{CliError, InstallationArgs, file_ownership};
use crate::admin::{AdminCommand, OperatorCommands, client};
use crate::app;
use crate::config::{ConfigError, CoordinatorConfig, Flags};
use crate::console;

/// Columns of a list of pages.
pub(super) const PAGE_COLUMNS: &[&str] = &["id", "name", "slug", "url", "account"];

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
    pub(super) const fn new(command: AdminCommand, target: CommandTarget, columns: &'static [&'static str]) -> Self {
        Self { command, target, columns }
    }
}

impl CommandTarget {
    /// Loads the settings of the installation.
    pub(super) fn config(&self) -> Result<CoordinatorConfig, ConfigError> {
        let flags = Flags { data: self.installation.data.clone(), ..Flags::default() };
        self.installation.load(CoordinatorConfig::default(), &flags, self.installation.file())
    }
}

/// Runs a request and prints its result.
pub(super) async fn run(request: CommandRequest) -> Result<(), CliError> {
    let config = request.target.config()?;
    let result = match client::send_command(&config.data, &request.command).await? {
        Some(reply) => reply?,
        None => run_offline(&config, &request.command).await?,
    };
    let printed = if request.target.json { console::json(&result) } else { show(&result, request.columns) };
    printed.map_err(CliError::Output)
}

/// Runs a command without a coordinator.
async fn run_offline(config: &CoordinatorConfig, command: &AdminCommand) -> Result<Value, CliError> {
    // Commands that prepare an installation create its store; others require one.
    let prepares = matches!(command, AdminCommand::AccountCreate { .. } | AdminCommand::AgentInvite { .. });
    if !prepares && !config.data.join("store").exists() {
        return Err(CliError::NoStore(config.data.clone()));
    }
    let result = run_on_store(config, command).await;
    file_ownership::restore_ownership(&config.data);
    result
}

async fn run_on_store(config: &CoordinatorConfig, command: &AdminCommand) -> Result<Value, CliError> {
    let opened = app::open(config).await?;
    let result = OperatorCommands::new(opened.service.clone(), opened.members.clone()).run(command).await;
    opened.close().await;
    Ok(result?)
}

/// Prints a list as a table of these columns, and a single object as lines of all its fields.
pub(super) fn show(result: &Value, columns: &[&str]) -> io::Result<()> {
    match result {
        Value::Array(entries) => {
            let row = |entry: &Value| columns.iter().map(|column| value_text(&entry[*column])).collect();
            console::table(columns, &entries.iter().map(row).collect::<Vec<Vec<String>>>())
        }
        Value::Object(fields) => {
            // The list's columns first, then fields that only a single object has: a key or a token.
            let shown_columns = columns.iter().filter_map(|column| fields.get_key_value(*column));
            let other_fields = fields.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
            for (name, value) in shown_columns.chain(other_fields).filter(|(_, value)| !value.is_null()) {
                console::line(&format!("{name}: {}", value_text(value)))?;
            }
            Ok(())
        }
        other => console::line(&value_text(other)),
    }
}

/// Text of a value: none for null, a string without quotes, and JSON otherwise.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
