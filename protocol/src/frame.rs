//! Length-prefixed frames over byte slices: a u32 little-endian length, then one postcard value.

use crate::error::ProtocolError;
use serde::{Serialize, de::DeserializeOwned};

/// Length of the prefix in bytes.
pub const PREFIX_BYTES: usize = 4;

/// Maximum frame body on a mesh stream, in bytes.
pub const MAX_FRAME: usize = 1 << 20;

/// Maximum frame body on a join stream, in bytes.
pub const MAX_JOIN_FRAME: usize = 8 << 10;

/// Encodes a value as one frame, prefix included.
///
/// # Errors
/// [`ProtocolError::FrameTooLong`] when the body would exceed `limit`.
pub fn encode<T: Serialize>(value: &T, limit: usize) -> Result<Vec<u8>, ProtocolError> {
    let mut frame = vec![0; PREFIX_BYTES];
    frame = postcard::to_extend(value, frame).map_err(|_| ProtocolError::Unencodable)?;
    let length = frame.len().saturating_sub(PREFIX_BYTES);
    let prefix = u32::try_from(length).ok().filter(|_| length <= limit);
    let Some(prefix) = prefix else {
        return Err(ProtocolError::FrameTooLong { length, limit });
    };
    for (slot, byte) in frame.iter_mut().zip(prefix.to_le_bytes()) {
        *slot = byte;
    }
    Ok(frame)
}

/// Decodes the body of one frame; trailing bytes are an error.
///
/// # Errors
/// [`ProtocolError::Undecodable`].
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProtocolError> {
    let undecodable = || ProtocolError::Undecodable { expected: short_name::<T>() };
    let (value, rest) = postcard::take_from_bytes::<T>(body).map_err(|_| undecodable())?;
    if rest.is_empty() { Ok(value) } else { Err(undecodable()) }
}

/// Splits a byte stream into frames. The buffer never holds more than one frame and the bytes that arrived
/// with it.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    buffer: Vec<u8>,
    read: usize,
}

impl FrameReader {
    /// Creates a reader that refuses frames with bodies longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), read: 0 }
    }

    /// Adds bytes from the stream. Take every whole frame with [`Self::next_frame`] before feeding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the body of the next whole frame, or `None` until more bytes are fed.
    ///
    /// # Errors
    /// [`ProtocolError::FrameTooLong`] as soon as a prefix exceeds the limit; the stream is unusable after
    /// it.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, ProtocolError> {
        let waiting = self.buffer.get(self.read..).unwrap_or_default();
        let Some((prefix, rest)) = waiting.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
        if length > self.limit {
            return Err(ProtocolError::FrameTooLong { length, limit: self.limit });
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.read + PREFIX_BYTES;
        self.read = start + length;
        Ok(self.buffer.get(start..self.read))
    }

    /// Returns the next whole frame as a decoded value.
    ///
    /// # Errors
    /// As [`Self::next_frame`] and [`decode`].
    pub fn next_value<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ProtocolError> {
        self.next_frame()?.map(decode).transpose()
    }

    /// Returns true if bytes of an unfinished frame are buffered: a stream that ends now ends in the middle.
    pub fn is_mid_frame(&self) -> bool {
        self.read < self.buffer.len()
    }
}

fn short_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fed_byte_by_byte_come_out_whole() {
        let mut bytes = encode(&"one", MAX_FRAME).unwrap();
        bytes.extend(encode(&"two", MAX_FRAME).unwrap());
        let mut reader = FrameReader::new(MAX_FRAME);
        let mut seen = Vec::new();
        for byte in bytes {
            reader.feed(&[byte]);
            while let Some(text) = reader.next_value::<String>().unwrap() {
                seen.push(text);
            }
        }
        assert_eq!(seen, ["one", "two"]);
        assert!(!reader.is_mid_frame());
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_the_body_arrives() {
        let mut reader = FrameReader::new(8);
        reader.feed(&9u32.to_le_bytes());
        assert_eq!(reader.next_frame(), Err(ProtocolError::FrameTooLong { length: 9, limit: 8 }));
    }

    #[test]
    fn a_value_over_the_limit_is_not_sent() {
        assert!(matches!(encode(&vec![1u8; 20], 10), Err(ProtocolError::FrameTooLong { length: 21, limit: 10 })));
    }

    #[test]
    fn trailing_bytes_are_an_error() {
        assert_eq!(decode::<u8>(&[1, 2]), Err(ProtocolError::Undecodable { expected: "u8" }));
    }
}
