//! `parallax backup`: writes a backup to one file. A running coordinator only streams it.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::Args;
use serde_json::Value;

use super::command_request::CommandTarget;
use super::store_commands::{print, require_store};
use super::{CliError, file_ownership, signals};
use crate::admin::{CommandError, backup, maintenance};
use crate::app::store_maintenance as store;
use crate::config::CoordinatorConfig;

/// File name that means standard output.
const STDOUT: &str = "-";

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Backup file to create, or `-` for standard output
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: CommandTarget,
}

/// Writes a backup, unless the process is stopped before it is complete.
pub(super) async fn run(args: BackupArgs) -> Result<(), CliError> {
    let config = args.target.config()?;
    let mut stop = signals::shutdown()?;
    let work = async {
        if args.file.as_os_str() == STDOUT {
            return to_stdout(&config).await;
        }
        let summary = to_file(&config, &std::path::absolute(&args.file)?, args.force).await?;
        print(&args.target, &summary)
    };
    tokio::select! {
        done = work => done,
        _ = stop.wait_for(|stop| *stop) => Err(backup_error("interrupted", "stopped; no backup was written")),
    }
}

/// Writes the bytes only, without reading them back: `parallax verify FILE` verifies the stored file.
async fn to_stdout(config: &CoordinatorConfig) -> Result<(), CliError> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(backup_error("invalid", "a backup is binary: redirect standard output to a file or program"));
    }
    // Bypasses the line buffering of `Stdout`.
    let out = File::from(out.as_fd().try_clone_to_owned()?);
    write_to(config, out).await.map(drop)
}

/// Writes to a temporary file, which gets its name only once it was read back and is durable. An existing file is
/// replaced only with `force`.
async fn to_file(config: &CoordinatorConfig, file: &Path, force: bool) -> Result<Value, CliError> {
    let at = |path: &Path, error: &dyn std::fmt::Display| backup_error("io", format!("{}: {error}", path.display()));
    let exists = || at(file, &"already exists; use --force to replace it");
    if !force && std::fs::symlink_metadata(file).is_ok() {
        return Err(exists());
    }
    let folder = file.parent().ok_or_else(|| at(file, &"is not a file"))?;
    // Readable by its owner only, since it holds keys. It is deleted if this fails or is stopped.
    let partial = tempfile::Builder::new().prefix(".backup-").suffix(".part").tempfile_in(folder);
    let partial = partial.map_err(|error| at(folder, &error))?;
    let bytes = write_to(config, partial.reopen()?).await?;
    partial.as_file().sync_all().map_err(|error| at(partial.path(), &error))?;
    let counts = store::read_back(config, partial.path().to_owned()).await?;
    if force {
        partial.persist(file).map_err(|error| at(file, &error.error))?;
    } else {
        partial.persist_noclobber(file).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(),
            _ => at(file, &error.error),
        })?;
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| at(folder, &error))?;
    file_ownership::restore_ownership(&config.data);
    Ok(maintenance::backup_view(file, bytes, &counts))
}

/// Streams from the running coordinator, or reads the store if none runs; returns the number of bytes.
async fn write_to(config: &CoordinatorConfig, sink: File) -> Result<u64, CliError> {
    // Writes on a blocking thread, so that the command can be stopped even if nobody reads the pipe.
    let mut writing = tokio::fs::File::from_std(sink.try_clone()?);
    if let Some(streamed) = backup::receive(&config.data, &mut writing).await? {
        return Ok(streamed?);
    }
    require_store(config)?;
    let fault = Arc::new(OnceLock::new());
    let result = store::backup(config, CountingFile { sink, bytes: 0, first_error: Arc::clone(&fault) }).await;
    file_ownership::restore_ownership(&config.data);
    match fault.get() {
        // A failure of the output, not of the store.
        Some(write_error) => Err(backup_error("io", format!("the backup could not be written: {write_error}"))),
        None => Ok(result?.bytes),
    }
}

fn backup_error(code: &str, why: impl Into<String>) -> CliError {
    CommandError::new(code, why).into()
}

/// A file that counts the bytes written and records the first error.
#[derive(Debug)]
struct CountingFile {
    sink: File,
    bytes: u64,
    first_error: Arc<OnceLock<String>>,
}

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.sink.write(bytes);
        match &result {
            Ok(count) => self.bytes += *count as u64,
            // Only the first error is recorded.
            Err(error) => drop(self.first_error.set(error.to_string())),
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
