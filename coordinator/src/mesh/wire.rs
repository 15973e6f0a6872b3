//! Frames on QUIC streams, and the ways in which a connection ends.

use std::time::Duration;

use parallax_protocol::ProtocolError;
use parallax_protocol::close::CloseReason;
use parallax_protocol::frame::{FrameReader, encode};
use quinn::{Connection, RecvStream, SendStream, VarInt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Most bytes taken from a stream at once.
const CHUNK: usize = 64 * 1_024;

/// How long a peer may take to make room for a frame.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Why a connection can't go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The peer broke the protocol.
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    /// Another reason of ours.
    #[error("{0}")]
    Close(CloseReason),
    /// The connection or the stream is gone.
    #[error("connection lost")]
    Lost,
}

impl Fault {
    /// With what the connection is closed.
    pub(super) fn reason(&self) -> CloseReason {
        match self {
            Self::Protocol(error) => error.close_reason(),
            Self::Close(reason) => *reason,
            Self::Lost => CloseReason::Done,
        }
    }
}

/// The frames that come on a stream.
#[derive(Debug)]
pub(super) struct Frames {
    stream: RecvStream,
    reader: FrameReader,
}

impl Frames {
    /// Reads frames of at most `limit` bytes.
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, reader: FrameReader::new(limit) }
    }

    /// The next frame; none where the stream ended after a whole one. Nothing is lost where this is dropped early.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Fault> {
        loop {
            if let Some(value) = self.reader.next_value()? {
                return Ok(Some(value));
            }
            match self.stream.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => self.reader.feed(&chunk.bytes),
                Ok(None) if self.reader.is_mid_frame() => return Err(Fault::Close(CloseReason::Undecodable)),
                Ok(None) => return Ok(None),
                Err(_) => return Err(Fault::Lost),
            }
        }
    }
}

/// Writes one frame. A peer that makes no room for it in 10 s is given up.
pub(super) async fn write<T: Serialize>(
    stream: &mut SendStream,
    value: &T,
    limit: usize,
) -> Result<(), Fault> {
    let frame = encode(value, limit)?;
    match timeout(WRITE_LIMIT, stream.write_all(&frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Fault::Lost),
        Err(_) => Err(Fault::Close(CloseReason::TimedOut)),
    }
}

/// Closes a connection with a reason's code and text.
pub(super) fn close(connection: &Connection, reason: CloseReason) {
    connection.close(VarInt::from_u32(reason.code()), reason.text().as_bytes());
}
