//! `parallax restore`, `verify` and `compact`: maintenance of the store, with or without a running coordinator.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::operate::{Whither, show};
use super::{CliError, owner};
use crate::admin::{Command, care, client};
use crate::app::care as store;
use crate::app::care::Source;
use crate::clock::Clock;
use crate::config::Config;
use crate::out;

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// `newest` for the newest intact snapshot, or the file of a backup
    #[arg(value_name = "newest|FILE")]
    source: PathBuf,
    #[command(flatten)]
    whither: Whither,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Backup or snapshot file [default: the store]
    file: Option<PathBuf>,
    #[command(flatten)]
    whither: Whither,
}

#[derive(Debug, Args)]
pub(super) struct Compact {
    #[command(flatten)]
    whither: Whither,
}

/// Verifies the store, or a file.
pub(super) async fn verify(order: Verify) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let told = if let Some(file) = order.file {
        care::whole_view(&store::verify_file(&config, file).await?)
    } else {
        match client::ask(&config.data, &Command::Verify).await? {
            Some(reply) => reply?,
            None => {
                there(&config)?;
                let verified = store::verify(&config).await;
                owner::hand_over(&config.data);
                care::whole_view(&verified?)
            }
        }
    };
    tell(&order.whither, &told)
}

/// Restores a snapshot or backup.
pub(super) async fn restore(order: Restore) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let source = if order.source.as_os_str() == "newest" {
        Source::Newest
    } else {
        Source::File(order.source.clone())
    };
    let restored = store::restore(&config, source, Clock::system().now()).await;
    owner::hand_over(&config.data);
    let (file, restored) = restored?;
    let mut told = care::whole_view(&restored.whole);
    told["restored"] = json!(file.display().to_string());
    told["keptAside"] = json!(restored.aside.map(|aside| aside.display().to_string()));
    tell(&order.whither, &told)
}

/// Rewrites the store to free space.
pub(super) async fn compact(order: Compact) -> Result<(), CliError> {
    let config = order.whither.config()?;
    there(&config)?;
    let compacted = store::compact(&config).await;
    owner::hand_over(&config.data);
    let compacted = compacted?;
    let mut told = care::whole_view(&compacted.whole);
    told["bytesBefore"] = json!(compacted.before);
    told["bytesAfter"] = json!(compacted.after);
    tell(&order.whither, &told)
}

/// Returns an error if there is no store, instead of creating one.
pub(super) fn there(config: &Config) -> Result<(), CliError> {
    if config.data.join("store").exists() { Ok(()) } else { Err(CliError::NoStore(config.data.clone())) }
}

pub(super) fn tell(whither: &Whither, told: &Value) -> Result<(), CliError> {
    let shown = if whither.json { out::json(told) } else { show(told, &[]) };
    shown.map_err(CliError::Output)
}
