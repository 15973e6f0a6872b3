//! The admin socket of a running coordinator: one line of JSON in, one out, then the connection closes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{AdminCommand, AdminReply, CommandError, MAX_COMMAND, OperatorCommands, backup, socket_path};

/// Concurrent commands; more wait.
const MAX_COMMANDS: usize = 16;
/// Time limit for receiving a command and for sending the reply.
const LINE: Duration = Duration::from_secs(5);
/// Pause after a failed accept, so that a lack of file descriptors causes no busy loop.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A bound admin socket; its file is removed on drop.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: UnixListener,
    path: PathBuf,
}

/// Binds the socket of a data folder, replacing one that a killed coordinator left. Requires the lock of the
/// folder's store.
///
/// # Errors
/// The socket could not be created, for example because its path exceeds the system's limit (about 100 bytes).
pub(crate) fn bind(data: &Path) -> io::Result<AdminListener> {
    let path = socket_path(data);
    let new_path = data.join("admin.new");
    match fs::remove_file(&new_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let listener = UnixListener::bind(&new_path)?;
    // It gets its final name only once no other user can access it.
    fs::set_permissions(&new_path, Permissions::from_mode(0o600))?;
    fs::rename(&new_path, &path)?;
    Ok(AdminListener { listener, path })
}

/// Serves commands until shutdown, then finishes those in progress.
pub(crate) async fn serve(listener: AdminListener, operator: OperatorCommands, mut shutdown: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(MAX_COMMANDS));
    let mut tasks = JoinSet::new();
    loop {
        let accepting = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = tasks.join_next() => continue,
            accepted = accepting => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let operator = operator.clone();
                tasks.spawn(async move {
                    let _slot = slot;
                    if let Err(error) = handle_connection(stream, &operator).await {
                        tracing::debug!(%error, "an admin connection ended early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept an admin connection");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

impl Drop for AdminListener {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "could not remove the admin socket's file");
        }
    }
}

async fn handle_connection(stream: UnixStream, operator: &OperatorCommands) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut line = Vec::new();
    let mut reading = BufReader::new(reading.take(MAX_COMMAND));
    timeout(LINE, reading.read_until(b'\n', &mut line)).await??;
    let reply = match read(&line) {
        Ok(command @ AdminCommand::Backup) => {
            timeout(command.limit(), backup::send(operator.service(), &mut writing)).await??;
            return writing.shutdown().await;
        }
        Ok(command) => match timeout(command.limit(), operator.run(&command)).await {
            Ok(Ok(told)) => AdminReply::Done(told),
            Ok(Err(fault)) => AdminReply::Fault(fault),
            Err(_) => AdminReply::Fault(CommandError::new("internal", "the command took too long")),
        },
        Err(fault) => AdminReply::Fault(fault),
    };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    timeout(LINE, writing.write_all(&text)).await??;
    writing.shutdown().await
}

fn read(line: &[u8]) -> Result<AdminCommand, CommandError> {
    if line.last() != Some(&b'\n') {
        return Err(CommandError::new("invalid", format!("a command is one line of at most {MAX_COMMAND} bytes")));
    }
    serde_json::from_slice(line).map_err(|error| CommandError::new("invalid", format!("not a valid command: {error}")))
}
