//! The command lines of `parallax`, and how each ends: 0 done, 1 a fault (also of the settings file), 2 wrong usage,
//! 3 a store that must be put right before another start is of use.

mod alerts;
mod backup;
mod operate;
mod owner;
mod page;
mod secrets;
mod serve;
mod service_manager;
mod settings_file;
mod signals;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use parallax_core::place::Region;

use crate::admin::{self, client};
use crate::app::AppError;
use crate::config::{self, Config, ConfigError, Flags};
use crate::out;
use crate::telemetry::{self, TelemetryError};
use crate::up::{self, UpError};

/// Status pages and monitoring: something is down only when a second network agrees.
#[derive(Debug, Parser)]
#[command(name = "parallax", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try it on one host: coordinator and local agents in one process
    Up {
        /// A small simulated world: twelve agents, and targets in every state
        #[arg(long)]
        demo: bool,
        /// Region of the local agent
        #[arg(long, value_name = "REGION", default_value = "europe", conflicts_with = "demo")]
        region: Region,
        /// Network of the local agent: AS number or provider
        #[arg(long, value_name = "LABEL", default_value = "local", conflicts_with = "demo")]
        network: String,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        ready: ReadyFile,
    },
    /// Run the coordinator
    Serve {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        ready: ReadyFile,
    },
    /// Check the settings and show them, defaults among them
    CheckConfig {
        #[command(flatten)]
        settings: Settings,
    },
    /// The mesh's members
    #[command(subcommand)]
    Agent(operate::AgentCommand),
    /// The mesh itself
    #[command(subcommand)]
    Mesh(operate::MeshCommand),
    /// Accounts and their plans
    #[command(subcommand)]
    Account(operate::AccountCommand),
    /// Status pages
    #[command(subcommand)]
    Page(operate::PageCommand),
    /// API keys
    #[command(subcommand)]
    Key(operate::KeyCommand),
    /// Write everything to one file, also while the coordinator runs
    Backup(backup::Backup),
    /// Put a snapshot or a backup in the store's place, which is kept beside it
    Restore(store::Restore),
    /// Read the whole store and prove it, also while the coordinator runs
    Verify(store::Verify),
    /// Give back the space that the store holds and does not need, and encrypt secrets with the newest key
    Compact(store::Compact),
    /// Make a key file that customers' secrets on disk are encrypted with
    NewSecretsKey(secrets::NewSecretsKey),
}

/// Settings that can be given as flags. They go before `PARALLAX_…` and the file.
#[derive(Debug, Args)]
struct Settings {
    #[command(flatten)]
    place: Place,
    /// Address of API and pages
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// UDP address that agents connect to
    #[arg(long, value_name = "ADDRESS")]
    mesh_listen: Option<SocketAddr>,
    /// Address that people and pings use
    #[arg(long, value_name = "URL", value_parser = config::base_url)]
    base_url: Option<String>,
    /// Domain under which pages have their labels
    #[arg(long, value_name = "DOMAIN", value_parser = config::root_domain)]
    root_domain: Option<String>,
    /// Address of /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
}

