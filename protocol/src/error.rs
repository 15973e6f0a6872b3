//! Why bytes from the other side were not accepted, or ours could not be made.

use crate::close::CloseReason;

/// An encoding or decoding fault. [`ProtocolError::close_reason`] says how to end the connection for it.
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
    /// A value decoded, but breaks a rule of its type.
    #[error("{field}: {rule}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A value of ours could not be encoded.
    #[error("value does not encode")]
    Unencodable,
}

impl ProtocolError {
    /// The application close code that tells the peer of this fault.
    pub fn close_reason(&self) -> CloseReason {
        match self {
            Self::FrameTooLong { .. } => CloseReason::FrameTooLong,
            Self::Undecodable { .. } => CloseReason::Undecodable,
            Self::Invalid { .. } => CloseReason::Invalid,
            Self::Unencodable => CloseReason::Internal,
        }
    }
}
