//! The agent's commands: `join`, `run`, `status`, `check`.

mod check;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::Error;
use crate::out::{complain, say};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs checks from this host for a Parallax mesh.
#[derive(Debug, Parser)]
#[command(name = "parallax-agent", version)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

/// Settings that every command takes; each overrides PARALLAX_AGENT_… and the file.
#[derive(Debug, Args)]
struct Settings {
    /// Settings file (TOML)
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_AGENT_CONFIG")]
    config: Option<PathBuf>,
    /// Folder with identity, schedule and spool
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Address that the mesh connection and all checks come from
    #[arg(long, global = true, value_name = "ADDRESS")]
    source: Option<String>,
    /// Check loopback, private and other non-public addresses too
    #[arg(long, global = true)]
    allow_private: bool,
    /// Bound of the results kept on disk, in bytes
    #[arg(long, global = true, value_name = "BYTES")]
    spool_bytes: Option<String>,
    /// What is logged: error, warn, info, debug, trace, or a filter
    #[arg(long, global = true, value_name = "LEVEL", env = "PARALLAX_AGENT_LOG", default_value = "info")]
    log: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Enrol this host with a token from `parallax agent invite`
    Join {
        /// The coordinator's mesh address
        #[arg(long, value_name = "HOST:PORT")]
        coordinator: String,
        /// The join token
        #[arg(
            long,
            env = "PARALLAX_AGENT_TOKEN",
            hide_env_values = true,
            required_unless_present = "token_file"
        )]
        token: Option<String>,
        /// A file with the join token
        #[arg(long, value_name = "FILE", env = "PARALLAX_AGENT_TOKEN_FILE", conflicts_with = "token")]
        token_file: Option<PathBuf>,
    },
    /// Run until SIGTERM or Ctrl-C; exit code 4 when this agent was revoked, forgotten or its certificate has ended
    Run {
        /// The coordinator's mesh address, where it has moved since the join
        #[arg(long, value_name = "HOST:PORT")]
        coordinator: Option<String>,
    },
    /// Show the agent of the data folder; exit code 0 when it is connected
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one check here and show what it found; exit code 0 passed, 3 failed, 1 could not be judged, 2 bad arguments
    Check(check::CheckArgs),
}

/// Runs the command line of this process. Exit codes: 0, 1 (a fault, also of the settings file), 2 (usage: the command line
/// or a variable), for `check` also 3 (failed), for `run` also 4 (no longer a member: starting it again is of no use).
pub fn main() -> ExitCode {
    // Whoever installed a provider before us installed the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    let filter = EnvFilter::try_new(&cli.settings.log);
    let Ok(filter) = filter else {
        complain("--log: must be error, warn, info, debug, trace, or a filter");
        return ExitCode::from(2);
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match command(cli) {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(match error {
                Error::Setting { .. } => 2,
                Error::Departed { .. } => 4,
                _ => 1,
            })
        }
    }
}

fn command(cli: Cli) -> Result<ExitCode, Error> {
    let mut config = configure(cli.settings)?;
    // One thread: a check is a handful of system calls, and waking another thread costs as much as half of them.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::file("tokio"))?;
    match cli.command {
        Command::Join { coordinator, token, token_file } => {
            let token = match token_file {
                Some(path) => std::fs::read_to_string(&path).map_err(Error::file(path))?,
                None => token.unwrap_or_default(),
            };
            let record = runtime.block_on(crate::join::join(&config, &coordinator, &token))?;
            say(&format!(
                "joined mesh {} as {} ({}, {}); start it with: parallax-agent run --data {}",
                record.mesh,
                record.name,
                record.region,
                record.network,
                config.data.display()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { coordinator } => {
            if let Some(coordinator) = coordinator {
                let checked = crate::config::checked_coordinator(&coordinator);
                config.coordinator =
                    Some(checked.map_err(|rule| Error::Setting { field: "--coordinator".into(), rule })?);
            }
            runtime.block_on(run(config))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Status { json } => {
            let now_ms = Clock::new(0).wall_ms();
            let (text, connected) = crate::status::report(&config.data, now_ms, json)?;
            say(&text);
            Ok(ExitCode::from(u8::from(!connected)))
        }
        Command::Check(args) => runtime.block_on(check::check(&config, args)),
    }
}

fn configure(settings: Settings) -> Result<Config, Error> {
    let flags = [
        ("data", settings.data),
        ("source", settings.source),
        ("allow_private", settings.allow_private.then(|| "true".to_owned())),
        ("spool_bytes", settings.spool_bytes),
    ];
    let given = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !name.starts_with("PARALLAX_AGENT_TOKEN"));
    Config::load(settings.config.as_deref(), environment, given)
}

async fn run(config: Config) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::file("SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::file("SIGINT"))?;
    crate::run(config, async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
