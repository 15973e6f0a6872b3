//! Commands of the agent: `join`, `run`, `status`, `check`, `new-secrets-key`.

mod check;

use crate::clock::AgentClock;
use crate::config::AgentConfig;
use crate::console::{print_error, print_line, print_usage};
use crate::error::AgentError;
use crate::{AgentRuntime, service_manager};
use clap::{Args, Parser, Subcommand};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Path at which the packages install the settings.
const HOST_FILE: &str = "/etc/parallax/agent.toml";

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
    /// Settings file (TOML) [default: /etc/parallax/agent.toml, unless --data is given]
    #[arg(long, global = true, value_name = "FILE", env = "PARALLAX_AGENT_CONFIG")]
    config: Option<PathBuf>,
    /// Folder with identity, schedule and spool
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Source address of the mesh connection and of all checks
    #[arg(long, global = true, value_name = "ADDRESS")]
    source: Option<String>,
    /// Also check loopback, private and other non-public addresses
    #[arg(long, global = true)]
    allow_private: bool,
    /// Also check this host itself and the coordinator
    #[arg(long, global = true)]
    allow_own_host: bool,
    /// Maximum size of the results kept on disk, in bytes
    #[arg(long, global = true, value_name = "BYTES")]
    spool_bytes: Option<String>,
    /// Log level: error, warn, info, debug, trace, or a filter
    #[arg(long, global = true, value_name = "LEVEL", env = "PARALLAX_AGENT_LOG", default_value = "info")]
    log: String,
    /// Log format
    #[arg(long, global = true, value_name = "FORMAT", env = "PARALLAX_AGENT_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// JSON, one object per line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Enrol this host with a token from `parallax agent invite`
    Join {
        /// The coordinator's mesh address
        #[arg(long, value_name = "HOST:PORT")]
        coordinator: String,
        /// The join token
        #[arg(long, env = "PARALLAX_AGENT_TOKEN", hide_env_values = true, required_unless_present = "token_file")]
        token: Option<String>,
        /// A file with the join token
        #[arg(long, value_name = "FILE", env = "PARALLAX_AGENT_TOKEN_FILE", conflicts_with = "token")]
        token_file: Option<PathBuf>,
    },
    /// Run until SIGTERM or Ctrl-C; exit code 4 if this agent was revoked or forgotten, or its certificate has
    /// expired
    Run {
        /// The coordinator's mesh address, if it has changed since the join
        #[arg(long, value_name = "HOST:PORT")]
        coordinator: Option<String>,
    },
    /// Show the state of the data folder's agent; exit code 0 if it is connected
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one check from this host and print the result; exit code 0 passed, 3 failed, 1 inconclusive, 2 bad
    /// arguments
    Check(check::CheckArgs),
    /// Create a key file to encrypt the schedule on disk
    NewSecretsKey {
        /// Key file for `secrets_key_file`; created with mode 0600
        file: PathBuf,
        /// Add a new key to an existing file; it encrypts from then on
        #[arg(long)]
        rotate: bool,
    },
}

/// Runs the command line of this process. Exit codes: 0; 1 (a fault, including in the settings file); 2
/// (usage: the command line or a variable); for `check` also 3 (failed); for `run` also 4 (no longer a
/// member: restarting doesn't help).
pub fn main() -> ExitCode {
    // Fails if a provider is already installed, which is then the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(print_usage(&error)),
    };
    let filter = match parallax_primitives::log_filter::parse(&cli.settings.log) {
        Ok(levels) => Targets::from_iter(levels),
        Err(rule) => {
            print_error(&format!("--log: {rule}"));
            return ExitCode::from(2);
        }
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match cli.settings.log_format {
        LogFormat::Text => {
            let is_coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            tracing_subscriber::registry().with(filter).with(lines.with_ansi(is_coloured)).init();
        }
        LogFormat::Json => tracing_subscriber::registry().with(filter).with(lines.json()).init(),
    }
    let found = host_file(&cli.settings, Path::new(HOST_FILE));
    let given = cli.settings.config.clone();
    match command(cli, given.or_else(|| found.clone()).as_deref()) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error.to_string());
            if let Some(file) = found {
                print_error(&format!("using the settings in {}", file.display()));
            }
            ExitCode::from(match error {
                AgentError::Setting { .. } => 2,
                AgentError::Departed { .. } => 4,
                _ => 1,
            })
        }
    }
}

