//! Application error codes and texts with which either side closes a connection.

use serde::{Deserialize, Serialize};

/// Reason for closing a connection. The code is sent in QUIC's CONNECTION_CLOSE together with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// Normal end: the work on this connection is done.
    Done,
    /// The closing side is shutting down and will be back.
    ShuttingDown,
    /// A length prefix over the limit.
    FrameTooLong,
    /// A frame that does not decode.
    Undecodable,
    /// A frame that decodes but breaks a rule.
    Invalid,
    /// A frame that is not allowed at this point.
    OutOfOrder,
    /// A protocol version that this side does not support.
    Version,
    /// A mesh connection without a client certificate.
    MissingCertificate,
    /// The identity was revoked.
    Revoked,
    /// The identity belongs to this mesh, but no such agent is enrolled.
    UnknownAgent,
    /// The certificate has expired.
    Expired,
    /// A newer connection with the same identity has taken over.
    Replaced,
    /// The identity is in quarantine because two hosts keep taking it from each other.
    Quarantined,
    /// The clocks differ by more than the tolerance.
    ClockSkew,
    /// Nothing arrived within the time allowed.
    TimedOut,
    /// Too many attempts from this source or by this agent.
    RateLimited,
    /// The join token was used before.
    TokenUsed,
    /// The join token has expired.
    TokenExpired,
    /// No such join token.
    TokenUnknown,
    /// The join token's secret does not match its id.
    TokenForged,
    /// A certificate request that cannot be granted.
    BadRequest,
    /// An internal error of the closing side.
    Internal,
    /// A renewal was requested with a certificate that a newer one has replaced.
    Superseded,
    /// The operator revoked the join token. Sent only as a close code: see [`Self::is_code_only`].
    TokenRevoked,
    /// Another agent has the name that the join token is for. Sent only as a close code.
    NameTaken,
}

impl CloseReason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 25] = [
        Self::Done,
        Self::ShuttingDown,
        Self::FrameTooLong,
        Self::Undecodable,
        Self::Invalid,
        Self::OutOfOrder,
        Self::Version,
        Self::MissingCertificate,
        Self::Revoked,
        Self::UnknownAgent,
        Self::Expired,
        Self::Replaced,
        Self::Quarantined,
        Self::ClockSkew,
        Self::TimedOut,
        Self::RateLimited,
        Self::TokenUsed,
        Self::TokenExpired,
        Self::TokenUnknown,
        Self::TokenForged,
        Self::BadRequest,
        Self::Internal,
        Self::Superseded,
        Self::TokenRevoked,
        Self::NameTaken,
    ];

    /// Code on the wire. Codes are never reused.
    pub fn code(self) -> u32 {
        match self {
            Self::Done => 0,
            Self::ShuttingDown => 1,
            Self::FrameTooLong => 0x10,
            Self::Undecodable => 0x11,
            Self::Invalid => 0x12,
            Self::OutOfOrder => 0x13,
            Self::Version => 0x14,
            Self::MissingCertificate => 0x20,
            Self::Revoked => 0x21,
            Self::UnknownAgent => 0x22,
            Self::Expired => 0x23,
            Self::Replaced => 0x24,
            Self::Quarantined => 0x25,
            Self::Superseded => 0x26,
            Self::ClockSkew => 0x30,
            Self::TimedOut => 0x31,
            Self::RateLimited => 0x32,
            Self::TokenUsed => 0x40,
            Self::TokenExpired => 0x41,
            Self::TokenUnknown => 0x42,
            Self::TokenForged => 0x43,
            Self::BadRequest => 0x44,
            Self::TokenRevoked => 0x45,
            Self::NameTaken => 0x46,
            Self::Internal => 0x50,
        }
    }

    /// Decodes a code; `None` for one that a later version may have added.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| u64::from(reason.code()) == code)
    }

    /// A short text for the peer's log.
    pub fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ShuttingDown => "shutting down",
            Self::FrameTooLong => "frame too long",
            Self::Undecodable => "frame does not decode",
            Self::Invalid => "frame breaks a rule",
            Self::OutOfOrder => "frame out of order",
            Self::Version => "protocol version not supported",
            Self::MissingCertificate => "a client certificate is required",
            Self::Revoked => "identity revoked",
            Self::UnknownAgent => "identity unknown",
            Self::Expired => "certificate expired",
            Self::Replaced => "replaced by a newer connection with the same identity",
            Self::Quarantined => "identity quarantined: two hosts use it",
            Self::Superseded => "certificate superseded by a newer one of the same agent",
            Self::ClockSkew => "clocks too far apart",
            Self::TimedOut => "timed out",
            Self::RateLimited => "too many attempts",
            Self::TokenUsed => "join token already used",
            Self::TokenExpired => "join token expired",
            Self::TokenUnknown => "join token unknown",
            Self::TokenForged => "join token forged",
            Self::BadRequest => "certificate request refused",
            Self::TokenRevoked => "join token revoked by the operator: ask for a new invitation",
            Self::NameTaken => "another agent has this name: ask for an invitation under another",
            Self::Internal => "internal fault",
        }
    }

    /// Returns true for a reason newer than the first release: a frame must not carry it, since an older peer
    /// cannot decode it. The code of a closed connection may be any number.
    pub fn is_code_only(self) -> bool {
        matches!(self, Self::TokenRevoked | Self::NameTaken)
    }

    /// Returns true if retrying soon cannot help: the agent then waits for minutes, not seconds.
    pub fn is_permanent(self) -> bool {
        match self {
            Self::Version
            | Self::MissingCertificate
            | Self::Revoked
            | Self::UnknownAgent
            | Self::Expired
            | Self::Quarantined
            | Self::Superseded
            | Self::TokenUsed
            | Self::TokenExpired
            | Self::TokenUnknown
            | Self::TokenForged
            | Self::TokenRevoked
            | Self::NameTaken
            | Self::BadRequest => true,
            Self::Done
            | Self::ShuttingDown
            | Self::FrameTooLong
            | Self::Undecodable
            | Self::Invalid
            | Self::OutOfOrder
            | Self::Replaced
            | Self::ClockSkew
            | Self::TimedOut
            | Self::RateLimited
            | Self::Internal => false,
        }
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_its_own_and_reads_back() {
        let codes: BTreeSet<u32> = CloseReason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes.len(), CloseReason::ALL.len());
        for reason in CloseReason::ALL {
            assert_eq!(CloseReason::from_code(u64::from(reason.code())), Some(reason));
        }
        assert_eq!(CloseReason::from_code(0xffff), None);
    }
}
