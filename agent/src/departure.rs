//! Reasons for which an agent has left its mesh.

use parallax_protocol::close::CloseReason;

/// Reason why an agent has left its mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The operator revoked it.
    Revoked,
    /// The coordinator has no such agent.
    Forgotten,
    /// Its certificate has expired.
    Expired,
}

impl Departure {
    /// Returns the departure that a close reason implies; `None` if the membership continues.
    pub(crate) fn from_close_reason(reason: CloseReason) -> Option<Self> {
        match reason {
            CloseReason::Revoked => Some(Self::Revoked),
            CloseReason::UnknownAgent => Some(Self::Forgotten),
            _ => None,
        }
    }

    /// Name in the data folder.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Forgotten => "forgotten",
            Self::Expired => "expired",
        }
    }

    /// Parses that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Revoked, Self::Forgotten, Self::Expired].into_iter().find(|departure| departure.name() == name)
    }
}

impl std::fmt::Display for Departure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Revoked => "this agent was revoked; its schedule, results and identity were deleted",
            Self::Forgotten => "the coordinator has no such agent; its schedule, results and identity were deleted",
            Self::Expired => "this agent's certificate has expired; its schedule and results were deleted",
        })
    }
}