fn command(cli: Cli, file: Option<&Path>) -> Result<ExitCode, AgentError> {
    // The settings may name the file that is to be created.
    if let Command::NewSecretsKey { file, rotate } = &cli.command {
        return new_secrets_key(file, *rotate);
    }
    let mut config = configure(cli.settings, file)?;
    // One thread: a check is a handful of system calls, and waking another thread costs half as much as
    // those.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AgentError::file("tokio"))?;
    match cli.command {
        Command::Join { coordinator, token, token_file } => {
            let token = match token_file {
                Some(path) => std::fs::read_to_string(&path).map_err(AgentError::file(path))?,
                None => token.unwrap_or_default(),
            };
            let record = runtime.block_on(crate::join::join(&config, &coordinator, &token))?;
            print_line(&format!(
                "joined mesh {} as {} ({}, {}); start it with: parallax-agent run --data {}",
                record.mesh,
                record.name,
                record.region,
                record.network,
                config.data.display()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { coordinator } => {
            if let Some(coordinator) = coordinator {
                let checked = crate::config::parse_coordinator_address(&coordinator);
                config.coordinator =
                    Some(checked.map_err(|rule| AgentError::Setting { field: "--coordinator".into(), rule })?);
            }
            runtime.block_on(run(config))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Status { json } => {
            let now_ms = AgentClock::new(0).wall_ms();
            let (text, connected) = crate::status::report(&config.data, now_ms, json)?;
            print_line(&text)?;
            Ok(ExitCode::from(u8::from(!connected)))
        }
        Command::Check(args) => runtime.block_on(check::check(&config, args)),
        Command::NewSecretsKey { file, rotate } => new_secrets_key(&file, rotate),
    }
}

/// Creates the key file, or adds a new key at its start.
fn new_secrets_key(file: &Path, rotate: bool) -> Result<ExitCode, AgentError> {
    let id = parallax_certs::sealing::write_new_key(file, rotate)?;
    let next = match rotate {
        true => "restart the agent; then remove the older keys",
        false => "make the agent's user its owner, set `secrets_key_file` to its path, and restart the agent",
    };
    print_line(&format!("{}: new key {id}\nNext: {next}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn configure(settings: Settings, file: Option<&Path>) -> Result<AgentConfig, AgentError> {
    let flags = [
        ("data", settings.data),
        ("source", settings.source),
        ("allow_private", settings.allow_private.then(|| "true".to_owned())),
        ("allow_own_host", settings.allow_own_host.then(|| "true".to_owned())),
        ("spool_bytes", settings.spool_bytes),
    ];
    let given = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !name.starts_with("PARALLAX_AGENT_TOKEN"));
    AgentConfig::load(file, environment, given)
}

async fn run(config: AgentConfig) -> Result<(), AgentError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(AgentError::file("SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AgentError::file("SIGINT"))?;
    let agent = AgentRuntime::open(config)?;
    service_manager::ready(&format!("Running checks as {}", agent.identity()));
    let watchdog = service_manager::watchdog(agent.runner_loop_count());
    let running = agent.run(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        service_manager::stopping();
    });
    tokio::select! {
        ended = running => ended,
        never = watchdog => match never {},
    }
}

/// Returns this host's settings file, if it exists and neither a file nor a data folder is given: a folder
/// may mean another agent.
fn host_file(settings: &Settings, path: &Path) -> Option<PathBuf> {
    let is_given =
        settings.config.is_some() || settings.data.is_some() || std::env::var_os("PARALLAX_AGENT_DATA").is_some();
    // An unreadable file is an error, not a reason to act on another agent.
    (!is_given && path.symlink_metadata().is_ok()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_key_file_is_created_once_and_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent-secrets-key");
        let run = |more: &[&str]| {
            let arguments = ["parallax-agent", "new-secrets-key", file.to_str().unwrap()];
            // A settings file that names a key file before it exists.
            let settings = folder.path().join("agent.toml");
            command(Cli::try_parse_from(arguments.iter().chain(more)).unwrap(), Some(&settings))
        };
        run(&[]).unwrap();
        assert!(run(&[]).is_err(), "no key is lost");
        run(&["--rotate"]).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_given_file_or_folder_precedes_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        let found = |line: &[&str]| {
            let arguments = ["parallax-agent"].iter().chain(line).chain(&["run"]);
            host_file(&Cli::try_parse_from(arguments).unwrap().settings, &path)
        };
        assert_eq!(found(&[]), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(found(&[]), Some(path.clone()));
        assert_eq!(found(&["--config", "mine.toml"]), None);
        assert_eq!(found(&["--data", "mine"]), None);
    }

    /// Checks that the command line accepts every agent command in the READMEs.
    #[test]
    fn the_commands_in_the_readmes_are_valid() {
        let mut count = 0;
        for text in [include_str!("../../README.md"), include_str!("../../deploy/README.md")] {
            for command in readme_commands(text) {
                let arguments = shlex::split(&command).expect(&command);
                let parsed = Cli::try_parse_from(&arguments);
                assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count >= 5, "{count}");
    }

    /// Returns the commands of `parallax-agent` in the code blocks, without comments.
    fn readme_commands(text: &str) -> Vec<String> {
        let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.trim_start().strip_prefix("sh\n"));
        let lines = blocks.flat_map(|block| {
            let block = block.replace("\\\n", " ");
            block.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        lines
            .filter_map(|line| {
                let line = line.split(" #").next()?.trim().to_owned();
                let line = line.strip_prefix("sudo -u parallax-agent ").map(str::to_owned).unwrap_or(line);
                line.starts_with("parallax-agent ").then_some(line)
            })
            .collect()
    }
}
