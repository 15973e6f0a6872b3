//! The command line's side of the admin socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Command, Fault, Reply, socket};

/// How long the reply may take, beyond the time that the command may.
const REPLY: Duration = Duration::from_secs(15);
/// Longest reply, in bytes.
const MAX_REPLY: u64 = 64 << 20;

/// A running coordinator could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket is of no use.
    #[error("the coordinator can't be asked over {path}: {source}")]
    Socket {
        /// The socket.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What came back is no reply.
    #[error("the coordinator gave no reply that can be read; does it run an older version?")]
    Reply,
    /// The file of a backup takes no more.
    #[error("the backup can't be written: {0}")]
    Sink(#[source] io::Error),
    /// A backup is not what the coordinator sent.
    #[error("the backup that arrived differs from the one that the coordinator sent")]
    Differs,
}

/// Asks the coordinator that runs over a data directory; none where none runs.
///
/// # Errors
/// [`ClientError`] where one runs and can't be asked.
pub async fn ask(data: &Path, command: &Command) -> Result<Option<Result<Value, Fault>>, ClientError> {
    let Some(stream) = connect(data).await? else { return Ok(None) };
    let fault = |source| fault(data, source);
    let line = serde_json::to_string(command).map_err(|_| ClientError::Reply)?;
    let reply = timeout(command.limit() + REPLY, exchange(stream, line))
        .await
        .map_err(|elapsed| fault(elapsed.into()))?;
    match serde_json::from_slice(&reply.map_err(fault)?).map_err(|_| ClientError::Reply)? {
        Reply::Done(told) => Ok(Some(Ok(told))),
        Reply::Fault(fault) => Ok(Some(Err(fault))),
    }
}

/// Connects to the coordinator that runs over a data directory; none where none runs.
pub(super) async fn connect(data: &Path) -> Result<Option<UnixStream>, ClientError> {
    match UnixStream::connect(&socket::path(data)).await {
        Ok(stream) => Ok(Some(stream)),
        // Nobody listens: never started, ended, or killed.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(error) => Err(fault(data, error)),
    }
}

/// A fault of the socket of a data directory.
pub(super) fn fault(data: &Path, source: io::Error) -> ClientError {
    ClientError::Socket { path: socket::path(data).display().to_string(), source }
}

async fn exchange(mut stream: UnixStream, line: String) -> io::Result<Vec<u8>> {
    stream.write_all(line.as_bytes()).await?;
    stream.write_all(b"\n").await?;
    let mut reply = Vec::new();
    stream.take(MAX_REPLY).read_to_end(&mut reply).await?;
    Ok(reply)
}