/// Which installation is meant.
#[derive(Debug, Args)]
struct Place {
    /// Settings file (TOML) [default: /etc/parallax/coordinator.toml, unless --data is given]
    #[arg(long, value_name = "FILE", env = "PARALLAX_CONFIG")]
    config: Option<PathBuf>,
    /// Folder of the store [default: parallax-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// How others learn that it serves.
#[derive(Debug, Args)]
struct ReadyFile {
    /// Write this file when everything serves: addresses, first key and page, as JSON
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

/// Why a command was not done: it ends with 1, or with 2 where a setting was given wrongly beside it.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Logging can't be set up.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The coordinator does not run.
    #[error(transparent)]
    App(#[from] AppError),
    /// The local agents or the demo do not run.
    #[error(transparent)]
    Up(#[from] UpError),
    /// A running coordinator can't be asked.
    #[error(transparent)]
    Client(#[from] client::ClientError),
    /// The command was not done.
    #[error(transparent)]
    Refused(#[from] admin::Fault),
    /// A key file can't be made.
    #[error(transparent)]
    Keys(#[from] parallax_certs::Error),
    /// There is nothing to act on.
    #[error("there is no store in {}: `parallax up` and `parallax serve` make one", .0.display())]
    NoStore(PathBuf),
    /// What came of a command could not be shown.
    #[error("it was done, but the output could not be written: {0}")]
    Output(#[source] std::io::Error),
    /// The runtime or the signals can't be set up.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// What a store ends with that must be put right first: a service manager need not try again.
const RESCUE: u8 = 3;
impl CliError {
    /// The exit code that tells a service manager and a script what to do about it.
    fn code(&self) -> u8 {
        match self {
            Self::App(AppError::Rescue { .. }) | Self::Up(UpError::App(AppError::Rescue { .. })) => RESCUE,
            _ if self.is_usage() => 2,
            _ => 1,
        }
    }

    /// Whether what was given with the command is wrong, not a file or the world.
    fn is_usage(&self) -> bool {
        matches!(self, Self::Config(ConfigError::Faults(faults)) if faults.iter().all(|fault| fault.is_given))
    }
}

/// Does a command line and gives its exit code.
pub async fn run(cli: Cli) -> ExitCode {
    match dispatch(cli.command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::fault(&error.to_string());
            if let Some(file) = settings_file::found() {
                out::fault(&format!("the settings are those of {}", file.display()));
            }
            ExitCode::from(error.code())
        }
    }
}

async fn dispatch(command: Command) -> Result<(), CliError> {
    match command {
        Command::Up { demo, region, network, settings, ready } => {
            let kind = if demo { up::Kind::Demo } else { up::Kind::Single { region, network } };
            // A trial has a folder of its own: the settings of this host's installation are not meant.
            let config =
                settings.place.load(kind.defaults(), &settings.flags(), settings.place.config.clone())?;
            telemetry::start(&config.log)?;
            let shutdown = signals::shutdown()?;
            Ok(up::run(kind, config, ready.ready_file, shutdown).await?)
        }
        Command::Serve { settings, ready } => {
            let config = settings.load(Config::default())?;
            telemetry::start(&config.log)?;
            serve::run(config, ready.ready_file, signals::shutdown()?).await
        }
        Command::CheckConfig { settings } => {
            let config = settings.load(Config::default())?;
            out::line(config.to_toml().trim_end()).map_err(CliError::Output)?;
            if let Some(warning) = config.exposed_admin() {
                out::fault(&format!("warning: {warning}"));
            }
            match config.file_faults() {
                faults if faults.is_empty() => Ok(()),
                faults => Err(ConfigError::Faults(faults).into()),
            }
        }
        Command::Agent(command) => operate::run(command.into()).await,
        Command::Mesh(command) => operate::run(command.into()).await,
        Command::Account(command) => operate::run(command.into()).await,
        Command::Page(command) => operate::run(command.try_into()?).await,
        Command::Key(command) => operate::run(command.into()).await,
        Command::Backup(order) => backup::run(order).await,
        Command::Restore(order) => store::restore(order).await,
        Command::Verify(order) => store::verify(order).await,
        Command::Compact(order) => store::compact(order).await,
        Command::NewSecretsKey(order) => secrets::new_key(&order),
    }
}

impl Settings {
    fn load(&self, defaults: Config) -> Result<Config, ConfigError> {
        self.place.load(defaults, &self.flags(), self.place.file())
    }

    fn flags(&self) -> Flags {
        Flags {
            data: self.place.data.clone(),
            listen: self.listen,
            base_url: self.base_url.clone(),
            root_domain: self.root_domain.clone(),
            mesh_listen: self.mesh_listen,
            admin_listen: self.admin_listen,
        }
    }
}

impl Place {
    /// The settings file: the one that was given, else this host's.
    fn file(&self) -> Option<PathBuf> {
        let is_data_given = self.data.is_some() || std::env::var_os("PARALLAX_DATA").is_some();
        settings_file::find(self.config.as_deref(), is_data_given)
    }

    fn load(&self, defaults: Config, flags: &Flags, file: Option<PathBuf>) -> Result<Config, ConfigError> {
        // A variable that is no text can't be a setting of ours.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Config::load(defaults, file.as_deref(), environment, flags)
    }
}

#[cfg(test)]
mod tests;
