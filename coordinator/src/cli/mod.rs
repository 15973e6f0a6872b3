//! Command line of `parallax`. Exit codes: 0 success, 1 failure (including the settings file), 2 wrong usage, 3 a
//! store that must be repaired before another start.

mod backup;
mod command_request;
mod debug;
mod file_ownership;
mod operator_commands;
mod page_alerts;
mod page_set;
mod secrets_key;
mod serve;
mod service_manager;
mod settings_file;
mod signals;
mod store_commands;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use parallax_core::vantage::Region;

use crate::admin::{self, client};
use crate::app::AppError;
use crate::config::{self, ConfigError, CoordinatorConfig, Flags};
use crate::console;
use crate::telemetry::{self, TelemetryError};
use crate::up::{self, UpError};

/// Status pages and monitoring, with outages confirmed by a second network
#[derive(Debug, Parser)]
#[command(name = "parallax", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a trial on one host: coordinator and local agents in one process
    Up {
        /// Simulate a small world: twelve agents, and targets in every state
        #[arg(long)]
        demo: bool,
        /// Region of the local agent
        #[arg(long, value_name = "REGION", default_value = "europe", conflicts_with = "demo")]
        region: Region,
        /// Network of the local agent: AS number or provider
        #[arg(long, value_name = "LABEL", default_value = "local", conflicts_with = "demo")]
        network: String,
        #[command(flatten)]
        settings: SettingArgs,
        #[command(flatten)]
        ready: ReadyFile,
    },
    /// Run the coordinator
    Serve {
        #[command(flatten)]
        settings: SettingArgs,
        #[command(flatten)]
        ready: ReadyFile,
    },
    /// Check the settings and print them, including defaults
    CheckConfig {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Manage agents
    #[command(subcommand)]
    Agent(operator_commands::AgentCommand),
    /// Manage the mesh
    #[command(subcommand)]
    Mesh(operator_commands::MeshCommand),
    /// Manage accounts and their plans
    #[command(subcommand)]
    Account(operator_commands::AccountCommand),
    /// Manage status pages
    #[command(subcommand)]
    Page(operator_commands::PageCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(operator_commands::KeyCommand),
    /// Back up everything to one file; works while the coordinator runs
    Backup(backup::BackupArgs),
    /// Restore a snapshot or backup; the current store is kept aside
    Restore(store_commands::RestoreArgs),
    /// Verify the integrity of the store; works while the coordinator runs
    Verify(store_commands::VerifyArgs),
    /// Show the state that the running engine holds
    #[command(subcommand)]
    Debug(debug::DebugCommand),
    /// Free unused space in the store, and encrypt secrets with the newest key
    Compact(store_commands::CompactArgs),
    /// Create a key file for encrypting customers' secrets on disk
    NewSecretsKey(secrets_key::NewSecretsKeyArgs),
}

/// Settings that can be given as flags, which override `PARALLAX_…` variables and the file.
#[derive(Debug, Args)]
struct SettingArgs {
    #[command(flatten)]
    installation: InstallationArgs,
    /// Listening address of the API and pages
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Listening UDP address for agents
    #[arg(long, value_name = "ADDRESS")]
    mesh_listen: Option<SocketAddr>,
    /// Public URL for people and pings
    #[arg(long, value_name = "URL", value_parser = config::base_url)]
    base_url: Option<String>,
    /// Domain whose subdomains are the pages' addresses
    #[arg(long, value_name = "DOMAIN", value_parser = config::root_domain)]
    root_domain: Option<String>,
    /// Listening address of /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
}

/// Selects the installation.
#[derive(Debug, Args)]
struct InstallationArgs {
    /// Settings file (TOML) [default: /etc/parallax/coordinator.toml, unless --data is given]
    #[arg(long, value_name = "FILE", env = "PARALLAX_CONFIG")]
    config: Option<PathBuf>,
    /// Data folder [default: parallax-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// File that signals readiness.
#[derive(Debug, Args)]
struct ReadyFile {
    /// Write this file once everything is ready: addresses, first key and page, as JSON
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

/// A failed command: exit code 2 if an argument or setting on the command line was wrong, else 1.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Invalid settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Logging setup failed.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The coordinator failed.
    #[error(transparent)]
    App(#[from] AppError),
    /// The local agents or the demo failed.
    #[error(transparent)]
    Up(#[from] UpError),
    /// A running coordinator could not be reached.
    #[error(transparent)]
    Client(#[from] client::AdminClientError),
    /// The command failed.
    #[error(transparent)]
    Failed(#[from] admin::CommandError),
    /// A key file could not be created.
    #[error(transparent)]
    Keys(#[from] parallax_certs::CertsError),
    /// The data folder has no store.
    #[error("no store in {}: start `parallax up` or `parallax serve` to create one", .0.display())]
    NoStore(PathBuf),
    /// The result of a command could not be printed.
    #[error("the command succeeded, but its output could not be written: {0}")]
    Output(#[source] std::io::Error),
    /// The runtime or the signal handlers could not be set up.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Exit code for a store that must be repaired first, so that a service manager does not retry.
const EXIT_STORE_DAMAGED: u8 = 3;
impl CliError {
    /// Returns the exit code, which tells a service manager or script what to do.
    fn exit_code(&self) -> u8 {
        match self {
            Self::App(AppError::NeedsRecovery { .. }) | Self::Up(UpError::App(AppError::NeedsRecovery { .. })) => {
                EXIT_STORE_DAMAGED
            }
            _ if self.is_usage() => 2,
            _ => 1,
        }
    }

    /// Returns true if an argument or variable of the command is wrong, not a file or the environment.
    fn is_usage(&self) -> bool {
        matches!(self, Self::Config(ConfigError::Invalid(faults)) if faults.iter().all(|fault| fault.is_from_environment))
    }
}

/// Runs the command line of this process and returns its exit code.
///
/// The async runtime starts here rather than in the program, so that the code of all tasks is generated once, in this
/// library.
pub fn main() -> ExitCode {
    // Fails only if a provider is already installed, which is then this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(console::usage(&error)),
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(run(cli));
            // A snapshot in progress is not awaited: it has no final name yet, and the next snapshot removes it.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            console::error(&format!("the async runtime can't start: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> ExitCode {
    match dispatch(cli.command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::error(&error.to_string());
            if let Some(file) = settings_file::found_file() {
                console::error(&format!("settings were read from {}", file.display()));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

async fn dispatch(command: Command) -> Result<(), CliError> {
    match command {
        Command::Up { demo, region, network, settings, ready } => {
            let kind = if demo { up::UpMode::Demo } else { up::UpMode::Single { region, network } };
            // A trial has its own data folder: the host's settings file is not used.
            let config =
                settings.installation.load(kind.defaults(), &settings.flags(), settings.installation.config.clone())?;
            telemetry::start(&config.log)?;
            let shutdown = signals::shutdown()?;
            Ok(up::run(kind, config, ready.ready_file, shutdown).await?)
        }
        Command::Serve { settings, ready } => {
            let config = settings.load(CoordinatorConfig::default())?;
            telemetry::start(&config.log)?;
            serve::run(config, ready.ready_file, signals::shutdown()?).await
        }
        Command::CheckConfig { settings } => {
            let config = settings.load(CoordinatorConfig::default())?;
            console::line(config.to_toml().trim_end()).map_err(CliError::Output)?;
            if let Some(warning) = config.admin_exposure_warning() {
                console::error(&format!("warning: {warning}"));
            }
            match config.file_faults() {
                faults if faults.is_empty() => Ok(()),
                faults => Err(ConfigError::Invalid(faults).into()),
            }
        }
        Command::Agent(command) => command_request::run(command.into()).await,
        Command::Mesh(command) => command_request::run(command.into()).await,
        Command::Account(command) => command_request::run(command.into()).await,
        Command::Page(command) => command_request::run(command.try_into()?).await,
        Command::Key(command) => command_request::run(command.into()).await,
        Command::Debug(command) => debug::run(command).await,
        Command::Backup(order) => backup::run(order).await,
        Command::Restore(order) => store_commands::restore(order).await,
        Command::Verify(order) => store_commands::verify(order).await,
        Command::Compact(order) => store_commands::compact(order).await,
        Command::NewSecretsKey(order) => secrets_key::new_key(&order),
    }
}

impl SettingArgs {
    fn load(&self, defaults: CoordinatorConfig) -> Result<CoordinatorConfig, ConfigError> {
        self.installation.load(defaults, &self.flags(), self.installation.file())
    }

    fn flags(&self) -> Flags {
        Flags {
            data: self.installation.data.clone(),
            listen: self.listen,
            base_url: self.base_url.clone(),
            root_domain: self.root_domain.clone(),
            mesh_listen: self.mesh_listen,
            admin_listen: self.admin_listen,
        }
    }
}

impl InstallationArgs {
    /// Returns the settings file: the given one, else the host's.
    fn file(&self) -> Option<PathBuf> {
        let is_data_given = self.data.is_some() || std::env::var_os("PARALLAX_DATA").is_some();
        settings_file::find(self.config.as_deref(), is_data_given)
    }

    fn load(
        &self,
        defaults: CoordinatorConfig,
        flags: &Flags,
        file: Option<PathBuf>,
    ) -> Result<CoordinatorConfig, ConfigError> {
        // A variable that is not Unicode can't be a setting.
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        CoordinatorConfig::load(defaults, file.as_deref(), environment, flags)
    }
}

#[cfg(test)]
mod tests;
