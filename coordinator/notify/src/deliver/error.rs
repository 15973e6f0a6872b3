//! Delivery errors as shown to a destination's owner. They name a class of failure and contain no addresses
//! or system messages.

use parallax_dial::DialError;

/// Reason why a receiver gave no response, or why no request was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The client could not be created.
    #[error("can't set up deliveries: {0}")]
    Setup(String),
    /// Not an address that can be posted to.
    #[error("not an http or https address")]
    UnsupportedUrl,
    /// A setting of the destination can't be used.
    #[error("the destination's {0} can't be used")]
    InvalidSetting(&'static str),
    /// The name resolves to no address that may be posted to. The message doesn't say whether the name exists
    /// or what it resolves to: it may be known only inside the coordinator's own network.
    #[error("the name has no public address")]
    NoPublicAddress,
    /// The connection failed because of the receiver.
    #[error(transparent)]
    Dial(DialError),
    /// The connection failed because of this service.
    #[error("{0}; the problem is on our side")]
    OwnFault(DialError),
    /// No response in time.
    #[error("no response within 10 s")]
    Timeout,
    /// The receiver's certificate is not acceptable.
    #[error("the certificate is not acceptable: {0}")]
    Certificate(String),
    /// The TLS handshake failed for another reason.
    #[error("the TLS handshake failed")]
    Tls,
    /// The response is not HTTP.
    #[error("the response is not HTTP")]
    NotHttp,
    /// The response headers are too large.
    #[error("the response headers are larger than 64 KiB")]
    HeadersTooLarge,
    /// The connection closed before a response.
    #[error("the connection was closed before a response")]
    Closed,
}

impl DeliveryError {
    /// Returns true if the failure is on our side and says nothing about the receiver.
    pub(super) fn is_our_fault(&self) -> bool {
        matches!(self, Self::OwnFault(_) | Self::Setup(_))
    }
}
