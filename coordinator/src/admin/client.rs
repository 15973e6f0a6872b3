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
    #[error("the coordinator gave no reply that can be read")]
    Reply,
}

/// Asks the coordinator that runs over a data directory; none where none runs.
///
/// # Errors
/// [`ClientError`] where one runs and can't be asked.
pub async fn ask(data: &Path, command: &Command) -> Result<Option<Result<Value, Fault>>, ClientError> {
    let path = socket::path(data);
    let fault = |source| ClientError::Socket { path: path.display().to_string(), source };
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        // Nobody listens: never started, ended, or killed.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(fault(error)),
    };
    let line = serde_json::to_string(command).map_err(|_| ClientError::Reply)?;
    let reply = timeout(command.limit() + REPLY, exchange(stream, line))
        .await
        .map_err(|elapsed| fault(elapsed.into()))?;
    match serde_json::from_slice(&reply.map_err(fault)?).map_err(|_| ClientError::Reply)? {
        Reply::Done(told) => Ok(Some(Ok(told))),
        Reply::Fault(fault) => Ok(Some(Err(fault))),
    }
}

async fn exchange(mut stream: UnixStream, line: String) -> io::Result<Vec<u8>> {
    stream.write_all(line.as_bytes()).await?;
    stream.write_all(b"\n").await?;
    let mut reply = Vec::new();
    stream.take(MAX_REPLY).read_to_end(&mut reply).await?;
    Ok(reply)
}
