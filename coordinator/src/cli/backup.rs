//! `parallax backup`: writes a backup to one file. A running coordinator only streams it.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::Args;
use serde_json::Value;

use super::operate::Whither;
use super::store::{tell, there};
use super::{CliError, owner, signals};
use crate::admin::{Fault, backup, care};
use crate::app::care as store;
use crate::config::Config;

/// File name that means standard output.
const STDOUT: &str = "-";

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// Backup file to create, or `-` for standard output
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    whither: Whither,
}

/// Writes a backup, unless the process is stopped before it is complete.
pub(super) async fn run(order: Backup) -> Result<(), CliError> {
    let config = order.whither.config()?;
    let mut stop = signals::shutdown()?;
    let work = async {
        if order.file.as_os_str() == STDOUT {
            return to_stdout(&config).await;
        }
        let told = to_file(&config, &std::path::absolute(&order.file)?, order.force).await?;
        tell(&order.whither, &told)
    };
    tokio::select! {
        done = work => done,
        _ = stop.wait_for(|stop| *stop) => Err(refused("interrupted", "stopped; no backup was written")),
    }
}

/// Writes the bytes only, without reading them back: `parallax verify FILE` verifies the stored file.
async fn to_stdout(config: &Config) -> Result<(), CliError> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(refused("invalid", "a backup is binary: redirect standard output to a file or program"));
    }
    // Bypasses the line buffering of `Stdout`.
    let out = File::from(out.as_fd().try_clone_to_owned()?);
    fill(config, out).await.map(drop)
}

/// Writes to a temporary file, which gets its name only once it was read back and is durable. An existing file is
/// replaced only with `force`.
async fn to_file(config: &Config, file: &Path, force: bool) -> Result<Value, CliError> {
    let at =
        |path: &Path, error: &dyn std::fmt::Display| refused("io", format!("{}: {error}", path.display()));
    let taken = || at(file, &"already exists; use --force to replace it");
    if !force && std::fs::symlink_metadata(file).is_ok() {
        return Err(taken());
    }
    let folder = file.parent().ok_or_else(|| at(file, &"is not a file"))?;
    // Readable by its owner only, since it holds keys. It is deleted if this fails or is stopped.
    let part = tempfile::Builder::new().prefix(".backup-").suffix(".part").tempfile_in(folder);
    let part = part.map_err(|error| at(folder, &error))?;
    let bytes = fill(config, part.reopen()?).await?;
    part.as_file().sync_all().map_err(|error| at(part.path(), &error))?;
    let whole = store::verify_file(config, part.path().to_owned()).await?;
    if force {
        part.persist(file).map_err(|error| at(file, &error.error))?;
    } else {
        part.persist_noclobber(file).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => at(file, &error.error),
        })?;
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| at(folder, &error))?;
    owner::hand_over(&config.data);
    Ok(care::backup_view(file, bytes, &whole))
}

/// Streams from the running coordinator, or reads the store if none runs; returns the number of bytes.
async fn fill(config: &Config, sink: File) -> Result<u64, CliError> {
    // Writes on a blocking thread, so that the command can be stopped even if nobody reads the pipe.
    let mut writing = tokio::fs::File::from_std(sink.try_clone()?);
    if let Some(streamed) = backup::receive(&config.data, &mut writing).await? {
        return Ok(streamed?);
    }
    there(config)?;
    let fault = Arc::new(OnceLock::new());
    let counted = store::backup(config, Counted { sink, bytes: 0, fault: Arc::clone(&fault) }).await;
    owner::hand_over(&config.data);
    match fault.get() {
        // A failure of the output, not of the store.
        Some(written) => Err(refused("io", format!("the backup could not be written: {written}"))),
        None => Ok(counted?.bytes),
    }
}

fn refused(code: &str, why: impl Into<String>) -> CliError {
    Fault::new(code, why).into()
}

/// A file that counts the bytes written and records the first error.
#[derive(Debug)]
struct Counted {
    sink: File,
    bytes: u64,
    fault: Arc<OnceLock<String>>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes);
        match &written {
            Ok(taken) => self.bytes += *taken as u64,
            // Only the first error is recorded.
            Err(error) => drop(self.fault.set(error.to_string())),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
