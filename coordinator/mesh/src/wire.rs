//! Frames on QUIC streams, and the reasons for which a connection ends.

use std::time::Duration;

use parallax_protocol::ProtocolError;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{FrameReader, encode};
use quinn::{Connection, RecvStream, SendStream, VarInt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Bytes read from a stream at once.
const CHUNK: usize = 64 * 1_024;

/// Time limit for a peer to accept a frame.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Reason for ending a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionError {
    /// The peer violated the protocol.
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    /// Another reason of the coordinator.
    #[error("{0}")]
    Close(CloseReason),
    /// The connection or the stream is closed.
    #[error("connection lost")]
    Lost,
}

impl SessionError {
    /// Returns the close reason to send.
    pub(super) fn reason(&self) -> CloseReason {
        match self {
            Self::Protocol(error) => error.close_reason(),
            Self::Close(reason) => *reason,
            Self::Lost => CloseReason::Done,
        }
    }
}

/// Reads the frames of a stream.
#[derive(Debug)]
pub(super) struct FrameReceiver {
    stream: RecvStream,
    reader: FrameReader,
}

impl FrameReceiver {
    /// Reads frames of at most `limit` bytes.
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, reader: FrameReader::new(limit) }
    }

    /// Returns the next frame; `None` if the stream ended after a whole one. Cancel-safe.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, SessionError> {
        loop {
            if let Some(value) = self.reader.next_value()? {
                return Ok(Some(value));
            }
            match self.stream.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => self.reader.feed(&chunk.bytes),
                Ok(None) if self.reader.is_mid_frame() => {
                    return Err(SessionError::Close(CloseReason::Undecodable));
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(SessionError::Lost),
            }
        }
    }
}

/// Writes one frame. A peer that does not accept it within 10 s is disconnected.
pub(super) async fn write<T: Serialize>(stream: &mut SendStream, value: &T, limit: usize) -> Result<(), SessionError> {
    let frame = encode(value, limit)?;
    match timeout(WRITE_LIMIT, stream.write_all(&frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(SessionError::Lost),
        Err(_) => Err(SessionError::Close(CloseReason::TimedOut)),
    }
}

/// Closes a connection with a reason's code and text.
pub(super) fn close(connection: &Connection, reason: CloseReason) {
    connection.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
}
