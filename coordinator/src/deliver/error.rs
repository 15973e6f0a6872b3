//! Why a receiver gave no answer, in words that its owner sees: a class each, no address and no system's text.

use parallax_dial::DialError;

/// Why there was no answer, or no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// The client could not be made.
    #[error("deliveries can't be set up: {0}")]
    Setup(String),
    /// The address is none that can be posted to.
    #[error("not an http or https address")]
    NotWeb,
    /// Something that the destination holds can't be used.
    #[error("the destination's {0} can't be used")]
    Destination(&'static str),
    /// Its name leads to no address that may be posted to. Whether there is such a name, and to what it leads, is not said:
    /// it may be one that only the coordinator's own network knows.
    #[error("the name has no public address")]
    NoPublicAddress,
    /// No connection, by the receiver's fault.
    #[error(transparent)]
    Dial(DialError),
    /// No connection, by our own.
    #[error("{0}; this is our own trouble")]
    Ours(DialError),
    /// No answer in time.
    #[error("no answer within 10 s")]
    Timeout,
    /// Its certificate is not acceptable.
    #[error("the certificate is not acceptable: {0}")]
    Certificate(String),
    /// The TLS handshake failed otherwise.
    #[error("the TLS handshake failed")]
    Tls,
    /// What came is no HTTP.
    #[error("the answer is not HTTP")]
    Malformed,
    /// The answer's head has no end.
    #[error("the head of the answer is over 64 KiB")]
    TooLarge,
    /// The connection ended before an answer.
    #[error("the connection was closed before an answer")]
    Closed,
}

impl DeliverError {
    /// Whether the trouble is ours, and says nothing of the receiver.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_) | Self::Setup(_))
    }
}
