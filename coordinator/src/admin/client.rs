//! Client side of the admin socket, for the command line.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{AdminCommand, AdminReply, CommandError, socket_path};

/// Extra time for the reply, beyond the command's own limit.
const REPLY: Duration = Duration::from_secs(15);
/// Maximum size of a reply, in bytes.
const MAX_REPLY: u64 = 64 << 20;

/// An error in talking to a running coordinator.
#[derive(Debug, thiserror::Error)]
pub enum AdminClientError {
    /// The socket failed.
    #[error("can't reach the coordinator over {path}: {source}")]
    Socket {
        /// Path of the socket.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The reply is unreadable.
    #[error("the coordinator's reply could not be read; it may be running another version")]
    Reply,
    /// The backup file could not be written.
    #[error("the backup could not be written: {0}")]
    Write(#[source] io::Error),
    /// The backup arrived corrupted.
    #[error("the received backup differs from what the coordinator sent")]
    Corrupted,
}

/// Sends a command to the coordinator that runs on a data folder; none if none runs.
///
/// # Errors
/// [`AdminClientError`] if it runs but can't be reached.
pub(crate) async fn send_command(
    data: &Path,
    command: &AdminCommand,
) -> Result<Option<Result<Value, CommandError>>, AdminClientError> {
    let Some(stream) = connect(data).await? else { return Ok(None) };
    let fault = |source| socket_error(data, source);
    let line = serde_json::to_string(command).map_err(|_| AdminClientError::Reply)?;
    let reply =
        timeout(command.limit() + REPLY, exchange(stream, line)).await.map_err(|elapsed| fault(elapsed.into()))?;
    match serde_json::from_slice(&reply.map_err(fault)?).map_err(|_| AdminClientError::Reply)? {
        AdminReply::Done(told) => Ok(Some(Ok(told))),
        AdminReply::Fault(fault) => Ok(Some(Err(fault))),
    }
}

/// Connects to the coordinator that runs on a data folder; none if none runs.
pub(super) async fn connect(data: &Path) -> Result<Option<UnixStream>, AdminClientError> {
    match UnixStream::connect(&socket_path(data)).await {
        Ok(stream) => Ok(Some(stream)),
        // Nobody listens: the coordinator was never started, or has ended or was killed.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(socket_error(data, error)),
    }
}

/// Wraps an error of a data folder's socket.
pub(super) fn socket_error(data: &Path, source: io::Error) -> AdminClientError {
    AdminClientError::Socket { path: socket_path(data).display().to_string(), source }
}

async fn exchange(mut stream: UnixStream, line: String) -> io::Result<Vec<u8>> {
    stream.write_all(line.as_bytes()).await?;
    stream.write_all(b"\n").await?;
    let mut reply = Vec::new();
    stream.take(MAX_REPLY).read_to_end(&mut reply).await?;
    Ok(reply)
}
