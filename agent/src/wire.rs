//! Frames over QUIC streams.

use parallax_protocol::ProtocolError;
use parallax_protocol::frame::{FrameReader, encode};
use quinn::{RecvStream, SendStream};
use serde::{Serialize, de::DeserializeOwned};

/// Maximum number of bytes read from a stream at once.
const CHUNK: usize = 64 << 10;

/// Reason why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameStreamError {
    /// The stream or its connection is closed; the connection has the reason.
    #[error("stream closed")]
    Closed,
    /// The frame is invalid.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// Result of reading a stream.
#[derive(Debug)]
pub(crate) enum StreamRead<T> {
    /// The next frame.
    Value(T),
    /// The peer has finished the stream.
    End,
}

/// Sends one value as a frame of at most `limit` bytes.
///
/// # Errors
/// [`FrameStreamError`].
pub(crate) async fn send<T: Serialize>(
    stream: &mut SendStream,
    value: &T,
    limit: usize,
) -> Result<(), FrameStreamError> {
    let frame = encode(value, limit)?;
    stream.write_all(&frame).await.map_err(|_| FrameStreamError::Closed)
}

/// Reads frames from a stream.
#[derive(Debug)]
pub(crate) struct FrameStreamReader {
    stream: RecvStream,
    frames: FrameReader,
}

impl FrameStreamReader {
    /// A reader of frames of at most `limit` bytes.
    pub(crate) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, frames: FrameReader::new(limit) }
    }

    /// Returns the next frame. Cancel-safe: bytes are taken only when they are buffered.
    ///
    /// # Errors
    /// [`FrameStreamError::Protocol`] for a frame that is too long, does not decode, or is truncated by the stream's
    /// end.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<StreamRead<T>, FrameStreamError> {
        loop {
            if let Some(value) = self.frames.next_value()? {
                return Ok(StreamRead::Value(value));
            }
            match self.stream.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => self.frames.feed(&chunk.bytes),
                Ok(None) if self.frames.is_mid_frame() => {
                    let expected = std::any::type_name::<T>();
                    return Err(ProtocolError::Undecodable { expected }.into());
                }
                Ok(None) => return Ok(StreamRead::End),
                Err(_) => return Err(FrameStreamError::Closed),
            }
        }
    }
}
