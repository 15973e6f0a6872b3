//! Encoding and decoding errors.

use crate::close::CloseReason;

/// An encoding or decoding error. [`ProtocolError::close_reason`] returns the reason to close the connection
/// with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The length prefix, or a value about to be sent, exceeds the stream's limit.
    #[error("frame of {length} bytes is over the limit of {limit}")]
    FrameTooLong {
        /// Bytes announced or needed.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The bytes of a whole frame are not one value of the expected type.
    #[error("frame does not decode as {expected}")]
    Undecodable {
        /// The type that was expected.
        expected: &'static str,
    },
    /// A value that decoded but breaks a rule of its type.
    #[error("{field}: {rule}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A local value that could not be encoded.
    #[error("value does not encode")]
    Unencodable,
}

impl ProtocolError {
    /// Returns the close reason that reports this error to the peer.
    pub fn close_reason(&self) -> CloseReason {
        match self {
            Self::FrameTooLong { .. } => CloseReason::FrameTooLong,
            Self::Undecodable { .. } => CloseReason::Undecodable,
            Self::Invalid { .. } => CloseReason::Invalid,
            Self::Unencodable => CloseReason::Internal,
        }
    }
}
