//! `parallax backup`: everything in one file, written by the command itself. A running coordinator only streams it.

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

/// The file's name for standard output.
const STDOUT: &str = "-";

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// A new file, or `-` for standard output
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    whither: Whither,
}

/// Writes a backup, unless the process is told to stop before it is whole.
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
        _ = stop.wait_for(|stop| *stop) => Err(refused("interrupted", "stopped: there is no backup")),
    }
}

/// Only the bytes go out, and are not read back: `parallax verify FILE` proves them where they are kept.
async fn to_stdout(config: &Config) -> Result<(), CliError> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(refused("invalid", "a backup is not text: send standard output to a file or program"));
    }
    // Without the buffer of `Stdout`, which looks for lines.
    let out = File::from(out.as_fd().try_clone_to_owned()?);
    fill(config, out).await.map(drop)
}

/// The file has its name only once it was read back whole and is durable; a file of that name is replaced only by `force`.
async fn to_file(config: &Config, file: &Path, force: bool) -> Result<Value, CliError> {
    let at =
        |path: &Path, error: &dyn std::fmt::Display| refused("io", format!("{}: {error}", path.display()));
    let taken = || at(file, &"is there already; --force replaces it");
    if !force && std::fs::symlink_metadata(file).is_ok() {
        return Err(taken());
    }
    let folder = file.parent().ok_or_else(|| at(file, &"is not a file"))?;
    // For its owner alone, since it holds keys. It goes when this fails or is told to stop.
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

/// Has the coordinator stream it, or reads the store where none runs; returns how many bytes came.
async fn fill(config: &Config, sink: File) -> Result<u64, CliError> {
    // Writes off the runtime: a pipe that nobody reads must not keep the command from being stopped.
    let mut writing = tokio::fs::File::from_std(sink.try_clone()?);
    if let Some(streamed) = backup::receive(&config.data, &mut writing).await? {
        return Ok(streamed?);
    }
    there(config)?;
    let fault = Arc::new(OnceLock::new());
    let counted = store::backup(config, Counted { sink, bytes: 0, fault: Arc::clone(&fault) }).await;
    owner::hand_over(&config.data);
    match fault.get() {
        // Not the store's fault.
        Some(written) => Err(refused("io", format!("the backup can't be written: {written}"))),
        None => Ok(counted?.bytes),
    }
}

fn refused(code: &str, why: impl Into<String>) -> CliError {
    Fault::new(code, why).into()
}

/// A file, how many bytes it took, and why it took no more.
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
            // Only the first is kept.
            Err(error) => drop(self.fault.set(error.to_string())),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
