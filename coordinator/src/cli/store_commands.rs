//! `parallax restore`, `verify` and `compact`: maintenance of the store, with or without a running coordinator.

use std::path::PathBuf;

use clap::Args;
use parallax_runtime::clock::Clock;
use serde_json::{Value, json};

use super::command_request::{CommandTarget, show};
use super::{CliError, file_ownership};
use crate::admin::{AdminCommand, CommandError, client, maintenance};
use crate::app::store_maintenance as store;
use crate::app::store_maintenance::{FileVerification, SnapshotRestoration, SnapshotSource};
use crate::config::CoordinatorConfig;
use crate::console;

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// `newest` for the newest usable snapshot, or the file of a backup
    #[arg(value_name = "newest|FILE")]
    source: PathBuf,
    #[command(flatten)]
    target: CommandTarget,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Backup or snapshot file [default: the store]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: CommandTarget,
}

#[derive(Debug, Args)]
pub(super) struct CompactArgs {
    #[command(flatten)]
    target: CommandTarget,
}

/// Verifies the store, or a file.
pub(super) async fn verify(args: VerifyArgs) -> Result<(), CliError> {
    let config = args.target.config()?;
    let summary = if let Some(file) = &args.file {
        let FileVerification { verified, warnings } = store::verify_file(&config, file.clone()).await?;
        let mut summary = maintenance::verification_view(&verified.counts);
        summary["checksumOnly"] = json!(verified.checksum_only);
        add_warnings(&mut summary, &warnings);
        if let Some(records) = verified.undecodable {
            summary["healthy"] = json!(false);
            summary["undecodable"] = json!(records.count);
            print(&args.target, &summary)?;
            let problem = format!(
                "{} is intact, but has {records}\n`parallax restore` takes this file; those records stay unreadable",
                file.display()
            );
            return Err(CommandError::new("damaged", problem).into());
        }
        summary
    } else {
        match client::send_command(&config.data, &AdminCommand::Verify).await? {
            Some(reply) => reply?,
            None => {
                require_store(&config)?;
                let verified = store::verify(&config).await;
                file_ownership::restore_ownership(&config.data);
                maintenance::verification_view(&verified?)
            }
        }
    };
    print(&args.target, &summary)
}

/// Restores a snapshot or backup.
pub(super) async fn restore(args: RestoreArgs) -> Result<(), CliError> {
    let config = args.target.config()?;
    let source = if args.source.as_os_str() == "newest" {
        SnapshotSource::Newest
    } else {
        SnapshotSource::File(args.source.clone())
    };
    let restored = store::restore(&config, source, Clock::system().now()).await;
    file_ownership::restore_ownership(&config.data);
    let SnapshotRestoration { file, result, warnings } = restored?;
    let mut summary = maintenance::verification_view(&result.counts);
    summary["restored"] = json!(file.display().to_string());
    summary["keptAside"] = json!(result.replaced_store.map(|aside| aside.display().to_string()));
    add_warnings(&mut summary, &warnings);
    print(&args.target, &summary)
}

/// Rewrites the store to free space.
pub(super) async fn compact(args: CompactArgs) -> Result<(), CliError> {
    let config = args.target.config()?;
    require_store(&config)?;
    let compacted = store::compact(&config).await;
    file_ownership::restore_ownership(&config.data);
    let compacted = compacted?;
    let mut summary = maintenance::verification_view(&compacted.counts);
    summary["bytesBefore"] = json!(compacted.before);
    summary["bytesAfter"] = json!(compacted.after);
    print(&args.target, &summary)
}

/// Prints warnings to standard error, and adds them to the output for programs.
fn add_warnings(summary: &mut Value, warnings: &[String]) {
    for warning in warnings {
        console::error(&format!("warning: {warning}"));
    }
    if !warnings.is_empty() {
        summary["warnings"] = json!(warnings);
    }
}

/// Returns an error if there is no store, instead of creating one.
pub(super) fn require_store(config: &CoordinatorConfig) -> Result<(), CliError> {
    if config.data.join("store").exists() { Ok(()) } else { Err(CliError::NoStore(config.data.clone())) }
}

pub(super) fn print(target: &CommandTarget, summary: &Value) -> Result<(), CliError> {
    let text = if target.json { console::json(summary) } else { show(summary, &[]) };
    text.map_err(CliError::Output)
}
