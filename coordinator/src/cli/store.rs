//! `parallax backup`, `restore`, `verify` and `compact`: care of the store, running or not.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::CliError;
use super::operate::{Whither, show};
use crate::admin::{Command, care, client};
use crate::app::care as store;
use crate::app::care::Source;
use crate::clock::Clock;
use crate::config::Config;
use crate::out;

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// A new file
    file: PathBuf,
    #[command(flatten)]
    whither: Whither,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// `newest`: of the snapshots, the newest good one; or the file of a backup
    #[arg(value_name = "newest|FILE")]
    source: PathBuf,
    #[command(flatten)]
    whither: Whither,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// A backup or snapshot [default: the store]
    file: Option<PathBuf>,
    #[command(flatten)]
    whither: Whither,
}

#[derive(Debug, Args)]
pub(super) struct Compact {
    #[command(flatten)]
    whither: Whither,
}

/// Writes a backup: the coordinator does where one runs.
pub(super) async fn backup(order: Backup) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let file = std::path::absolute(&order.file)?;
    let command = Command::Backup { file: file.to_string_lossy().into_owned() };
    let told = match client::ask(&config.data, &command).await? {
        Some(reply) => reply?,
        None => {
            there(&config)?;
            care::exported_view(&file, &store::backup(&config, file.clone()).await?)
        }
    };
    tell(&order.whither, &told)
}

/// Proves the store, or a file.
pub(super) async fn verify(order: Verify) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let told = if let Some(file) = order.file {
        care::whole_view(&store::verify_file(&config, file).await?)
    } else {
        match client::ask(&config.data, &Command::Verify).await? {
            Some(reply) => reply?,
            None => {
                there(&config)?;
                care::whole_view(&store::verify(&config).await?)
            }
        }
    };
    tell(&order.whither, &told)
}

/// Puts a snapshot in the store's place.
pub(super) async fn restore(order: Restore) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let source = if order.source.as_os_str() == "newest" {
        Source::Newest
    } else {
        Source::File(order.source.clone())
    };
    let (file, restored) = store::restore(&config, source, Clock::system().now()).await?;
    let mut told = care::whole_view(&restored.whole);
    told["restored"] = json!(file.display().to_string());
    told["keptAside"] = json!(restored.aside.map(|aside| aside.display().to_string()));
    tell(&order.whither, &told)
}

/// Writes the store anew.
pub(super) async fn compact(order: Compact) -> Result<(), CliError> {
    let config = order.whither.config()?;
    there(&config)?;
    let compacted = store::compact(&config).await?;
    let mut told = care::whole_view(&compacted.whole);
    told["bytesBefore"] = json!(compacted.before);
    told["bytesAfter"] = json!(compacted.after);
    tell(&order.whither, &told)
}

/// Looking for a store that is not there does not make one.
fn there(config: &Config) -> Result<(), CliError> {
    if config.data.join("store").exists() { Ok(()) } else { Err(CliError::NoStore(config.data.clone())) }
}

fn tell(whither: &Whither, told: &Value) -> Result<(), CliError> {
    let shown = if whither.json { out::json(told) } else { show(told, &[]) };
    shown.map_err(CliError::Output)
}
